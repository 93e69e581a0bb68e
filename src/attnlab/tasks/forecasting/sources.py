"""Where series come from: files, split as the papers do, and a generator whose lags are known."""

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.seeding import make_generator
from attnlab.tasks.forecasting.series import Series, Table, read_file, read_table, step_between

log = logging.getLogger(__name__)
RowCount = Annotated[int, Range(1, 100_000)]
LookBack = Annotated[int, Range(2, 100_000)]
DAYS = 30
"""Days in a month, as the papers count them."""


@dataclass(frozen=True, kw_only=True)
class SeriesSource(ABC):
    """A series in three parts, one after another in time, and the windows that are read and forecast.

    Args:
        look_back: rows that are read.
        horizon: rows that are forecast.
        eval_stride: rows between the starts of two windows of validation and test; 1 takes every start, as the papers do.
    """

    test_names: ClassVar[tuple[str, ...]] = ("test",)

    look_back: LookBack = 96
    horizon: RowCount = 24
    eval_stride: RowCount = 1

    def fingerprint(self) -> str:
        """Return a hash of everything that decides the series and its windows; not of paths.

        Raises:
            UserError: a file that cannot be read.
        """
        options = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "path"}
        return hashlib.sha256(f"{type(self).__qualname__} {options}".encode() + self.content()).hexdigest()

    def content(self) -> bytes:
        """Return what beside the options decides the series, such as the content of a file."""
        return b""

    def read(
        self, content: bytes, path: Path, *, targets: Sequence[str] | None = None, covariates: Sequence[str] = ()
    ) -> Table:
        """Return the columns of a file of such a series.

        Args:
            content: of the file, not packed.
            path: of the file, for messages.
            targets: columns to be forecast; None takes all but the covariates.
            covariates: columns that are known of the past alone.

        Raises:
            UserError: see :func:`read_table`.
        """
        return read_table(content, path, targets=targets, covariates=covariates)

    @abstractmethod
    def load(self) -> Series:
        """Return the series.

        Raises:
            UserError: a file that cannot be read, or too few rows.
        """


@dataclass(frozen=True, kw_only=True)
class TableFile(SeriesSource):
    """A file of values that are separated by commas, plain or packed by gzip, a row for each time, the earliest first.

    Args:
        path: of the file.
        time: the column of the time; None where there is none.
        targets: the columns to be forecast; None takes all but the time and the covariates.
        covariates: columns that are known of the past alone.
        header: whether the first line names the columns; without it they are called "0", "1" and so on.
        calendar: read hour, weekday, day of the month and of the year, where there is a column of the time.
    """

    path: str
    time: str | None = None
    targets: Sequence[str] | None = None
    covariates: Sequence[str] = ()
    header: bool = True
    calendar: bool = True

    @override
    def content(self) -> bytes:
        return read_file(Path(self.path))

    @override
    def load(self) -> Series:
        table = self.read(self.content(), Path(self.path), targets=self.targets, covariates=self.covariates)
        ends = self.ends(table)
        self._warn_of_gaps(table)
        self._warn_of_constants(table, ends[0])
        return Series(table if self.calendar else replace(table, times=None), ends)

    @override
    def read(
        self, content: bytes, path: Path, *, targets: Sequence[str] | None = None, covariates: Sequence[str] = ()
    ) -> Table:
        return read_table(content, path, time=self.time, targets=targets, covariates=covariates, header=self.header)

    def _warn_of_constants(self, table: Table, end: int) -> None:
        if not end:  # too few rows, of which the task tells
            return
        constant = [name for name, values in zip(table.names, table.values[:end].T, strict=True) if np.ptp(values) == 0]
        if constant:
            log.warning(
                "%s: the same in every row of training: %s; where such a column is forecast, it makes errors smaller in the "
                "mean: name the targets without it",
                self.path,
                ", ".join(constant),
            )

    def _warn_of_gaps(self, table: Table) -> None:
        times = table.times or ()
        step = step_between(times)
        gaps = [earlier for earlier, later in pairwise(times) if later - earlier > 1.5 * step]
        if gaps:
            log.warning(
                "%s: %d of %d steps in time are longer than the commonest, %s, the first of them after %s; windows read the "
                "rows before and after as neighbours",
                self.path,
                len(gaps),
                len(times) - 1,
                step,
                gaps[0],
            )

    @abstractmethod
    def ends(self, table: Table) -> tuple[int, int, int]:
        """Return where the three parts end.

        Raises:
            UserError: too few rows.
        """


