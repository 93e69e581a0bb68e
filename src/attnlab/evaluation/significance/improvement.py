"""How often a model of one system is better than one of another: the probability of improvement, and stochastic order."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, owens_t, stdtr

from attnlab.evaluation.resampling import SEED
from attnlab.evaluation.significance.difference import LEVEL, find_resolution, mean_variance, welch_part

SHIFTS = ndtri((np.arange(50) + 0.5) / 50)
"""Quantiles of the standard normal distribution."""
TINY = 1e-12
"""What rounding may come to."""
LEAST_SEEDS = 5
"""By which a stochastic order can be told (Ulmer et al. 2022)."""


class Probability(NamedTuple):
    """A probability with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def probability_of_improvement(
    one: NDArray[np.float64], other: NDArray[np.float64], examples_variance: float = 0.0
) -> Probability:
    """Return P(A > B), how probably a newly trained A is better than a newly trained B (Bouthillier et al. 2021).

    It is estimated by the share of pairs of models that A wins, ties counting one half. As percentiles of a bootstrap over
    three seeds hold far less than 95 %, the interval is that of :func:`_invert_test` with the variance of this share (Hanley
    and McNeil 1982, equation 1),

        v(θ) = (θ(1-θ) + (m-1) (Q_a - θ²) + (n-1) (Q_b - θ²)) / (n m).

    Q_a is how probably one model of A beats two of B, and Q_b how probably two of A beat one of B. Of normal values with the
    variances σ²_a and σ²_b, whatever their ratio,

        Q_a = Φ₂(z, z; σ²_a / (σ²_a + σ²_b)),    Q_b = Φ₂(z, z; σ²_b / (σ²_a + σ²_b)),    z = Φ⁻¹(θ),

    Φ₂ being the normal distribution of two numbers with that correlation. Student's t has the degrees of freedom of
    :func:`welch_part`.

    Args:
        one: values of the models of A, (n,); the higher, the better.
        other: of B, (m,).
        examples_variance: what the choice of examples adds to the variance of the difference.
    """
    resolution, counts = find_resolution(np.concatenate([one, other])), (len(one), len(other))
    of_means = [mean_variance(values, resolution) for values in (one, other)]
    spreads = [variance * count for variance, count in zip(of_means, counts, strict=True)]
    part = spreads[0] / sum(spreads) if 0 < sum(spreads) < math.inf else 0.5

    def variance(share: NDArray[np.float64]) -> NDArray[np.float64]:
        both = zip((part, 1 - part), (counts[1] - 1, counts[0] - 1), strict=True)
        more = sum(others * (_beat_two(share, correlation) - share**2) for correlation, others in both)
        return (share * (1 - share) + more) / math.prod(counts)

    correlation = _correlate(examples_variance, sum(spreads))
    wins = _wins((one[:, None] - other[None, :]).ravel(), resolution)
    return _invert_test(wins, variance, correlation, welch_part(of_means, counts).freedom)


def _beat_two(probability: NDArray[np.float64], correlation: float) -> NDArray[np.float64]:
    """Return Φ₂(z, z; ρ) with z = Φ⁻¹(p) by the function of Owen (1956), T: p - 2 T(z, √((1-ρ) / (1+ρ)))."""
    both: NDArray[np.float64] = probability - 2 * owens_t(ndtri(probability), math.sqrt((1 - correlation) / (1 + correlation)))
    return both


def probability_by_pairs(one: NDArray[np.float64], other: NDArray[np.float64], examples_variance: float = 0.0) -> Probability:
    """Return P(A > B) where models are pairs: the share of pairs that A wins, with an interval of :func:`_invert_test`.

    Its variance is v(θ) = θ(1-θ) / n, as in Wilson's (1927) score interval, with n - 1 degrees of freedom.

    Args:
        one: values of the models of A, (pairs,); the higher, the better.
        other: of B, in the same order.
        examples_variance: what the choice of examples adds to the variance of the mean, as in
            :func:`probability_of_improvement`; 0 where every pair has examples of its own.
    """
    apart, resolution = one - other, find_resolution(np.concatenate([one, other]))
    correlation = _correlate(examples_variance, mean_variance(apart, resolution) * len(apart))
    return _invert_test(_wins(apart, resolution), lambda share: share * (1 - share) / len(apart), correlation, len(apart) - 1)


def _wins(apart: NDArray[np.float64], resolution: float) -> float:
    return float(((apart > resolution) + 0.5 * (np.abs(apart) <= resolution)).mean())


