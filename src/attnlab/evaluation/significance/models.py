"""The difference of trained models, of which nothing but the examples is drawn: paired approximate randomization."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from attnlab.errors import UserError
from attnlab.evaluation.metric import Metric, Statistics
from attnlab.evaluation.resampling import SEED, exchange
from attnlab.evaluation.significance.difference import (
    ROUNDING,
    Difference,
    drop_rounding,
    find_resolution,
    ignore_overflow,
)
from attnlab.evaluation.significance.multiplicity import holm, holm_factors
from attnlab.evaluation.significance.sample import Indices, Sample, exact_mean

Key = TypeVar("Key", bound=Hashable)

SAMPLES = 10_000
"""Exchanges of every comparison; those whose corrected p is not known well enough get more."""
PRECISION, SHARE = 0.005, 0.05
"""A corrected p is known if its standard error is at most this, or at most this share of itself."""
MOST = 4000
"""Exchanges for each comparison of a family, at most: what a corrected p of 0.1 needs to be known so well."""


@dataclass(frozen=True)
class Contest(Generic[Key]):
    """Systems that are compared with one other, by what each example adds, (examples, k), in each model of a system.

    The value of a system is the mean of those of its models, one for each seed. Model n of every system was tested on the same
    examples. Where all models were, an example changes sides in all of them at once: it is one draw of an example.

    Attributes:
        metric: that they are compared by.
        baseline: the one.
        systems: the others, by keys that no other contest of the family has.
        are_crossed: whether all models were tested on the same examples; else each seed has examples of its own.

    Raises:
        UserError: a system that was not tested on as many examples as the baseline, or measured by another metric.
    """

    metric: Metric
    baseline: Sequence[Statistics]
    systems: Mapping[Key, Sequence[Statistics]]
    are_crossed: bool = True

    def __post_init__(self) -> None:
        for name, models in self.systems.items():
            for statistics, baseline in zip(models, self.baseline, strict=True):
                if statistics.shape[1:] != baseline.shape[1:]:
                    raise UserError(f"{name} was not measured by the same metric as the baseline: measure both again")
                if len(statistics) != len(baseline):
                    raise UserError(
                        f"{name} was tested on {len(statistics)} examples and the baseline on {len(baseline)}: "
                        "compare one test set"
                    )

    @cached_property
    def value(self) -> float:
        """The metric of the baseline."""
        return self._mean_value(self.baseline)

    @cached_property
    def values(self) -> dict[Key, float]:
        """The metric of each other system."""
        return {name: self._mean_value(models) for name, models in self.systems.items()}

    def _mean_value(self, models: Sequence[Statistics]) -> float:
        return exact_mean(np.array([self.metric.value(statistics.sum(axis=0)) for statistics in models]))

    def _join(self, models: Sequence[Statistics]) -> Statistics:
        """Put models beside each other, (examples, models · k), a row being what changes sides at once."""
        joined: Statistics = np.concatenate(models, axis=1) if self.are_crossed else block_diag(*models)
        return joined

    def _mean_values(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean over models of the metric of sums (samples, models · k)."""
        count = len(self.baseline)
        values = self.metric.values(totals.reshape(len(totals) * count, -1))
        means: NDArray[np.float64] = values.reshape(-1, count).mean(axis=1)
        return means

    def count_as_large(self, names: Sequence[Key], samples: int, seed: int) -> dict[Key, int]:
        """Count the exchanges whose difference is at least as large as the one observed, or has no value."""
        counts = {}
        exchanged = exchange(self._join(self.baseline), [self._join(self.systems[name]) for name in names], samples, seed)
        for name, (one, other) in zip(names, exchanged, strict=True):
            draws = np.abs(self._mean_values(one) - self._mean_values(other))
            theirs = self.values[name]
            observed = abs(theirs - self.value) - ROUNDING * max(abs(self.value), abs(theirs))
            counts[name] = samples - int(np.sum(draws < observed))
        return counts


@dataclass(frozen=True)
class ModelsDifference:
    """Trained models against those of the baseline.

    Attributes:
        p: probability of a difference at least as large if both were equally good; NaN where a system has no value.
        corrected: p after Holm's correction for all comparisons of the family.
        samples: exchanges that were made.
    """

    p: float
    corrected: float
    samples: int


def compare_models(
    family: Collection[Contest[Key]], *, samples: int = SAMPLES, most: int = MOST, seed: int = SEED
) -> dict[Key, ModelsDifference]:
    """Compare trained models by paired approximate randomization, whatever the metric.

    The test (Riezler and Maxwell 2005) is sacreBLEU's; but a difference that is as large as the one observed counts as such, so
    that equal systems have p 1. Exchanges are made until every corrected p is known, as far as that matters: a p is never
    smaller than 1 / (samples + 1), and a corrected one never than the number of comparisons times that.

    Args:
        family: all that is compared at once, and corrected for.
        samples: exchanges of each comparison, at least.
        most: exchanges of each comparison for every comparison of the family, at most.
        seed: of the exchanges.
    """
    owners = {name: contest for contest in family for name in contest.systems}
    tested = [name for name, owner in owners.items() if not math.isnan(owner.values[name] - owner.value)]
    as_large, made = dict.fromkeys(tested, 0), dict.fromkeys(tested, 0)
    unknown, number = tested, 0
    p_values: dict[Key, float] = dict.fromkeys(owners, math.nan)
    while unknown:
        for contest in family:
            if asked := [name for name in unknown if owners[name] is contest]:
                for name, count in contest.count_as_large(asked, samples, seed + number).items():
                    as_large[name] += count
                    made[name] += samples
                    p_values[name] = (as_large[name] + 1) / (made[name] + 1)
        factors = holm_factors(p_values)
        limit = max(samples, most * len(tested))
        unknown = [name for name in unknown if made[name] < limit and not _is_known(p_values[name], factors[name], made[name])]
        number += 1
    corrected = holm(p_values)
    return {name: ModelsDifference(p_values[name], corrected[name], made.get(name, 0)) for name in owners}


def _is_known(p: float, factor: int, samples: int) -> bool:
    """Tell whether a corrected p is known well enough: also where it is 1 beyond doubt."""
    error = factor * math.sqrt(p * (1 - p) / samples)
    return error <= max(PRECISION, SHARE * factor * p) or factor * p - 3 * error > 1


@ignore_overflow
def estimate_difference(sample: Sample, one: Indices, other: Indices) -> Difference:
    """Estimate how much better models of one system are than those of another, if the examples alone are drawn.

    With C the jackknife's covariance of the values and m the weights 1/n_a, -1/n_b of the models, V = mᵀ C m.

    Args:
        sample: models on the same examples.
        one: which of them are of the first system.
        other: which are of the second.
    """
    first, second = sample.values[np.asarray(one)], sample.values[np.asarray(other)]
    resolution = find_resolution(np.concatenate([first, second]))
    difference = drop_rounding(exact_mean(first) - exact_mean(second), resolution)
    return Difference(difference, (sample.part(sample.variance(one, other), one, other),))
