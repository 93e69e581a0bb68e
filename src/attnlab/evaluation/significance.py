"""Is one system better than another, or was it luck?"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import UserError
from attnlab.evaluation.metric import Metric, Statistics
from attnlab.evaluation.resampling import SEED, exchange, values

ROUNDING = 1e-10
"""Differences of values that differ by less, relative to these, are one: sums in another order are rounded otherwise."""


@dataclass(frozen=True)
class Difference:
    """One system against the baseline.

    Attributes:
        value: its metric.
        difference: to the baseline's.
        p: probability of a difference at least as large if both were equally good; NaN where a system has no value.
        corrected: p after Holm's correction for all comparisons made at once.
    """

    value: float
    difference: float
    p: float
    corrected: float


def compare_systems(
    metric: Metric,
    baseline: Statistics,
    systems: Mapping[str, Statistics],
    *,
    samples: int = 10_000,
    seed: int = SEED,
) -> dict[str, Difference]:
    """Compare systems with a baseline on the same examples by paired approximate randomization, whatever the metric.

    The test (Riezler and Maxwell 2005) is sacreBLEU's; but a difference that is as large as the one observed counts as such, so
    that equal systems have p 1.

    Several seeds of one variant are compared by setting their examples one after another, seed by seed.

    Args:
        metric: that they are compared by.
        baseline: what each example adds to the baseline's metric, (examples, k).
        systems: the same of each other system.
        samples: exchanges.
        seed: of these.

    Raises:
        UserError: a system that was not tested on as many examples as the baseline, or measured by another metric.
    """
    for name, statistics in systems.items():
        if statistics.shape[1:] != baseline.shape[1:]:
            raise UserError(f"{name} was not measured by the same metric as the baseline: measure both again")
        if len(statistics) != len(baseline):
            raise UserError(
                f"{name} was tested on {len(statistics)} examples and the baseline on {len(baseline)}: compare one test set"
            )
    own = metric.value(baseline.sum(axis=0))
    theirs = {name: metric.value(statistics.sum(axis=0)) for name, statistics in systems.items()}
    p_values = {
        name: math.nan
        if math.isnan(value - own)
        else _p_value(_differences(metric, baseline, systems[name], samples, seed), own, value)
        for name, value in theirs.items()
    }
    corrected = holm(p_values)
    return {name: Difference(value, value - own, p_values[name], corrected[name]) for name, value in theirs.items()}


def _p_value(draws: NDArray[np.float64], own: float, theirs: float) -> float:
    observed = abs(theirs - own) - ROUNDING * max(abs(own), abs(theirs))
    smaller = int(np.sum(draws < observed))  # one that has no value is not
    return (len(draws) - smaller + 1) / (len(draws) + 1)


def _differences(metric: Metric, baseline: Statistics, system: Statistics, samples: int, seed: int) -> NDArray[np.float64]:
    """Draw the differences that there would be between equally good systems."""
    one, other = exchange(baseline, system, samples, seed)
    return np.abs(values(metric, one) - values(metric, other))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Correct p-values for having made several comparisons (Holm 1979): step-down Bonferroni, never decreasing.

    A comparison without a p-value, NaN, was not made.
    """
    made = sorted((name for name, p in p_values.items() if not math.isnan(p)), key=lambda name: p_values[name])
    corrected = dict.fromkeys(p_values, math.nan)
    before = 0.0
    for rank, name in enumerate(made):
        before = max(before, min(1.0, (len(made) - rank) * p_values[name]))
        corrected[name] = before
    return corrected
