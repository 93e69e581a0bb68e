"""What a study's folder holds: its runs, finished or not, read from their folders alone. Torch is not imported."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from attnlab.config import DEFAULT, variant_labels
from attnlab.errors import UserError
from attnlab.evaluation.metric import Metric
from attnlab.runs.building import load_metrics, report_damage
from attnlab.runs.folder import RunFolder, State
from attnlab.runs.record import length_unit
from attnlab.studies.folder import StudyFolder, StudyPlan
from attnlab.studies.run import Run

VARIANT = "variant="
"""The axis of the variants that a study names itself."""
NAMED = 5
"""Runs of one state that are named where a report says what is not done; of further ones their number is told."""


@dataclass(frozen=True)
class Study:
    """All runs of one name.

    Attributes:
        folder: ``runs/NAME``.
        plan: what it asks and runs.
        baseline: label of the variant that others are compared with, or None.
        axis: what the labels of variants are values of, such as ``attention``, or ``variant``.
        variants: runs of each variant by its label, in the order of the plan, ordered by seed.
        column: of which this is a part; empty for a whole study.
    """

    folder: StudyFolder
    plan: StudyPlan
    baseline: str | None
    axis: str
    variants: dict[str, list[Run]]
    column: str = ""

    @property
    def name(self) -> str:
        """What the folder is called, with the column that this is a part of."""
        return f"{self.folder.name}: {self.column}" if self.column else self.folder.name

    @cached_property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for runs in self.variants.values() for run in runs]

    def count(self, state: State) -> int:
        """Return how many runs are in a state."""
        return sum(run.state == state for run in self.runs)

    @property
    def first_unfinished(self) -> tuple[list[Run], dict[State, str]]:
        """Of each state but done the first few runs, and how many more there are, in words."""
        left: dict[State, list[Run]] = defaultdict(list)
        for run in self.runs:
            if not run.is_done:
                left[run.state].append(run)
        named = [run for runs in left.values() for run in runs[:NAMED]]
        return named, {state: f"{len(runs) - NAMED} more" for state, runs in left.items() if len(runs) > NAMED}

    @property
    def pending(self) -> list[str]:
        """How far the runs are that are not done, in lines."""
        named, more = self.first_unfinished
        return [*(run.pending for run in named), *map(": ".join, more.items())]

    @cached_property
    def finished_variants(self) -> dict[str, list[Run]]:
        """The finished runs of each variant that has any."""
        finished = {label: [run for run in runs if run.is_done] for label, runs in self.variants.items()}
        return {label: runs for label, runs in finished.items() if runs}

    @cached_property
    def finished_runs(self) -> list[Run]:
        """All finished runs."""
        return [run for runs in self.finished_variants.values() for run in runs]

    @cached_property
    def tests(self) -> list[str]:
        """Names of the test sets, the first being the one that ranks."""
        return list(dict.fromkeys(name for run in self.finished_runs for name in run.result.tests))

    def length_unit(self, test: str) -> str:
        """Return what the lengths of a test set's sources are counted in."""
        tests = [run.result.tests[test] for run in self.finished_runs if test in run.result.tests]
        return " or ".join(dict.fromkeys(map(length_unit, tests)))

    @property
    def monitor(self) -> str:
        """The metric that chose the checkpoints, such as ``val/loss``; empty where none is known."""
        recorded, asked = (run.result.monitor for run in self.finished_runs), (run.config.get("monitor") for run in self.runs)
        return str(next(filter(None, chain(recorded, asked)), ""))

    def find_metric(self, name: str) -> Metric | None:
        """Return a metric as the first finished run that declares it does; of many runs, the configs of others are not read.

        Returns:
            None where no finished run declares it.

        Raises:
            UserError: it cannot be made.
        """
        for run in self.finished_runs:
            if name in (metrics := run.config.get("metrics") or {}):
                with report_damage(self.folder.path):
                    return load_metrics({name: metrics[name]}, self.folder.path)[name]
        return None

    @cached_property
    def known_metrics(self) -> dict[str, Metric]:
        """The metrics that finished runs were measured by, and those that are declared beside these, by name.

        Of many runs only the configs are read that declare one more.

        Raises:
            UserError: one that cannot be made, such as one of the user's own whose module is not at hand.
        """
        nodes: dict[str, Any] = {}
        for run in self.finished_runs:
            if not all(name in nodes for found in run.result.tests.values() for name in found["metrics"]):
                nodes = {**(run.config.get("metrics") or {}), **nodes}
        with report_damage(self.folder.path):
            return load_metrics(nodes, self.folder.path)

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """The metrics that the comparison shows, the first being the one that ranks; empty while no run is tested.

        Raises:
            UserError: the study names a metric that no run declares.
        """
        if not self.tests:
            return {}
        recorded = (self.finished_runs[0].config.get("study") or {}).get("metrics")
        names = self.plan.metrics or recorded or list(self.known_metrics)
        for name in names:
            if name not in self.known_metrics:
                raise UserError(f"study.metrics has no {name!r}: there is {', '.join(self.known_metrics) or 'none'}")
        return {name: self.known_metrics[name] for name in names}

    def others(self, label: str) -> list[str]:
        """Return the variants that one is compared with: all others; in a study of several tasks those of its column."""
        own = {name: chosen_variant(runs[0].overrides) for name, runs in self.variants.items()}
        columns = ({*rows.values()} for rows in (self.plan.columns or {}).values())
        column = next((rows for rows in columns if own[label] in rows), None)
        return [name for name, variant in own.items() if name != label and (column is None or variant in column)]

    @property
    def ranking(self) -> tuple[str, Metric]:
        """The metric by which variants are ranked, of a study with a finished run."""
        return next(iter(self.metrics.items()))