@dataclass(frozen=True, kw_only=True)
class SeriesFile(TableFile):
    """A file of which the three parts are shares of the rows.

    Args:
        train: share of the rows in the training part, rounded down.
        test: share of the rows in the test part, rounded down; what is between is the validation part.

    Raises:
        UserError: shares that leave no validation part.
    """

    train: Annotated[float, Range(above=0, below=1)] = 0.7
    test: Annotated[float, Range(above=0, below=1)] = 0.2

    def __post_init__(self) -> None:
        if self.train + self.test >= 1:
            raise UserError(f"shares of {self.train} for training and {self.test} for test leave no rows for validation")

    @override
    def ends(self, table: Table) -> tuple[int, int, int]:
        rows = len(table.values)
        return int(rows * self.train), rows - int(rows * self.test), rows


@dataclass(frozen=True, kw_only=True)
class Ett(TableFile):
    """Electricity transformer temperature (Zhou et al. 2021): 12, 4 and 4 months of 30 days; later rows are left out.

    Raises:
        UserError: a file without a column of the time, or of fewer than 20 months.
    """

    time: str | None = "date"

    @override
    def ends(self, table: Table) -> tuple[int, int, int]:
        if table.times is None:
            raise UserError(f"{self.path}: months are counted by the column of the time: name it")
        day = timedelta(days=1) / step_between(table.times) if len(table.times) > 1 else len(table.times)
        month = round(DAYS * day)
        if len(table.values) < 20 * month:
            raise UserError(f"{self.path} has {len(table.values)} rows, fewer than 20 months of {month}: choose the data csv")
        return 12 * month, 16 * month, 20 * month


@dataclass(frozen=True, kw_only=True)
class Lags(SeriesSource):
    """Series that come back after some rows: y_t = tanh(Σ_k a_k y_{t - lag_k}) + ε_t, where to look being known.

    Every series has weights a_k of its own, drawn evenly from ±[0.5, 1.5] and kept throughout; the first
    max(lag) rows and ε are drawn from N(0, 1) and N(0, noise²). The gold links of step h of a forecast are the rows that lie
    lag_k rows before it, those of them that the model reads.

    Args:
        series: how many.
        lags: after how many rows the past comes back.
        noise: standard deviation of ε.
        train_size: windows in the training part.
        val_size: in the validation part.
        test_size: in the test part.
        seed: of the numbers; not the run's.

    Raises:
        UserError: no lag, or one that no window reaches.
    """

    look_back: LookBack = 24
    horizon: RowCount = 6
    series: Annotated[int, Range(1, 1000)] = 2
    lags: Sequence[int] = (9, 20)
    noise: Annotated[float, Range(0)] = 0.1
    train_size: RowCount = 4000
    val_size: RowCount = 300
    test_size: RowCount = 300
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.lags or min(self.lags) < 1 or len(set(self.lags)) < len(self.lags):
            raise UserError(f"lags are whole numbers of 1 or more, each once, not {list(self.lags)}")
        if max(self.lags) > self.look_back:
            raise UserError(f"the lag {max(self.lags)} is longer than look_back={self.look_back}: raise look_back")

    @override
    def load(self) -> Series:
        longest, around = max(self.lags), self.look_back + self.horizon - 1
        train = self.train_size + around
        val = train + (self.val_size - 1) * self.eval_stride + self.horizon
        test = val + (self.test_size - 1) * self.eval_stride + self.horizon
        generator = make_generator(self.seed, type(self).__qualname__)
        shape = (len(self.lags), self.series)
        weights = generator.uniform(0.5, 1.5, shape) * generator.choice([-1.0, 1.0], shape)
        values = np.concatenate([generator.normal(size=(longest, self.series)), np.zeros((test, self.series))])
        noise = self.noise * generator.normal(size=values.shape)
        for row in range(longest, len(values)):
            past = np.stack([values[row - lag] for lag in self.lags])
            values[row] = np.tanh((weights * past).sum(axis=0)) + noise[row]
        names = tuple(f"y{number}" for number in range(self.series))
        return Series(Table(names, self.series, values[longest:]), (train, val, test), tuple(self.lags))
