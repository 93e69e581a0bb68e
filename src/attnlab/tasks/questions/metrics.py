"""Metrics of answers to questions."""

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.metric import NOT_NEGATIVE, PERCENT, Metric, Origin, Share, Statistics
from attnlab.evaluation.metrics import statistics_of
from attnlab.hints import Range
from attnlab.tasks.questions.stories import TASKS

SOLVED = 5.0
"""A task is solved if no more answers than these are wrong, in per cent (Weston et al. 2015, section 5)."""


def _count_by_task(evidence: Evidence) -> Statistics | None:
    """Return of each example the task (1 to 20) that it is right in and the one that it is of; None where no task is known."""
    if evidence.annotations is None or not evidence.predictions or not any(evidence.annotations):
        return None
    counts = np.zeros((len(evidence.predictions), 2, TASKS))
    for row, task in enumerate(evidence.annotations):
        if 1 <= task <= TASKS:  # another number is no task of bAbI
            counts[row, 0, task - 1] = _is_right(evidence, row)
            counts[row, 1, task - 1] = 1.0
    return counts.reshape(len(counts), -1)


def _is_right(evidence: Evidence, row: int) -> bool:
    return evidence.predictions[row].text == evidence.references[row]


class TaskErrors(Metric):
    """A function of the share of wrong answers of each task of bAbI that the test set has."""

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        return _count_by_task(evidence)

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        right, asked = total.reshape(2, TASKS)
        errors = 100.0 * (1.0 - right[asked > 0] / asked[asked > 0])
        return self.summary(errors) if len(errors) else float("nan")

    @abstractmethod
    def summary(self, errors: NDArray[np.float64]) -> float:
        """Return the metric of the errors of the tasks, in per cent."""


class MeanError(TaskErrors):
    """Share of wrong answers, averaged over the tasks of bAbI that the test set has: T⁻¹ Σ_k wrong_k / asked_k."""

    label = "mean error"
    unit = "%"
    higher_is_better = False
    limits = PERCENT

    @override
    def summary(self, errors: NDArray[np.float64]) -> float:
        return float(errors.mean())


class SolvedTasks(TaskErrors):
    """Number of the tasks of bAbI of which at most 5 % of the answers are wrong."""

    label = "solved tasks"
    digits = 0
    is_smooth = False
    limits = NOT_NEGATIVE

    @override
    def summary(self, errors: NDArray[np.float64]) -> float:
        return float((errors <= SOLVED + 1e-9).sum())


class TaskAccuracy(Share):
    """Share of right answers to the questions of one task of bAbI.

    Args:
        task: its number, from 1.
    """

    def __init__(self, *, task: Annotated[int, Range(1, TASKS)]) -> None:
        self.task = task
        self.label = f"accuracy, task {task}"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        tasks = evidence.annotations or ()
        rows = [row if task == self.task else None for row, task in enumerate(tasks)] if evidence.predictions else []
        return statistics_of(rows, lambda row: (_is_right(evidence, row), 1.0))


class SupportFound(Share):
    """Share of questions whose largest attention weight is on a sentence that supports the answer, under forced decoding.

    The weights of the words of a sentence add up; the question and entities do not count, and where two sentences share the
    largest weight none is found. None for a model that does not attend to sentences, or to all alike.
    """

    label = "support found"
    computed_from: ClassVar[Origin] = "alignments"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        alignments = evidence.alignments or ()
        if not any(links for links, _ in alignments):  # equal weights find nothing, and miss nothing
            return None
        return statistics_of(alignments, lambda pair: (bool(pair[0] & pair[1].sure), float(bool(pair[1].sure))))
