"""Whether the files of a run are what the run wrote."""

import hashlib
import json
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from attnlab.errors import UserError
from attnlab.runs.record import parse_json


class DamagedFileError(UserError):
    """A file of a run that was read, and is not what was written."""


def make_digests(root: Path, files: Collection[Path], pending: Mapping[Path, str]) -> str:
    """Return the SHA-256 of files by their paths below a folder, as JSON.

    Args:
        root: the folder.
        files: that are there.
        pending: text of files that will be there.
    """
    digests = {path: _digest(path) for path in files}
    digests |= {path: hashlib.sha256(text.encode()).hexdigest() for path, text in pending.items()}
    return json.dumps({path.relative_to(root).as_posix(): digests[path] for path in sorted(digests)}, indent=1)


def list_files(listed: Path) -> list[Path]:
    """Return the files that :func:`make_digests` saw.

    Raises:
        UserError: the file with the digests is damaged.
    """
    try:
        return [listed.parent / name for name in _parse(listed.read_text(encoding="utf-8"))]
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"{listed} is damaged: start the run again") from error


def find_altered_files(listed: Path, among: Collection[Path] = ()) -> list[Path]:
    """Return the files that are gone, or hold anything but what :func:`make_digests` saw.

    Args:
        listed: file with the digests, which lies in the folder that they are of; where there is none, no file is known to be
            altered.
        among: look at these files alone.

    Returns:
        The files; of digests that cannot be read, the file with the digests.

    Raises:
        UserError: a file cannot be read, although it may be whole.
    """
    if not listed.is_file():
        return []
    try:
        digests = _parse(listed.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return [listed]
    asked = [path.relative_to(listed.parent).as_posix() for path in among] or digests
    try:
        return [listed.parent / name for name in asked if name in digests and _digest(listed.parent / name) != digests[name]]
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from error


@lru_cache(maxsize=16)  # of one run after another they are looked at once a file
def _parse(text: str) -> dict[str, str]:
    """Read digests.

    Raises:
        ValueError: none, or of a file outside of the folder.
    """
    content = parse_json(text)
    if not isinstance(content, dict) or not all(isinstance(written, str) for written in content.values()):
        raise ValueError("they are no digests")
    if any(name.startswith("/") or ".." in name.split("/") for name in content):
        raise ValueError("a file lies elsewhere")
    return content


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; of one that is gone, or is none, what no file has."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""
