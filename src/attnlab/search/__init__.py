"""Search for a translation: greedy and beam, over any model's ``step``."""

from attnlab.search.beam import AveragePenalty, BeamSearch, GNMTPenalty, NoPenalty
from attnlab.search.greedy import GreedySearch
from attnlab.search.search import Hypothesis, Search

__all__ = ["AveragePenalty", "BeamSearch", "GNMTPenalty", "GreedySearch", "Hypothesis", "NoPenalty", "Search"]
