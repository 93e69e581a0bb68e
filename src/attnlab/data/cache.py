"""What can be made again, on disk, found by content."""

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


def cache_folder() -> Path:
    """Return the folder for what can be made or downloaded again: ``ATTNLAB_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("ATTNLAB_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("attnlab")


def load_or_make(folder: Path, *, make: Callable[[], T], write: Callable[[T, Path], None], read: Callable[[Path], T]) -> T:
    """Return what a folder holds, making it first if it is not there.

    It is written beside and renamed at last: a folder that exists is whole, whoever else writes the same at the same time.
    One that was damaged later is made again.

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
            return read(folder)
        except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
            log.warning("making the cached folder %s again: it is damaged (%s)", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    content = make()
    temporary = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    try:
        temporary.mkdir(parents=True)
        write(content, temporary)
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.is_dir():  # if it is, another process was faster: the content is the same
                raise
    except OSError as error:
        raise UserError(
            f"cannot write {folder} ({error.strerror}): set cache_dir or ATTNLAB_CACHE to another folder"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return read(folder)
