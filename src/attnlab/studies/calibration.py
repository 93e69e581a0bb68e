"""How often a study's own runs get a star where there is no difference: an A/A test, on groups of runs of one variant."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from attnlab.config import CONF
from attnlab.data.replacement import write_atomically
from attnlab.errors import UserError
from attnlab.evaluation.significance import models, seeds
from attnlab.evaluation.significance.calibration import Calibration, calibrate, calibrate_p, choose_runs
from attnlab.evaluation.significance.difference import LEVEL
from attnlab.evaluation.significance.sample import Sample
from attnlab.studies.collection import Study
from attnlab.studies.contrasts import MeasuredVariants, contrast_systems
from attnlab.studies.names import Significance

PUBLISHED = CONF.with_name("experiments") / "calibration" / "results"
"""The folder of what ``attnlab calibrate calibration --output rates-TEST.json`` wrote of the study that ships with attnlab."""
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


@dataclass(frozen=True)
class PairRate:
    """How often two variants differ significantly on one test set, before Holm's correction.

    Attributes:
        one: the first variant.
        other: the second.
        test: name of the test set.
        difference: of the means over all runs.
        seeds: of each group.
        groups: how often seeds were chosen, the same for both variants.
        rate: share of these that got a star.
    """

    one: str
    other: str
    test: str
    difference: float
    seeds: int
    groups: int
    rate: float


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
    if not study.tests:
        raise UserError(f"no run below {study.folder.path} is finished and tested")
    name = metric or study.ranking[0]
    if name not in study.known_metrics:
        raise UserError(f"--metric: no metric {name!r}: there is {', '.join(study.known_metrics)}")
    measured = {test: MeasuredVariants.of_study(study, test, name) for test in study.tests}
    counts = {label: max(len(tested.runs.get(label, ())) for tested in measured.values()) for label in study.finished_variants}
    enough = [label for label, count in counts.items() if count >= 2 * min(sizes)]
    if not enough:
        told = f"there are {max(counts.values())} at most that have a value of {name}"
        raise UserError(f"two groups of {min(sizes)} runs need {2 * min(sizes)} seeds of a variant: {told}")
    samples = {(label, test): tested.sample(label) for label in enough for test, tested in measured.items()}
    known = {place: sample for place, sample in samples.items() if sample is not None}
    if not known:
        raise UserError(f"groups of runs need one set of test examples, and {name} of it: this study's seeds have others each")
    for (label, test), sample in known.items():
        for size in sizes:
            if 2 * size <= len(sample.values):
                found = GROUPS[significance](measured[test], label, sample, size, splits)
                yield Rate(label, len(sample.values), test, float(np.std(sample.values, ddof=1)), found)


def compare_groups(study: Study, metric: str | None, sizes: Sequence[int], splits: int) -> Iterator[PairRate]:
    """Compare variants with the baseline, or with each other if there is none, by some of their seeds, again and again.

    The share of stars is the power of the test, if the variants differ.

    Args:
        study: with many finished seeds of two variants and more.
        metric: name; None is the one that ranks.
        sizes: seeds of each group; those for which two variants have too few in common are left out.
        splits: groups of each size, at most.
    """
    name, labels, baseline = metric or study.ranking[0], [*study.finished_variants], study.baseline
    others = [(label, baseline) for label in labels if baseline is not None and label != baseline]
    pairs = others if baseline in labels else [*combinations(labels, 2)]
    for test in study.tests:
        tested = MeasuredVariants.of_study(study, test, name)
        for one, other in pairs:
            if (found := tested.uses_of_pairs(one, other)) is None:
                continue
            sample, first, second = found
            apart = float(np.diff(sample.values.reshape(2, -1).mean(axis=1))[0])
            for size in (size for size in sizes if size < len(first)):
                groups = [chosen.tolist() for chosen in choose_runs(len(first), size, splits)]
                stars = [
                    contrast_systems(sample, [first[i] for i in chosen], [second[i] for i in chosen]).p < LEVEL
                    for chosen in groups
                ]
                yield PairRate(one, other, test, -apart, size, len(groups), float(np.mean(stars)))


def _over_seeds(tested: MeasuredVariants, label: str, sample: Sample, size: int, splits: int) -> Calibration:
    return calibrate(len(sample.values), size, partial(seeds.compare_systems, sample), splits)


def _of_models(tested: MeasuredVariants, label: str, sample: Sample, size: int, splits: int) -> Calibration:
    runs = [run.statistics for run in tested.runs[label]]

    def test_groups(one: NDArray[np.intp], other: NDArray[np.intp]) -> float:
        first, second = ([runs[place] for place in group] for group in (one, other))
        family = [models.Contest(tested.metric, second, {label: first})]
        return models.compare_models(family, samples=SAMPLES, most=SAMPLES)[label].p

    return calibrate_p(len(runs), size, test_groups, splits)


GROUPS: dict[Significance, Callable[[MeasuredVariants, str, Sample, int, int], Calibration]] = {
    "seeds": _over_seeds,
    "models": _of_models,
}
"""How groups of runs are compared, by what the study calls it."""


FALSE: dict[Significance, str] = {
    "seeds": "false stars",
    "models": "a star of this test speaks of these trained models, and is often false as a claim about the variants",
}
"""What the stars of a test are where nothing differs but seeds."""


def write_rates(
    path: Path, study: str, significance: Significance, metric: str, rates: Sequence[Rate], pairs: Sequence[PairRate] = ()
) -> None:
    """Write down calibrations of one test, and how often it told two variants apart.

    Raises:
        UserError: the file cannot be written.
    """
    found = [asdict(rate) for rate in rates]
    for rate in found:
        rate["found"] = {key: None if math.isnan(value) else value for key, value in rate["found"].items()}
    content = {"study": study, "significance": significance, "metric": metric, "rates": found}
    if pairs:
        content["pairs"] = [asdict(pair) for pair in pairs]
    try:
        write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def tell_published(significance: Significance, folder: Path = PUBLISHED) -> str:
    """Say how often stars of a test were false in the study that ships with attnlab; empty where that is not known."""
    path = folder / f"rates-{significance}.json"
    if not path.is_file():
        return ""
    content = json.loads(path.read_text(encoding="utf-8"))
    by_size: dict[int, list[float]] = {}
    for rate in content["rates"]:
        by_size.setdefault(rate["found"]["seeds"], []).append(100 * rate["found"]["rate"])
    shares = ", ".join(f"{mean(shares):.1f} % with {size} seeds" for size, shares in by_size.items())
    runs = "; ".join(dict.fromkeys(f"{rate['runs']} runs of {rate['variant']}" for rate in content["rates"]))
    tests = len({rate["test"] for rate in content["rates"]})
    return (
        f"{FALSE[significance]}: where one variant was compared with itself, uncorrected, at nominal 5 %, {shares} "
        f"(study {content['study']}: {content['metric']} on {tests} test sets, {runs})"
    )
