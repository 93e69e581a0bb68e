"""What can be made again, on disk, found by content."""

import contextlib
import errno
import json
import logging
import os
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray
from platformdirs import user_cache_path

from attnlab.data.files import expand_home
from attnlab.data.lines import OFFSETS, TEXT, StoredLines
from attnlab.data.ragged import Ragged
from attnlab.data.storage import DIGESTS, DamageError, StoredArray, StoredFile, digest_blocks
from attnlab.errors import UserError

log = logging.getLogger(__name__)

T = TypeVar("T")
UNREADABLE = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE}
"""What keeps a process from reading a folder that is not damaged."""
CHECKED = 2**26
"""Files of at most so many bytes are compared with their digests as a whole when they are opened, others block by block as they
are read: so a start takes no longer for a large corpus, and no byte is used that was not compared."""

ABANDONED = 86_400
"""Seconds without a change after which nobody is taken to write a folder any more."""


def cache_folder(chosen: str | None = None) -> Path:
    """Return the folder for what can be made or downloaded again.

    Args:
        chosen: the folder; None is ``ATTNLAB_CACHE`` or, without that, the user's cache folder.
    """
    chosen = chosen or os.environ.get("ATTNLAB_CACHE")
    return expand_home(chosen) if chosen else user_cache_path("attnlab")


class StoredFolder:
    """A folder whose files have digests, which each must agree with.

    Args:
        path: of the folder.

    Raises:
        OSError, ValueError, LookupError, TypeError, DamageError: it is not what was written, as far as that is known at once:
            a file is missing or of another size, or a small one of other content; see :data:`CHECKED`.
    """

    def __init__(self, path: Path) -> None:
        digests: dict[str, list[str]] = json.loads((path / DIGESTS).read_text())
        self._files = {name: StoredFile(path / name, blocks) for name, blocks in digests.items()}
        for file in self._files.values():
            if file.size <= CHECKED:
                file.check()

    def json(self, name: str) -> Any:
        """Return what a file of JSON holds."""
        file = self._files[name]
        return json.loads(file.read(0, file.size))

    def lines(self, name: str) -> StoredLines:
        """Return what a :class:`LineWriter` wrote."""
        return StoredLines(self._files[TEXT.format(name)], StoredArray(self._files[OFFSETS.format(name)]))

    def array(self, name: str) -> NDArray[Any]:
        """Return the whole array that an :class:`ArrayWriter` wrote."""
        return StoredArray(self._files[f"{name}.npy"])[:]

    def ragged(self, name: str) -> Ragged:
        """Return the sequences that :class:`RaggedWriter` wrote; their offsets are in memory."""
        values, offsets = (StoredArray(self._files[form.format(name)]) for form in Ragged.FILES)
        return Ragged(values, offsets[:])


def load_or_make(folder: Path, *, make: Callable[[Path], None], read: Callable[[StoredFolder], T]) -> T:
    """Return what a folder holds, making it first if it is not there.

    It is written beside and renamed at last: a folder that exists is whole, whoever else writes the same at the same time.
    One that was damaged later, be it by a single bit, is made again.

    Args:
        folder: where it is kept.
        make: writes it into an empty folder.
        read: reads it from the folder; raises an error if the folder is damaged.

    Raises:
        UserError: the folder cannot be read or written.
    """
    _remove_leftovers(folder)
    if folder.exists():
        try:
            return read(StoredFolder(folder))
        except (OSError, EOFError, ValueError, LookupError, TypeError, DamageError) as error:
            if isinstance(error, OSError) and error.errno in UNREADABLE:
                raise UserError(
                    f"cannot read {folder} ({error.strerror}): allow it, or more open files (ulimit -n), or choose another "
                    "folder for the cache, for example with ATTNLAB_CACHE"
                ) from error
            log.warning("making the cached folder %s again: it is damaged (%s)", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    temporary = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    try:
        temporary.mkdir(parents=True)
        make(temporary)
        (temporary / DIGESTS).write_text(json.dumps({path.name: digest_blocks(path) for path in temporary.iterdir()}))
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.is_dir():  # if it is, another process was faster: the content is the same
                raise
    except OSError as error:
        if error.filename and not _concerns(Path(os.fsdecode(error.filename)), temporary):
            raise
        raise UserError(
            f"cannot write {folder} ({error.strerror}): choose another folder for the cache, for example with ATTNLAB_CACHE"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return read(StoredFolder(folder))


def _remove_leftovers(folder: Path) -> None:
    """Remove what was begun and never finished, as by a process that was killed."""
    for begun in folder.parent.glob(f".{folder.name}-*"):
        with contextlib.suppress(OSError):
            if time.time() - max(path.stat().st_mtime for path in (begun, *begun.iterdir())) > ABANDONED:
                shutil.rmtree(begun, ignore_errors=True)


def _concerns(path: Path, folder: Path) -> bool:
    """Tell whether a path is that of a folder, of something in it or of one around it."""
    return path.is_relative_to(folder) or folder.is_relative_to(path)
