"""Problems whose answer is a list of positions."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from attnlab.data.cache import StoredFolder
from attnlab.data.ragged import Ragged
from attnlab.data.splits import Split
from attnlab.seeding import make_generator

Visits = int | Literal["all", "any"]


class Problem(NamedTuple):
    """One problem."""

    elements: NDArray[np.float32]
    """(length, size): what is pointed at."""
    answer: list[int]
    """Positions of elements, in the order in which they are to be pointed at."""


class Problems(ABC):
    """Problems with the splits "train", "val" and any number of test sets.

    Attributes:
        name: of the problem.
        element_size: numbers in an element.
        least: elements that a problem has at least.
        visits: after how many elements the end may come at the earliest, in a search that visits no element twice: a number, or
            "all"; "any" where everything may be pointed at at any time.
        tokens_per_element: tokens of the longest answer for each element and the end of the source.
        seed: of what is drawn; not the run's.
    """

    name: ClassVar[str]
    element_size: ClassVar[int]
    least: ClassVar[int] = 1
    visits: ClassVar[Visits] = "all"
    tokens_per_element: ClassVar[float] = 1.0
    seed: int

    @property
    @abstractmethod
    def splits(self) -> Mapping[str, Split]:
        """The splits by name, their lengths in elements, the first test set being the one that ranks."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, lengths: Sequence[int]) -> list[Problem]:
        """Return random problems of some numbers of elements."""

    def fingerprint(self) -> str:
        """Return a hash of everything that decides the problems but code: the attributes are its options."""
        options = sorted(vars(self).items())
        return hashlib.sha256(repr((self.name, self.splits, self.seed, options)).encode()).hexdigest()

    def load(self, split: str) -> list[Problem]:
        """Draw the problems of a split."""
        generator = make_generator(self.seed, f"{self.name}, {split}")
        return self.draw(generator, self.splits[split].draw_lengths(generator))

    def is_correct(self, problem: Problem, answer: Sequence[int]) -> bool:
        """Tell whether positions mean what the answer to a problem means."""
        return list(answer) == problem.answer

    def polygons(self, answer: Sequence[int]) -> list[list[int]] | None:
        """Return the corners of what an answer draws; None where elements are no points in a plane."""
        return None


class ProblemList(Sequence[Problem]):
    """Problems in a few arrays.

    Args:
        elements: of all problems.
        answers: of all problems.
    """

    def __init__(self, elements: Ragged, answers: Ragged) -> None:
        self.elements = elements
        self.answers = answers

    @classmethod
    def of(cls, problems: Iterable[Problem], element_size: int) -> "ProblemList":
        """Return problems as a list of this kind."""
        listed = list(problems)
        if not listed:
            return cls(Ragged(np.zeros((0, element_size), np.float32), np.zeros(1, np.int64)), Ragged.of_ids([]))
        return cls(Ragged.of_vectors([problem.elements for problem in listed]), Ragged.of_ids([p.answer for p in listed]))

    def __len__(self) -> int:
        """Return the number of problems."""
        return len(self.elements)

    @overload
    def __getitem__(self, index: int) -> Problem: ...

    @overload
    def __getitem__(self, index: slice) -> list[Problem]: ...

    def __getitem__(self, index: int | slice) -> Problem | list[Problem]:
        """Return a problem, or a list of some."""
        if isinstance(index, slice):
            return [self[one] for one in range(len(self))[index]]
        return Problem(self.elements[index], self.answers[index].tolist())

    def __iter__(self) -> Iterator[Problem]:
        """Yield the problems."""
        return (self[index] for index in range(len(self)))

    def up_to(self, limit: int) -> "ProblemList":
        """Return those of which neither the elements nor the answer's positions are more than a limit."""
        short = (self.elements.lengths <= limit) & (self.answers.lengths <= limit)
        if short.all():
            return self
        return ProblemList.of((self[row] for row in np.flatnonzero(short).tolist()), self.elements.values.shape[1])

    def write(self, folder: Path, name: str) -> None:
        """Write them into a folder of the cache."""
        for side, ragged in (("elements", self.elements), ("answers", self.answers)):
            np.save(folder / f"{name}.{side}.npy", ragged.values[:].ravel())
            np.save(folder / f"{name}.{side}.offsets.npy", ragged.offsets)

    @classmethod
    def read(cls, folder: StoredFolder, name: str, element_size: int) -> "ProblemList":
        """Read what :meth:`write` wrote."""
        elements, answers = (folder.array(f"{name}.{side}") for side in ("elements", "answers"))
        starts, others = (folder.array(f"{name}.{side}.offsets") for side in ("elements", "answers"))
        return cls(Ragged(elements.reshape(-1, element_size), starts), Ragged(answers, others))
