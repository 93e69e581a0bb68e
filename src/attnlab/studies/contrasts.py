"""Comparing two variants of a study: over their seeds, or as these trained models."""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.metric import Metric, Statistics
from attnlab.evaluation.resampling import common_blocks, number_blocks, sum_blocks
from attnlab.evaluation.significance import improvement, models, seeds
from attnlab.evaluation.significance.difference import LEVEL, Difference
from attnlab.evaluation.significance.improvement import Probability
from attnlab.evaluation.significance.sample import Sample, sample_models
from attnlab.studies.collection import Study
from attnlab.studies.names import Significance
from attnlab.studies.run import Run

Key = TypeVar("Key", bound=Hashable)
Shared = Literal["training", "examples"]

NOT_COMPARABLE = "not comparable"
ONE_SEED = "one seed"
NOT_MEASURED = "not measured"
NO_COMMON_SEED = "no seed in common"


class Pair(NamedTuple):
    """Two variants on one test set: the question is how much better the first is."""

    test: str
    one: str
    other: str


@dataclass(frozen=True)
class Contrast:
    """What two variants differ by in a metric on a test set.

    Attributes:
        difference: of the means over seeds.
        p: of the test that was made, before any correction.
        seeds: of the first and of the second variant.
        scores: values of the runs of both.
        pairs_share: what two runs of one seed have in common, by which they are a pair; None where they are none.
    """

    difference: Difference
    p: float
    seeds: tuple[int, int]
    scores: tuple[NDArray[np.float64], NDArray[np.float64]]
    pairs_share: Shared | None = None


PAIRS: dict[Shared, str] = {
    "training": (
        "variants that differ in their search alone share their trainings: runs of one seed are one model, and so a pair"
    ),
    "examples": (
        "each seed has data of its own, the same for all variants: runs of one seed are a pair, and the spread over seeds "
        "holds that between data"
    ),
}
"""Why runs of one seed are a pair, by what they share."""

Kind = tuple[str, str, bytes, int]


class Reading(NamedTuple):
    """What was written of a run on a test set.

    Attributes:
        seed: of the run; two runs of one seed are compared with each other.
        training: what identifies its training, where that is known.
        signature: of the metric.
        digest: a hash of the examples, by what they are.
        blocks: number of the block of each example, by :func:`number_blocks`.
        statistics: what each example adds to the metric, in an order that is the same for all runs with these examples.
        value: of the metric.
    """

    seed: object
    training: object
    signature: str
    digest: str
    blocks: NDArray[np.intp]
    statistics: Statistics
    value: float


class Measured(NamedTuple):
    """A run on a test set.

    Attributes:
        seed: of the run.
        training: what identifies its training, where that is known.
        kind: what must be the same for two runs to be compared: the metric's signature, the examples
            whatever their order, which of them make a block, and how many numbers each adds.
        statistics: what each block of examples adds, in an order that is the same for all runs with these examples.
        value: of the metric.
    """

    seed: object
    training: object
    kind: Kind
    statistics: Statistics
    value: float


