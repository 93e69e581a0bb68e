"""What a study's tuning found: the score of every trial, what was chosen for each variant, and what that is worth."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from attnlab.errors import UserError
from attnlab.evaluation.metric import VALIDATION_LOSS, Metric
from attnlab.runs.record import metric_name
from attnlab.studies.collection import Study, check_files, collect
from attnlab.studies.folder import StudyFolder
from attnlab.studies.options import find_trial, variant_of
from attnlab.studies.plan import Plan
from attnlab.studies.run import Run
from attnlab.studies.tuning.expectation import Outcome, choose, expected_best, expected_choice, mean
from attnlab.studies.values import find_value


@dataclass(frozen=True)
class Trial:
    """One trial of a variant.

    Attributes:
        number: by which every variant has a trial of the same values.
        values: of the keys that are tuned.
        outcomes: on the validation set, by seed.
    """

    number: int
    values: Mapping[str, Any]
    outcomes: Mapping[int, Outcome]

    @property
    def outcome(self) -> Outcome:
        """The mean over seeds; its score is NaN if a training diverged."""
        return mean(self.outcomes.values())

    @property
    def score(self) -> float:
        """That of the outcome."""
        return self.outcome.score


@dataclass(frozen=True)
class TunedVariant:
    """All trials of one variant.

    Attributes:
        overrides: that make the variant.
        trials: in their order.
        higher_is_better: whether it is, of their scores.
    """

    overrides: tuple[str, ...]
    trials: list[Trial]
    higher_is_better: bool

    @cached_property
    def chosen(self) -> Trial | None:
        """The trial with the best score, of equal ones that with the lowest loss; None if all trainings diverged."""
        number = choose([trial.outcome for trial in self.trials], higher_is_better=self.higher_is_better)
        return None if number is None else self.trials[number]

    @cached_property
    def expected(self) -> list[float]:
        """The expected best score of 1, 2, ... trials."""
        return expected_best([trial.score for trial in self.trials], higher_is_better=self.higher_is_better)

    def expected_choice(self, seeds: int) -> float:
        """Return the expected score, with one more seed, of the trial that so many seeds choose."""
        return expected_choice([trial.outcomes for trial in self.trials], seeds, higher_is_better=self.higher_is_better)


@dataclass(frozen=True)
class Selection:
    """What came of a study's tuning.

    Attributes:
        metric: that decides, on the validation set.
        monitor: what it is logged as, such as ``val/loss``.
        seeds: of every trial.
        count: of the trials of every variant.
        variants: by label, those with all of their trials, the best first.
        pending: every trial that decides nothing, and why: one that is not finished, say, and how far it is.
    """

    metric: Metric
    monitor: str
    seeds: list[int]
    count: int
    variants: dict[str, TunedVariant]
    pending: list[str]


def collect_trials(folder: StudyFolder) -> Study | None:
    """Return the trials of a study; None where none were planned.

    Raises:
        UserError: a plan that is damaged.
    """
    return None if folder.tuning.read_plan() is None else collect(folder.tuning.path)


def filter_trials(trials: Study, variants: Collection[tuple[str, ...]]) -> Study:
    """Return the trials of some variants, by their overrides; every byte of these is compared, and of no others."""
    own = {name: runs for name, runs in trials.variants.items() if variant_of(runs[0].overrides) in variants}
    return check_files(replace(trials, variants=own))


def select_values(trials: Study, tune: Mapping[str, Any], variants: Mapping[str, tuple[str, ...]]) -> Selection | None:
    """Read what came of the trials of variants of one task.

    Args:
        trials: of these variants.
        tune: what they are tuned by, as :class:`StudyPlan` has it.
        variants: overrides by label.

    Returns:
        None where none of these trials that declares the metric is finished.
    """
    labels = {overrides: label for label, overrides in variants.items()}
    name = tune["metric"] or metric_name(trials.monitor)
    metric, values = trials.find_metric(name), tune["trials"]
    if metric is None:
        return None
    outcomes: dict[str, dict[tuple[int, int], Outcome]] = {label: {} for label in variants}
    pending = []
    for run in trials.runs:
        number, label = find_trial(run.overrides), labels.get(variant_of(run.overrides))
        if number is None or number >= len(values) or label is None or run.seed not in tune["seeds"]:
            continue  # of what the study was before
        if not is_settled(run):
            pending.append(run.pending)
        elif not _has(run.config, values[number]):
            pending.append(f"of other values: {run.folder.place}")
        elif (outcome := _outcome(run, name)) is None:
            pending.append(f"without val/{name}, by which it would be judged: {run.folder.place}")
        else:
            outcomes[label][number, run.seed] = outcome
    tuned = {
        label: TunedVariant(
            variants[label],
            [Trial(n, values[n], {seed: own[n, seed] for seed in tune["seeds"]}) for n in range(len(values))],
            bool(metric.higher_is_better),
        )
        for label, own in outcomes.items()
        if own.keys() == {*product(range(len(values)), tune["seeds"])}
    }
    order = sorted(tuned, key=lambda label: _rank(tuned[label]))
    return Selection(metric, f"val/{name}", tune["seeds"], len(values), {label: tuned[label] for label in order}, pending)


def check_divergence(trials: Study, tune: Mapping[str, Any]) -> None:
    """Refuse to go on where no values are left for a variant.

    Args:
        trials: of the variants.
        tune: what they are tuned by.

    Raises:
        UserError: all trainings of a variant diverged.
    """
    diverged: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for run in trials.runs:
        number = find_trial(run.overrides)
        if number is None or number >= len(tune["trials"]) or run.seed not in tune["seeds"]:
            continue
        if _has_diverged(run) and _has(run.config, tune["trials"][number]):
            diverged[variant_of(run.overrides)].add(number)
    for variant, numbers in diverged.items():
        if len(numbers) == len(tune["trials"]):
            raise _no_values(variant)


def _no_values(variant: Sequence[str]) -> UserError:
    return UserError(f"study.tune: every trial of {' '.join(variant) or 'default'} diverged: let its keys have other values")


def is_settled(run: Run) -> bool:
    """Tell whether nothing is left to be done for a trial."""
    return run.is_done or _has_diverged(run)


def _has_diverged(run: Run) -> bool:
    return run.state == "failed" and bool(run.folder.divergence)


def apply_selections(plan: Plan, selections: Iterable[Selection | None]) -> Plan | None:
    """Return a plan whose runs have the values that were chosen for their variants.

    Args:
        plan: of the study.
        selections: what came of its tuning, of each column where it has several.

    Returns:
        None while a variant of the plan has trials that are not finished: none is tuned by fewer than others.

    Raises:
        UserError: all trainings of a variant diverged.
    """
    found = {variant.overrides: variant for one in selections if one for variant in one.variants.values()}
    if any(run.variant not in found for run in plan.runs):
        return None
    runs = []
    for run in plan.runs:
        chosen = found[run.variant].chosen
        if chosen is None:
            raise _no_values(run.variant)
        runs.append(replace(run, values={**run.values, **chosen.values}))
    return replace(plan, runs=runs)


def _rank(variant: TunedVariant) -> float:
    sign = -1.0 if variant.higher_is_better else 1.0
    return math.inf if variant.chosen is None else sign * variant.chosen.score


def _outcome(run: Run, name: str) -> Outcome | None:
    """Return what the checkpoint that a settled trial chose came to on the validation set; None of a trial that did not measure
    the metric, and a score of NaN of one that diverged.
    """
    if _has_diverged(run):
        return Outcome(math.nan)
    monitor, best, wanted = run.result.monitor, run.result.best, f"val/{name}"
    lines = [line for line in run.curve if wanted in line and (monitor is None or monitor in line)]
    if monitor is None:  # no checkpoint is chosen: the last weights are
        lines = lines[-1:]
    elif best is not None and math.isfinite(best):  # else no value was finite, and all are equal
        # Of several validations in an epoch the curve has the last alone, and another one may have chosen the checkpoint.
        lines = [line for line in lines if line[monitor] == best]
    # As BestCheckpoint does, the loss decides between equal ones.
    found = [Outcome(line[wanted], line.get(VALIDATION_LOSS, math.inf)) for line in lines]
    if not found and monitor == wanted and best is not None:
        return Outcome(best)
    return min(found, key=lambda outcome: outcome.loss, default=None)


def _has(config: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Tell whether a config has these values."""
    try:
        return all(find_value(config, key, "", "") == value for key, value in values.items())
    except UserError:
        return False
