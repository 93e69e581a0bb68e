"""Lines of text on disk, behind the offsets at which they begin."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.storage import ArrayWriter, StoredArray, StoredFile

TEXT, OFFSETS = "{}.txt", "{}.lines.npy"
"""Names of the two files: lines with a line feed between any two, and where each begins and one more would."""
PART, MOST = 2**20, 2**14
"""Bytes of text, and lines, that are read at once and held in memory."""


class StoredLines(Sequence[str]):
    """Lines in a file, read when they are asked for.

    Args:
        text: the file.
        offsets: where each line begins, in bytes, and at last where one more would.
    """

    def __init__(self, text: StoredFile, offsets: StoredArray) -> None:
        self.text = text
        self.offsets = offsets

    @classmethod
    def written(cls, folder: Path, name: str) -> Self:
        """Return what a :class:`LineWriter` has just written."""
        text, offsets = (StoredFile(folder / form.format(name)) for form in (TEXT, OFFSETS))
        return cls(text, StoredArray(offsets))

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    @override
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """Return a line, or the list of some."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self.read(start, stop) if step == 1 else [self[i] for i in range(start, stop, step)]
        position = range(len(self))[index]
        return self.read(position, position + 1)[0]

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, some of which are held at a time."""
        for start, stop in self.parts():
            yield from self.read(start, stop)

    def __eq__(self, other: object) -> bool:
        """Tell whether these are the lines of another sequence."""
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def read(self, start: int, stop: int) -> list[str]:
        """Return consecutive lines."""
        return self.read_bytes(start, stop).decode().split("\n") if stop > start else []

    def read_bytes(self, start: int, stop: int) -> bytes:
        """Return consecutive lines, one or more, as they are in the file, without a last line feed."""
        return self.text.read(int(self.offsets[start : start + 1][0]), int(self.offsets[stop : stop + 1][0]) - 1)

    def parts(self) -> Iterator[tuple[int, int]]:
        """Yield the first position and that after the last of lines that are read together."""
        start = 0
        while start < len(self):
            begin, *ends = self.offsets[start : start + MOST + 1].tolist()
            stop = start + max(1, bisect_right(ends, begin + PART))
            yield start, stop
            start = stop


class LineWriter:
    """Writes lines, part after part.

    Args:
        folder: for both files.
        name: of the lines.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._text = (folder / TEXT.format(name)).open("wb")
        self._offsets = ArrayWriter(folder / OFFSETS.format(name), np.int64)
        self._next = 0
        self._offsets.append(np.zeros(1))

    def append(self, lines: Sequence[str]) -> None:
        """Write the next lines.

        Raises:
            ValueError: a line holds a line feed.
        """
        if lines:
            encoded = [line.encode() for line in lines]
            content = b"\n".join(encoded)
            if content.count(b"\n") >= len(encoded):
                raise ValueError("a line holds a line feed")
            self._write(content, np.fromiter(map(len, encoded), np.int64, count=len(encoded)))

    def append_some(self, lines: StoredLines, kept: NDArray[np.bool_]) -> None:
        """Write those lines that are to be kept.

        Args:
            lines: that are stored already.
            kept: whether it is to be written, by line.
        """
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))
        for first, last in edges.reshape(-1, 2).tolist():  # of lines that are all kept
            for start, stop in pairwise([*range(first, last, MOST), last]):
                offsets = lines.offsets[start : stop + 1]
                self._write(lines.read_bytes(start, stop), np.diff(offsets) - 1)

    def _write(self, content: bytes, lengths: NDArray[np.int64]) -> None:
        if self._next:
            self._text.write(b"\n")
        self._text.write(content)
        ends = self._next + np.cumsum(lengths + 1)
        self._offsets.append(ends)
        self._next = int(ends[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        with self._text:
            self._offsets.__exit__(*error)
