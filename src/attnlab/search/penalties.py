"""Length penalties: what divides the log-probability of a hypothesis when hypotheses are ranked."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from attnlab.errors import UserError
from attnlab.hints import Range

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
        alpha: α, above 0 and at most 10.

    Raises:
        UserError: an α outside of that.
    """

    alpha: Annotated[float, Range(above=0, most=10)] = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 10:
            raise UserError(
                f"alpha must be above 0 and at most 10, not {self.alpha}; for log-probabilities choose no length penalty"
            )

    def __call__(self, length: int) -> float:
        """Return lp for a length."""
        return math.pow((5.0 + length) / 6.0, self.alpha)
