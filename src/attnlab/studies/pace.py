"""What the variants of a study had reached in equal time, by the learning curves that their runs recorded."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attnlab.evaluation.metric import Metric
from attnlab.studies.collection import Study
from attnlab.studies.run import Run


@dataclass(frozen=True)
class EqualTime:
    """A time of training that every variant had, and what each run had reached by then.

    Attributes:
        seconds: of training, without validation: that after which all finished runs of a variant had ended.
        fastest: that variant.
        name: of the metric in the curves.
        best: chooses the best of several values of it.
        reached: the finished runs of the variants that had a value by then in all of them; a mean of some would be of the fast.
    """

    seconds: float
    fastest: str
    name: str
    best: Callable[[Sequence[float]], float]
    reached: Mapping[str, Sequence[Run]]

    def value(self, run: Run) -> float | None:
        """Return the best value on the validation set until then; None where no epoch had ended, or its time is not known."""
        return _best_until(run, self.seconds, self.name, self.best)


def _best_until(run: Run, seconds: float, name: str, best: Callable[[Sequence[float]], float]) -> float | None:
    early = (line[name] for line in run.curve if name in line and line.get("seconds", math.inf) <= seconds)
    found = [value for value in early if math.isfinite(value)]
    return best(found) if found else None


def choose_best(metric: Metric) -> Callable[[Sequence[float]], float] | None:
    """Return what chooses the best of several values; None where neither way is better."""
    return {True: max, False: min, None: None}[metric.higher_is_better]


def equal_time_title(metric: Metric) -> str:
    """Return the name of the column that shows it."""
    return f"val {metric.label} at equal time"


def equal_time(study: Study) -> EqualTime | None:
    """Return the time at which the fastest variant was finished, and what tells how good all were then.

    A control that hardly trains, as one linear layer, may be finished before any other variant has ended an epoch: the time is
    that of the fastest by which half of the variants had a value.

    Args:
        study: with a finished run.

    Returns:
        None where fewer than two variants are finished and say when their epochs ended, or where the metric that ranks was not
        measured on the validation set.
    """
    name, metric = study.ranking
    best, logged = choose_best(metric), f"val/{name}"
    known = {
        label: runs
        for label, runs in study.finished_variants.items()
        if all(any(logged in line and "seconds" in line for line in run.curve) for run in runs)
    }
    if best is None or len(known) < 2:
        return None
    ends = {label: max(run.result.train_seconds for run in runs) for label, runs in known.items()}
    for label, seconds in sorted(ends.items(), key=lambda item: item[1]):
        values = {label: [_best_until(run, seconds, logged, best) for run in runs] for label, runs in known.items()}
        reached = {label: known[label] for label, found in values.items() if None not in found}
        if 2 * len(reached) >= len(known):
            return EqualTime(seconds, label, logged, best, reached)
    return None
