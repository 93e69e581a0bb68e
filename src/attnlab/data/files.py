"""Text files, plain or packed."""

import gzip
import zlib
from pathlib import Path

from attnlab.errors import UserError


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
        UserError: not a gzip file, although its name says so, or not readable.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {error}") from error


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
