"""What the variants of a study had reached in equal time, by the learning curves that their runs recorded."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attnlab.evaluation.metric import Metric
from attnlab.studies.collection import Study
from attnlab.studies.run import Run


@dataclass(frozen=True)
class EqualTime:
    """A time of training that every variant had, and what each run had reached by then.

    Attributes:
        seconds: of training, without validation: the least after which all finished runs of a variant had ended.
        fastest: that variant.
        name: of the metric in the curves.
        best: chooses the best of several values of it.
    """

    seconds: float
    fastest: str
    name: str
    best: Callable[[Sequence[float]], float]

    def value(self, run: Run) -> float | None:
        """Return the best value on the validation set until then; None where no epoch had ended, or its time is not known."""
        early = (line[self.name] for line in run.curve if self.name in line and _seconds(line) <= self.seconds)
        found = [value for value in early if math.isfinite(value)]
        return self.best(found) if found else None


def _seconds(line: dict[str, float]) -> float:
    return line.get("seconds", math.inf)


def choose_best(metric: Metric) -> Callable[[Sequence[float]], float] | None:
    """Return what chooses the best of several values; None where neither way is better."""
    return {True: max, False: min, None: None}[metric.higher_is_better]


def equal_time_title(metric: Metric) -> str:
    """Return the name of the column that shows it."""
    return f"val {metric.label} at equal time"


def equal_time(study: Study) -> EqualTime | None:
    """Return the time at which the fastest variant was finished, and what tells how good all were then.

    Args:
        study: with a finished run.

    Returns:
        None where fewer than two variants are finished and say when their epochs ended, or where the metric that ranks was not
        measured on the validation set.
    """
    name, metric = study.ranking
    best, logged = choose_best(metric), f"val/{name}"
    known = {
        label: [run.result.train_seconds for run in runs]
        for label, runs in study.done().items()
        if all(any(logged in line and "seconds" in line for line in run.curve) for run in runs)
    }
    if best is None or len(known) < 2:
        return None
    fastest = min(known, key=lambda label: max(known[label]))
    return EqualTime(max(known[fastest]), fastest, logged, best)
