"""Text files, plain or packed."""

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from attnlab.errors import UserError

MOST_TIMES, ALWAYS = 100, 2**26
"""A packed file may grow this many times (text does about five times) or to this many bytes, so that none fills the memory."""


def expand_home(path: str | Path) -> Path:
    """Return a path whose ``~`` is the user's own folder; ``~NAME`` of somebody who is not known stays as it is."""
    return Path(os.path.expanduser(path))


def find_file(path: Path, remedy: str) -> Path:
    """Return ``path`` or, where that is missing, ``path`` with ``.gz`` added.

    Args:
        path: without ``.gz``.
        remedy: what to do if there is neither, to end the message with.

    Raises:
        UserError: neither exists.
    """
    path = expand_home(path)
    for candidate in (path, path.with_name(f"{path.name}.gz")):
        if candidate.is_file():
            return candidate
    if path.exists():
        raise UserError(f"{path} is {'a folder' if path.is_dir() else 'no plain file'}: {remedy}")
    raise UserError(f"no file {path} (or {path.name}.gz): {remedy}")


def has_file(path: Path) -> bool:
    """Tell whether :func:`find_file` would find one."""
    path = expand_home(path)
    return path.is_file() or path.with_name(f"{path.name}.gz").is_file()


def read_bytes(path: Path) -> bytes:
    """Return a file's content, unpacked if its name ends in ``.gz``.

    Raises:
        UserError: not a gzip file, although its name says so, or not readable, or unpacked far larger than text would be.
    """
    with open_content(path) as stream:
        return read_unpacked(stream, path) if path.suffix == ".gz" else stream.read()


def read_parts(path: Path) -> Iterator[bytes]:
    """Yield a file's content as :func:`read_bytes` returns it, part after part."""
    with open_content(path) as stream:
        left = most_bytes(path)
        for part in iter(partial(stream.read, 2**20), b""):
            left -= len(part)
            _check_growth(left, path)
            yield part


class LineReader:
    """Reads the lines of a file, plain or packed, one after another, as :func:`decode_lines` makes them of its content.

    Args:
        path: of the file.
        blanks: white space that is stripped around a line; None for all of Unicode's.

    Attributes:
        count: of lines so far.
        is_blank: whether there was nothing but white space so far.
    """

    def __init__(self, path: Path, blanks: str | None = None) -> None:
        self.path = path
        self.blanks = blanks
        self.count = 0
        self.is_blank = True

    def __iter__(self) -> Iterator[str]:
        """Yield the lines.

        Raises:
            UserError: not UTF-8, lines that end in carriage returns alone, or whatever :func:`read_bytes` refuses.
        """
        with open_content(self.path) as stream:
            left = most_bytes(self.path)
            while content := stream.readline(left + 1):
                left -= len(content)
                _check_growth(left, self.path)
                self.count += 1
                if self.count == 1:
                    _check_line_ends(content, self.path)
                try:
                    line = content.decode("utf-8" if self.count > 1 else "utf-8-sig").strip(self.blanks)
                except UnicodeDecodeError as error:
                    raise encoding_error(self.path, error, self.count - 1) from error
                self.is_blank = self.is_blank and not line.strip()
                yield line


@contextmanager
def open_content(path: Path) -> Iterator[gzip.GzipFile | IO[bytes]]:
    """Open a file to read its bytes, unpacked if its name ends in ``.gz``.

    Raises:
        UserError: it cannot be read.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield stream
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def most_bytes(path: Path) -> int:
    """Return how many bytes the content of a packed file may have; a plain one has never so many."""
    return max(MOST_TIMES * path.stat().st_size, ALWAYS)


def _check_growth(left: int, path: Path) -> None:
    if left < 0:
        most = most_bytes(path)
        raise UserError(f"{path} grows to more than {most:,} bytes when it is unpacked, as no text does: unpack it yourself")


def read_unpacked(stream: gzip.GzipFile | IO[bytes], path: Path) -> bytes:
    """Return what is unpacked from a file, reading no more than text would grow to.

    Raises:
        UserError: it grows further.
    """
    most = most_bytes(path)
    content = stream.read(most + 1)
    _check_growth(most - len(content), path)
    return content


def decode_lines(content: bytes, path: Path, blanks: str | None = None) -> list[str]:
    """Split text into lines, at line feeds alone, and strip white space around each.

    Args:
        content: of the file.
        path: of the file, for the message.
        blanks: white space that is stripped; None for all of Unicode's.

    Raises:
        UserError: not UTF-8, lines that end in carriage returns alone, or no line at all.
    """
    _check_line_ends(content, path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise encoding_error(path, error) from error
    if not text.strip():
        raise blank_file(path)
    return [line.strip(blanks) for line in text.removesuffix("\n").split("\n")]


def _check_line_ends(beginning: bytes, path: Path) -> None:
    """Refuse a file whose first line would be all of it, as old programs write it."""
    if b"\n" not in beginning and b"\r" in beginning.strip():
        raise UserError(f"{path}: its lines end in carriage returns alone; convert it with tr '\\r' '\\n'")


def blank_file(path: Path) -> UserError:
    """Tell of a file without a word in it."""
    return UserError(f"{path} is empty, or has empty lines alone")


PACKED, ARCHIVE = b"\x1f\x8b", b"PK\x03\x04"
"""How a file packed by gzip begins, and an archive, such as a spreadsheet."""


def encoding_error(path: Path | str, error: UnicodeDecodeError, before: int = 0) -> UserError:
    """Tell of a line that is not UTF-8, and what helps.

    Args:
        path: of the file, or what it is called.
        error: of the lines, or of the one line, that were to be decoded.
        before: how many lines stand before these.
    """
    line = before + error.object.count(b"\n", 0, error.start) + 1
    is_kept = isinstance(path, Path) and path.is_file()  # and no pipe, which cannot be read again
    begin = _read_beginning(Path(path)) if is_kept else error.object if line == 1 else b""
    if begin.startswith(ARCHIVE):
        return UserError(f"{path} is an archive, as a spreadsheet is: save it as text, such as CSV")
    if begin.startswith(PACKED):
        return UserError(f"{path} is packed: give it a name that ends in .gz")
    marked = line == 1 and error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return UserError(
        f"{path}, line {line}: not UTF-8 (byte 0x{error.object[error.start]:02x}); convert the file, "
        f"{'' if marked else 'for example '}with iconv -f {'UTF-16' if marked else 'WINDOWS-1252'} -t UTF-8"
    )


def _read_beginning(path: Path) -> bytes:
    """Return the first bytes of a file, as they are once it is unpacked if its name says that it is packed."""
    with open_content(path) as stream:
        return stream.read(len(ARCHIVE))
