"""Search for target sequences: greedy, beam and sampling, over any model's ``step``, or over several models'."""

from attnlab.search.beam import BeamSearch
from attnlab.search.ensemble import Ensemble, average
from attnlab.search.penalties import AveragePenalty, GNMTPenalty, LengthPenalty, NoPenalty
from attnlab.search.search import Hypothesis, Search
from attnlab.search.single import GreedySearch, SamplingSearch, SinglePathSearch

__all__ = [
    "AveragePenalty",
    "BeamSearch",
    "Ensemble",
    "GNMTPenalty",
    "GreedySearch",
    "Hypothesis",
    "LengthPenalty",
    "NoPenalty",
    "SamplingSearch",
    "Search",
    "SinglePathSearch",
    "average",
]
