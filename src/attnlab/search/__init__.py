"""Search for a translation: greedy, beam and sampling, over any model's ``step``, or over several models'."""

from attnlab.search.beam import AveragePenalty, BeamSearch, GNMTPenalty, NoPenalty
from attnlab.search.ensemble import Ensemble, average
from attnlab.search.search import Hypothesis, Search
from attnlab.search.single import GreedySearch, SamplingSearch

__all__ = [
    "AveragePenalty",
    "BeamSearch",
    "Ensemble",
    "GNMTPenalty",
    "GreedySearch",
    "Hypothesis",
    "NoPenalty",
    "SamplingSearch",
    "Search",
    "average",
]
