"""Problems whose answer is a list of positions, and their form as lines of text and as tensors."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.examples import Examples
from attnlab.data.links import GoldLinks
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, END, EOS, RESERVED
from attnlab.errors import UserError


class Problem(NamedTuple):
    """One problem."""

    elements: NDArray[np.float32]
    """(length, size): what is pointed at."""
    answer: list[int]
    """Positions of elements, in the order in which they are to be pointed at."""


class Problems(ABC):
    """Problems with the splits "train", "val" and any number of test sets.

    Attributes:
        element_size: numbers in an element.
        test_names: names of the test sets.
    """

    element_size: int
    test_names: tuple[str, ...]

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that decides the problems, options and files; not paths."""

    @abstractmethod
    def load(self) -> dict[str, list[Problem]]:
        """Return the problems of every split."""


class ProblemExamples(Examples):
    """The problems of one split.

    An element is its numbers and a 0; the end element, which every source has at its end, is zeros and a 1, so that pointing
    there can be learned.

    Args:
        problems: of the split.
    """

    unit = "elements"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        sources = [_with_end(problem.elements) for problem in self.problems]
        targets = ([BOS, *(RESERVED + position for position in p.answer), EOS] for p in self.problems)
        super().__init__(Ragged.of_vectors(sources), Ragged.of_ids(targets))

    @override
    def source_tokens(self, index: int) -> list[str]:
        return [*map(show_element, self.problems[index].elements), END]

    @override
    def target_tokens(self, index: int) -> list[str]:
        elements, answer = self.problems[index]
        return [*(show_element(elements[position]) for position in answer), END]

    @property
    @override
    def sources(self) -> Sequence[str]:
        return [" ".join(map(write_element, problem.elements)) for problem in self.problems]

    @property
    @override
    def references(self) -> Sequence[str]:
        return [write_positions(problem.answer) for problem in self.problems]

    @override
    def gold_links(self) -> GoldLinks:
        return GoldLinks.of([[(t, t + 1, j, j + 1) for t, j in enumerate(problem.answer)] for problem in self.problems])


def _with_end(elements: NDArray[np.float32]) -> NDArray[np.float32]:
    extended = np.zeros((len(elements) + 1, elements.shape[1] + 1), dtype=np.float32)
    extended[:-1, :-1] = elements
    extended[-1, -1] = 1.0
    return extended


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
