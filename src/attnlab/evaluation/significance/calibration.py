"""How often the test gives a star where there is no difference, and how large a difference must be to get one."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.resampling import SEED
from attnlab.evaluation.significance.difference import LEVEL, Difference

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Calibration:
    """A test of groups of runs of one system, between which there is no difference.

    Attributes:
        seeds: runs of each group.
        splits: how often two groups were chosen.
        rate: share of the splits that got a star.
        smallest: difference that would get a star in 80 of 100 splits, in the metric's unit; NaN where the test has no
            interval, or none in so many of them.
    """

    seeds: int
    splits: int
    rate: float
    smallest: float


def split_runs(runs: int, seeds: int, splits: int) -> Iterator[Split]:
    """Yield two groups of runs without a run in common: every such pair once if there are no more, else random ones.

    Args:
        runs: to choose from, two groups at least.
        seeds: of each group.
        splits: how many pairs of groups, at most.
    """
    if math.comb(runs, seeds) * math.comb(runs - seeds, seeds) // 2 <= splits:
        for one in combinations(range(runs), seeds):
            rest = [
                run for run in range(one[0] + 1, runs) if run not in one
            ]  # a pair is one, whichever group is called the first
            for other in combinations(rest, seeds):
                yield np.array(one), np.array(other)
        return
    draw = np.random.default_rng(SEED)
    for _ in range(splits):
        chosen = draw.permutation(runs)[: 2 * seeds]
        yield chosen[:seeds], chosen[seeds:]


def choose_runs(runs: int, seeds: int, splits: int) -> Iterator[NDArray[np.intp]]:
    """Yield groups of runs: every one once if there are no more than so many, else random ones; see :func:`split_runs`."""
    if math.comb(runs, seeds) <= splits:
        yield from map(np.array, combinations(range(runs), seeds))
        return
    draw = np.random.default_rng(SEED)
    for _ in range(splits):
        yield draw.permutation(runs)[:seeds]


def calibrate(
    runs: int, seeds: int, compare: Callable[[NDArray[np.intp], NDArray[np.intp]], Difference], splits: int
) -> Calibration:
    """Measure the rate of false stars of a test with an interval, and its power, over groups of runs of one system.

    A difference δ added to one group gets a star where it leaves the interval, |d + δ| > half its width; never where nothing
    varies, and so there is no interval.

    Args:
        runs: how many there are.
        seeds: of each group.
        compare: tests two groups.
        splits: how many pairs of groups, at most.
    """
    found = [compare(*split) for split in split_runs(runs, seeds, splits)]
    apart = np.array([difference.value for difference in found])
    halves = np.array([difference.half_width() for difference in found])
    stars = [difference.p < LEVEL for difference in found]
    both = np.concatenate([apart, -apart])  # whichever group is called the first

    def power(added: float) -> float:
        return float(np.mean((np.abs(both + added) > np.tile(halves, 2)) & (np.tile(halves, 2) > 0)))

    low, high = 0.0, float(2 * (np.abs(apart) + np.nan_to_num(halves)).max())
    if power(high) < 0.8:
        high = math.nan
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= 0.8 else (middle, high)
    return Calibration(seeds, len(found), float(np.mean(stars)), high)


def calibrate_p(runs: int, seeds: int, test: Callable[[NDArray[np.intp], NDArray[np.intp]], float], splits: int) -> Calibration:
    """Measure the rate of false stars of a test that gives a p alone."""
    stars = [test(*split) < LEVEL for split in split_runs(runs, seeds, splits)]
    return Calibration(seeds, len(stars), float(np.mean(stars)), math.nan)
