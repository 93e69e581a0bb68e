"""Files that are written piece by piece and read in parts, so that none is ever in memory as a whole."""

import hashlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import UserError

BLOCK = 2**16
"""Bytes that have a digest of their own."""
DIGESTS = "digests.json"
"""Name of the file that holds the digests of all others in its folder."""


class DamageError(UserError):
    """A file that can be made again is not what was written; its digests are deleted, so that it will be made again."""


def digest_blocks(path: Path) -> list[str]:
    """Return the SHA-256 of each block of a file."""
    with path.open("rb") as file:
        return [hashlib.sha256(block).hexdigest() for block in iter(partial(file.read, BLOCK), b"")]


class StoredFile:
    """A file that is read in parts, each block of which is compared with its digest before it is used for the first time.

    It is read and not mapped into memory: what was read is no part of the process, however much that was, and a file that was
    cut is an error and not a signal.

    Args:
        path: of the file.
        digests: of its blocks; None where it has just been written.
    """

    def __init__(self, path: Path, digests: Sequence[str] | None = None) -> None:
        self.path = path
        self._digests = digests
        self._unchecked = bytearray(b"\1" * len(digests or ()))
        self._file = path.open("rb", buffering=0)
        self.size = os.fstat(self._file.fileno()).st_size
        if digests is not None and -(-self.size // BLOCK) != len(digests):
            raise self._damage()

    def __reduce__(self) -> tuple[type["StoredFile"], tuple[Path, Sequence[str] | None]]:
        """Be opened anew in another process."""
        return StoredFile, (self.path, self._digests)

    def check(self) -> None:
        """Compare the whole file with its digests.

        Raises:
            DamageError: it is not what was written.
        """
        for block in range(len(self._unchecked)):
            self._check(block)

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from a position to another.

        Raises:
            DamageError: they are not what was written.
        """
        if self._digests is not None:
            for block in range(start // BLOCK, -(-stop // BLOCK)):
                if self._unchecked[block]:
                    self._check(block)
        content = os.pread(self._file.fileno(), stop - start, start)
        if len(content) != stop - start:
            raise self._damage()
        return content

    def _check(self, block: int) -> None:
        assert self._digests is not None
        content = os.pread(self._file.fileno(), BLOCK, block * BLOCK)
        if hashlib.sha256(content).hexdigest() != self._digests[block]:
            raise self._damage()
        self._unchecked[block] = 0

    def _damage(self) -> DamageError:
        if self._digests is not None:
            (self.path.parent / DIGESTS).unlink(missing_ok=True)
        return DamageError(f"{self.path} is damaged: the same command makes it again, and goes on")


class StoredArray:
    """A one-dimensional array in a file of NumPy's format, read slice by slice.

    Args:
        file: that holds it.

    Raises:
        ValueError: it is no such file, or an array of more dimensions.
    """

    def __init__(self, file: StoredFile) -> None:
        self.file = file
        with file.path.open("rb") as header:
            np.lib.format.read_magic(header)
            shape, _, self.dtype = np.lib.format.read_array_header_1_0(header)
            self._start = header.tell()
        if len(shape) != 1 or self._start + shape[0] * self.dtype.itemsize != file.size:
            raise ValueError(f"{file.path} does not hold an array of one dimension")
        self.shape: tuple[int] = shape

    def __len__(self) -> int:
        """Return the number of elements."""
        return self.shape[0]

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """Return consecutive elements, as an array that cannot be written to."""
        start, stop, step = part.indices(len(self))
        assert step == 1, "elements that stand one after another"
        size = self.dtype.itemsize
        content = self.file.read(self._start + start * size, self._start + max(start, stop) * size)
        return np.frombuffer(content, self.dtype)


class ArrayWriter:
    """Writes a one-dimensional array into a file of NumPy's format, part after part.

    Args:
        path: of the file.
        dtype: of the elements.
    """

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self.dtype = np.dtype(dtype)
        self.length = 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, part: NDArray[Any]) -> None:
        """Write the next elements."""
        self._file.write(np.ascontiguousarray(part, self.dtype).tobytes())
        self.length += len(part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write down how many there are, for which NumPy leaves room in its header."""
        with self._file:
            if error is None:
                self._file.seek(0)
                self._write_header()

    def _write_header(self) -> None:
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(self._file, header)
