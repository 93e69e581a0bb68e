"""Hashes of what files hold, which are remembered of large files."""

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

from attnlab.data.cache import cache_folder
from attnlab.data.files import read_parts
from attnlab.data.replacement import write_atomically
from attnlab.errors import UserError

LARGE = 2**24
"""Bytes from which on a file's hash is remembered."""
SETTLED = 2 * 10**9
"""Nanoseconds that a file must have rested for: of what is written twice within a tick of the clock, both have one time."""


def hash_content(path: Path) -> bytes:
    """Return the SHA-256 of what a file holds, unpacked if its name ends in ``.gz``.

    That of a large file is remembered in the cache's folder, as long as the file has the same size, the same number and the
    same times of its last writing and last change, the last of which no program can set.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        signature = _sign(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    size, _, written, changed = signature
    if size < LARGE:
        return _hash(path)
    note = cache_folder() / "contents" / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, LookupError, TypeError):
        content, check = json.loads(note.read_text())
        if check == _check(signature, content):
            return bytes.fromhex(content)
    has_settled = time.time_ns() - max(written, changed) > SETTLED
    found = _hash(path)
    with suppress(OSError):  # it is hashed again then
        if has_settled and _sign(path) == signature:
            note.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(note, json.dumps([found.hex(), _check(signature, found.hex())]))
    return found


def _sign(path: Path) -> tuple[int, int, int, int]:
    status = path.stat()
    return status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _check(signature: tuple[int, ...], content: str) -> str:
    """Return a hash that a note has only if it is whole, and of the same file."""
    return hashlib.sha256(f"{signature} {content}".encode()).hexdigest()


def _hash(path: Path) -> bytes:
    content = hashlib.sha256()
    for part in read_parts(path):
        content.update(part)
    return content.digest()
