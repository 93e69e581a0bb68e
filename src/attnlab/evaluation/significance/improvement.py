"""How often a model of one system is better than one of another: the probability of improvement, and stochastic order."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr

from attnlab.evaluation.resampling import SEED
from attnlab.evaluation.significance.difference import LEVEL

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
    three seeds hold far less than 95 %, the interval is that of :func:`_invert_test` with the variance of Newcombe (2006,
    method 5),

        v(θ) = θ(1-θ) (1 + M ((1-θ)/(2-θ) + θ/(1+θ))) / (n m),    M = (n + m) / 2 - 1,

    and Student's t of 2 (min(n, m) - 1) degrees of freedom, of which there are n + m - 2 where n = m.

    Args:
        one: values of the models of A, (n,); the higher, the better.
        other: of B, (m,).
        examples_variance: what the choice of examples adds to the variance of the difference.
    """
    more = (len(one) + len(other)) / 2 - 1
    pairs = len(one) * len(other)

    def variance(share: NDArray[np.float64]) -> NDArray[np.float64]:
        return share * (1 - share) * (1 + more * ((1 - share) / (2 - share) + share / (1 + share))) / pairs

    correlation = _correlate(examples_variance, float(one.var(ddof=1) + other.var(ddof=1)))
    # More seeds of one system say nothing of how far those of the other lie apart.
    freedom = 2 * (min(len(one), len(other)) - 1)
    return _invert_test(_wins((one[:, None] - other[None, :]).ravel()), variance, correlation, freedom)


def probability_by_pairs(apart: NDArray[np.float64], examples_variance: float = 0.0) -> Probability:
    """Return P(A > B) where models are pairs: the share of pairs that A wins, with an interval of :func:`_invert_test`.

    Its variance is v(θ) = θ(1-θ) / n, as in Wilson's (1927) score interval, with n - 1 degrees of freedom.

    Args:
        apart: value of A minus value of B of each pair, (pairs,).
        examples_variance: what the choice of examples adds to the variance of the mean, as in
            :func:`probability_of_improvement`; 0 where every pair has examples of its own.
    """
    correlation = _correlate(examples_variance, float(apart.var(ddof=1)))
    return _invert_test(_wins(apart), lambda share: share * (1 - share) / len(apart), correlation, len(apart) - 1)


def _wins(apart: NDArray[np.float64]) -> float:
    return float(((apart > 0) + 0.5 * (apart == 0)).mean())


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
    ratio = float(_violation(one[None, :], other[None, :])[0])
    drawn = [values[draw.integers(len(values), size=(samples, len(values)))] for values in (one, other)]
    deviation = float(np.std(_violation(*drawn)))  # both roots cancel
    return min(1.0, max(0.0, ratio + deviation * float(ndtri(confidence))))


def _violation(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the violation ratio of each row; as quantile functions are steps, the integrals are sums."""
    ends = np.unique(np.concatenate([np.arange(1, values.shape[1] + 1) / values.shape[1] for values in (one, other)]))
    widths = np.diff(ends, prepend=0.0)
    places = ends - widths / 2
    first, second = (np.sort(v, axis=1)[:, (places * v.shape[1]).astype(int)] for v in (one, other))
    apart = first - second
    violated, whole = (np.minimum(apart, 0.0) ** 2) @ widths, apart**2 @ widths
    ratios = np.full(len(apart), 0.5)
    np.divide(violated, whole, out=ratios, where=whole > 0)
    return ratios