class MeasuredVariants:
    """Variants on one test set, by one metric.

    Args:
        metric: the metric.
        read: what was written of the runs of each variant.
    """

    def __init__(self, metric: Metric, read: Mapping[str, Sequence[Reading]]) -> None:
        self.metric = metric
        partitions: dict[str, list[NDArray[np.intp]]] = {}
        for one in chain.from_iterable(read.values()):
            partitions.setdefault(one.digest, []).append(one.blocks)
        common = {digest: common_blocks(blocks) for digest, blocks in partitions.items()}
        self.runs = {label: [_measure(one, common[one.digest]) for one in found] for label, found in read.items() if found}
        self._samples: dict[Kind, tuple[Sample, dict[int, int]]] = {}

    @classmethod
    def of_study(cls, study: Study, test: str, name: str) -> "MeasuredVariants":
        """Return the variants of a study with finished runs.

        Examples are the same by what they are, source and reference, and never by where they stand in a file.

        Args:
            study: whose variants.
            test: name of the test set.
            name: of the metric.
        """
        read = {label: [_read(run, test, name) for run in runs] for label, runs in study.finished_variants.items()}
        known = {label: [one for one in found if one is not None] for label, found in read.items()}
        return cls(study.known_metrics[name], known)

    def over_seeds(self, one: str, other: str) -> Contrast | str:
        """Compare two variants with every variance counted, that between seeds and that between examples; or say why not."""
        first, second = (self.runs.get(label, []) for label in (one, other))
        crossed = len({run.kind for run in (*first, *second)}) == 1
        pairs = [] if crossed else self._pair_runs(one, other)
        if not (first and second):
            return NOT_MEASURED
        common = self.same_seeds(one, other)
        if min(len(first), len(second)) < 2 and (crossed or (common and all(a.kind == b.kind for a, b in common))):
            return ONE_SEED
        if not (crossed or pairs):
            return NOT_COMPARABLE
        if pairs:
            scores = _scores(pairs)
            difference = seeds.compare_pairs(*scores)
            return Contrast(difference, difference.p, (len(pairs), len(pairs)), scores, "examples")
        sample, places = self._sample(first[0].kind)
        systems = ([Use(places[id(run)], run.seed, run.training) for run in runs] for runs in (first, second))
        return contrast_systems(sample, *systems)

    def of_models(self, one: str, other: str) -> Contrast | str:
        """Compare the trained models of the seeds that two variants have in common, without a p; or say why not."""
        if not (self.runs.get(one) and self.runs.get(other)):
            return NOT_MEASURED
        pairs = self.same_seeds(one, other)
        if not pairs:
            return NO_COMMON_SEED
        kinds = {first.kind for first, _ in pairs}
        are_mixed = len({signature for signature, *_ in kinds}) > 1 or 1 < len(kinds) < len(pairs)
        if are_mixed or any(first.kind != second.kind for first, second in pairs):
            return NOT_COMPARABLE
        scores = _scores(pairs)
        return Contrast(self._estimate(pairs), math.nan, (len(pairs), len(pairs)), scores, "examples")

    def order(self, contrast: Contrast, confidence: float) -> float | None:
        """Return by how much the first variant is not stochastically better than the second; None for too few seeds, or where
        nothing shows how far the values may be off.
        """
        if min(contrast.seeds) < improvement.LEAST_SEEDS or math.isnan(contrast.p):
            return None
        one, other = (self.metric.sign * score for score in contrast.scores)
        return improvement.stochastic_order(one, other, confidence=confidence)

    def _pair_runs(self, one: str, other: str) -> list[tuple[Measured, Measured]]:
        """Return the runs of two variants by seeds, if each seed has examples of its own, the same for both variants."""
        pairs = self.same_seeds(one, other)
        kinds = {pair[0].kind for pair in pairs}
        alike = all(first.kind == second.kind for first, second in pairs)
        return pairs if alike and 1 < len(kinds) == len(pairs) and len({signature for signature, *_ in kinds}) == 1 else []

    def same_seeds(self, one: str, other: str) -> list[tuple[Measured, Measured]]:
        """Return the runs of two variants whose seed is the same."""
        known = {run.seed: run for run in self.runs.get(other, ())}
        return [(run, known[run.seed]) for run in self.runs.get(one, ()) if run.seed in known]

    def _estimate(self, pairs: Collection[tuple[Measured, Measured]]) -> Difference:
        """Estimate the difference of trained models: with data by the seed, V = Σ_s V_s / n² of the n pairs' own."""
        if len({first.kind for first, _ in pairs}) > 1:
            each = [self._estimate([pair]) for pair in pairs]
            value = float(np.mean([difference.value for difference in each]))
            parts = (part for difference in each for part in difference.parts)
            return Difference(value, tuple(part._replace(variance=part.variance / len(each) ** 2) for part in parts))
        sample, places = self._sample(next(iter(pairs))[0].kind)
        rows = ([places[id(pair[side])] for pair in pairs] for side in (0, 1))
        return models.estimate_difference(sample, *rows)

    def _sample(self, kind: Kind) -> tuple[Sample, dict[int, int]]:
        if kind not in self._samples:
            runs = [run for found in self.runs.values() for run in found if run.kind == kind]
            sample = sample_models(self.metric, [run.statistics for run in runs])
            self._samples[kind] = sample, {id(run): place for place, run in enumerate(runs)}
        return self._samples[kind]

    def sample(self, label: str) -> Sample | None:
        """Return the runs of a variant; None where not all were tested on the same examples."""
        runs = self.runs.get(label, [])
        return sample_models(self.metric, [r.statistics for r in runs]) if len({run.kind for run in runs}) == 1 else None

    def uses_of_pairs(self, one: str, other: str) -> tuple[Sample, list["Use"], list["Use"]] | None:
        """Return the runs of the seeds that two variants have in common, as :func:`contrast_systems` takes them; None where
        not all were tested on the same examples.
        """
        pairs = self.same_seeds(one, other)
        runs = [pair[side] for side in (0, 1) for pair in pairs]
        if len({run.kind for run in runs}) != 1:
            return None
        uses = [Use(place, run.seed, run.training) for place, run in enumerate(runs)]
        return sample_models(self.metric, [run.statistics for run in runs]), uses[: len(pairs)], uses[len(pairs) :]


class Use(NamedTuple):
    """A run of a system.

    Attributes:
        place: in the sample.
        seed: its own.
        training: what identifies the training that it is a use of, if that is known.
    """

    place: int
    seed: object
    training: object


def shared_trainings(one: Sequence[Use], other: Sequence[Use]) -> list[tuple[int, int]]:
    """Return the places of the runs of two systems that have a seed in common, if these are the same trainings: the systems
    differ in their search alone then. Empty if they are not, or fewer than two.
    """
    known = {use.seed: use for use in other}
    pairs = [(use, known[use.seed]) for use in one if use.seed in known]
    same = len(pairs) > 1 and all(first.training and first.training == second.training for first, second in pairs)
    return [(first.place, second.place) for first, second in pairs] if same else []


