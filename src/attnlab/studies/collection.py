"""What a study's folder holds: its runs, finished or not, read from their folders alone. Nothing heavy is imported first."""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnlab.config import variant_labels
from attnlab.errors import UserError
from attnlab.runs.files import LENGTHS, NUMBERS
from attnlab.runs.folder import RunFolder, State
from attnlab.runs.record import ProbeRecord, RunRecord, RunResult, length_unit
from attnlab.studies.folder import StudyFolder, StudyPlan
from attnlab.studies.names import Significance

if TYPE_CHECKING:
    from attnlab.evaluation.measurement import LengthBuckets
    from attnlab.evaluation.metric import Metric, Statistics


@dataclass(frozen=True)
class Run:
    """One run of a study.

    Attributes:
        folder: its own.
        overrides: what makes its variant.
        seed: of weights, batches and dropout.
        state: how far it was when it was looked at.
        damage: of a damaged one, what of it cannot be read; none of its files is then.
    """

    folder: RunFolder
    overrides: tuple[str, ...]
    seed: int
    state: State
    damage: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it has a result."""
        return self.state == "done"

    @cached_property
    def record(self) -> RunRecord | None:
        """What it is; None where this version cannot read that."""
        return self.folder.read_record()

    @cached_property
    def result(self) -> RunResult:
        """What it came to, for a run that is done."""
        return self.folder.read_result()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config; empty for a run that has not come so far."""
        return self.folder.read_config() if self.folder.config_file.is_file() and not self.damage else {}

    @cached_property
    def curve(self) -> list[dict[str, float]]:
        """The metrics of every epoch so far."""
        return [] if self.damage else self.folder.read_curve()

    @cached_property
    def attention(self) -> list[dict[str, Any]]:
        """What the attention looks at while a few given targets are read."""
        return [] if self.damage else self.folder.read_attention()

    @cached_property
    def starts(self) -> list[dict[str, Any]]:
        """Time, versions, commit and hardware of every start, the newest last."""
        return [] if self.damage else self.folder.read_starts()

    @property
    def error(self) -> str:
        """The traceback, or the one line, of a run that failed or is damaged."""
        return self.damage or self.folder.read_error()

    @property
    def pending(self) -> str:
        """How far a run is that is not done, in a line."""
        return f"{self.state}: {self.folder.place}{f' ({self.damage})' if self.damage else ''}"

    def check(self) -> "Run":
        """Compare all files with what the run wrote, and read those that a report reads where that is not known of all.

        Returns:
            The run itself or, if a file cannot be read or is another, the run as damaged.
        """
        try:
            if self.is_done and self.folder.is_whole():
                return self
            _ = self.config, self.curve, self.attention, self.starts, self.error
            if self.state == "interrupted" and self.folder.result_file.is_file():  # by its state, it is no result
                _ = self.result
            for test, found in self.result.tests.items() if self.is_done else ():
                _ = self.predictions(test), self.sources(test), self.references(test), self._read(test)
                _ = [self.value(test, metric) for metric in found["metrics"]]
            if self.is_done:
                self.folder.verify()
        except UserError as error:
            return replace(self, state="damaged", damage=str(error))
        except (ValueError, LookupError, TypeError, AttributeError):
            return replace(self, state="damaged", damage=f"{self.folder.result_file} is damaged")
        return self

    def value(self, test: str, metric: str) -> float | None:
        """Return a metric of a test set; None where it was not measured, or is no number."""
        value = self.result.metric(test, metric)
        return None if value is None or not math.isfinite(value) else value

    def probe(self, test: str) -> ProbeRecord | None:
        """Return what experiments on the attention found on a test set; None where nobody made any of what the run is now."""
        if test not in self._probes:
            found = self.folder.read_probe(test)
            self._probes[test] = found if found and found.id == self.result.id else None
        return self._probes[test]

    @cached_property
    def _probes(self) -> dict[str, ProbeRecord | None]:
        return {}

    def statistics(self, test: str, metric: str) -> "Statistics | None":
        """Return what each example of a test set adds to a metric; None where that is not known."""
        return self._read(test).get(metric)

    def length_buckets(self, test: str) -> "LengthBuckets":
        """Return the buckets of source length of a test set whose statistics are known."""
        if test not in self._buckets:
            self._buckets[test] = _length_buckets(tuple(self._read(test)[LENGTHS].tolist()))
        return self._buckets[test]

    @cached_property
    def _buckets(self) -> "dict[str, LengthBuckets]":
        return {}

    def _read(self, test: str) -> dict[str, NDArray[np.float64]]:
        if test not in self._statistics:
            self._statistics[test] = self.folder.read_statistics(test)
        return self._statistics[test]

    @cached_property
    def _statistics(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        return {}

    def predictions(self, test: str) -> list[str]:
        """Return the predictions of a test set, a line an example."""
        return self.folder.read_hypotheses(test)

    def sources(self, test: str) -> list[str]:
        """Return the sources of a test set."""
        return self.folder.read_sources(test)

    def references(self, test: str) -> list[str]:
        """Return the references of a test set."""
        return self.folder.read_references(test)

    def examples(self, test: str) -> list[tuple[int, str, str]]:
        """Return the number, from 1, the source and the reference of each example of a test set that the run was tested on.

        It is by these that examples of several runs are the same, and never by where they stand in a file.
        """
        return _join(self._columns(test))

    def _columns(self, test: str) -> "Columns":
        numbers = self._read(test).get(NUMBERS, np.empty(0))
        return tuple(map(int, numbers.tolist())), tuple(self.sources(test)), tuple(self.references(test))

    def example_order(self, test: str) -> tuple[str, tuple[int, ...]]:
        """Return a hash of the examples of a test set, the same in any order, and the places that bring them into one."""
        if test not in self._orders:
            self._orders[test] = _order(self._columns(test))
        return self._orders[test]

    @cached_property
    def _orders(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        return {}


@lru_cache(maxsize=128)  # the same object for runs with the same lengths, whose buckets are measured together
def _length_buckets(lengths: tuple[float, ...]) -> "LengthBuckets":
    from attnlab.evaluation.measurement import LengthBuckets

    return LengthBuckets(lengths)


Columns = tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]
"""The numbers of examples, none where they are not known, their sources and their references."""


def _join(columns: Columns) -> list[tuple[int, str, str]]:
    numbers, sources, references = columns
    return list(zip(numbers or range(1, len(sources) + 1), sources, references, strict=False))


@lru_cache(maxsize=8)  # most runs of a study have the same test sets, each of which need not be sorted again
def _order(columns: Columns) -> tuple[str, tuple[int, ...]]:
    examples = _join(columns)
    order = sorted(range(len(examples)), key=lambda place: (examples[place][1:], examples[place][0]))
    texts = json.dumps([examples[place][1:] for place in order])
    return hashlib.sha256(texts.encode()).hexdigest(), tuple(order)


@dataclass(frozen=True)
class Study:
    """All runs of one name.

    Attributes:
        folder: ``runs/NAME``.
        question: in words; empty for a sweep without one.
        wanted_metrics: names of the metrics that the comparison is to show; empty leaves it to the task.
        baseline: label of the variant that others are compared with, or None.
        commands: what runs it again, one after another.
        axis: what the labels of variants are values of, such as ``attention``, or ``variant``.
        wanted_baseline: what the study calls its baseline, whether or not there is such a variant.
        significance: what the tests of differences are to speak of.
        claims: about the outcome, made before it was known.
        tune: what every variant is tuned by, as :class:`StudyPlan` has it; None where nothing is.
        match: the size that is set for a count of parameters, as :class:`StudyPlan` has it, or None.
        variants: runs of each variant by its label, in the order of the plan, ordered by seed.
    """

    folder: StudyFolder
    question: str
    wanted_metrics: tuple[str, ...]
    baseline: str | None
    commands: tuple[str, ...]
    axis: str
    wanted_baseline: object = None
    significance: Significance = "seeds"
    claims: tuple[str, ...] = ()
    tune: Mapping[str, Any] | None = None
    match: Mapping[str, Any] | None = None
    variants: dict[str, list[Run]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the folder is called."""
        return self.folder.name

    @cached_property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for runs in self.variants.values() for run in runs]

    def count(self, state: State) -> int:
        """Return how many runs are in a state."""
        return sum(run.state == state for run in self.runs)

    @cached_property
    def _done(self) -> dict[str, list[Run]]:
        finished = {label: [run for run in runs if run.is_done] for label, runs in self.variants.items()}
        return {label: runs for label, runs in finished.items() if runs}

    def done(self) -> dict[str, list[Run]]:
        """Return the finished runs of each variant that has any."""
        return self._done

    @cached_property
    def finished_runs(self) -> list[Run]:
        """All finished runs."""
        return [run for runs in self.done().values() for run in runs]

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

    def find_metric(self, name: str) -> "Metric":
        """Return a metric as the first finished run that declares it does; of many runs, the configs of others are not read.

        Raises:
            LookupError: no run declares it.
            UserError: it cannot be made.
        """
        from attnlab.runs.building import load_metrics

        for run in self.finished_runs:
            if name in (metrics := run.config.get("metrics") or {}):
                return load_metrics({name: metrics[name]}, self.folder.path)[name]
        raise LookupError(f"no run declares the metric {name!r}")

    @cached_property
    def known_metrics(self) -> "dict[str, Metric]":
        """The metrics that finished runs were measured by, and those that are declared beside these, by name.

        Of many runs only the configs are read that declare one more.

        Raises:
            UserError: one that cannot be made, such as one of the user's own whose module is not at hand.
        """
        from attnlab.runs.building import load_metrics, report_damage

        nodes: dict[str, Any] = {}
        for run in self.finished_runs:
            if not all(name in nodes for found in run.result.tests.values() for name in found["metrics"]):
                nodes = {**(run.config.get("metrics") or {}), **nodes}
        with report_damage(self.folder.path):
            return load_metrics(nodes, self.folder.path)

    @cached_property
    def metrics(self) -> "dict[str, Metric]":
        """The metrics that the comparison shows, the first being the one that ranks; empty while no run is finished.

        Raises:
            UserError: the study names a metric that no run declares.
        """
        if not self.finished_runs:
            return {}
        recorded = (self.finished_runs[0].config.get("study") or {}).get("metrics")
        names = self.wanted_metrics or recorded or list(self.known_metrics)
        for name in names:
            if name not in self.known_metrics:
                raise UserError(f"study.metrics has no {name!r}: there is {', '.join(self.known_metrics) or 'none'}")
        return {name: self.known_metrics[name] for name in names}

    @property
    def ranking(self) -> "tuple[str, Metric]":
        """The metric by which variants are ranked, of a study with a finished run."""
        return next(iter(self.metrics.items()))


def collect(folder: str | Path) -> Study:
    """Read a study's folder, ``runs/NAME``.

    Runs are those of the plan, which a sweep writes when it starts, and all others that are found there.

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
    for run in study.runs:
        if run.place not in runs:
            record = run.read_record()
            runs[run.place] = _unreadable(run) if record is None else Run(run, tuple(record.overrides), record.seed, run.state)
    if not runs:
        raise UserError(f"no run below {folder}: expected {folder}/VARIANT/seed=N")
    by_variant: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for one in runs.values():
        by_variant[one.overrides].append(one)
    axis, names = variant_labels(list(by_variant))
    return Study(
        folder=study,
        question=plan.question or "",
        wanted_metrics=tuple(plan.metrics or ()),
        baseline=find_variant(plan.baseline, names),
        commands=tuple(plan.commands),
        axis=axis,
        wanted_baseline=plan.baseline,
        significance=plan.significance,
        claims=tuple(plan.claims),
        tune=plan.tune,
        match=plan.match,
        variants={names[overrides]: sorted(seeds, key=lambda run: run.seed) for overrides, seeds in by_variant.items()},
    )


def _unreadable(folder: RunFolder) -> Run:
    """Return a run that neither a plan nor its own record says anything of, as far as its path does."""
    variant, _, seed = folder.place.partition("/seed=")
    found = "damaged, or another version wrote it" if folder.record_file.is_file() else "gone"
    damage = f"{folder.record_file} is {found}: move the folder out of the study"
    return Run(folder, tuple(variant.split(",")), int(seed) if seed.isdecimal() else 0, "damaged", damage)


def check_files(study: Study) -> Study:
    """Return a study in which a run is a damaged one if a file of it cannot be read, or is not what the run wrote."""
    return replace(study, variants={label: [run.check() for run in runs] for label, runs in study.variants.items()})


def find_variant(wanted: object, names: Mapping[tuple[str, ...], str]) -> str | None:
    """Return the label of the variant that is named by it, by its overrides, or by the value of its one override."""
    name = "" if wanted is None else str(wanted)
    for overrides, label in names.items():
        values = [override.partition("=")[2] for override in label.split()]
        if name and (name == label or sorted(name.split()) in (sorted(label.split()), values, [*overrides])):
            return label
    return None


def tally(states: Iterable[State]) -> str:
    """Count states in words: ``3 done, 1 failed``."""
    counts: dict[State, int] = defaultdict(int)
    for state in states:
        counts[state] += 1
    order: tuple[State, ...] = ("done", "running", "failed", "damaged", "interrupted", "missing")
    return ", ".join(f"{counts[state]} {state}" for state in order if counts[state])
