"""Problems and answers as lines of text."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import UserError


def write_element(element: NDArray[np.float32]) -> str:
    """Return an element as text that is read back as it was, its numbers joined by commas."""
    return ",".join(map(str, element))


def show_element(element: NDArray[np.float32]) -> str:
    """Return an element as text to be looked at, of four digits a number."""
    return ",".join(f"{number:.4g}" for number in element.tolist())


def write_positions(positions: Sequence[int]) -> str:
    """Return positions, counted from 0, as a line of text."""
    return " ".join(map(str, positions))


def read_elements(line: str, size: int, place: str) -> NDArray[np.float32]:
    """Read the elements of one problem, at white space, the numbers of each joined by commas.

    Args:
        line: such as ``0.5 0.25``, or ``0.5,0.1 0.25,0.3`` for elements of two numbers.
        size: numbers in an element.
        place: of the line, for the message.

    Raises:
        UserError: something that is no number, or an element of another size.
    """
    elements = []
    for token in line.split():
        numbers = token.split(",")
        if len(numbers) != size:
            raise UserError(f"{place}: {token!r} is no element of {size} numbers joined by commas")
        try:
            if not token.isascii() or "_" in token:  # which Python reads, and no other program
                raise ValueError(token)
            with np.errstate(over="ignore"):
                element = np.array([float(number) for number in numbers], dtype=np.float32)
        except ValueError as error:
            raise UserError(f"{place}: {token!r} is no number") from error
        if not np.isfinite(element).all():
            raise UserError(f"{place}: {token!r} is no finite number")
        elements.append(element)
    return np.asarray(elements, dtype=np.float32).reshape(-1, size)


def read_positions(line: str, length: int, place: str) -> list[int]:
    """Read the positions of one answer, at white space, counted from 0.

    Args:
        line: such as ``2 0 1``.
        length: elements of the problem.
        place: of the line, for the message.

    Raises:
        UserError: something that is no position of an element.
    """
    positions = []
    for token in line.split():
        if not re.fullmatch(r"\d{1,9}", token, re.ASCII) or int(token) >= length:
            raise UserError(f"{place}: {token!r} is no position of one of {length} elements, which count from 0")
        positions.append(int(token))
    return positions
