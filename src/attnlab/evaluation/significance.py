"""Is one system better than another, or was it luck?"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import UserError
from attnlab.evaluation.metric import Metric, Statistics
from attnlab.evaluation.resampling import SEED, bootstrap, exchange, values

Test = Literal["bootstrap", "randomization"]

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
    test: Test = "randomization",
    samples: int = 10_000,
    seed: int = SEED,
) -> dict[str, Difference]:
    """Compare systems with a baseline on the same examples by paired tests, whatever the metric.

    Several seeds of one variant are compared by setting their examples one after another, seed by seed.

    Args:
        metric: that they are compared by.
        baseline: what each example adds to the baseline's metric, (examples, k).
        systems: the same of each other system.
        test: paired bootstrap resampling (Koehn 2004) or paired approximate randomization (Riezler and Maxwell 2005), both as
            in sacreBLEU; but a difference that is as large as the one observed counts as such, so that equal systems have p 1.
        samples: resamplings or exchanges.
        seed: of these.

    Raises:
        UserError: a system that was not tested on as many examples as the baseline.
    """
    for name, statistics in systems.items():
        if statistics.shape != baseline.shape:
            raise UserError(
                f"{name} was tested on {len(statistics)} examples and the baseline on {len(baseline)}: compare one test set"
            )
    own = metric.value(baseline.sum(axis=0))
    theirs = {name: metric.value(statistics.sum(axis=0)) for name, statistics in systems.items()}
    p_values = {
        name: math.nan
        if math.isnan(value - own)
        else _p_value(TESTS[test](metric, baseline, systems[name], samples, seed), own, value)
        for name, value in theirs.items()
    }
    corrected = holm(p_values)
    return {name: Difference(value, value - own, p_values[name], corrected[name]) for name, value in theirs.items()}


def _p_value(draws: NDArray[np.float64], own: float, theirs: float) -> float:
    observed = abs(theirs - own) - ROUNDING * max(abs(own), abs(theirs))
    smaller = int(np.sum(draws < observed))  # one that has no value is not
    return (len(draws) - smaller + 1) / (len(draws) + 1)


def _randomization(metric: Metric, baseline: Statistics, system: Statistics, samples: int, seed: int) -> NDArray[np.float64]:
    one, other = exchange(baseline, system, samples, seed)
    return np.abs(values(metric, one) - values(metric, other))


def _bootstrap(metric: Metric, baseline: Statistics, system: Statistics, samples: int, seed: int) -> NDArray[np.float64]:
    own, theirs = np.split(bootstrap(np.concatenate([baseline, system], axis=1), samples, seed), 2, axis=1)
    differences = np.abs(values(metric, own) - values(metric, theirs))
    centred: NDArray[np.float64] = differences - np.nanmean(differences)
    return centred


TESTS: dict[Test, Callable[[Metric, Statistics, Statistics, int, int], NDArray[np.float64]]] = {
    "randomization": _randomization,
    "bootstrap": _bootstrap,
}
"""What draws the differences that there would be between equally good systems."""


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
