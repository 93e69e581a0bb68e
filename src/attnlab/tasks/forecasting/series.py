"""Multivariate time series: what they hold, and how they are read from a file."""

import csv
import math
from calendar import monthrange
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnlab.data.files import decode_lines, expand_home, read_bytes
from attnlab.errors import UserError, nearest

CALENDAR = ("hour of the day", "day of the week", "day of the month", "day of the year")
"""What is known of a time beforehand."""
MISSING = ("nan", "na", "n/a", "null", "none")
"""How other programs write that there is no value."""
LARGEST = 1e100
"""Of the numbers that are read: the squares of much larger ones have no sum."""


@dataclass(frozen=True)
class Table:
    """Columns of numbers, those to be forecast first, then the covariates, which are known of the past alone.

    Attributes:
        names: of the columns.
        num_targets: columns to be forecast.
        values: (rows, columns), float64, in the data's own units.
        times: of each row, as the clocks of the place have them; None where they are not known.
        offset: of the last time from UTC, where the file tells it.
        clock: what the column of the times is called.
    """

    names: tuple[str, ...]
    num_targets: int
    values: NDArray[np.float64]
    times: tuple[datetime, ...] | None = None
    offset: tzinfo | None = None
    clock: str = "time"

    def choose(self, names: Sequence[str], num_targets: int) -> "Table":
        """Return the table of these columns, in this order.

        Raises:
            UserError: one that is not there.
        """
        for name in names:
            if name not in self.names:
                raise UserError(f"the series has no column {name!r}, which the model knows: {nearest(name, self.names)}")
        values = self.values[:, [self.names.index(name) for name in names]]
        return replace(self, names=tuple(names), num_targets=num_targets, values=values)


@dataclass(frozen=True)
class Series:
    """Values that are to be forecast, in three parts.

    Attributes:
        table: the values.
        ends: where training, validation and test parts end, in rows; training begins at row 0.
        lags: after how many rows the past comes back, where that is known.
    """

    table: Table
    ends: tuple[int, int, int]
    lags: tuple[int, ...] = ()


