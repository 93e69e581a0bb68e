"""What is predicted in pointing, and its metrics."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.evaluation.evidence import Evidence, Prediction
from attnlab.evaluation.metric import NOT_NEGATIVE, PERCENT, Metric, Occasion, Share, Statistics, divide
from attnlab.evaluation.metrics import statistics_of
from attnlab.tasks.pointing.geometry import is_simple, perimeter, signed_area, triangles
from attnlab.tasks.pointing.problems import Problem


@dataclass(frozen=True)
class Answer(Prediction):
    """What models point at in a problem.

    Attributes:
        problem: with the right answer.
        positions: that are pointed at.
        correct: whether they mean what the right answer means.
    """

    problem: Problem
    positions: list[int]
    correct: bool


class AnswerMetric(Metric):
    """A number about answers, of which each adds something.

    Attributes:
        problem: which problem it is about; None for every one.
    """

    problem: ClassVar[str | None] = None

    @abstractmethod
    def count(self, answer: Answer) -> tuple[float, ...]:
        """Return what an answer adds."""

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        if self.problem not in (None, evidence.facts.get("problem")):
            return None
        answers = [one if isinstance(one, Answer) else None for one in evidence.predictions]
        return statistics_of(answers, self.count)


class AnswerShare(AnswerMetric, Share):
    """A share of the answers."""

    digits = 1


class Correct(AnswerShare):
    """Share of the answers that mean what the right one means (the accuracy of Vinyals et al. 2015, section 4).

    It is the same polygon wherever it begins, the same set of triangles, a tour of the least length, the same order.
    """

    label = "correct"
    occasion: ClassVar[Occasion] = "epoch"

    @override
    def count(self, answer: Answer) -> tuple[float, ...]:
        return answer.correct, 1.0


class SimplePolygons(AnswerShare):
    """Share of the answers to convex hulls that are simple polygons, whose edges neither cross nor touch."""

    label = "simple polygons"
    problem = "convex_hull"

    @override
    def count(self, answer: Answer) -> tuple[float, ...]:
        return is_simple(_corners(answer)), 1.0


class MeanOfValid(AnswerMetric):
    """A mean over the answers that are valid, Σ_i v_i / Σ_i 1; none where too few are.

    Attributes:
        least_valid: share of the answers that must be valid.
        scale: 100 for a metric in per cent.
    """

    least_valid: ClassVar[float] = 1.0
    scale: ClassVar[float] = 1.0

    @override
    def count(self, answer: Answer) -> tuple[float, ...]:
        measured = self.measure(answer)
        return (0.0, 0.0, 1.0) if measured is None else (measured, 1.0, 1.0)

    @abstractmethod
    def measure(self, answer: Answer) -> float | None:
        """Return what is averaged; None for an answer that is not valid."""

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        return float(self.shown_values(total[np.newaxis])[0])

    @override
    def values(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of each of several sums, whatever the share that is valid: near the least one, samples of the
        examples may have fewer, and intervals would be those of the others alone.
        """
        return divide(totals, self.scale)

    @override
    def shown_values(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(totals[:, 1] >= self.least_valid * totals[:, 2], self.values(totals), np.nan)


class AreaCovered(MeanOfValid):
    """Area of the answer over that of the convex hull, averaged over the simple polygons (Vinyals et al. 2015, section 4.2).

    No value where more than 1 % of the answers are no simple polygons, which the paper reports as a failure.
    """

    label = "area covered"
    unit = "%"
    scale = 100.0
    problem = "convex_hull"
    least_valid = 0.99
    limits = PERCENT

    @override
    def measure(self, answer: Answer) -> float | None:
        corners, right = _corners(answer), abs(signed_area(_right_corners(answer)))
        return abs(signed_area(corners)) / right if right and is_simple(corners) else None


class TourLength(MeanOfValid):
    """Mean length of the tours, closed (Vinyals et al. 2015, section 4.4); none where an answer is no tour."""

    label = "tour length"
    higher_is_better = False
    digits = 3
    problem = "tsp"
    limits = NOT_NEGATIVE

    @override
    def measure(self, answer: Answer) -> float | None:
        is_tour = sorted(answer.positions) == list(range(len(answer.problem.elements)))
        return perimeter(_corners(answer)) if is_tour else None


class TourExcess(TourLength):
    """By how much tours are longer than the shortest: the mean of length / optimum - 1; none where an answer is no tour."""

    label = "excess length of tours"
    unit = "%"
    scale = 100.0
    digits = 2

    @override
    def measure(self, answer: Answer) -> float | None:
        length, right = super().measure(answer), perimeter(_right_corners(answer))
        return length / right - 1.0 if right and length is not None else None


class TrianglesFound(AnswerShare):
    """Share of the triangles of the triangulations that are among the answer's (Vinyals et al. 2015, section 4.3)."""

    label = "triangles found"
    problem = "delaunay"

    @override
    def count(self, answer: Answer) -> tuple[float, ...]:
        right = triangles(answer.problem.answer)
        return len(right & triangles(answer.positions)), len(right)


def _corners(answer: Answer) -> NDArray[np.float64]:
    return answer.problem.elements[answer.positions].astype(np.float64)


def _right_corners(answer: Answer) -> NDArray[np.float64]:
    return answer.problem.elements[answer.problem.answer].astype(np.float64)
