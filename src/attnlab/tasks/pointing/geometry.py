"""Polygons in the plane."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
"""(n, 2)."""


def perimeter(corners: Points) -> float:
    """Return Σ_i |p_(i+1) - p_i|, the last corner being followed by the first."""
    return float(np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1).sum())


def signed_area(corners: Points) -> float:
    """Return ½ Σ_i (x_i y_(i+1) - x_(i+1) y_i), positive for a simple polygon whose corners go counter-clockwise."""
    x, y = corners.T
    return float(x @ np.roll(y, -1) - np.roll(x, -1) @ y) / 2


def is_simple(corners: Points) -> bool:
    """Tell whether a polygon has three corners or more, all different, and no two of its edges cross or touch."""
    n = len(corners)
    if n < 3 or len({tuple(corner) for corner in corners.tolist()}) < n:
        return False
    first, second = np.triu_indices(n, k=1)
    apart = ~((second - first == 1) | ((first == 0) & (second == n - 1)))  # edges that share no corner
    a, b = corners[first[apart]], corners[(first[apart] + 1) % n]
    c, d = corners[second[apart]], corners[(second[apart] + 1) % n]
    turns = np.stack([_turn(a, b, c), _turn(a, b, d), _turn(c, d, a), _turn(c, d, b)])
    across = (turns[0] * turns[1] <= 0) & (turns[2] * turns[3] <= 0)
    on_one_line = (turns == 0).all(axis=0)
    beside = ((np.maximum(a, b) < np.minimum(c, d)) | (np.maximum(c, d) < np.minimum(a, b))).any(axis=1)
    across &= ~(on_one_line & beside)
    return not bool(across.any()) and signed_area(corners) != 0


def _turn(a: Points, b: Points, c: Points) -> NDArray[np.float64]:
    """Return on which side of the line from a to b c is: positive on the left."""
    u, v = b - a, c - a
    return np.sign(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])


def incentres(corners: NDArray[np.float64]) -> Points:
    """Return Σ_i a_i p_i / Σ_i a_i of triangles (n, 3, 2), a_i being the length of the side opposite to corner i."""
    sides = np.linalg.norm(np.roll(corners, -1, axis=1) - np.roll(corners, -2, axis=1), axis=2)
    found: Points = (corners * sides[..., None]).sum(axis=1) / sides.sum(axis=1, keepdims=True)
    return found


def triangles(positions: Sequence[int]) -> set[frozenset[int]]:
    """Return the triangles that a list of positions holds, three after three; what is left over at its end is none."""
    return {frozenset(positions[end - 3 : end]) for end in range(3, len(positions) + 1, 3)}


def same_cycle(one: Sequence[int], other: Sequence[int]) -> bool:
    """Tell whether two lists of different positions are one cycle, wherever they begin and in either direction."""
    if len(one) != len(other) or set(one) != set(other):
        return False
    if not one:
        return True
    start = list(other).index(one[0])
    turned = [*other[start:], *other[:start]]
    return list(one) in (turned, [turned[0], *turned[:0:-1]])
