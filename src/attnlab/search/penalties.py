"""Length penalties: what divides the log-probability of a hypothesis when hypotheses are ranked."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from attnlab.errors import UserError

LengthPenalty = Callable[[int], float]
"""From a hypothesis' length, the end symbol included, to what divides its log-probability."""


@dataclass(frozen=True)
class NoPenalty:
    """Rank by log-probability alone."""

    def __call__(self, length: int) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class AveragePenalty:
    """Rank by the mean log-probability of a token."""

    def __call__(self, length: int) -> float:
        """Return the length."""
        return float(length)


@dataclass(frozen=True)
class GNMTPenalty:
    """lp(Y) = (5 + |Y|)^α / (5 + 1)^α (Wu et al. 2016, equation 14).

    Attributes:
        alpha: α, not 0.

    Raises:
        UserError: an α that makes no difference.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.alpha == 0:
            raise UserError("a length penalty with an alpha of 0 makes no difference: set another, or choose no length penalty")

    def __call__(self, length: int) -> float:
        """Return lp for a length."""
        return math.pow((5.0 + length) / 6.0, self.alpha)
