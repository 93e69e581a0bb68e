"""What can be made again, on disk, found by content."""

import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from platformdirs import user_cache_path

from attnlab.errors import UserError

log = logging.getLogger(__name__)

T = TypeVar("T")
DIGESTS = "digests.json"


def cache_folder() -> Path:
    """Return the folder for what can be made or downloaded again: ``ATTNLAB_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("ATTNLAB_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("attnlab")


def load_or_make(folder: Path, *, make: Callable[[], T], write: Callable[[T, Path], None], read: Callable[[Path], T]) -> T:
    """Return what a folder holds, making it first if it is not there.

    It is written beside and renamed at last: a folder that exists is whole, whoever else writes the same at the same time.
    One that was damaged later, be it by a single bit, is made again.

    Args:
        folder: where it is kept.
        make: makes it.
        write: writes it into an empty folder.
        read: reads it from the folder; raises an error if the folder is damaged.

    Raises:
        UserError: the folder cannot be written.
    """
    if folder.exists():
        try:
            _verify(folder)
            return read(folder)
        except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
            log.warning("making the cached folder %s again: it is damaged (%s)", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    content = make()
    temporary = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    try:
        temporary.mkdir(parents=True)
        write(content, temporary)
        (temporary / DIGESTS).write_text(json.dumps({path.name: digest(path) for path in temporary.iterdir()}))
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.is_dir():  # if it is, another process was faster: the content is the same
                raise
    except OSError as error:
        raise UserError(
            f"cannot write {folder} ({error.strerror}): choose another folder for the cache, for example with ATTNLAB_CACHE"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return read(folder)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(folder: Path) -> None:
    """Compare every file with its digest.

    Raises:
        ValueError: a file is not what was written.
    """
    for name, written in json.loads((folder / DIGESTS).read_text()).items():
        if digest(folder / name) != written:
            raise ValueError(f"{name} is not what was written")
