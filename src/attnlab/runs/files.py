"""Files of lines, of arrays and of text that are whole or not there."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import UserError, brief


def read_lines(path: Path) -> list[str]:
    """Return the lines that :func:`write_lines` wrote; empty where there is no file.

    Raises:
        UserError: the file is damaged.
    """
    if not path.is_file():
        return []
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is damaged: it is not UTF-8") from error


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write lines of text, making the file's folder where it is missing."""
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, "".join(f"{line}\n" for line in lines))


LENGTHS = "source_length"
NUMBERS = "example"
"""Beside what each example adds to each metric: how long its source is, and its number in the test set, from 1."""


def read_statistics(path: Path) -> dict[str, NDArray[np.float64]]:
    """Return what each example adds to each metric, by the metric's name, and ``source_length`` and ``example``;
    empty where there is no file.

    Raises:
        UserError: the file is damaged.
    """
    if not path.is_file():
        return {}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # of damaged bytes zipfile raises almost anything
        raise UserError(f"{path} is damaged ({brief(error)})") from error


def write_statistics(
    path: Path, statistics: Mapping[str, NDArray[np.float64]], lengths: Sequence[int], numbers: Sequence[int]
) -> None:
    """Write what each example adds to each metric, the length of its source, and its number in the test set."""
    path.parent.mkdir(exist_ok=True)
    beside = {name: np.asarray(row, dtype=np.float64) for name, row in ((LENGTHS, lengths), (NUMBERS, numbers))}
    arrays: dict[str, Any] = {**statistics, **beside}
    with replacement(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that whoever reads it finds all of it or nothing."""
    with replacement(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Give a file beside another one, whose place it takes once it is written; nothing is left of one that is not."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
