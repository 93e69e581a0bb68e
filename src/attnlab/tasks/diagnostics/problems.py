"""Problems made of symbols, and their form as lines of text and as tensors."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.examples import Examples
from attnlab.data.links import GoldLinks
from attnlab.data.ragged import Ragged
from attnlab.data.splits import Size, Split, lengthened_splits, usual_splits
from attnlab.data.symbols import BOS, END, EOS, RESERVED
from attnlab.errors import UserError, attempt
from attnlab.hints import Range
from attnlab.seeding import make_generator

TRIES = 100
"""How often a problem is drawn anew that is in the training set too."""


class SymbolProblem(NamedTuple):
    """One problem; symbols count from 0."""

    source: list[int]
    """What is read."""
    answer: list[int]
    """What is to be written."""
    origins: list[int]
    """For each symbol of the answer, the position in the source that it is from."""


Length = Annotated[int, Range(1, 10_000)]


@dataclass(frozen=True, kw_only=True)
class SymbolProblems(ABC):
    """Generated problems: one distribution for training, validation and "test", and longer ones for two more test sets.

    Lengths are drawn evenly: from ``min_length`` to ``max_length`` in training, up to twice ``max_length`` in "test_2x", and
    from there up to four times in "test_4x". No source of validation and test sets is one of the training set.

    Args:
        symbols: how many there are.
        min_length: of the shortest problem, in :attr:`unit`.
        max_length: of the longest one in training.
        val_max_length: of the longest one in validation; None: as in training. See :func:`attnlab.data.splits.usual_splits`.
        train_size: problems in the training set.
        val_size: in the validation set.
        test_size: in the test set.
        test_long_size: in each of the two test sets of longer problems.
        seed: of the problems; not the run's.

    Attributes:
        unit: what lengths are counted in.
        special: symbols of the problem's own, such as a blank, before the others.

    Raises:
        UserError: lengths that leave none to be drawn.
    """

    unit: ClassVar[str] = "symbols"
    special: ClassVar[tuple[str, ...]] = ()

    symbols: Size = 26
    min_length: Size = 3
    max_length: Length = 10
    val_max_length: Length | None = None
    train_size: Size = 10_000
    val_size: Size = 500
    test_size: Size = 500
    test_long_size: Size = 300
    seed: int = 1

    def __post_init__(self) -> None:
        _ = self.splits  # which refuses lengths that leave none to be drawn

    @property
    def splits(self) -> dict[str, Split]:
        """The splits by name, their lengths in :attr:`unit`."""
        sizes = self.train_size, self.val_size, self.test_size
        usual = usual_splits(*sizes, self.min_length, self.max_length, self.val_max_length)
        return lengthened_splits(usual, self.test_long_size)

    @property
    def names(self) -> list[str]:
        """What each symbol is written as, the special ones first."""
        return [*self.special, *(f"s{number}" for number in range(self.symbols))]

    def fingerprint(self) -> str:
        """Return a hash of everything that decides the problems."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    @abstractmethod
    def draw(self, generator: np.random.Generator, length: int) -> SymbolProblem:
        """Return a random problem of a length."""

    def length(self, problem: SymbolProblem) -> int:
        """Return the length of a problem in :attr:`unit`."""
        return len(problem.source)

    def load(self) -> dict[str, list[SymbolProblem]]:
        """Return the problems of every split.

        Raises:
            UserError: too few different problems for test sets that share none with the training set.
        """
        train = self._draw_split("train", set())
        seen = {tuple(problem.source) for problem in train}
        return {"train": train, **{split: self._draw_split(split, seen) for split in self.splits if split != "train"}}

    def _draw_split(self, split: str, seen: set[tuple[int, ...]]) -> list[SymbolProblem]:
        generator = make_generator(self.seed, f"{type(self).__qualname__}, {split}")
        return [self._draw_new(generator, length, seen) for length in self.splits[split].draw_lengths(generator)]

    def _draw_new(self, generator: np.random.Generator, length: int, seen: set[tuple[int, ...]]) -> SymbolProblem:
        for _ in range(TRIES):
            with attempt(f"a problem of {type(self).__name__}", self):
                problem = self.draw(generator, length)
                self._check(problem)
            if tuple(problem.source) not in seen:
                return problem
        raise UserError(
            f"nearly all problems of {length} {self.unit} are in the training set: raise min_length or symbols, or lower "
            "train_size"
        )

    def _check(self, problem: object) -> None:
        """Refuse what no model could read or write, and what no attention could look at."""
        name, count = type(self).__name__, len(self.names)
        if not isinstance(problem, SymbolProblem):
            raise UserError(f"{name} draws a {type(problem).__name__}, not a SymbolProblem(source, answer, origins)")
        if not problem.source or not problem.answer:
            raise UserError(f"{name} draws a problem without {'a source' if problem.answer else 'an answer'}")
        if wrong := [symbol for symbol in (*problem.source, *problem.answer) if not 0 <= symbol < count]:
            raise UserError(f"{name} draws the symbol {wrong[0]}: there are {count}, which count from 0")
        if len(problem.origins) != len(problem.answer):
            raise UserError(f"{name} draws {len(problem.origins)} origins for {len(problem.answer)} symbols of an answer")
        if wrong := [origin for origin in problem.origins if not 0 <= origin < len(problem.source)]:
            raise UserError(f"{name} draws the origin {wrong[0]}, and the source has {len(problem.source)} symbols, from 0 on")


class SymbolExamples(Examples):
    """The problems of one split; a symbol's id is its number after the reserved ids.

    Args:
        problems: of the split.
        kind: what they are drawn from.
    """

    def __init__(self, problems: Sequence[SymbolProblem], kind: SymbolProblems) -> None:
        self.problems = list(problems)
        self.unit = kind.unit
        self._kind = kind
        self._names = kind.names
        sources = ([*(RESERVED + symbol for symbol in problem.source), EOS] for problem in self.problems)
        targets = ([BOS, *(RESERVED + symbol for symbol in problem.answer), EOS] for problem in self.problems)
        super().__init__(Ragged.of_ids(sources), Ragged.of_ids(targets))

    @override
    def source_tokens(self, index: int) -> list[str]:
        return [*self._write(self.problems[index].source), END]

    @override
    def target_tokens(self, index: int) -> list[str]:
        return [*self._write(self.problems[index].answer), END]

    @cached_property
    @override
    def sources(self) -> Sequence[str]:
        return [" ".join(self._write(problem.source)) for problem in self.problems]

    @cached_property
    @override
    def references(self) -> Sequence[str]:
        return [" ".join(self._write(problem.answer)) for problem in self.problems]

    @cached_property
    @override
    def lengths(self) -> NDArray[np.int64]:
        lengths = [(self._kind.length(problem), len(problem.answer)) for problem in self.problems]
        return np.array(lengths, dtype=np.int64).reshape(-1, 2)

    @property
    def knows_origins(self) -> bool:
        """Whether it is known where the symbols of the answers are from, as it is not of lines of text."""
        return all(problem.origins for problem in self.problems)

    @override
    def gold_links(self) -> GoldLinks | None:
        if not self.knows_origins:
            return None
        return GoldLinks.of_positions(enumerate(problem.origins) for problem in self.problems)

    def _write(self, symbols: Sequence[int]) -> list[str]:
        return [self._names[symbol] for symbol in symbols]
