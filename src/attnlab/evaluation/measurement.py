"""Measuring a test set by all metrics: values, intervals, and quality by the length of the source."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.metric import Metric, Occasion, Statistics, metric_errors
from attnlab.evaluation.resampling import SEED, bootstrap, sum_blocks

EDGES = (1, 6, 11, 16, 21, 31, 41, 61)
"""Where a bucket of source lengths begins."""


@dataclass(frozen=True)
class Measurement:
    """A metric of a test set.

    Attributes:
        value: NaN where the metric has none.
        signature: what must agree for two values to be compared; empty where all compare.
        low: lower end of the 95 % confidence interval by bootstrap, or None where that was not asked for or there is none.
        high: upper end.
    """

    value: float
    signature: str = ""
    low: float | None = None
    high: float | None = None


INTERVAL_NOTE = "[ ] is the 95 % confidence interval by bootstrap"
"""What tables say of what :func:`write_estimate` writes."""


def write_estimate(value: float, low: float | None, high: float | None, digits: int) -> str:
    """Return a value and the ends of its interval, where it has any, as tables show them, with so many decimal places."""
    ends = "" if low is None else f" [{low:.{digits}f}, {high:.{digits}f}]"
    return f"{value:.{digits}f}{ends}"


class Bucket(NamedTuple):
    """A metric of the examples of similar source length.

    Attributes:
        low: length of the shortest source that may be in it.
        high: length of the longest.
        examples: how many there are.
        value: of the metric; NaN where it has none.
    """

    low: int
    high: int
    examples: int
    value: float


def measure(
    metrics: Mapping[str, Metric],
    evidence: Evidence,
    occasion: Occasion,
    *,
    samples: int = 1,
    blocks: Sequence[int] | None = None,
) -> tuple[dict[str, Measurement], dict[str, Statistics]]:
    """Measure a test set.

    Args:
        metrics: by name.
        evidence: of the whole test set.
        occasion: metrics for a rarer one are left out.
        samples: of the bootstrap for confidence intervals; 1 makes none.
        blocks: of the examples, which the bootstrap draws; see :attr:`attnlab.data.examples.Examples.blocks`.

    Returns:
        The measurements by the metric's name, and what each example adds, by the same names; without the metrics whose needs
        the evidence lacks.
    """
    measurements: dict[str, Measurement] = {}
    statistics: dict[str, Statistics] = {}
    for name, metric in metrics.items():
        if not metric.is_due(occasion):
            continue
        with metric_errors(metric):
            own = metric.statistics(evidence)
            if own is None:
                continue
            low, high = bootstrap_interval(metric, sum_blocks(own, blocks), samples) if samples > 1 else (None, None)
            measurements[name] = Measurement(float(metric.value(own.sum(axis=0))), metric.signature(evidence.facts), low, high)
            statistics[name] = own
    return measurements, statistics


def bootstrap_interval(metric: Metric, statistics: Statistics, samples: int) -> tuple[float | None, float | None]:
    """Return the 95 % confidence interval between percentiles, which never leaves the values that a metric may have.

    It is as wide as sacreBLEU's, which is laid around the mean of the samples. Where one example alone adds anything, it varies
    with no other; several that have no value, or whose samples have none, do not tell: there is no interval. Nor is there one
    with an infinite end, as of a perplexity that some of the samples make too large a number.

    Args:
        metric: to be estimated.
        statistics: what each example adds, (examples, k).
        samples: of the bootstrap (Koehn 2004).
    """
    if np.count_nonzero(statistics.any(axis=1)) < 2 or math.isnan(metric.value(statistics.sum(axis=0))):
        return None, None
    draws = metric.values(bootstrap(statistics, samples, SEED))
    draws = np.sort(draws[~np.isnan(draws)])
    if not len(draws):
        return None, None
    cut = len(draws) // 40
    low, high = float(draws[cut]), float(draws[len(draws) - cut - 1])
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)


class LengthBuckets:
    """The buckets of similar source length that examples fall into, for measuring them by many metrics.

    Args:
        lengths: of the examples' sources, in the unit of their task, so that all systems have the same buckets.
    """

    def __init__(self, lengths: Sequence[float] | NDArray[np.float64]) -> None:
        known, ends = np.asarray(lengths), np.array([*EDGES[1:], 10**9])
        inside = (np.array(EDGES)[:, None] <= known) & (known < ends[:, None])
        some = np.flatnonzero(inside.any(axis=1))
        self._inside = inside[some]
        highs = np.minimum(ends[some] - 1, known.max(initial=0))
        self._bounds = [(EDGES[place], int(high), int(inside[place].sum())) for place, high in zip(some, highs, strict=True)]

    def measure(self, metric: Metric, statistics: Statistics) -> list[Bucket]:
        """Return a metric of the examples of each bucket: the classic figure that shows what attention is for.

        Args:
            metric: to be shown.
            statistics: what each example adds, (examples, k).
        """
        return self.measure_systems(metric, [statistics])[0]

    def measure_systems(self, metric: Metric, systems: Sequence[Statistics]) -> list[list[Bucket]]:
        """Return what :meth:`measure` does of many systems of these examples, in a fraction of the time.

        Args:
            metric: to be shown.
            systems: what each example adds in each of them, (examples, k).
        """
        if not self._bounds:
            return [[] for _ in systems]
        together = np.stack(systems)
        sums = np.stack([together[:, inside].sum(axis=1) for inside in self._inside], axis=1)
        values = np.asarray(metric.shown_values(sums.reshape(-1, sums.shape[2]))).reshape(sums.shape[:2])
        return [[Bucket(*bounds, float(one)) for bounds, one in zip(self._bounds, row, strict=True)] for row in values]
