"""The task of forecasting."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from attnlab.data.batches import BatchOptions, no_examples
from attnlab.data.pharaoh import Gold
from attnlab.data.symbols import EOS, PAD, RESERVED, UNK
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Prediction
from attnlab.evaluation.metric import Metric
from attnlab.heads import TargetSpace
from attnlab.layers.frontend import SourceFrontend, TargetFrontend
from attnlab.model import Seq2Seq
from attnlab.search import Hypothesis, Search
from attnlab.tasks.forecasting.forecaster import Forecast, Forecaster
from attnlab.tasks.forecasting.frontends import PlainRows, RowFrontend
from attnlab.tasks.forecasting.series import Series, Table, months_between, next_times, step_between
from attnlab.tasks.forecasting.sources import SeriesSource
from attnlab.tasks.forecasting.windows import Rows, Scale, WindowExamples, count_calendar, lag_links
from attnlab.tasks.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

log = logging.getLogger(__name__)
FARTHEST = 1e15
"""Standard deviations from the mean of the training set beyond which what is read overflows in float32."""


class Forecasting(Task[WindowExamples]):
    """The last rows of a multivariate time series in, its next rows out.

    Values are standardised by mean and standard deviation of the training part. The windows of validation and test forecast
    every row of their part, and read rows of the part before where they begin, as those of the papers do; those of training
    stay within it.

    Args:
        data: the series.
        batches: how windows are put together.
        metrics: what is measured, by name.
        at_once: forecast the whole horizon at once: a step is told its place in the calendar, and never the values before it.
        projection: project the rows that are read to vectors of the embedding size; otherwise the encoder reads their numbers,
            each a series, as one that weighs series wants to.
    """

    name = "forecasting"
    shown_length = 48
    picture_size = (4.8, 3.0)

    def __init__(
        self,
        data: SeriesSource,
        batches: BatchOptions,
        metrics: Mapping[str, Metric],
        *,
        at_once: bool = False,
        projection: bool = True,
    ) -> None:
        super().__init__(data, batches=batches, metrics=metrics)
        self.source = data
        self.at_once = at_once
        self.projection = projection
        self.test_names = data.test_names
        self._known: dict[str, Any] = {}
        self._splits: dict[str, WindowExamples] = {}

    # data

    @property
    @override
    def content(self) -> str:
        return self.data_fingerprint

    @cached_property
    def series(self) -> Series:
        """The series, read when it is asked for; of a run that was opened, the columns that it knows by their names.

        Raises:
            UserError: it cannot be read, has too few rows, or is no more what the run was trained on.
        """
        series = self.source.load()
        if self._known:
            series = replace(series, table=series.table.choose(self._known["names"], self._known["series"]))
            if count_calendar(series.table) != self._known["calendar"]:
                raise UserError("the model knows the calendar where the series has no times now, or the other way round")
        look_back, horizon = self.source.look_back, self.source.horizon
        begin = 0
        for part, end in zip(("training", "validation", "test"), series.ends, strict=True):
            need = horizon + (look_back if part == "training" else 0)
            if end - begin < need:
                raise UserError(
                    f"the {part} part has {end - begin} rows, and a window of it needs {need}: shorten look_back or horizon, "
                    "or take more rows"
                )
            begin = end
        if look_back > series.ends[0]:
            raise UserError(f"look_back={look_back} is more than the {series.ends[0]} rows of training: shorten it")
        return series

    @cached_property
    def scale(self) -> Scale:
        """By which values are standardised: that of the training part, or of the run that was opened."""
        if self._known:
            return Scale(np.array(self._known["mean"]), np.array(self._known["deviation"]))
        return Scale.of(self.series.table.values[: self.series.ends[0]])

    @cached_property
    def _rows(self) -> Rows:
        return Rows.of(self.series.table, self.scale)

    @override
    def prepare(self) -> None:
        limit = self.batches.max_length
        if limit is not None and limit < max(self.source.look_back, self.source.horizon):
            raise no_examples(limit, "window")
        self.examples("train")

    @override
    def examples(self, split: str) -> WindowExamples:
        train, val, test = self.series.ends
        parts = {
            "train": (self.source.look_back, train, 1),
            "val": (train, val, self.source.eval_stride),
            "test": (val, test, self.source.eval_stride),
        }
        if split not in parts:
            raise self.no_split(split, parts)
        if split not in self._splits:
            begin, end, stride = parts[split]
            self._splits[split] = self._windows(np.arange(begin, end - self.source.horizon + 1, stride))
        return self.with_links(self._splits[split])

    def _windows(self, starts: Any) -> WindowExamples:
        return WindowExamples(
            self._rows,
            starts,
            look_back=self.source.look_back,
            horizon=self.source.horizon,
            lags=self.series.lags,
            names=self._row_names,
        )

    @cached_property
    def _row_names(self) -> Sequence[str] | None:
        times = self.series.table.times
        return None if times is None else [f"{time:%Y-%m-%d %H:%M}" for time in times]

    @override
    def place(self, split: str, index: int) -> str:
        return f"the window of {split} that forecasts from row {self.examples(split).starts[index]} on"

    @override
    def parse(self, sources: Sequence[str], targets: Sequence[str] | None = None, *, first: int = 1) -> WindowExamples:
        if targets is not None:
            raise UserError("what came after a row is known: a forecast is not compared with targets of your own")
        look_back, last = self.source.look_back, len(self.series.table.values) - self.source.horizon
        for number, line in enumerate(sources, first):
            if not re.fullmatch(r"\s*\d{1,9}\s*", line, re.ASCII) or not look_back <= int(line) <= last:
                raise UserError(
                    f"source {number}: {line.strip()!r} is no row to forecast from: rows count from 0, and those from "
                    f"{look_back} to {last} have enough rows before and after them; attnlab forecast continues a series"
                )
        return self._windows(np.array([int(line) for line in sources], dtype=np.int64))

    def parse_history(self, content: bytes, path: Path) -> tuple[Table, WindowExamples]:
        """Read the past of a series whose future is not known.

        Args:
            content: a file of the columns that the run was trained on; others are left out.
            path: of the file, for messages.

        Returns:
            The rows that are read, and after them one for each row to be forecast, of the right time and of values that are not
            known, in whose place stand the last ones; and the one window of them.

        Raises:
            UserError: see :meth:`SeriesSource.read`, fewer rows than are read, or a value that no model bears.
        """
        known, look_back, horizon = self.state(), self.source.look_back, self.source.horizon
        names = known["names"]
        table = self.source.read(content, path, targets=names[: known["series"]], covariates=names[known["series"] :])
        if len(table.values) < look_back:
            raise UserError(f"{path} has {len(table.values)} rows, and the model reads {look_back}: give it more of the past")
        past = table.values[-look_back:]
        far = np.argwhere(np.abs(self.scale.standardise(past)) > FARTHEST)
        if len(far):
            row, column = far[0]
            told = f"more than {FARTHEST:g} standard deviations from the mean of the training set"
            raise UserError(f"{path}: {past[row, column]:g} in column {table.names[column]} is {told}: correct it")
        values = np.vstack([past, np.repeat(past[-1:], horizon, axis=0)])
        times = table.times
        if times is not None:
            steps = {later - earlier for earlier, later in pairwise(times[-look_back:])}
            if len(steps) > 1 and not months_between(times):
                log.warning(
                    "%s: the last %d times are not equally far apart; those of the forecast are %s apart, the commonest step",
                    path,
                    look_back,
                    step_between(times),
                )
            times = (*times[-look_back:], *next_times(times, horizon))
        whole = replace(table, values=values, times=times)
        rows = Rows.of(whole if known["calendar"] else replace(whole, times=None), self.scale)
        return whole, WindowExamples(rows, np.array([look_back]), look_back=look_back, horizon=horizon)

    @override
    def serve_links(self) -> None:
        self.knows_links = bool(self.series.lags)
        super().serve_links()

    # model

    @property
    @override
    def targets(self) -> TargetSpace:
        return TargetSpace(RESERVED, PAD, UNK, EOS, numbers=self.state()["series"])

    @override
    def source_frontend(self, size: int) -> SourceFrontend:
        numbers = self.state()["columns"] + self.state()["calendar"]
        return RowFrontend(numbers, size) if self.projection else PlainRows(numbers)

    @override
    def target_frontend(self, size: int) -> TargetFrontend:
        series = self.state()["series"]
        return RowFrontend(series + self.state()["calendar"], size, hidden=series if self.at_once else 0)

    # what stands between text and tensors

    @override
    def state(self) -> dict[str, Any]:
        if not self._known:
            table = self.series.table
            self._known = {
                "names": list(table.names),
                "series": table.num_targets,
                "columns": len(table.names),
                "calendar": count_calendar(table),
                "look_back": self.source.look_back,
                "horizon": self.source.horizon,
                "mean": self.scale.mean.tolist(),
                "deviation": self.scale.deviation.tolist(),
                "at_once": self.at_once,
                "projection": self.projection,
            }
        return self._known

    @override
    def load_state(self, state: Mapping[str, Any]) -> None:
        for name in ("look_back", "horizon"):
            if state[name] != getattr(self.source, name):
                raise ValueError(f"its {name} is {state[name]}, and that of its config {getattr(self.source, name)}")
        self._known = dict(state)

    # predictions

    @override
    def predictor(self, models: Sequence[Seq2Seq], search: Search, *, batch_size: int = 64) -> Forecaster:
        return Forecaster(self, models, search, batch_size=batch_size)

    @property
    @override
    def facts(self) -> Mapping[str, str | bool]:
        known = self.state()
        return {"horizon": str(known["horizon"]), "series": str(known["series"]), "tokens": "rows"}

    @override
    def read(self, hypothesis: Hypothesis, examples: WindowExamples, index: int) -> Prediction:
        raise TypeError("a forecast is numbers, which no search over tokens finds")

    def draw_prediction(self, axes: "Axes", source: str, prediction: Prediction, reference: str | None = None) -> None:
        """Draw a forecast with its interval, what came, and where the attention looked: of one series in its own units.

        Args:
            axes: of one picture.
            source: a window, as a line of text.
            prediction: its forecast.
            reference: what came, which the forecast holds too.

        Raises:
            UserError: a line that is no window.
        """
        from attnlab.tasks.forecasting.pictures import draw_forecast  # which imports matplotlib: a second

        assert isinstance(prediction, Forecast)
        examples = self.parse([source])
        names = self.state()["names"][: self.state()["series"]]
        alone = len(names) == 1
        restore = self.scale.restore if alone else np.asarray
        quantiles = np.stack([restore(level) for level in np.moveaxis(prediction.quantiles, -1, 0)], axis=-1)
        shown = replace(prediction, point=restore(prediction.point).astype(np.float32), quantiles=quantiles)
        draw_forecast(axes, restore(examples.source[0][:, : len(names)]), restore(prediction.truth), shown, names)
        axes.set_title(examples.target_tokens(0)[0], loc="right", fontsize="x-small", parse_math=False)
        if not alone:
            axes.set_ylabel("standardised", fontsize="x-small")

    @override
    def gold(self, examples: WindowExamples, indices: Sequence[int]) -> list[Gold] | None:
        links = lag_links(examples.lags, examples.look_back, examples.horizon)
        return [Gold.all_sure(links)] * len(indices) if examples.lags else None

    @override
    def alignment_sizes(self, examples: WindowExamples, indices: Sequence[int]) -> list[tuple[int, int]] | None:
        return [(examples.look_back, examples.horizon)] * len(indices)
