"""Generated problems against brute force, and what each of their answers means."""

from itertools import combinations, permutations, product
from math import dist

import numpy as np
import pytest
from numpy.typing import NDArray

from attnlab.errors import UserError
from attnlab.tasks.pointing import ConvexHull, Delaunay, Problem, Sort, Tours
from attnlab.tasks.pointing.generators.tours import solve_program
from attnlab.tasks.pointing.geometry import incentres, is_simple, perimeter, same_cycle, signed_area

Points = NDArray[np.float64]
PROBLEMS = (ConvexHull, Delaunay, Tours)


def drawn(problems: ConvexHull | Delaunay | Tours, *lengths: int) -> list[tuple[Points, list[int]]]:
    found = problems.draw(np.random.default_rng(3), lengths)
    assert [len(problem.elements) for problem in found] == list(lengths)
    return [(problem.elements.astype(np.float64), problem.answer) for problem in found]


def turn(a: Points, b: Points, c: Points) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def test_hulls_are_those_of_a_loop_over_all_pairs() -> None:
    """An edge of the hull has every other point on its left."""
    for points, answer in drawn(ConvexHull(), *range(3, 25)):
        following = {
            a: b
            for a, b in permutations(range(len(points)), 2)
            if all(turn(points[a], points[b], points[c]) > 0 for c in range(len(points)) if c not in (a, b))
        }
        start = min(following)
        expected = [start]
        while following[expected[-1]] != start:
            expected.append(following[expected[-1]])
        assert answer == expected


def test_triangles_are_those_whose_circumcircles_are_empty() -> None:
    for points, answer in drawn(Delaunay(), *range(3, 16)):
        expected = []
        for corners in combinations(range(len(points)), 3):
            (ax, ay), (bx, by), (cx, cy) = (points[corner] for corner in corners)
            d = 2 * (ax * (by - cy) + bx * (cy - ay) + cx * (ay - by))
            a, b, c = ax**2 + ay**2, bx**2 + by**2, cx**2 + cy**2
            centre = ((a * (by - cy) + b * (cy - ay) + c * (ay - by)) / d, (a * (cx - bx) + b * (ax - cx) + c * (bx - ax)) / d)
            radius = dist(centre, (ax, ay))
            if all(dist(centre, points[other]) > radius for other in range(len(points)) if other not in corners):
                sides = dist((bx, by), (cx, cy)), dist((ax, ay), (cx, cy)), dist((ax, ay), (bx, by))
                incentre = [
                    sum(s * p for s, p in zip(sides, ps, strict=True)) / sum(sides) for ps in ((ax, bx, cx), (ay, by, cy))
                ]
                np.testing.assert_allclose(incentres(points[[corners]])[0], incentre)
                expected.append((incentre, corners))
        assert answer == [corner for _, corners in sorted(expected) for corner in corners]


def length(points: Points, tour: tuple[int, ...] | list[int]) -> float:
    return sum(dist(points[a], points[b]) for a, b in zip(tour, [*tour[1:], tour[0]], strict=True))


def test_tours_are_the_shortest_of_all_orders() -> None:
    for points, answer in drawn(Tours(), 3, 7, 4, 5, 6, 7, 3, 6):
        every = [(0, *rest) for rest in permutations(range(1, len(points)))]
        best = min(every, key=lambda tour: length(points, tour))
        assert length(points, answer) == pytest.approx(length(points, best), abs=1e-12)
        assert answer[0] == 0
        assert signed_area(points[answer]) > 0


def test_a_tour_is_correct_where_none_is_shorter() -> None:
    for points, answer in drawn(Tours(), *[5] * 40):
        problem = Problem(points.astype(np.float32), answer)
        for order in permutations(range(5)):
            assert Tours().is_correct(problem, order) == (length(points, order) <= length(points, answer) + 1e-9)


def test_dynamic_programming_and_the_integer_program_find_the_same_tours() -> None:
    for points, answer in drawn(Tours(), 9, 12, 8, 12):
        assert same_cycle(solve_program(points), answer)
    ((points, answer),) = drawn(Tours(), 20)
    assert sorted(answer) == list(range(20))
    for a, b in combinations(range(20), 2):  # which no shorter tour comes from by turning a part of it around
        assert length(points, [*answer[:a], *answer[a : b + 1][::-1], *answer[b + 1 :]]) >= length(points, answer) - 1e-12


def crosses(a: Points, b: Points, c: Points, d: Points) -> bool:
    return turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0


