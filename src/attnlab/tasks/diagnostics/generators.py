"""Six problems, each of which asks one thing of an attention."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from attnlab.data.splits import Size
from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.tasks.diagnostics.problems import Length, SymbolProblem, SymbolProblems

BLANK, QUERY = "_", "?"
Blanks = Annotated[int, Range(0, 1000)]


@dataclass(frozen=True, kw_only=True)
class Copy(SymbolProblems):
    """y_t = x_t: to look straight ahead (Graves et al. 2014, section 4.1)."""

    @override
    def draw(self, generator: np.random.Generator, length: int) -> SymbolProblem:
        source = generator.integers(self.symbols, size=length).tolist()
        return SymbolProblem(source, source, [*range(length)])


@dataclass(frozen=True, kw_only=True)
class Reverse(SymbolProblems):
    """y_t = x_(n-t+1): to look backwards, from an end that is elsewhere in every problem."""

    @override
    def draw(self, generator: np.random.Generator, length: int) -> SymbolProblem:
        source = generator.integers(self.symbols, size=length).tolist()
        return SymbolProblem(source, source[::-1], [*range(length)][::-1])


@dataclass(frozen=True, kw_only=True)
class SortSymbols(SymbolProblems):
    """The symbols in the order of their numbers, equal ones from left to right: to look by content alone."""

    @override
    def draw(self, generator: np.random.Generator, length: int) -> SymbolProblem:
        source = generator.integers(self.symbols, size=length)
        origins = source.argsort(kind="stable")
        return SymbolProblem(source.tolist(), source[origins].tolist(), origins.tolist())


@dataclass(frozen=True, kw_only=True)
class SelectiveCopy(SymbolProblems):
    """The symbols without the blanks between them: to pass over what does not matter (Gu and Dao 2023, section 3.1).

    Args:
        blanks: how many there are for each symbol.
    """

    special: ClassVar[tuple[str, ...]] = (BLANK,)

    blanks: Blanks = 2

    @override
    def draw(self, generator: np.random.Generator, length: int) -> SymbolProblem:
        places = np.sort(generator.choice(length * (1 + self.blanks), length, replace=False))
        source = np.zeros(length * (1 + self.blanks), dtype=np.int64)
        source[places] = 1 + generator.integers(self.symbols, size=length)
        return SymbolProblem(source.tolist(), source[places].tolist(), places.tolist())

    @override
    def length(self, problem: SymbolProblem) -> int:
        return sum(map(bool, problem.source))


@dataclass(frozen=True, kw_only=True)
class Recall(SymbolProblems):
    """Multi-query associative recall: pairs of a key and a value, then keys, whose values are asked for (Arora et al. 2023).

    k_1 v_1 … k_n v_n, then every key once, in a random order and with blanks between; the answer is each of them with its
    value. Keys and values are of different symbols, n of each half drawn without replacement. The place of the i-th query is
    drawn, without replacement, from the places after the pairs with probabilities in proportion to place ** (power - 1), as in
    the authors' code: most queries come soon. Two things differ, because a decoder writes the answer here: the keys that are
    asked for are written too, so that as there a key is what has just been read when its value is due, and what is between the
    queries is blank and no random symbol, which could be a key.

    Args:
        blanks: how many there are for each query.
        power: of the law by which queries are placed; 1 places them evenly.
        write_keys: False writes the values alone. An attention must then look twice for each of them, for the query and for
            what stands beside that key.

    Raises:
        UserError: too few symbols for four times as many pairs as in training.
    """

    unit: ClassVar[str] = "pairs"
    special: ClassVar[tuple[str, ...]] = (BLANK,)

    symbols: Size = 64
    min_length: Size = 2
    max_length: Length = 8
    blanks: Blanks = 1
    power: Annotated[float, Range(above=0, most=1)] = 0.01
    write_keys: bool = True

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        longest = max(split.longest for split in self.splits.values())
        if self.symbols // 2 < longest:
            raise UserError(
                f"the longest test has {longest} pairs, which need {2 * longest} symbols, half of them keys: there are "
                f"{self.symbols}"
            )

    @property
    @override
    def names(self) -> list[str]:
        half = self.symbols // 2
        return [
            *self.special,
            *(f"k{number}" for number in range(half)),
            *(f"v{number}" for number in range(self.symbols - half)),
        ]

    @override
    def draw(self, generator: np.random.Generator, length: int) -> SymbolProblem:
        half = self.symbols // 2
        keys = 1 + generator.choice(half, length, replace=False)
        values = 1 + half + generator.choice(self.symbols - half, length, replace=False)
        law = np.arange(1.0, length * (1 + self.blanks) + 1) ** (self.power - 1)
        asked = generator.choice(len(law), length, replace=False, p=law / law.sum())  # of each pair, the place of its query
        queries = np.zeros(len(law), dtype=np.int64)
        queries[asked] = keys
        order = asked.argsort()
        source = [*np.stack([keys, values], axis=1).ravel(), *queries]
        origins = 2 * order + 1
        if self.write_keys:
            origins = np.stack([2 * length + asked[order], origins], axis=1).ravel()
        return SymbolProblem([*map(int, source)], [int(source[origin]) for origin in origins], origins.tolist())

    @override
    def length(self, problem: SymbolProblem) -> int:
        return sum(map(bool, problem.source)) // 3  # keys, values and keys that are asked for


@dataclass(frozen=True, kw_only=True)
class Induction(SymbolProblems):
    """The symbol after the first of two marks: to look at what followed (Olsson et al. 2022; Gu and Dao 2023, section 4.1).

    The first mark stands at a random place, the second at the end of the source; the answer is one symbol.
    """

    special: ClassVar[tuple[str, ...]] = (QUERY,)

    @override
    def draw(self, generator: np.random.Generator, length: int) -> SymbolProblem:
        source = (1 + generator.integers(self.symbols, size=length)).tolist()
        place = int(generator.integers(length))
        source[place:place] = [0]
        return SymbolProblem([*source, 0], [source[place + 1]], [place + 1])

    @override
    def length(self, problem: SymbolProblem) -> int:
        return len(problem.source) - 2
