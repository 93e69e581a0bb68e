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
            columns = np.split(arrays["values"], np.cumsum(arrays["widths"]))
            statistics = {
                name: np.ascontiguousarray(rows.T) for name, rows in zip(arrays["names"].tolist(), columns[:-1], strict=True)
            }
            return {**statistics, LENGTHS: arrays[LENGTHS], NUMBERS: arrays[NUMBERS]}
    except Exception as error:  # of damaged bytes zipfile raises almost anything
        raise UserError(f"{path} is damaged ({brief(error)})") from error


def write_statistics(
    path: Path, statistics: Mapping[str, NDArray[np.float64]], lengths: Sequence[int], numbers: Sequence[int]
) -> None:
    """Write what each example adds to each metric, the length of its source, and its number in the test set."""
    path.parent.mkdir(exist_ok=True)
    beside: dict[str, Any] = {name: np.asarray(row, dtype=np.float64) for name, row in ((LENGTHS, lengths), (NUMBERS, numbers))}
    # One array is read many times faster than one for each metric, and packs better with the columns one after another.
    values = np.concatenate([np.empty((0, len(lengths))), *(rows.T for rows in statistics.values())])
    widths = [rows.shape[1] for rows in statistics.values()]
    with replacement(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file, names=np.array([*statistics], dtype=str), widths=np.array(widths, dtype=int), values=values, **beside
        )


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
