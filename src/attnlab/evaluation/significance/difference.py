"""A difference of two systems with what it may be off by: interval and p-value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy.special import stdtrit  # scipy.stats takes a second to import

LEVEL = 0.05
"""p below it is a star, and what is left of it to one is the confidence of an interval."""
ROUNDING = 1e-10
"""Differences of values that differ by less, relative to these, are one: sums in another order are rounded otherwise."""
STEPS = 40
"""Bisections of the logarithm of a p-value."""


class Part(NamedTuple):
    """One source of the variance of a difference.

    Attributes:
        variance: that it adds.
        freedom: degrees of freedom by which that is estimated.
    """

    variance: float
    freedom: float


@dataclass(frozen=True)
class Difference:
    """The difference of two systems, d, whose variance V = Σ_k V_k has several sources.

    Its confidence interval is d ± c √V. The critical value c is the mean of the parts' critical values of Student's t,
    weighted by their variances (Cochran and Cox 1957), c = Σ_k V_k t(ν_k) / V: unlike Satterthwaite's, it holds its level
    with three runs beside a thousand examples, whichever of both varies more. p is the level at which the interval reaches 0.

    Where nothing varies and d is not 0, nothing shows how far others would lie apart: there is no interval and no p.

    Attributes:
        value: d.
        parts: V_k and ν_k; a part that cannot be estimated is NaN, as are interval and p then.
    """

    value: float
    parts: tuple[Part, ...]

    @property
    def variance(self) -> float:
        """V; NaN where it is not known."""
        variance = sum(part.variance for part in self.parts)
        return variance if variance or not self.value else math.nan

    def interval(self, confidence: float = 1 - LEVEL) -> tuple[float, float]:
        """Return the confidence interval."""
        half = self.half_width(confidence)
        return self.value - half, self.value + half

    def shown_interval(self, confidence: float = 1 - LEVEL) -> tuple[float, float]:
        """Return the confidence interval; NaN where nothing varies, for equal values do not tell what others would be."""
        low, high = self.interval(confidence)
        return (low, high) if low < high else (math.nan, math.nan)

    def half_width(self, confidence: float = 1 - LEVEL) -> float:
        """Return c √V."""
        return _critical(self.parts, self.variance, (1 - confidence) / 2) * math.sqrt(self.variance)

    @property
    def p(self) -> float:
        """Probability of a difference at least as large if there was none."""
        variance = self.variance
        if math.isnan(self.value - variance):
            return math.nan
        if not variance:
            return 1.0
        ratio = abs(self.value) / math.sqrt(variance)
        low, high = -700.0, math.log(0.5)  # of the logarithm of p / 2
        for _ in range(STEPS):
            middle = (low + high) / 2
            if _critical(self.parts, variance, math.exp(middle)) > ratio:
                low = middle
            else:
                high = middle
        return min(1.0, 2 * math.exp(high))


def _critical(parts: Sequence[Part], variance: float, tail: float) -> float:
    """Return what Student's t exceeds with some probability, averaged over the parts."""
    if not variance > 0:
        return math.nan if math.isnan(variance) else 0.0
    return -sum(part.variance * float(stdtrit(part.freedom, tail)) for part in parts if part.variance) / variance
