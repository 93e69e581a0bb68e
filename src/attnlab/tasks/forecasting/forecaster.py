"""Trained models of forecasting in use."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from attnlab.attention import name_heads
from attnlab.data.batches import Batch, memory_errors
from attnlab.data.examples import Examples
from attnlab.errors import UserError
from attnlab.evaluation.evidence import ForcedDecoding, Prediction
from attnlab.heads import ValueHead
from attnlab.model import Seq2Seq
from attnlab.search import GreedySearch, Search
from attnlab.tasks.forecasting.windows import WindowExamples, write_values
from attnlab.tasks.predictor import REMEDY, Predictor
from attnlab.tasks.task import Task


@dataclass(frozen=True)
class Forecast(Prediction):
    """What models make of the rows before a point in time, all in standardised values.

    Attributes:
        point: (horizon, series).
        quantiles: (horizon, series, levels); of a point forecast it is that alone.
        levels: of the quantiles.
        truth: (horizon, series): what came.
    """

    point: NDArray[np.float32]
    quantiles: NDArray[np.float32]
    levels: tuple[float, ...]
    truth: NDArray[np.float32]


class Forecaster(Predictor):
    """One or several models of forecasting, each of which is fed its own values; the forecasts of several are averaged.

    There is nothing to search: the most probable next value is that of the head, and the horizon is the length.

    Raises:
        UserError: a search, or models of other quantiles.
    """

    def __init__(self, task: Task, models: Sequence[Seq2Seq], search: Search, *, batch_size: int = 64) -> None:
        if type(search) is not GreedySearch or vars(search) != vars(GreedySearch()):
            raise UserError("a forecast is numbers, among which nothing is searched: leave search as it is, greedy")
        super().__init__(task, models, search, batch_size=batch_size)
        if len({tuple(_head(model).criterion.levels) for model in models}) > 1:
            raise UserError("these models forecast different quantiles: only models of the same ones make an ensemble")

    @torch.inference_mode()
    def roll(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Let every model write: step by step, each being told the calendar and what the model wrote before, or all at once.

        Returns:
            The forecasts (batch, horizon, series, levels), and the attention's weights (batch, horizon, look_back).
        """
        with memory_errors(lambda: batch.shape, REMEDY):
            outputs = [_roll(model, batch) for model in self.models]
            written, weights = (torch.stack(parts).mean(dim=0).float().cpu() for parts in zip(*outputs, strict=True))
        return written, weights

    def forecast(self, examples: WindowExamples) -> NDArray[np.float64]:
        """Return the forecasts of windows (windows, horizon, series, levels), in standardised values."""
        self.check_lengths(examples)
        rolled = [self.roll(batch)[0] for batch in self.batches(examples)]  # in their order, since all have one length
        return torch.cat(rolled).double().numpy()

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the quantiles that are forecast; a single one for a point forecast."""
        return tuple(_head(self.models[0]).criterion.levels)

    @override
    def search_batch(self, batch: Batch, examples: Examples, *, target_lengths: Tensor | None = None) -> list[Prediction]:
        assert isinstance(examples, WindowExamples)
        criterion = _head(self.models[0]).criterion
        written, weights = self.roll(batch)
        point, levels = criterion.point(written).numpy(), tuple(criterion.levels)
        return [
            Forecast(
                index,
                write_values(point[row]),
                examples.target_tokens(index),
                examples.source_tokens(index),
                weights[row].clone(),  # no view, with which a process would send the whole batch to the others
                0.0,
                0.0,
                point[row],
                written[row].numpy(),
                levels,
                examples.truth[index][1:],
            )
            for row, index in enumerate(batch.indices.tolist())
        ]

    @override
    def n_best(self, sources: Sequence[str]) -> list[list[Prediction]]:
        examples = self.read_sources(sources)
        return [[found] for batch in self.batches(examples) for found in self.search_batch(batch, examples)]

    @torch.inference_mode()
    @override
    def force_batch(self, batch: Batch, examples: Examples, *, heads: bool = False) -> list[ForcedDecoding]:
        """Let the models read the right values; a step's "log-probability" is minus its loss, which is one up to a constant."""
        with self.forcing(batch, heads=heads) as collected:
            outputs = [_force(model, batch) for model in self.models]
            losses, weights = (torch.stack(parts).mean(dim=0).float().cpu() for parts in zip(*outputs, strict=True))
        by_head = name_heads(collected)
        sums_to_one, attends = self.sums_to_one, self.attends  # which look at every module
        return [
            ForcedDecoding(
                examples.target_tokens(index),
                (-losses[row]).tolist(),
                [False] * losses.shape[1],
                weights[row].clone(),
                examples.source_tokens(index),
                {name: part[row].clone() for name, part in by_head.items()},
                sums_to_one=sums_to_one,
                attends=attends,
            )
            for row, index in enumerate(batch.indices.tolist())
        ]


def _head(model: Seq2Seq) -> ValueHead:
    assert isinstance(model.head, ValueHead)  # which a model of numbers has
    return model.head


def _roll(model: Seq2Seq, batch: Batch) -> tuple[Tensor, Tensor]:
    memory, state = model.encode(batch.source, batch.source_lengths)
    inputs = batch.target[:, :-1]
    if model.target_frontend.reads_tokens:
        own = torch.zeros(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        decoded = model.decode_scheduled(inputs, memory, state, own)
    else:
        decoded = model.decode(inputs, memory, state)
    return _head(model).predict(model.scores(decoded, memory)), decoded.weights


def _force(model: Seq2Seq, batch: Batch) -> tuple[Tensor, Tensor]:
    memory, state = model.encode(batch.source, batch.source_lengths)
    decoded = model.decode(batch.target[:, :-1], memory, state)
    head = _head(model)
    losses = head.criterion(head.split(model.scores(decoded, memory)), batch.labels.float())
    return losses.mean(dim=-1), decoded.weights
