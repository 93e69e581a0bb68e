"""Windows: the rows before a point in time, and the rows after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from attnlab.data.examples import Examples
from attnlab.data.links import BatchLinks, GoldLinks, LinksOnDemand
from attnlab.data.ondemand import OnDemand
from attnlab.data.ragged import Ragged
from attnlab.tasks.forecasting.series import CALENDAR, Table, calendar_features, next_times


@dataclass(frozen=True)
class Scale:
    """Means and standard deviations of the columns, by which values are standardised: z = (y - mean) / deviation.

    Attributes:
        mean: (columns,).
        deviation: (columns,), over n and not n - 1, as in the papers; 1 for a column that does not vary.
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Scale":
        """Return the scale of some rows (rows, columns)."""
        varies = np.ptp(values, axis=0) > 0  # the deviation of equal numbers may be one of rounding
        return cls(values.mean(axis=0), np.where(varies, values.std(axis=0), 1.0))

    def standardise(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values (rows, columns) in deviations from the mean."""
        return (values - self.mean) / self.deviation

    def restore(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values (rows, targets) in the data's own units."""
        count = values.shape[1]
        restored: NDArray[np.float64] = values * self.deviation[:count] + self.mean[:count]
        return restored


@dataclass(frozen=True)
class Rows:
    """What models read of a series, row by row.

    Attributes:
        source: (rows, columns + calendar): standardised values and the calendar of their own time.
        target: (rows, targets + calendar): standardised values to be forecast, and the calendar of the *next* time, which is
            that of the value to be written next.
        values: (rows, targets): standardised values to be forecast.
    """

    source: NDArray[np.float32]
    target: NDArray[np.float32]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, table: Table, scale: Scale) -> "Rows":
        """Standardise the rows of a table; the time after the last is one step further, see :func:`next_times`."""
        values = scale.standardise(table.values)
        known = np.zeros((len(values) + 1, 0))
        if table.times is not None:
            known = calendar_features([*table.times, *next_times(table.times, 1)])
        targets = values[:, : table.num_targets]
        source, target = np.hstack([values, known[:-1]]), np.hstack([targets, known[1:]])
        return cls(source.astype(np.float32), target.astype(np.float32), targets.astype(np.float32))


@dataclass(frozen=True)
class Windows(Ragged):
    """Sequences of equal length that overlap: of ``values`` the ``length`` rows from each of ``offsets`` on."""

    length: int = 0

    @override
    def __len__(self) -> int:
        return len(self.offsets)

    @override
    def __getitem__(self, index: int) -> NDArray[Any]:
        return self.values[self.offsets[index] : self.offsets[index] + self.length]

    @property
    @override
    def lengths(self) -> NDArray[np.int64]:
        return np.full(len(self.offsets), self.length, dtype=np.int64)

    @override
    def padded(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        assert isinstance(self.values, np.ndarray)
        rows = self.offsets[np.asarray(indices), None] + np.arange(self.length)
        return torch.from_numpy(self.values[rows]), torch.full((len(rows),), self.length)


class WindowExamples(Examples):
    """Windows of a series: ``look_back`` rows as the source, then ``horizon`` rows as the target.

    A target begins with the last row of the source, in the place of a start symbol, and has no end symbol: row t of what is
    read holds y_t and the calendar of t + 1, and y_{t+1} is to be written. A source has no end element. As a line of text, a
    source is the number of the first row that is forecast, counted from 0, and a target its standardised values.

    Args:
        rows: of the whole series.
        starts: of each window the first row to be forecast.
        look_back: rows that are read.
        horizon: rows that are forecast.
        lags: after how many rows the past comes back, where that is known.
        names: of the rows, to be shown; None shows their numbers.
    """

    unit = "rows"

    def __init__(
        self,
        rows: Rows,
        starts: NDArray[np.int64],
        *,
        look_back: int,
        horizon: int,
        lags: Sequence[int] = (),
        names: Sequence[str] | None = None,
    ) -> None:
        self.starts = starts
        self.look_back = look_back
        self.horizon = horizon
        self.lags = tuple(lags)
        self._names = [str(row) for row in range(len(rows.values))] if names is None else names
        super().__init__(Windows(rows.source, starts - look_back, look_back), Windows(rows.target, starts - 1, horizon + 1))
        self.labels = self.truth = Windows(rows.values, starts - 1, horizon + 1)

    @override
    def source_tokens(self, index: int) -> list[str]:
        return [*self._names[self.starts[index] - self.look_back : self.starts[index]]]

    @override
    def target_tokens(self, index: int) -> list[str]:
        return [*self._names[self.starts[index] : self.starts[index] + self.horizon]]

    @cached_property
    @override
    def sources(self) -> Sequence[str]:
        return OnDemand(self._write_sources, len(self))

    @cached_property
    @override
    def references(self) -> Sequence[str]:
        return OnDemand(self._write_references, len(self))

    @cached_property
    @override
    def lengths(self) -> NDArray[np.int64]:
        return np.tile(np.array([self.look_back, self.horizon]), (len(self), 1))

    @property
    @override
    def blocks(self) -> NDArray[np.int64]:
        """Of windows that begin within the length of one: those of blocks that are not neighbours share no row."""
        blocks: NDArray[np.int64] = (self.starts - self.starts[0]) // (self.look_back + self.horizon)
        return blocks

    @override
    def gold_links(self) -> BatchLinks | None:
        return LinksOnDemand(self._link) if self.lags else None

    # Methods, and no lambdas: a process that makes batches gets all of this by pickling.
    def _write_sources(self, indices: Sequence[int]) -> list[str]:
        return [str(self.starts[index]) for index in indices]

    def _write_references(self, indices: Sequence[int]) -> list[str]:
        return [write_values(self.truth[index][1:]) for index in indices]

    def _link(self, indices: Sequence[int]) -> GoldLinks:
        pairs = [(t, j) for j, t in lag_links(self.lags, self.look_back, self.horizon)]
        return GoldLinks.of_positions([pairs] * len(indices))


def lag_links(lags: Sequence[int], look_back: int, horizon: int) -> list[tuple[int, int]]:
    """Return pairs of a row that is read and a step of the forecast, each from 0, that lie a lag apart.

    >>> lag_links([2, 4], look_back=3, horizon=2)
    [(1, 0), (2, 1), (0, 1)]
    """
    return [(look_back + t - lag, t) for t in range(horizon) for lag in lags if 0 <= look_back + t - lag < look_back]


def write_values(values: NDArray[np.float32]) -> str:
    """Return values (rows, series) as a line: rows at spaces, the numbers of each joined by commas, with four digits."""
    return " ".join(",".join(f"{number:.4g}" for number in row) for row in values.tolist())


def count_calendar(table: Table) -> int:
    """Return how many numbers of the calendar a row has."""
    return 0 if table.times is None else len(CALENDAR)
