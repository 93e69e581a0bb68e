"""Lines of text in and out: files and standard streams, whatever a terminal or a file system is set to."""

import gzip
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import IO

from attnlab.data.files import encoding_error, open_content
from attnlab.errors import UserError, no_folder


def check_input(*paths: Path | None) -> None:
    """Refuse files that are not there, and folders; a pipe, such as a shell makes of a command, is read as a file is.

    Raises:
        UserError: there is one.
    """
    for path in paths:
        if path is not None and not path.exists():
            raise UserError(f"no file {path}")
        if path is not None and path.is_dir():
            raise UserError(f"{path} is a folder: name a file")


def check_source(path: Path | None) -> None:
    """Refuse what lines are to be read from, a file or, where there is none, standard input; see :func:`check_input`."""
    check_input(path)
    if path is None and sys.stdin is None:
        raise UserError("standard input is closed: name a file with --input")


def check_output(path: Path | None, read: Iterable[Path | None] = ()) -> None:
    """Refuse a file that cannot be written, or that is read too, before anything is computed.

    Raises:
        UserError: it cannot, or it is.
    """
    if path is None:
        return
    try:
        if path.is_dir():
            raise UserError(f"--output {path} is a folder: name a file")
        if not path.parent.is_dir():
            raise UserError(f"--output {path}: there is no folder {path.parent}")
        if path.exists() and any(other.samefile(path) for other in read if other):
            raise UserError(f"--output {path} is what is read: name another file, or nothing would be left of it")
    except OSError as error:
        raise UserError(f"--output {path}: {error.strerror}") from error
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"--output {path}: no permission to write there")


def check_writable(folder: Path) -> None:
    """Refuse a folder that nothing can be written into, be it there or not, before anything is computed.

    Raises:
        UserError: nothing can.
    """
    if folder.exists() and not folder.is_dir():
        raise no_folder(folder)
    place = folder if folder.exists() else folder.parent
    if not os.access(place, os.W_OK):
        raise UserError(f"{place}: no permission to write there")


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[str]]:
    """Open a file to write to, compressed where its name ends in .gz, or standard output where there is none, in UTF-8.

    Raises:
        UserError: it cannot be written to.
    """
    if path is None:
        if sys.stdout is None:
            raise UserError("standard output is closed: name a file with --output")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        return
    try:
        with gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise UserError(f"--output {path}: {error.strerror}") from error


def read_chunks(path: Path | None, size: int) -> Iterator[tuple[int, list[str]]]:
    """Yield lines of a file or of standard input, so many at a time, with the number of the first.

    Raises:
        UserError: a file that cannot be read, or a line that is not UTF-8.
    """
    lines, first = iterate_lines(path), 1
    while chunk := list(islice(lines, size)):
        yield first, chunk
        first += len(chunk)


def iterate_lines(path: Path | None) -> Iterator[str]:
    """Yield lines of a file, plain or packed, or of standard input, without their ends; see :func:`read_chunks`."""
    with open_content(path) if path else nullcontext(sys.stdin.buffer) as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise encoding_error(path or "standard input", error, number - 1) from error
