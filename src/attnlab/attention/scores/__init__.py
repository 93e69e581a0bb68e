"""Score functions: how well does each key answer a query?

Every class is one equation. ``project_keys`` does the part that depends on the source alone, once for a source; ``forward``
does the rest for one query or for all queries of a sequence at once, with the same code.
"""

from attnlab.attention.scores.location import Location
from attnlab.attention.scores.networks import Additive, Concat, Linear, Network, NormalizedAdditive, SharedConcat
from attnlab.attention.scores.products import Cosine, Dot, General, LearnedScaleDot, NormalizedDot, ScaledDot
from attnlab.attention.scores.score import EqualSizes, Score, find_unreached, score_within, validate_score

__all__ = [
    "Additive",
    "Concat",
    "Cosine",
    "Dot",
    "EqualSizes",
    "General",
    "LearnedScaleDot",
    "Linear",
    "Location",
    "Network",
    "NormalizedAdditive",
    "NormalizedDot",
    "ScaledDot",
    "Score",
    "SharedConcat",
    "find_unreached",
    "score_within",
    "validate_score",
]