def contrast_systems(sample: Sample, one: Sequence[Use], other: Sequence[Use]) -> Contrast:
    """Compare two systems that were tested on the same examples, with every variance counted.

    Where they differ in their search alone, those of one seed are a pair, and those without a partner have no say.

    Args:
        sample: that holds the runs of both.
        one: the runs of the first.
        other: those of the second.
    """
    pairs = shared_trainings(one, other)
    rows = (
        [[*places] for places in zip(*pairs, strict=True)] if pairs else [[use.place for use in uses] for uses in (one, other)]
    )
    difference = (seeds.compare_uses if pairs else seeds.compare_systems)(sample, *rows)
    scores = sample.values[rows[0]], sample.values[rows[1]]
    return Contrast(difference, difference.p, (len(rows[0]), len(rows[1])), scores, "training" if pairs else None)


def find_improvement(contrast: Contrast, metric: Metric) -> Probability | None:
    """Return the probability that a run of the first of two systems is better than one of the second.

    Args:
        contrast: of the two.
        metric: by which they are compared.

    Returns:
        None where neither way is better, or where nothing shows how far the values may be off.
    """
    if metric.higher_is_better is None or math.isnan(contrast.p):
        return None
    one, other = (metric.sign * score for score in contrast.scores)
    examples = sum(part.variance for part in contrast.difference.parts[1:])
    if contrast.pairs_share:
        return improvement.probability_by_pairs(one, other, examples)
    return improvement.probability_of_improvement(one, other, examples)


def with_p(found: Mapping[Key, Contrast | str]) -> dict[Key, Contrast]:
    """Return the contrasts that a test says something of."""
    return {key: one for key, one in found.items() if isinstance(one, Contrast) and not math.isnan(one.p)}


def is_better(contrast: Contrast, metric: Metric, p: float) -> bool:
    """Tell whether the first of two systems is significantly better.

    The seeds that both have may say the contrary of the means over all seeds, by which systems are ranked.

    Args:
        contrast: of the two.
        metric: by which they are compared.
        p: as it was corrected.
    """
    return p < LEVEL and metric.sign * contrast.difference.value > 0


def _scores(pairs: Collection[tuple[Measured, Measured]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.array([one.value for one, _ in pairs]), np.array([other.value for _, other in pairs])


def _read(run: Run, test: str, name: str) -> Reading | None:
    value, statistics = run.value(test, name), run.statistics(test, name)
    if value is None or statistics is None:
        return None
    digest, order = run.example_order(test)
    if len(order) != len(statistics):  # whose examples are not known
        return None
    places = list(order)
    blocks = number_blocks(run.blocks(test)[places])
    training = run.record and run.record.training
    return Reading(run.seed, training, run.result.signature(test, name), digest, blocks, statistics[places], value)


def _measure(read: Reading, common: NDArray[np.intp] | None) -> Measured:
    blocks = read.blocks if common is None else common
    kind = (read.signature, read.digest, blocks.tobytes(), read.statistics.shape[1])
    return Measured(read.seed, read.training, kind, sum_blocks(read.statistics, blocks), read.value)


CONTRASTS: dict[Significance, Callable[[MeasuredVariants, str, str], Contrast | str]] = {
    "seeds": MeasuredVariants.over_seeds,
    "models": MeasuredVariants.of_models,
}
"""How two variants are compared, by what the study calls it."""


def compare(
    significance: Significance,
    sets: Mapping[str, MeasuredVariants],
    asked: Collection[Pair],
    *,
    samples: int = models.SAMPLES,
) -> dict[Pair, Contrast | str]:
    """Compare variants, or say why not.

    Args:
        significance: the test.
        sets: the variants by test set.
        asked: what to compare.
        samples: exchanges of a test of trained models, at least.
    """
    found = {pair: CONTRASTS[significance](sets[pair.test], pair.one, pair.other) for pair in asked}
    return found | _test_models(sets, found, samples) if significance == "models" else found


def _test_models(
    sets: Mapping[str, MeasuredVariants], found: Mapping[Pair, Contrast | str], samples: int
) -> dict[Pair, Contrast | str]:
    """Add p to contrasts of trained models: those with the same baseline and seeds are given the same exchanges."""
    made = {pair: contrast for pair, contrast in found.items() if isinstance(contrast, Contrast)}
    runs = {pair: sets[pair.test].same_seeds(pair.one, pair.other) for pair in made}
    contests: dict[tuple[str, str, tuple[object, ...]], list[Pair]] = {}
    for pair, both in runs.items():
        contests.setdefault((pair.test, pair.other, tuple(one.seed for one, _ in both)), []).append(pair)
    family = []
    for pairs in contests.values():
        both = runs[pairs[0]]
        baseline = [other.statistics for _, other in both]
        systems = {pair: [one.statistics for one, _ in runs[pair]] for pair in pairs}
        are_crossed = len({other.kind for _, other in both}) == 1
        family.append(models.Contest(sets[pairs[0].test].metric, baseline, systems, are_crossed))
    return {pair: replace(made[pair], p=result.p) for pair, result in models.compare_models(family, samples=samples).items()}