def test_simple_polygons_are_those_without_crossing_edges() -> None:
    generator = np.random.default_rng(5)
    kinds = set()
    for _ in range(200):
        corners = generator.random((int(generator.integers(3, 7)), 2))
        edges = [(corners[i - 1], corners[i]) for i in range(len(corners))]
        expected = not any(crosses(*one, *other) for one, other in combinations(edges, 2))
        assert is_simple(corners) == expected
        kinds.add(expected)
    assert kinds == {True, False}
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float64)
    assert is_simple(square)
    assert not is_simple(square[[0, 1, 2, 3, 1]]), "a corner comes twice"
    assert not is_simple(square[:2])
    assert not is_simple(np.array([[0, 0], [1, 0], [2, 0]], dtype=np.float64)), "it has no area"
    assert not is_simple(np.array([[0, 0], [2, 0], [2, 1], [1, 0], [0, 1]], dtype=np.float64)), "a corner touches an edge"
    bay = np.array([[0, 0], [3, 0], [3, 2], [2, 2], [2, 1], [1, 1], [1, 2], [0, 2]], dtype=np.float64)
    assert is_simple(bay), "edges on one line that do not touch"
    bay[3:5, 0] = 0.5
    assert not is_simple(bay), "edges on one line that lie on each other"
    back = np.array([[0, 0], [2, 0], [1, 0], [3, 0], [1.5, 1]], dtype=np.float64)
    assert not any(map(is_simple, (back, back[:, ::-1]))), "they lie on each other, and no other edge touches them"
    assert (signed_area(square), signed_area(square[::-1]), perimeter(square)) == (1.0, -1.0, 4.0)


def test_a_cycle_is_the_same_from_everywhere_and_backwards() -> None:
    right = [2, 5, 1, 4]
    same = [[*right[k:], *right[:k]][::step] for k, step in product(range(4), (1, -1))]
    others = [list(order) for order in permutations(right) if list(order) not in same]
    assert len(others) == 16
    assert all(same_cycle(right, one) for one in same)
    assert not any(same_cycle(right, one) for one in [*others, [2, 5, 1], [2, 5, 1, 4, 4], []])
    assert same_cycle([], [])


def test_what_means_the_same_is_correct() -> None:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float32)
    hull, triangles = Problem(square, [0, 1, 2, 3]), Problem(square, [0, 1, 2, 0, 2, 3])
    assert ConvexHull().is_correct(hull, [2, 1, 0, 3])
    assert not ConvexHull().is_correct(hull, [0, 2, 1, 3])
    assert Tours().is_correct(hull, [2, 1, 0, 3])
    assert not Tours().is_correct(hull, [0, 2, 1, 3]), "it is longer"
    assert not Tours().is_correct(hull, [0, 1, 2])
    assert Delaunay().is_correct(triangles, [3, 0, 2, 2, 1, 0])
    assert not Delaunay().is_correct(triangles, [0, 1, 2, 0, 1, 2])
    assert not Delaunay().is_correct(triangles, [0, 1, 2, 0, 2, 3, 0])


@pytest.mark.parametrize("kind", PROBLEMS)
def test_splits_have_the_lengths_that_are_asked_for(kind: type[ConvexHull | Delaunay | Tours]) -> None:
    problems = kind(train_size=30, val_size=4, test_size=5, test_long_size=3, min_length=3, max_length=6, test_lengths=(4, 13))
    for split, size, low, high in (("train", 30, 3, 6), ("test", 5, 3, 6), ("test_4", 3, 4, 4), ("test_13", 3, 13, 13)):
        found = problems.load(split)
        assert len(found) == size
        assert {len(problem.elements) for problem in found} <= set(range(low, high + 1))
        assert max(len(p.answer) + 1 for p in found) <= problems.tokens_per_element * (high + 1)
        assert all((p.elements >= 0).all() and (p.elements < 1).all() and p.elements.dtype == np.float32 for p in found)
    assert list(problems.splits) == ["train", "val", "test", "test_4", "test_13"]
    assert problems.fingerprint() != kind(seed=2).fingerprint() != kind().fingerprint()
    again = problems.load("test")
    assert all(np.array_equal(p.elements, q.elements) for p, q in zip(again, problems.load("test"), strict=True))


@pytest.mark.parametrize("kind", [*PROBLEMS, Sort])
def test_validation_can_have_larger_problems_than_training(kind: type[ConvexHull | Delaunay | Tours | Sort]) -> None:
    usual, larger = kind(), kind(val_max_length=12)
    assert larger.splits == usual.splits | {"val": (500, usual.min_length, 12)}
    assert larger.fingerprint() != usual.fingerprint()
    with pytest.raises(UserError, match=r"val_max_length is 7, less than max_length, \d+: raise it"):
        kind(val_max_length=7)


def test_numbers_of_points_that_leave_nothing_are_refused() -> None:
    with pytest.raises(UserError, match="min_length <= max_length"):
        ConvexHull(min_length=7, max_length=6)
    with pytest.raises(UserError, match="3 points or more, not 2"):
        ConvexHull(test_lengths=(5, 2))
