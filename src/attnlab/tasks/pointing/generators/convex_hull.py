"""Convex hulls of points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull as Hull
from typing_extensions import override

from attnlab.tasks.pointing.generators.points import PointProblems
from attnlab.tasks.pointing.geometry import same_cycle
from attnlab.tasks.pointing.problems import Problem, Visits


@dataclass(frozen=True, kw_only=True)
class ConvexHull(PointProblems):
    """The corners of the convex hull of the points, counter-clockwise (Vinyals et al. 2015, section 3.1).

    The answer begins with the corner of the lowest position. The end symbol closes the polygon: unlike in the paper, the first
    corner is not pointed at again. An answer is correct if it is the same polygon, wherever it begins and in either direction.
    Search visits no point twice, and ends after three points at the earliest.
    """

    name: ClassVar[str] = "convex_hull"
    visits: ClassVar[Visits] = 3

    @override
    def solve(self, problems: Sequence[NDArray[np.float64]]) -> list[list[int]]:
        found = (Hull(points).vertices for points in problems)  # counter-clockwise in two dimensions
        return [np.roll(corners, -int(corners.argmin())).tolist() for corners in found]

    @override
    def is_correct(self, problem: Problem, answer: Sequence[int]) -> bool:
        return same_cycle(problem.answer, answer)

    @override
    def polygons(self, answer: Sequence[int]) -> list[list[int]]:
        return [list(answer)]
