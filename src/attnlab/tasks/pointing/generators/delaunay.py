"""Triangulations of points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay as Triangulation
from typing_extensions import override

from attnlab.tasks.pointing.generators.points import Length, PointProblems
from attnlab.tasks.pointing.geometry import incentres, triangles
from attnlab.tasks.pointing.problems import Problem, Visits


@dataclass(frozen=True, kw_only=True)
class Delaunay(PointProblems):
    """The triangles whose circumcircles hold no other point (Vinyals et al. 2015, section 3.2).

    The answer is triangle after triangle, three positions each: those of a triangle increase, and triangles are ordered by the
    coordinates of their incentres, the first coordinate first. An answer is correct if it is the same set of triangles. Search
    may point anywhere at any time. n points have at most 2 n - 5 triangles.
    """

    name: ClassVar[str] = "delaunay"
    visits: ClassVar[Visits] = "any"
    tokens_per_element: ClassVar[float] = 6.0

    test_lengths: Sequence[Length] = (5, 10, 20)

    @override
    def solve(self, problems: Sequence[NDArray[np.float64]]) -> list[list[int]]:
        return [self._triangulate(points) for points in problems]

    @staticmethod
    def _triangulate(points: NDArray[np.float64]) -> list[int]:
        found = np.sort(Triangulation(points).simplices, axis=1)
        x, y = incentres(points[found]).T
        ordered: list[int] = found[np.lexsort((y, x))].ravel().tolist()
        return ordered

    @override
    def is_correct(self, problem: Problem, answer: Sequence[int]) -> bool:
        return len(answer) == len(problem.answer) and triangles(answer) == triangles(problem.answer)

    @override
    def polygons(self, answer: Sequence[int]) -> list[list[int]]:
        return [list(answer[start : start + 3]) for start in range(0, len(answer), 3)]
