"""Sequences of unequal length in one array."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.data.storage import ArrayWriter, StoredArray
from attnlab.data.symbols import PAD


class Padded(Protocol):
    """Sequences of unequal length, some of which can be had at a time."""

    def padded(self, indices: Sequence[int], /) -> tuple[Tensor, Tensor]:
        """Return some sequences as one padded tensor (len(indices), longest, ...), and their lengths."""


@dataclass(frozen=True)
class Ragged:
    """Sequences one after another.

    Attributes:
        values: all elements, ids (n,) or (n, size) of int32, which may stay in a file, or vectors (n, size) of float32.
        offsets: where each sequence starts, and at last the end (int64).
        FILES: names of the files that hold both.
    """

    FILES: ClassVar[tuple[str, str]] = ("{}.ids.npy", "{}.offsets.npy")

    values: NDArray[Any] | StoredArray
    offsets: NDArray[np.int64]

    @classmethod
    def of_ids(cls, sequences: Iterable[Sequence[int]]) -> "Ragged":
        """Return sequences of ids."""
        listed = list(sequences)
        offsets = np.cumsum([0, *map(len, listed)], dtype=np.int64)
        return cls(np.fromiter(chain.from_iterable(listed), np.int32, count=int(offsets[-1])), offsets)

    @classmethod
    def of_vectors(cls, sequences: Sequence[NDArray[np.float32]]) -> "Ragged":
        """Return one or more sequences of vectors, each (length, size)."""
        offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
        return cls(np.concatenate(sequences).astype(np.float32), offsets)

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Return one sequence."""
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Elements in each sequence."""
        return np.diff(self.offsets)

    def padded(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return some sequences as one padded tensor (len(indices), longest, ...), and their lengths."""
        chosen = np.asarray(indices)
        spans = zip(self.offsets[chosen], self.offsets[chosen + 1], strict=True)
        return _pad([self.values[start:end] for start, end in spans])


@dataclass(frozen=True)
class RaggedView:
    """Sequences of ids that are made of others, or read, when they are asked for, but whose lengths are known.

    Attributes:
        lengths: elements in each sequence.
        make: returns one sequence, ids (n,) or (n, size).
    """

    lengths: NDArray[np.int64]
    make: Callable[[int], NDArray[np.integer]]

    @classmethod
    def join(cls, parts: Sequence[Padded], lengths: Sequence[NDArray[np.int64]]) -> "RaggedView":
        """Return the sequences of several one after another.

        Args:
            parts: of which each has one sequence or more.
            lengths: of the sequences of each.
        """
        starts = np.cumsum([0, *map(len, lengths)])
        return cls(np.concatenate(list(lengths)), partial(_take, parts, starts))

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.lengths)

    def __getitem__(self, index: int) -> NDArray[np.integer]:
        """Return one sequence."""
        return self.make(index)

    def padded(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return some sequences as one padded tensor, and their lengths; see :meth:`Ragged.padded`."""
        return _pad([self.make(int(index)) for index in indices])


def _pad(rows: Sequence[NDArray[Any]]) -> tuple[Tensor, Tensor]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    dtype = np.float32 if rows[0].dtype.kind == "f" else np.int64
    padded = np.full((len(rows), int(lengths.max()), *rows[0].shape[1:]), PAD, dtype=dtype)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return torch.from_numpy(padded), torch.from_numpy(lengths)


def _take(parts: Sequence[Padded], starts: NDArray[np.int64], index: int) -> NDArray[np.integer]:
    """Return one of the sequences of several, by its position among all."""
    number = int(np.searchsorted(starts, index, side="right")) - 1
    part, own = parts[number], index - int(starts[number])
    if isinstance(part, Ragged | RaggedView):
        return part[own]
    row: NDArray[np.integer] = part.padded([own])[0][0].numpy()
    return row


@dataclass(frozen=True)
class RaggedOnDemand:
    """Sequences that are made when they are asked for, and not kept.

    Attributes:
        make: returns those at some positions.
    """

    make: Callable[[Sequence[int]], Padded]

    def padded(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return some sequences as one padded tensor, and their lengths; see :meth:`Ragged.padded`."""
        return self.make(indices).padded(range(len(indices)))


class RaggedWriter:
    """Writes sequences of ids, part after part; see :attr:`Ragged.FILES`.

    Args:
        folder: for both files.
        name: of the sequences.
    """

    def __init__(self, folder: Path, name: str) -> None:
        values, offsets = (folder / form.format(name) for form in Ragged.FILES)
        self._values, self._offsets = ArrayWriter(values, np.int32), ArrayWriter(offsets, np.int64)
        self._offsets.append(np.zeros(1))

    def append(self, values: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
        """Write the next sequences, given one after another, and their lengths."""
        self._offsets.append(self._values.length + np.cumsum(lengths))
        self._values.append(values)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._values.__exit__(*error)
        self._offsets.__exit__(*error)