def read_table(
    content: bytes,
    path: Path,
    *,
    time: str | None = None,
    targets: Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    header: bool = True,
) -> Table:
    """Read values that are separated by commas.

    Args:
        content: of the file, not packed.
        path: of the file, for messages.
        time: the column of the time; None where there is none.
        targets: columns to be forecast; None takes all but the time and the covariates.
        covariates: columns that are read beside them.
        header: whether the first line names the columns; without it they are called "0", "1" and so on.

    Raises:
        UserError: not UTF-8, lines of unequal length, a column that is not there or there twice, a hole, a number that is none,
            or times that do not increase.
    """
    reader = csv.reader(decode_lines(content, path))
    try:
        lines = [(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        remedy = "a line ends with a line feed, and a quotation mark has another that ends what is quoted"
        raise UserError(f"{path}, line {reader.line_num}: no values with commas between them ({error}): {remedy}") from error
    rows = [(number, cells) for number, cells in lines if cells]
    first, names = rows[0][0], [name.strip() for name in rows[0][1]]
    if len(names) == 1:  # where an empty line is a hole, but for those at the end
        rows = [(number, cells or [""]) for number, cells in lines if first <= number <= rows[-1][0]]
    if header and all(_is_number(name) for name in names):
        remedy = "a line of names, or set header to false" if targets is None else f"a line with {','.join(targets)} and so on"
        raise UserError(f"{path}, line {first}: numbers, and no names of columns: add {remedy}")
    if len(names) == 1 and (sign := next((sign for sign in ";\t|" if sign in names[0]), None)):
        raise UserError(f"{path}: values are separated by {sign!r}: write commas between them, and points in decimals")
    if header and time not in names and all(_is_number(name) or _is_time(name) for name in names):
        number = next(place for place, name in enumerate(names) if not _is_number(name))
        raise UserError(
            f"{path}, line {first}: a time and numbers, and no names of columns: add a line of names, or set header to false "
            f"and time to the number of its column in two kinds of quotation marks, '\"{number}\"'"
        )
    rows, names = (rows[1:], names) if header else (rows, [str(number) for number in range(len(names))])
    for number, cells in rows:
        if len(cells) != len(names):
            raise UserError(f"{path}, line {number}: {len(cells)} values, but there are {len(names)} columns")
    if targets is None:
        targets = [name for name in names if name != time and name not in covariates]
    chosen, asked = [*targets, *covariates], [*targets, *covariates, *([] if time is None else [time])]
    for name in [*asked, *names]:
        if name not in names:
            raise UserError(f"{path}: no column {name!r}: {nearest(name, names)}")
        if asked.count(name) > 1 or names.count(name) > 1:
            raise UserError(f"{path}: the column {name!r} is there twice, or asked for twice: once is enough")
    if not targets or not rows:
        raise UserError(f"{path} holds no row" if targets else f"{path}: no column is to be forecast: name one in targets")
    places = [names.index(name) for name in chosen]
    if "" in chosen:
        raise UserError(f"{path}: column {names.index('') + 1} has no name: name it, or leave it out")
    values = np.array([_numbers(cells, places, names, f"{path}, line {number}") for number, cells in rows], dtype=np.float64)
    table = Table(tuple(chosen), len(targets), values)
    if time is None:
        return table
    times = _times(rows, names.index(time), path)
    # Hours and weekdays are those of the place.
    return replace(table, times=tuple(known.replace(tzinfo=None) for known in times), offset=times[-1].tzinfo, clock=time)


def step_between(times: Sequence[datetime]) -> timedelta:
    """Return how far one time is from the next: the commonest step, the last one of several that are equally common."""
    steps = [later - earlier for earlier, later in pairwise(times)]
    return Counter(reversed(steps)).most_common(1)[0][0] if steps else timedelta()


def months_between(times: Sequence[datetime]) -> int:
    """Return how many months each time is from the next, if it is as many for all, on the same day or the last of the month,
    by the same clock time; else 0.
    """
    steps = {12 * (later.year - earlier.year) + later.month - earlier.month for earlier, later in pairwise(times)}
    days, clocks = {time.day for time in times}, {time.time() for time in times}
    is_regular = len(steps) == len(clocks) == 1 and (len(days) == 1 or all(map(_is_end_of_month, times)))
    return steps.pop() if is_regular else 0


def next_times(times: Sequence[datetime], count: int) -> list[datetime]:
    """Return the times that come after some: as many months apart as these, or else the commonest step.

    Raises:
        UserError: after the year 9999.
    """
    try:
        return _continue(times, count)
    except (OverflowError, ValueError) as error:
        raise UserError(f"the time {times[-1]} has no time after it, the last year being 9999: leave that row out") from error


def _continue(times: Sequence[datetime], count: int) -> list[datetime]:
    months, last = months_between(times), times[-1]
    if not months:
        return [last + step_between(times) * ahead for ahead in range(1, count + 1)]
    at_end, found = all(map(_is_end_of_month, times)), []
    for ahead in range(1, count + 1):
        year, month = divmod(12 * last.year + last.month - 1 + months * ahead, 12)
        _, most = monthrange(year, month + 1)
        found.append(last.replace(year=year, month=month + 1, day=most if at_end else min(last.day, most)))
    return found


def _is_end_of_month(time: datetime) -> bool:
    return time.day == monthrange(time.year, time.month)[1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # which Python reads, and no other program


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _numbers(cells: Sequence[str], places: Sequence[int], names: Sequence[str], line: str) -> list[float]:
    numbers = []
    for place in places:
        text = cells[place].strip()
        if not text or text.lower() in MISSING:
            raise UserError(f"{line}, column {names[place]!r}: no value: fill the hole, or leave the column out")
        if not _is_number(text) or not math.isfinite(float(text)):
            hint = ": say that it is the column of the time, or name the columns to be forecast" if _is_time(text) else ""
            raise UserError(f"{line}, column {names[place]!r}: {text!r} is no finite number{hint}")
        if abs(float(text)) > LARGEST:
            raise UserError(f"{line}, column {names[place]!r}: {text!r} is too large: take a larger unit")
        numbers.append(float(text))
    return numbers


def _times(rows: Sequence[tuple[int, Sequence[str]]], place: int, path: Path) -> list[datetime]:
    times: list[datetime] = []
    for number, cells in rows:
        try:
            time = datetime.fromisoformat(cells[place].strip())
        except ValueError as error:
            form = "such as 2016-07-01 or 2016-07-01 13:00:00"
            raise UserError(f"{path}, line {number}: {cells[place]!r} is no time {form}") from error
        if times and (time.tzinfo is None) != (times[-1].tzinfo is None):
            raise UserError(f"{path}, line {number}: this time or the one before has no offset from UTC: give all of them one")
        if times and time == times[-1]:
            remedy = "leave one out, or give all times an offset from UTC if the clocks were put back"
            raise UserError(f"{path}, line {number}: {cells[place]} is the time of the line before too: {remedy}")
        if times and time < times[-1]:
            raise UserError(f"{path}, line {number}: {cells[place]} is not after the time of the line before: sort the lines")
        times.append(time)
    return times


def read_file(path: Path) -> bytes:
    """Return the content of a file, unpacked if its name ends in ``.gz``.

    Raises:
        UserError: no such file, or one that is damaged.
    """
    found = expand_home(path)
    if not found.is_file():
        raise UserError(
            f"{path} is no file: name that of the series" if found.exists() else f"no file {path}: name the file of the series"
        )
    return read_bytes(found)


def calendar_features(times: Sequence[datetime]) -> NDArray[np.float64]:
    """Return hour / 23, weekday / 6, (day of the month - 1) / 30 and (day of the year - 1) / 365, less a half each.

    These are the features of hourly data in the code of Zhou et al. (2021), for :data:`CALENDAR`; weekdays count from Monday.

    Returns:
        (times, 4).
    """
    parts = [(t.hour / 23, t.weekday() / 6, (t.day - 1) / 30, (t.timetuple().tm_yday - 1) / 365) for t in times]
    return np.array(parts, dtype=np.float64).reshape(-1, len(CALENDAR)) - 0.5
