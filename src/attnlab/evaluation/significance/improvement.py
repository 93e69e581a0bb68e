"""How often a model of one system is better than one of another: the probability of improvement, and stochastic order."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from attnlab.evaluation.resampling import SEED
from attnlab.evaluation.significance.difference import LEVEL

GRID = np.linspace(0.0, 1.0, 2001)
"""Probabilities among which the ends of an interval are looked for."""
SHIFTS = ndtri((np.arange(99) + 0.5) / 99)
"""Quantiles of the standard normal distribution."""
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
    three seeds hold far less than 95 %, the interval is Newcombe's (2006, method 5): all θ for which

        |θ̂ - θ| ≤ t √(θ(1-θ) (1 + M ((1-θ)/(2-θ) + θ/(1+θ))) / (n m) + e),    M = (n + m) / 2 - 1,

    with Student's t of 2 (min(n, m) - 1) degrees of freedom, of which there are n + m - 2 where n = m, and e the variance of θ̂
    if other examples move all differences of A and B by a normal variable of the given variance.

    Args:
        one: values of the models of A, (n,); the higher, the better.
        other: of B, (m,).
        examples_variance: what the choice of examples adds to the variance of the difference.
    """
    apart = (one[:, None] - other[None, :]).ravel()
    share = float(_wins(apart))
    more = (len(one) + len(other)) / 2 - 1
    spread = GRID * (1 - GRID) * (1 + more * ((1 - GRID) / (2 - GRID) + GRID / (1 + GRID))) / len(apart)
    # More seeds of one system say nothing of how far those of the other lie apart.
    freedom = 2 * (min(len(one), len(other)) - 1)
    return _invert_test(share, spread + _shift_variance(apart, examples_variance), float(stdtrit(freedom, 1 - LEVEL / 2)))


def probability_by_pairs(apart: NDArray[np.float64], examples_variance: float = 0.0) -> Probability:
    """Return P(A > B) where models are pairs: the share of pairs that A wins, with Wilson's score interval.

    Args:
        apart: value of A minus value of B of each pair, (pairs,).
        examples_variance: what the choice of examples adds to the variance of the mean, as in
            :func:`probability_of_improvement`; 0 where every pair has examples of its own.
    """
    spread = GRID * (1 - GRID) / len(apart)
    return _invert_test(
        float(_wins(apart)), spread + _shift_variance(apart, examples_variance), float(stdtrit(len(apart) - 1, 1 - LEVEL / 2))
    )


def _shift_variance(apart: NDArray[np.float64], variance: float) -> float:
    """Return the variance of the share of wins if a normal variable of some variance moves all differences at once."""
    return float(np.var(_wins(apart[None, :] + math.sqrt(variance) * SHIFTS[:, None])))


def _wins(apart: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(((apart > 0) + 0.5 * (apart == 0)).mean(axis=-1))


def _invert_test(share: float, variance: NDArray[np.float64], critical: float) -> Probability:
    """Return the interval of all probabilities that are no farther from the share than their own variance allows."""
    inside = GRID[np.abs(GRID - share) <= critical * np.sqrt(variance) + 1e-12]
    return Probability(share, min(share, float(inside[0])), max(share, float(inside[-1])))


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
