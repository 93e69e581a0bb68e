"""Files of lines and of arrays."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.data.replacement import replacement, write_atomically
from attnlab.errors import UserError, brief
from attnlab.evaluation.evidence import EXAMPLE
from attnlab.runs.digests import DamagedFileError


def read_lines(path: Path) -> list[str]:
    """Return the lines that :func:`write_lines` wrote; empty where there is no file.

    Raises:
        DamagedFileError: it is no text.
    """
    if not path.is_file():
        return []
    try:
        text = path.read_bytes().decode("utf-8")
        return text.removesuffix("\n").split("\n") if text else []  # a line may hold another end of line
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{path} is damaged: it is not UTF-8") from error


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write lines of text, making the file's folder where it is missing."""
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, "".join(f"{line}\n" for line in lines))


LENGTHS = "source_length"
"""How long the source of each example is, beside its number and what it adds to each metric."""
BLOCK = "block"
"""With which others an example is drawn; see :attr:`attnlab.data.examples.Examples.blocks`."""
BESIDE = (LENGTHS, EXAMPLE, BLOCK)
"""What is not of a metric."""


def read_statistics(path: Path) -> dict[str, NDArray[np.float64]]:
    """Return what each example adds to each metric, by the metric's name, and ``source_length``, ``example`` and ``block``;
    empty where there is no file. A metric to which an example adds NaN or infinity is left out: it has no sum to be tested by.

    Raises:
        UserError: the file is damaged.
    """
    if not path.is_file():
        return {}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            names, counts, values = (arrays[key] for key in ("names", "counts", "values"))
        found: dict[str, list[NDArray[Any]]] = {}
        for name, column in zip(names.tolist(), (*counts, *values), strict=True):
            found.setdefault(name, []).append(column)
        tables = ((name, np.array(columns, dtype=np.float64).T.copy()) for name, columns in found.items())
        statistics = {name: rows for name, rows in tables if np.isfinite(rows).all()}
        statistics.setdefault(BLOCK, statistics[EXAMPLE])  # older files have none
        return {**statistics, **{name: statistics[name][:, 0] for name in BESIDE}}
    except Exception as error:  # of damaged bytes zipfile raises almost anything
        raise UserError(f"{path} is damaged ({brief(error)})") from error


def write_statistics(
    path: Path,
    statistics: Mapping[str, NDArray[np.float64]],
    lengths: Sequence[int],
    numbers: Sequence[int],
    blocks: Sequence[int] | None = None,
) -> None:
    """Write what each example adds to each metric, the length of its source, its number in the test set, and its block."""
    path.parent.mkdir(exist_ok=True)
    told = lengths, numbers, numbers if blocks is None else blocks
    beside = {name: np.asarray(row, dtype=np.float64)[:, None] for name, row in zip(BESIDE, told, strict=True)}
    # A few arrays are read many times faster than one for each metric. Most metrics add small whole numbers, which need a
    # quarter of the bytes; columns one after another pack better than rows.
    every = {**beside, **statistics}
    counts = {name: rows for name, rows in every.items() if _are_counts(rows)}
    values = {name: rows for name, rows in every.items() if name not in counts}
    none = np.empty((0, len(lengths)))
    with replacement(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            names=np.array([name for name, rows in (counts | values).items() for _ in range(rows.shape[1])], dtype=str),
            counts=np.concatenate([none, *(rows.T for rows in counts.values())]).astype(np.int16),
            values=np.concatenate([none, *(rows.T for rows in values.values())]),
        )


def _are_counts(rows: NDArray[np.float64]) -> bool:
    """Tell whether numbers are whole and small."""
    with np.errstate(invalid="ignore"):  # large ones, infinity and NaN become others
        return bool((rows.astype(np.int16) == rows).all())
