"""Text files, plain or packed."""

import gzip
import zlib
from pathlib import Path
from typing import IO

from attnlab.errors import UserError

MOST_TIMES, ALWAYS = 100, 2**26
"""A packed file may grow this many times (text does about five times) or to this many bytes, so that none fills the memory."""


def find_file(path: Path, remedy: str) -> Path:
    """Return ``path`` or, where that is missing, ``path`` with ``.gz`` added.

    Args:
        path: without ``.gz``.
        remedy: what to do if there is neither, to end the message with.

    Raises:
        UserError: neither exists.
    """
    path = path.expanduser()
    for candidate in (path, path.with_name(f"{path.name}.gz")):
        if candidate.is_file():
            return candidate
    raise UserError(f"no file {path} (or {path.name}.gz): {remedy}")


def read_bytes(path: Path) -> bytes:
    """Return a file's content, unpacked if its name ends in ``.gz``.

    Raises:
        UserError: not a gzip file, although its name says so, or not readable, or unpacked far larger than text would be.
    """
    try:
        if path.suffix != ".gz":
            return path.read_bytes()
        with gzip.open(path) as stream:
            return read_unpacked(stream, path)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def read_unpacked(stream: gzip.GzipFile | IO[bytes], path: Path) -> bytes:
    """Return what is unpacked from a file, reading no more than text would grow to.

    Raises:
        UserError: it grows further.
    """
    most = max(MOST_TIMES * path.stat().st_size, ALWAYS)
    content = stream.read(most + 1)
    if len(content) > most:
        raise UserError(f"{path} grows to more than {most:,} bytes when it is unpacked, as no text does: unpack it yourself")
    return content


def decode_lines(content: bytes, path: Path) -> list[str]:
    """Split text into lines, at line feeds alone, and strip white space around each.

    Raises:
        UserError: not UTF-8, or no line at all.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: not UTF-8 (byte 0x{error.object[error.start]:02x}); convert the file, "
            "for example with iconv -f LATIN1 -t UTF-8"
        ) from error
    if not text.strip():
        raise UserError(f"{path} is empty")
    return [line.strip() for line in text.removesuffix("\n").split("\n")]
