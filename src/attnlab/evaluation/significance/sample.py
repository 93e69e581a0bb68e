"""Trained models on the same examples: their values, and how these vary together with the examples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.metric import Metric, Statistics
from attnlab.evaluation.resampling import SEED, bootstrap
from attnlab.evaluation.significance.difference import (
    ROUNDING,
    Part,
    find_least_variance,
    find_resolution,
    ignore_overflow,
)

SAMPLES = 1000
"""Of the examples, with replacement."""
Indices = Sequence[int] | NDArray[np.intp]


@dataclass(frozen=True)
class Sample:
    """Trained models, of any systems, measured on the same examples.

    Attributes:
        values: (models,) of the metric.
        covariance: (models, models), of the values of two models when other examples are drawn for both; NaN where fewer than
            two examples add something, and not finite where values are too large for a square.
        examples: how many add something to one of the models at least.
    """

    values: NDArray[np.float64]
    covariance: NDArray[np.float64]
    examples: int

    def variance(self, one: Indices, other: Indices) -> float:
        """Return mᵀ C m, the variance of the difference of two means if the examples alone are drawn; m is 1/n_a, -1/n_b."""
        rows = _join(one, other)  # of these alone, for the covariance of another may be infinite
        weights = np.concatenate([np.full(len(one), 1 / len(one)), np.full(len(other), -1 / len(other))])
        return float(weights @ self.covariance[np.ix_(rows, rows)] @ weights)

    def part(self, variance: float, one: Indices, other: Indices) -> Part:
        """Return a variance that examples make between models; 0 where rounding alone may have made it."""
        rows = _join(one, other)
        rounding = ROUNDING * float(self.covariance[rows, rows].sum())
        least = max(rounding, find_least_variance(find_resolution(self.values[rows])))
        return Part(0.0 if variance < least else variance, self.examples - 1.0)


def _join(one: Indices, other: Indices) -> NDArray[np.intp]:
    return np.concatenate([one, other]).astype(np.intp)


@ignore_overflow
def sample_models(metric: Metric, statistics: Sequence[Statistics]) -> Sample:
    """Measure models, and how their values vary together with the examples, by the jackknife (Efron and Stein 1981).

    With f_i the values without example i and f̄ their mean over i, the covariance is (N-1)/N Σ_i (f_i - f̄)(f_i - f̄)ᵀ. It needs
    no derivative of the metric and is the same code for all of them that are smooth. For the others it is the covariance over
    samples of the examples with replacement, the same for all models (Efron 1979). The N examples are those that add something:
    a metric may speak of a few alone.

    Args:
        metric: of any kind.
        statistics: what each example adds, (examples, k), of each model; the examples stand in the same order.
    """
    totals = [rows.sum(axis=0) for rows in statistics]
    values = np.array([metric.value(total) for total in totals])
    adding = np.any([rows.any(axis=1) for rows in statistics], axis=0)
    statistics, examples = [rows[adding] for rows in statistics], int(adding.sum())
    if examples < 2:
        return Sample(values, np.full((len(values), len(values)), np.nan), examples)
    if not metric.is_smooth:
        drawn = np.stack([metric.values(bootstrap(rows, SAMPLES, SEED)) for rows in statistics])
        return Sample(values, np.atleast_2d(np.cov(drawn)), examples)
    without = np.stack([metric.values(total - rows) for total, rows in zip(totals, statistics, strict=True)])
    apart = without - without.mean(axis=1, keepdims=True)
    return Sample(values, (examples - 1) / examples * (apart @ apart.T), examples)


def exact_mean(values: NDArray[np.float64]) -> float:
    """Return the mean, which is exact where all values are one."""
    return float(values[0] + (values - values[0]).mean())
