"""Sequences whose items are made when they are asked for."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

from typing_extensions import override

T = TypeVar("T")
KEPT = 2**18
"""A sequence of at most so many items is made at once, and kept; of a longer one nothing is."""
PART = 2**12
"""Items of a longer one that are made at once where all are read one after another."""


class OnDemand(Sequence[T]):
    """A sequence whose items are made when they are asked for, and not kept.

    Args:
        make: makes those at some positions.
        length: of the sequence.
    """

    def __init__(self, make: Callable[[Sequence[int]], Sequence[T]], length: int) -> None:
        self._make = make
        self._length = length

    def __len__(self) -> int:
        """Return the number of items."""
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    @override
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        """Make an item, or some."""
        positions = range(self._length)[index]
        return self._make(positions) if isinstance(positions, range) else self._make([positions])[0]

    def take(self, indices: Sequence[int]) -> Sequence[T]:
        """Make those at some positions, all at once."""
        return self._make(indices)

    def __eq__(self, other: object) -> bool:
        """Tell whether another sequence has the same items."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[T]:
        """Yield the items, some of which are held at a time."""
        for start in range(0, self._length, PART):
            yield from self[start : start + PART]


def on_demand(make: Callable[[Sequence[int]], Sequence[T]], length: int) -> Sequence[T]:
    """Return a sequence, whose items are kept where they are not too many; see :data:`KEPT`.

    Args:
        make: makes those at some positions.
        length: of the sequence.
    """
    return make(range(length)) if length <= KEPT else OnDemand(make, length)