def _correlate(examples: float, seeds: float) -> float:
    """Return ρ, the correlation of the differences of two pairs of models of other seeds on the same examples."""
    return examples / (examples + seeds) if examples else 0.0


def _invert_test(
    share: float, variance: Callable[[NDArray[np.float64]], NDArray[np.float64]], correlation: float, freedom: float
) -> Probability:
    """Return a share of wins with the interval of all probabilities that are not rejected by it.

    Differences of models are taken for normal, with one part that is each pair's own and one, of the share ρ of the variance,
    that the choice of examples gives to all pairs. If other examples move them by u standard deviations, A wins with the
    probability w(u), and a share as large as θ̂ has the probability

        P(θ) = ∫ F((w(u) - θ̂) / √v(w(u))) φ(u) du,    w(u) = Φ((Φ⁻¹(θ) + √ρ u) / √(1-ρ)),

    F being the distribution of Student's t. θ is in the interval if P(θ) and 1 - P(θ) are 2.5 % or more; without a choice of
    examples, where ρ = 0, that is |θ̂ - θ| ≤ t √v(θ).

    Args:
        share: θ̂.
        variance: v, of a share around what it estimates.
        correlation: ρ.
        freedom: degrees of freedom.
    """
    shifts = math.sqrt(correlation) * SHIFTS if correlation else np.zeros(1)

    def as_large(probability: float) -> float:
        wins = ndtr((ndtri(probability) + shifts) / math.sqrt(max(1 - correlation, TINY)))
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.nan_to_num((wins - share) / np.sqrt(variance(wins)))  # nothing varies where A always wins
        return float(stdtr(freedom, apart).mean())

    middle, tail = as_large(share), LEVEL / 2
    low = brentq(lambda probability: as_large(probability) - tail, 0.0, share) if share > 0 and middle > tail else share
    high = (
        brentq(lambda probability: as_large(probability) - 1 + tail, share, 1.0) if share < 1 and middle < 1 - tail else share
    )
    return Probability(share, low, high)


def stochastic_order(
    one: NDArray[np.float64],
    other: NDArray[np.float64],
    *,
    confidence: float = 1 - LEVEL,
    samples: int = 1000,
) -> float:
    """Return ε_min, how far A is from being stochastically larger than B, at most (del Barrio et al. 2018, Dror et al. 2019).

    With F⁻¹ and G⁻¹ the quantile functions of A and B, the violation ratio is ε = ∫ max(0, G⁻¹ - F⁻¹)² / ∫ (F⁻¹ - G⁻¹)², and

        ε_min = ε + √((n + m) / (n m)) σ̂ Φ⁻¹(confidence),    clipped to [0, 1],

    σ̂ being the deviation of √(n m / (n + m)) (ε* - ε) over a bootstrap. Below 0.5, A is almost stochastically larger than B;
    Ulmer et al. (2022) advise to ask for 0.2. Two samples of the same values have ε = 0.5.

    Args:
        one: values of the models of A, (n,); the higher, the better.
        other: of B, (m,).
        confidence: with which the ratio is no larger.
        samples: of the bootstrap.
    """
    draw = np.random.default_rng(SEED)
    resolution = find_resolution(np.concatenate([one, other]))
    ratio = float(_violation(one[None, :], other[None, :], resolution)[0])
    first, second = (values[draw.integers(len(values), size=(samples, len(values)))] for values in (one, other))
    deviation = float(np.std(_violation(first, second, resolution)))  # both roots cancel
    return min(1.0, max(0.0, ratio + deviation * float(ndtri(confidence))))


def _violation(one: NDArray[np.float64], other: NDArray[np.float64], resolution: float) -> NDArray[np.float64]:
    """Return the violation ratio of each row; as quantile functions are steps, the integrals are sums."""
    ends = np.unique(np.concatenate([np.arange(1, values.shape[1] + 1) / values.shape[1] for values in (one, other)]))
    widths = np.diff(ends, prepend=0.0)
    places = ends - widths / 2
    first, second = (np.sort(v, axis=1)[:, (places * v.shape[1]).astype(int)] for v in (one, other))
    apart = first - second
    apart[np.abs(apart) <= resolution] = 0.0
    violated, whole = (np.minimum(apart, 0.0) ** 2) @ widths, apart**2 @ widths
    ratios = np.full(len(apart), 0.5)
    np.divide(violated, whole, out=ratios, where=whole > 0)
    return ratios
