"""A difference of two systems with what it may be off by: interval and p-value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import stdtrit  # scipy.stats takes a second to import

LEVEL = 0.05
"""p below it is a star, and what is left of it to one is the confidence of an interval."""
ROUNDING = 1e-10
"""Values that differ by less than this share of themselves count as equal: sums in another order are rounded differently."""
LEAST = -230.0
"""Of the logarithm of half a p-value: below e^-250 ``stdtrit`` gives infinities and NaN."""


ignore_overflow = np.errstate(over="ignore", invalid="ignore")
"""Decorates what squares values: a perplexity may be 1e304, and a variance that is infinite then counts as not known."""


def find_resolution(values: NDArray[np.float64]) -> float:
    """Return by how much values of such a size may differ by rounding alone."""
    return ROUNDING * float(np.abs(values).max())


def find_least_variance(resolution: float) -> float:
    """Return the variance that says nothing of values with a resolution: its square, infinite where that is no number."""
    return resolution * resolution  # a power would raise


def drop_rounding(difference: float, resolution: float) -> float:
    """Return a difference, or 0 where rounding alone may have made it."""
    return 0.0 if abs(difference) <= resolution else difference


class Part(NamedTuple):
    """One source of the variance of a difference.

    Attributes:
        variance: that it adds.
        freedom: degrees of freedom by which that is estimated.
    """

    variance: float
    freedom: float


def mean_variance(values: NDArray[np.float64], resolution: float) -> float:
    """Return the variance of a mean over seeds, S² / n; nothing where values differ by rounding alone."""
    spread = float((values - values[0]).var(ddof=1))
    return 0.0 if spread < find_least_variance(resolution) else spread / len(values)


def welch_part(variances: Sequence[float], counts: Sequence[int]) -> Part:
    """Return the variance of a difference of means over seeds, and its degrees of freedom by Welch (1947).

    These are estimated from the same few seeds; they are at most those that the smaller number of seeds would have on both
    sides.

    Args:
        variances: of the means, from :func:`mean_variance`.
        counts: of seeds.
    """
    whole, most = sum(variances), 2.0 * (min(counts) - 1)
    if not 0 < whole < math.inf:
        return Part(whole, most)
    terms = sum((variance / whole) ** 2 / (count - 1) for variance, count in zip(variances, counts, strict=True))
    return Part(whole, min(1 / terms, most))


@dataclass(frozen=True)
class Difference:
    """The difference of two systems, d, whose variance V = Σ_k V_k has several sources.

    Its confidence interval is d ± √(Σ_k V_k t(ν_k)²), t being the critical values of Student's t (Banerjee 1960): unlike
    Satterthwaite's, it holds its level with three runs beside a thousand examples, whichever of both varies more, at any level,
    as far as the degrees of freedom of each part are right, as Welch's are about. The mean of the critical values weighted by
    V_k (Cochran and Cox 1957) does not at the small levels that Holm's correction asks for, where it would also be narrower the
    more examples vary. p is the level at which the interval reaches 0.

    Where nothing varies and d is not 0, nothing shows how far others would lie apart: there is no interval and no p.

    Attributes:
        value: d.
        parts: V_k and ν_k; a part that cannot be estimated is NaN, or infinite, and interval and p are NaN then.
    """

    value: float
    parts: tuple[Part, ...]

    @property
    def variance(self) -> float:
        """V; NaN where it is not known."""
        variance = sum(part.variance for part in self.parts)
        return variance if math.isfinite(variance) and (variance or not self.value) else math.nan

    def interval(self, confidence: float = 1 - LEVEL) -> tuple[float, float]:
        """Return the confidence interval."""
        half = self.half_width(confidence)
        return self.value - half, self.value + half

    def shown_interval(self, confidence: float = 1 - LEVEL) -> tuple[float, float]:
        """Return the confidence interval; NaN where nothing varies, for equal values do not tell what others would be."""
        low, high = self.interval(confidence)
        return (low, high) if low < high else (math.nan, math.nan)

    def half_width(self, confidence: float = 1 - LEVEL) -> float:
        """Return half of the interval."""
        return self._half_width((1 - confidence) / 2)

    def _half_width(self, tail: float) -> float:
        """Return what a difference of nothing exceeds with some probability, to one side."""
        if not self.variance > 0:
            return self.variance
        return math.sqrt(sum(part.variance * float(stdtrit(part.freedom, tail)) ** 2 for part in self.parts if part.variance))

    @property
    def p(self) -> float:
        """Probability of a difference at least as large if there was none."""
        variance = self.variance
        if math.isnan(self.value - variance):
            return math.nan
        if not variance or self.value == 0:
            return 1.0

        def excess(logarithm: float) -> float:
            return self._half_width(math.exp(logarithm)) - abs(self.value)

        is_least = excess(LEAST) <= 0
        return min(1.0, 2 * math.exp(LEAST if is_least else brentq(excess, LEAST, math.log(0.5))))
