"""What was written of test sets: by a run's own test, or by ``attnlab evaluate`` under a label, and how that is added to."""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

import attnlab
from attnlab.data.examples import Examples
from attnlab.errors import UserError
from attnlab.evaluation.metric import Metric
from attnlab.runs.building import load_metrics, report_damage
from attnlab.runs.evaluation import TestEvaluation
from attnlab.runs.files import LENGTHS, read_statistics, write_lines, write_statistics
from attnlab.runs.folder import RunFolder
from attnlab.runs.identity import hash_run_code
from attnlab.runs.record import length_unit, metric_name
from attnlab.tasks.task import Task

log = logging.getLogger(__name__)
STALE = {
    "ids": "has been made of another run, or before the run was trained anew",
    "code": "was made by other code than there is now",
    "version": "was made by another version of attnlab",
}
"""What a message says of an evaluation that is not added to since this has changed."""
NO_SETTINGS = frozenset({*STALE, "others", "metrics", "tests"})
"""What a file of an evaluation holds beside the settings of its search; the others of an ensemble are the system itself."""


@dataclass(frozen=True)
class TestedSet:
    """One test set of one run.

    Attributes:
        run: whose it is.
        measured: of every metric ``value``, ``signature``, ``low`` and ``high``.
        statistics: what each example adds to each metric, and beside it what :func:`read_statistics` has of it.
        unit: that lengths are counted in.
        references: a hash of the right targets.
        origin: what the figures come from, by what it is: data, version and code.
        settings: that an evaluation was made with, by name; none of a run's own test, whose config has them.
    """

    run: RunFolder
    measured: Mapping[str, Mapping[str, Any]]
    statistics: Mapping[str, NDArray[np.float64]]
    unit: str
    references: str
    origin: Mapping[str, str]
    settings: Mapping[str, str]

    def of_examples(self, metric: str) -> NDArray[np.float64]:
        """Return what each example adds to a metric, in the order of :attr:`lengths`.

        Raises:
            UserError: it was not measured, or an example adds no finite number to it.
        """
        if metric in self.measured and metric not in self.statistics:
            raise UserError(f"{self.run.path}: of {metric}, not every example has a finite value: nothing can be tested by it")
        self.signature(metric)  # tells of one that was not measured
        return self.statistics[metric]

    def value(self, metric: str) -> float:
        """Return a metric; NaN where it has no value.

        Raises:
            UserError: it was not measured.
        """
        self.signature(metric)
        return float(self.measured[metric]["value"])

    def signature(self, metric: str) -> str:
        """Return the signature of a metric, or ``none``.

        Raises:
            UserError: it was not measured.
        """
        if metric not in self.measured:
            raise UserError(f"{self.run.path} has no metric {metric!r} of it: there is {', '.join(self.measured) or 'none'}")
        return self.measured[metric].get("signature") or "none"

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The lengths of the sources."""
        return self.statistics[LENGTHS]


def read_tested(run: RunFolder, test: str, label: str | None) -> TestedSet:
    """Read what was written of a test set.

    Args:
        run: a finished run.
        test: name of the test set.
        label: of the evaluation; None is the run's own test.

    Raises:
        UserError: nothing was, or a file is damaged.
    """
    result = run.read_result()
    origin = {"data": result.data, "version": result.version, "code": result.code}
    settings: dict[str, str] = {}
    if label is None:
        tests = result.tests
        path, where = run.statistics_file(test), "test set"
        references = hash_lines(run.read_references(test))
    else:
        evaluation = run.read_evaluation(label)
        tests = evaluation.get("tests", {})
        if not tests:
            raise UserError(f"{run.path} has no evaluation {label!r}: attnlab evaluate {run.path} --label {label}")
        _check_members(run, label, evaluation)
        path, where = run.evaluation_statistics_file(label, test), f"test set in its evaluation {label!r}"
        references = str(tests.get(test, {}).get("references", ""))
        settings = {name: _in_words(value) for name, value in evaluation.items() if name not in NO_SETTINGS}
        origin |= {"version of the evaluation": str(evaluation.get("version")), "code of the evaluation": _code_of(evaluation)}
    if test not in tests:
        raise UserError(f"{run.path} has no {where} called {test!r}: there is {', '.join(tests) or 'none at all'}")
    if not path.is_file():
        told = f"{run.path} holds no {path.relative_to(run.path)}, which tells how each example was done"
        raise UserError(
            f"{told}: it was exported; name the run itself, or a --label of attnlab evaluate" if run.is_exported else told
        )
    statistics = run.read_statistics(test) if label is None else read_statistics(path)
    return TestedSet(run, tests[test]["metrics"], statistics, length_unit(tests[test]), references, origin, settings)


def _check_members(run: RunFolder, label: str, evaluation: Mapping[str, Any]) -> None:
    """Refuse an evaluation one of whose runs, as far as they are there, has been trained anew since."""
    members = [run, *(RunFolder(Path(other)) for other in evaluation.get("others", ()))]
    for member, known in zip(members, evaluation.get("ids", ()), strict=False):
        record = member.read_record()
        if record and record.id != known:
            raise UserError(
                f"{run.evaluation_file(label)} {STALE['ids']} ({member.path}): evaluate again under another --label, or "
                "remove that file first"
            )


def check_metric(tested: Iterable[TestedSet], metric: str) -> None:
    """Refuse a metric that was not measured in the same way in all of some test sets.

    Raises:
        UserError: it was not, or not at all.
    """
    first, *others = tested
    for other in others:
        if other.signature(metric) != first.signature(metric):
            told = f"{other.signature(metric)}, and {first.run.path}: {first.signature(metric)}"
            raise UserError(f"{metric} is not the same metric in {other.run.path}: {told}")


def differing_settings(tested: Sequence[TestedSet]) -> Iterator[str]:
    """Tell in what settings evaluations of several runs differ."""
    for name in dict.fromkeys(name for one in tested for name in one.settings):
        if len(told := sorted({one.settings.get(name, "none") for one in tested})) > 1:
            yield f"not of one kind: these evaluations differ in {name} ({'; '.join(told)}), by which figures differ too"


def _in_words(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | dict) else str("none" if value is None else value)


def _code_of(evaluation: Mapping[str, Any]) -> str:
    return " ".join(map(str, evaluation.get("code") or ["unknown"]))


def hash_lines(lines: Sequence[str]) -> str:
    """Return a hash of lines of text."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def choose_metric(run: RunFolder, name: str | None, label: str | None) -> tuple[str, Metric]:
    """Return the metric of a name, or else the one that chose the run's checkpoint.

    Args:
        run: a finished run.
        name: of the metric.
        label: of the evaluation that measured it; None is the run's own test.

    Raises:
        UserError: neither the run nor the evaluation declares one of that name.
    """
    config = run.read_config()
    name = name or metric_name(str(config.get("monitor", "")))
    added = run.read_evaluation(label).get("metrics", {}) if label else {}
    with report_damage(run.path):
        metrics = load_metrics({**config.get("metrics", {}), **added}, run.path)
    if name not in metrics:
        raise UserError(f"--metric: {run.path} has no metric {name!r}: there is {', '.join(metrics)}")
    return name, metrics[name]


