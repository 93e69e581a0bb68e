"""How often a study's own runs get a star where there is no difference: an A/A test, on groups of runs of one variant."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import UserError
from attnlab.evaluation.significance import models, seeds
from attnlab.evaluation.significance.calibration import Calibration, calibrate, calibrate_p
from attnlab.studies.collection import Study
from attnlab.studies.contrasts import MeasuredVariants
from attnlab.studies.names import Significance

SAMPLES = 1000
"""Exchanges of a test of trained models: one for each of a thousand splits."""


@dataclass(frozen=True)
class Rate:
    """A calibration of one test on one test set with the runs of one variant.

    Attributes:
        variant: whose runs.
        runs: how many there are.
        test: name of the test set.
        deviation: of the metric's values between seeds.
        found: what came of it.
    """

    variant: str
    runs: int
    test: str
    deviation: float
    found: Calibration


def calibrate_study(
    study: Study, metric: str | None, sizes: Sequence[int], splits: int, significance: Significance = "seeds"
) -> Iterator[Rate]:
    """Split the runs of each variant into two groups, again and again, and compare these as the table compares variants.

    Args:
        study: with many finished seeds of a variant.
        metric: name; None is the one that ranks.
        sizes: runs of each group; those for which a variant has too few runs are left out.
        splits: pairs of groups of each size, at most.
        significance: the test.

    Raises:
        UserError: a metric that no run declares, or no variant with enough runs.
    """
    if not study.finished_runs:
        raise UserError(f"no run below {study.folder.path} is finished")
    name = metric or study.ranking[0]
    if name not in study.known_metrics:
        raise UserError(f"--metric: no metric {name!r}: there is {', '.join(study.known_metrics)}")
    enough = [label for label, runs in study.done().items() if len(runs) >= 2 * min(sizes)]
    if not enough:
        most = max(map(len, study.done().values()))
        raise UserError(f"two groups of {min(sizes)} runs need {2 * min(sizes)} seeds of a variant: there are {most} at most")
    for label in enough:
        for test in study.tests:
            tested = MeasuredVariants(study, test, name)
            sample = tested.sample(label)
            for size in sizes if sample else ():
                if sample and 2 * size <= len(sample.values):
                    found = GROUPS[significance](tested, label, size, splits)
                    yield Rate(label, len(sample.values), test, float(np.std(sample.values, ddof=1)), found)


def _over_seeds(tested: MeasuredVariants, label: str, size: int, splits: int) -> Calibration:
    sample = tested.sample(label)
    assert sample is not None
    return calibrate(len(sample.values), size, partial(seeds.compare_systems, sample), splits)


def _of_models(tested: MeasuredVariants, label: str, size: int, splits: int) -> Calibration:
    runs = [run.statistics for run in tested.runs[label]]

    def test_groups(one: NDArray[np.intp], other: NDArray[np.intp]) -> float:
        first, second = (np.concatenate([runs[place] for place in group]) for group in (one, other))
        family = [models.Contest(tested.metric, second, {label: first})]
        return models.compare_models(family, samples=SAMPLES, most=SAMPLES)[label].p

    return calibrate_p(len(runs), size, test_groups, splits)


GROUPS: dict[Significance, Callable[[MeasuredVariants, str, int, int], Calibration]] = {
    "seeds": _over_seeds,
    "models": _of_models,
}
"""How groups of runs are compared, by what the study calls it."""
