"""Files that are whole or not there."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnlab.errors import UserError

LEFTOVER = re.compile(r".+\.\d+-[0-9a-f]{8}\.tmp")
"""Name of a file that :func:`replacement` gives, which stays where its writer is killed."""


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that whoever reads it finds all of it or nothing."""
    with replacement(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Give a file beside another one, whose place it takes once it is written; nothing is left of one that is not.

    It takes the place of a link too: what is written into a run or a study of somebody else stays there.

    Raises:
        UserError: in that place is a folder, a device or a pipe.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no regular file, in whose place a file could be written: name another one")
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")  # of this writer alone, on any host
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.filename in (str(temporary), None):  # whose name says nothing to the user; a full disk names none
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