def collect(folder: str | Path) -> Study:
    """Read a study's folder, ``runs/NAME``.

    Runs are those of the plan, which a sweep writes when it starts, and all others that are found there but copies of these.

    Raises:
        UserError: neither a plan nor a run there, or a plan that is damaged.
    """
    study = StudyFolder(folder)
    plan = study.read_plan() or StudyPlan(None, None, None, "seeds", [], [], [])
    runs = {
        planned.folder: Run(run, tuple(planned.overrides), planned.seed, run.state)
        for planned in plan.planned_runs
        for run in [study.run(planned.folder)]
    }
    known = {(run.overrides, run.seed): place for place, run in runs.items() if run.state != "missing"}
    for run in sorted(study.runs, key=lambda run: (not run.path.name.rpartition("=")[2].isdecimal(), run.place)):
        if run.place not in runs:
            record = run.read_record()
            own = None if record is None else (tuple(record.overrides), record.seed)
            if own is None:
                runs[run.place] = _unreadable(run)
            elif (place := known.setdefault(own, run.place)) == run.place:
                runs[run.place] = Run(run, *own, run.state)
            else:  # which would count as one more seed
                runs[run.place] = Run(run, *own, "damaged", f"{run.path} has the run of {place}: move it out of the study")
    if not runs:
        raise UserError(f"no run below {folder}: {name_study(folder) or f'expected {folder}/VARIANT/seed=N'}")
    by_variant: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for one in runs.values():
        by_variant[one.overrides].append(one)
    axis, names = variant_labels(list(by_variant))
    return Study(
        folder=study,
        plan=plan,
        baseline=find_variant(plan.baseline, names),
        axis=axis,
        variants={names[overrides]: sorted(seeds, key=lambda run: run.seed) for overrides, seeds in by_variant.items()},
    )


def name_study(folder: str | Path) -> str:
    """Say which study a folder belongs to that is one run or one variant itself; empty if it is neither."""
    run = RunFolder(folder)
    if any(run.path.glob("seed=*/*.json")):
        return f"it is one variant: name {run.path.parent}"
    return f"it is one run itself: name {run.study}" if run.config_file.is_file() and run.is_of_study else ""


def _unreadable(folder: RunFolder) -> Run:
    """Return a run that neither a plan nor its own record says anything of, as far as its path does."""
    variant, _, seed = folder.place.partition("/seed=")
    found = "damaged, or another version wrote it" if folder.record_file.is_file() else "gone"
    damage = f"{folder.record_file} is {found}: move the folder out of the study"
    overrides = () if variant == DEFAULT else tuple(variant.split(","))
    return Run(folder, overrides, int(seed) if seed.isdecimal() else 0, "damaged", damage)


def check_files(study: Study) -> Study:
    """Return a study in which a run is a damaged one if a file of it cannot be read, or is not what the run wrote."""
    return replace(study, variants={label: [run.check() for run in runs] for label, runs in study.variants.items()})


def chosen_variant(overrides: Iterable[str]) -> str:
    """Return which of the study's own variants overrides choose; empty for none."""
    return next((override.removeprefix(VARIANT) for override in overrides if override.startswith(VARIANT)), "")


def find_variant(wanted: object, names: Mapping[tuple[str, ...], str]) -> str | None:
    """Return the label of the variant that is named by it, by its overrides, or by the values of these; None if there is none.

    Raises:
        UserError: values that several variants have, each for another key.
    """
    parts = sorted(str(wanted).split()) if wanted is not None else []
    for form in (_parts_of_label, _parts_of_overrides, _parts_of_values):
        if found := [label for overrides, label in names.items() if parts and form(overrides, label) == parts]:
            if len(found) > 1:
                raise UserError(f"{wanted!r} may be {' or '.join(found)}: write out which")
            return found[0]
    return None


def _parts_of_label(overrides: Sequence[str], label: str) -> list[str]:
    return sorted(label.split())


def _parts_of_overrides(overrides: Sequence[str], label: str) -> list[str]:
    return sorted(overrides)


def _parts_of_values(overrides: Sequence[str], label: str) -> list[str]:
    return sorted(override.partition("=")[2] for override in label.split())


def tally(states: Iterable[State]) -> str:
    """Count states in words: ``3 done, 1 failed``."""
    counts = Counter(states)
    return ", ".join(f"{counts[state]} {state}" for state in get_args(State) if counts[state])