def describe_origin(runs: Sequence[RunFolder], task: Task) -> dict[str, Any]:
    """Return what an evaluation says of the runs that it evaluates, and of the code that does it."""
    records, codes = [run.read_record() for run in runs], []
    for run in runs:
        with report_damage(run.path):  # a class that the run was trained with may not be at hand
            codes.append(hash_run_code(run.read_config(), task))
    return {
        "ids": [record.id if record else "unknown" for record in records],
        "code": codes,
        "version": attnlab.__version__,
    }


def warn_of_other_data(run: RunFolder, task: Task) -> None:
    """Tell if a run's data are not what it was trained on: what is a test set now may have been trained on."""
    if run.result_file.is_file() and task.data_fingerprint != run.read_result().data:
        log.warning(
            "the data are not those that %s was trained on (they, or what draws them, changed since): its figures do not "
            "compare with those of its own test, and test examples may be some that it was trained on",
            run.path,
        )


def read_earlier_tests(
    folder: RunFolder, label: str, settings: Mapping[str, Any], files: Mapping[str, list[str] | None]
) -> dict[str, dict[str, Any]]:
    """Return the tests that an evaluation holds already, which a new one adds to.

    Args:
        folder: of the run.
        label: of the evaluation.
        settings: of the new one, all of which are to be those of the earlier one.
        files: that each test set is read from; None is the run's data.

    Raises:
        UserError: it was made in another way, of other examples, of another run or by other code.
    """
    told = folder.read_evaluation(label)
    path = folder.evaluation_file(label)
    for name in dict.fromkeys([*settings, *told]):
        value = settings.get(name)
        if told and name != "tests" and told.get(name) != value:
            if name in STALE:
                raise UserError(f"{path} {STALE[name]}: choose another --label, or remove that file")
            before, now = map(_in_words, (told.get(name), value))
            changed = f"{name}: {before}, and now {'set otherwise' if now == before else now}"
            raise UserError(f"{path} was made with other settings ({changed}): choose another --label, or remove that file")
    tests: dict[str, dict[str, Any]] = told.get("tests", {})
    for name, own in files.items():
        if name in tests and tests[name].get("files") != own:
            raise UserError(f"{path} holds a test {name!r} of other examples: choose another --label")
    return tests


def write_tests(
    folder: RunFolder,
    label: str,
    settings: Mapping[str, Any],
    found: Mapping[str, TestEvaluation],
    sets: Mapping[str, Examples],
    files: Mapping[str, list[str] | None],
) -> None:
    """Add tests to an evaluation: what each example came to first, and last the file that says that there is a test.

    Raises:
        UserError: a file cannot be written, or the evaluation has become another one.
    """
    tests = {
        name: {**evaluation.record(), "files": files[name], "references": hash_lines(sets[name].references)}
        for name, evaluation in found.items()
    }
    try:
        folder.evaluations.mkdir(exist_ok=True)
        with FileLock(folder.evaluation_file(label).with_suffix(".lock")):
            # Read again: another process may have added to it.
            before = read_earlier_tests(folder, label, settings, files)
            for name, evaluation in found.items():
                write_lines(folder.evaluation_hypotheses_file(label, name), evaluation.hypotheses)
                write_statistics(
                    folder.evaluation_statistics_file(label, name),
                    evaluation.statistics,
                    evaluation.lengths,
                    evaluation.numbers,
                    evaluation.blocks,
                )
            folder.write_evaluation(label, {**settings, "tests": {**before, **tests}})
    except OSError as error:
        raise UserError(f"cannot write {error.filename or folder.evaluations}: {error.strerror}") from error
