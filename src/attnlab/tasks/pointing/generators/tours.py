"""Shortest tours through points."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from typing_extensions import override

from attnlab.hints import Range
from attnlab.tasks.pointing.generators.points import Length, PointProblems
from attnlab.tasks.pointing.geometry import perimeter, signed_area
from attnlab.tasks.pointing.problems import Problem

MOST = 12
"""Points for which dynamic programming is affordable; its cost is n² 2ⁿ."""
TOGETHER = 256
"""Problems of one size that are solved at once."""
TOLERANCE = 1e-6
"""By which an optimal tour may be longer, relative to its length."""


@dataclass(frozen=True, kw_only=True)
class Tours(PointProblems):
    """The shortest closed tour through all points (Vinyals et al. 2015, section 3.3): the travelling salesman's problem.

    The answer begins with the first point and goes counter-clockwise; the end symbol closes it. Of up to twelve points it is
    found by dynamic programming (Held and Karp 1962), of more as an integer program, to which constraints are added until no
    tour of some of the points is left (Dantzig et al. 1954); both are exact. An answer is correct if it is a tour of the least
    length. Search visits every point once.
    """

    name: ClassVar[str] = "tsp"

    max_length: Annotated[int, Range(3, MOST)] = 10
    test_lengths: Sequence[Length] = (5, 10, 20)

    @override
    def solve(self, problems: Sequence[NDArray[np.float64]]) -> list[list[int]]:
        by_size: defaultdict[int, list[int]] = defaultdict(list)
        for index, points in enumerate(problems):
            by_size[len(points)].append(index)
        found: dict[int, list[int]] = {}
        for size, indices in by_size.items():
            if size > MOST:
                found |= {index: solve_program(problems[index]) for index in indices}
            else:
                for part in _split(indices, TOGETHER):
                    found |= dict(zip(part, solve_together(np.stack([problems[index] for index in part])), strict=True))
        return [_turn(problems[index], found[index]) for index in range(len(problems))]

    @override
    def is_correct(self, problem: Problem, answer: Sequence[int]) -> bool:
        if sorted(answer) != list(range(len(problem.elements))):
            return False
        points = problem.elements.astype(np.float64)
        return perimeter(points[list(answer)]) <= (1 + TOLERANCE) * perimeter(points[problem.answer])

    @override
    def polygons(self, answer: Sequence[int]) -> list[list[int]]:
        return [list(answer)]


def _split(items: Sequence[int], size: int) -> list[Sequence[int]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _turn(points: NDArray[np.float64], tour: list[int]) -> list[int]:
    return tour if signed_area(points[tour]) > 0 else [tour[0], *tour[:0:-1]]


def solve_together(problems: NDArray[np.float64]) -> list[list[int]]:
    """Return a shortest tour of each of several problems (batch, n, 2), from the first point on (Held and Karp 1962).

    C(S, j) = min over k in S - {j} of C(S - {j}, k) + d_kj is the length of the shortest path from the first point through all
    of the set S, which ends at j. Sets are bits; bit k is point k + 1.
    """
    batch, rest = len(problems), problems.shape[1] - 1
    everywhere = np.linalg.norm(problems[:, :, None] - problems[:, None], axis=-1).transpose(1, 2, 0)
    start, distances = everywhere[0, 1:], everywhere[1:, 1:]  # (rest, batch), (rest, rest, batch)
    costs = np.full((2**rest, rest, batch), np.inf)
    costs[1 << np.arange(rest), np.arange(rest)] = start
    for visited in range(1, 2**rest):
        last = np.flatnonzero(visited >> np.arange(rest) & 1)
        if len(last) > 1:
            costs[visited, last] = (costs[visited ^ (1 << last)] + distances[last]).min(axis=1)

    rows = np.arange(batch)
    left, place = np.full(batch, 2**rest - 1), (costs[-1] + start).argmin(axis=0)
    tours = [place]
    for _ in range(rest - 1):
        left = left ^ (1 << place)
        place = (costs[left, :, rows] + distances[:, place, rows].T).argmin(axis=1)
        tours.append(place)
    found: list[list[int]] = (1 + np.stack([np.full(batch, -1), *tours], axis=1)).tolist()
    return found


def solve_program(points: NDArray[np.float64]) -> list[int]:
    """Return a shortest tour, from the first point on, as an integer program (Dantzig et al. 1954).

    Every pair of points is taken or not, so that Σ d_ij x_ij is least and every point has two pairs. While the pairs make
    several tours, each of them is forbidden: of the pairs inside of a set S at most |S| - 1 are taken.
    """
    n = len(points)
    one, other = np.triu_indices(n, k=1)
    lengths = np.linalg.norm(points[one] - points[other], axis=1)
    pairs = np.arange(len(one))
    degree = coo_array((np.ones(2 * len(one)), (np.concatenate([one, other]), np.tile(pairs, 2))), shape=(n, len(one)))
    constraints = [LinearConstraint(degree.tocsr(), 2, 2)]
    while True:
        solved = milp(lengths, constraints=constraints, integrality=1, bounds=(0, 1), options={"mip_rel_gap": 0})
        taken = solved.x > 0.5
        graph = coo_array((np.ones(taken.sum()), (one[taken], other[taken])), shape=(n, n)).tocsr()
        count, parts = connected_components(graph, directed=False)
        if count == 1:
            return _follow(one[taken], other[taken])
        inside = [np.flatnonzero((parts[one] == part) & (parts[other] == part)) for part in range(count)]
        rows = np.repeat(np.arange(count), [len(own) for own in inside])
        sums = coo_array((np.ones(len(rows)), (rows, np.concatenate(inside))), shape=(count, len(one)))
        constraints.append(LinearConstraint(sums.tocsr(), -np.inf, np.bincount(parts) - 1))


def _follow(one: NDArray[np.int64], other: NDArray[np.int64]) -> list[int]:
    """Return the tour that pairs of points make, from the first point on."""
    neighbours: defaultdict[int, list[int]] = defaultdict(list)
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        neighbours[a].append(b)
        neighbours[b].append(a)
    tour = [0, neighbours[0][0]]
    while len(tour) < len(neighbours):
        before, here = tour[-2:]
        tour.append(next(place for place in neighbours[here] if place != before))
    return tour
