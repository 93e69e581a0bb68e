"""What was written of a test set: by a run's own test, or by attnlab evaluate under a label."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnlab.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attnlab.evaluation.metric import Metric
    from attnlab.runs.folder import RunFolder


@dataclass(frozen=True)
class TestedSet:
    """One test set of one run.

    Attributes:
        run: whose it is.
        measured: of every metric ``value``, ``signature``, ``low`` and ``high``.
        statistics: what each example adds to each metric, and ``source_length``.
        references: a hash of the right targets.
    """

    run: "RunFolder"
    measured: Mapping[str, Mapping[str, Any]]
    statistics: Mapping[str, "NDArray[np.float64]"]
    references: str

    def of(self, metric: str) -> "NDArray[np.float64]":
        """Return what each example adds to a metric.

        Raises:
            UserError: it was not measured.
        """
        if metric not in self.statistics or metric not in self.measured:
            raise UserError(f"{self.run.path} has no metric {metric!r} of it: there is {', '.join(self.measured) or 'none'}")
        return self.statistics[metric]

    @property
    def lengths(self) -> "NDArray[np.float64]":
        """The lengths of the sources, in tokens."""
        from attnlab.runs.folder import LENGTHS

        return self.statistics[LENGTHS]


def read_tested(run: "RunFolder", test: str, label: str | None) -> TestedSet:
    """Read what was written of a test set.

    Args:
        run: a finished run.
        test: name of the test set.
        label: of the evaluation; None is the run's own test.

    Raises:
        UserError: nothing was, or a file is damaged.
    """
    from attnlab.runs.folder import read_lines, read_statistics

    if label is None:
        tests = run.read_result().tests
        path, where = run.statistics_file(test), "test set"
        references = hash_lines(read_lines(run.references_file(test)))
    else:
        tests = run.read_evaluation(label).get("tests", {})
        if not tests:
            raise UserError(f"{run.path} has no evaluation {label!r}: attnlab evaluate {run.path} --label {label}")
        path, where = run.evaluation_statistics_file(label, test), f"test set in its evaluation {label!r}"
        references = str(tests.get(test, {}).get("references", ""))
    if test not in tests:
        raise UserError(f"{run.path} has no {where} {test!r}: there is {', '.join(tests) or 'none at all'}")
    if not path.is_file():
        raise UserError(f"{run.path} holds no {path.relative_to(run.path)}, which tells how each example was done")
    return TestedSet(run, tests[test]["metrics"], read_statistics(path), references)


def hash_lines(lines: Sequence[str]) -> str:
    """Return a hash of lines of text."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def choose_metric(run: "RunFolder", name: str | None) -> tuple[str, "Metric"]:
    """Return the metric of a name, or else the one that chose the run's checkpoint.

    Raises:
        UserError: the run declares none of that name.
    """
    from attnlab.runs.loading import load_metrics, report_damage
    from attnlab.runs.record import metric_name

    config = run.read_config()
    name = name or metric_name(str(config.get("monitor", "")))
    with report_damage(run.path):
        metrics = load_metrics(config)
    if name not in metrics:
        raise UserError(f"--metric: {run.path} has no metric {name!r}: there is {', '.join(metrics)}")
    return name, metrics[name]
