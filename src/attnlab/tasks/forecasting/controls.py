"""Controls: forecasts of whole horizons at once, by models without an attention."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory, Query
from attnlab.decoders import Decoder, DecoderOutput, DecoderState
from attnlab.encoders import Encoder, EncoderOutput
from attnlab.encoders.embeddings import EmbeddingEncoder
from attnlab.errors import UserError
from attnlab.heads import Criterion, Head, TargetSpace, ValueHead
from attnlab.layers.frontend import SourceFrontend, TargetFrontend
from attnlab.model import Seq2Seq
from attnlab.tasks.forecasting.frontends import PlainRows
from attnlab.tasks.forecasting.sources import RowCount


class StepCounter(Decoder):
    """readout_t = t: which step of the horizon it is, from 0. No parameters.

    Args:
        embedding_size: numbers in a row, not used.
        encoder: hands the rows on.
        attention: has no context.
    """

    def __init__(self, embedding_size: int, encoder: Encoder, attention: AttentionFactory) -> None:
        super().__init__(encoder, 1)
        self.attention = attention(1, encoder.output_size, embedding_size)

    @override
    def start(self, encoded: EncoderOutput) -> tuple[Memory, DecoderState]:
        nothing = encoded.states.new_zeros(len(encoded.states), 0)
        zero = encoded.states.new_zeros(len(encoded.states), 1, 1)
        return self.attention.memory(encoded.states, encoded.mask), DecoderState((zero,), nothing, None)

    @override
    def forward(self, embeddings: Tensor, memory: Memory, state: DecoderState) -> DecoderOutput:
        (begun,) = state.hidden
        steps = begun + torch.arange(embeddings.shape[1], device=begun.device, dtype=begun.dtype).view(1, -1, 1)
        contexts, weights, _ = self.attention(Query(steps, embeddings), memory, None)
        after = state._replace(hidden=(steps[:, -1:] + 1,))
        return DecoderOutput(steps, weights, contexts, steps, embeddings, after)


class ControlHead(ValueHead):
    """ŷ_{t+1..t+H} = f(y_{t-L+1..t}): a whole forecast, of which each step takes its own row.

    Args:
        decoder: counts the steps.
        embedding_size: numbers in a row, not used.
        targets: how many numbers an element has.
        criterion: what the numbers are learned by.
    """

    scores_all = True

    def __init__(self, decoder: Decoder, embedding_size: int, targets: TargetSpace, *, criterion: Criterion) -> None:
        super().__init__(decoder, embedding_size, targets, criterion=criterion)
        del self.projection

    @abstractmethod
    def forecast(self, window: Tensor) -> Tensor:
        """Return a forecast (batch, horizon, series · levels) of a window (batch, look_back, series)."""

    @override
    def prepare(self, encoded: EncoderOutput, copy_ids: Tensor | None) -> Tensor:
        return self.forecast(encoded.states[..., : self.targets.numbers])

    @override
    def forward(self, decoded: DecoderOutput, memory: Any, dropout: nn.Module) -> Tensor:
        steps = decoded.readouts.round().long().expand(-1, -1, memory.shape[-1])
        chosen: Tensor = memory.gather(1, steps)
        return chosen


class RepeatHead(ControlHead):
    """ŷ_{t+h} = y_{t-p+1+((h-1) mod p)}: the last p rows again and again, or the last one with p = 1.

    Parameters:
        idle: a number that changes nothing: training takes for granted that there is something to train.

    Args:
        decoder: counts the steps.
        embedding_size: numbers in a row, not used.
        targets: how many numbers an element has.
        criterion: only says how many quantiles are written: they are all the same.
        look_back: rows that are read.
        horizon: rows that are forecast.
        period: p, rows; 1 repeats the last value.

    Raises:
        UserError: a period longer than what is read.
    """

    def __init__(
        self,
        decoder: Decoder,
        embedding_size: int,
        targets: TargetSpace,
        *,
        criterion: Criterion,
        look_back: RowCount,
        horizon: RowCount,
        period: RowCount,
    ) -> None:
        super().__init__(decoder, embedding_size, targets, criterion=criterion)
        if period > look_back:
            raise UserError(f"a period of {period} rows is longer than the {look_back} that are read: read more, or shorten it")
        self.source_length = look_back
        self.horizon = horizon
        self.period = period
        self.idle = nn.Parameter(torch.zeros(()))

    def reset_parameters(self) -> None:
        """Draw nothing."""
        nn.init.zeros_(self.idle)

    @override
    def forecast(self, window: Tensor) -> Tensor:
        rows = torch.arange(self.horizon, device=window.device) % self.period + window.shape[1] - self.period
        return window[:, rows].repeat_interleave(len(self.criterion.levels), dim=-1) + 0 * self.idle


class LinearHead(ControlHead):
    """ŷ = W y + b: one linear layer over time, the same for every series (Zeng et al. 2023, section 4).

    Parameters:
        over_time: W (horizon · levels, look_back) and b, initialised as a ``torch.nn.Linear`` is.

    Args:
        decoder: counts the steps.
        embedding_size: numbers in a row, not used.
        targets: how many numbers an element has.
        criterion: what the numbers are learned by.
        look_back: rows that are read.
        horizon: rows that are forecast.
    """

    def __init__(
        self,
        decoder: Decoder,
        embedding_size: int,
        targets: TargetSpace,
        *,
        criterion: Criterion,
        look_back: RowCount,
        horizon: RowCount,
    ) -> None:
        super().__init__(decoder, embedding_size, targets, criterion=criterion)
        self.source_length = look_back
        self.over_time = nn.Linear(look_back, horizon * len(criterion.levels))

    @override
    def forecast(self, window: Tensor) -> Tensor:
        written: Tensor = self.over_time(window.transpose(1, 2))
        by_level = written.view(*written.shape[:-1], -1, len(self.criterion.levels))
        return by_level.transpose(1, 2).flatten(2)


class Control(Seq2Seq):
    """A model that reads the values of a window as they are; frontends, encoder and decoder are its own and learn nothing.

    Args:
        source_frontend, target_frontend: the task's, for the number of their inputs.
        targets: how many numbers an element has.
        seed: every parameter is drawn from this seed and its own name.
        encoder, decoder: what the config has, not used.
        attention: must make one without a context.
        head: says what the numbers are learned by.
        control: makes the head that forecasts, from (decoder, numbers in a row, targets, criterion).

    Raises:
        UserError: an attention, or targets that are no numbers.
    """

    def __init__(
        self,
        source_frontend: Callable[[int], SourceFrontend],
        target_frontend: Callable[[int], TargetFrontend],
        targets: TargetSpace,
        seed: int,
        *,
        encoder: Callable[[int], Encoder],
        attention: AttentionFactory,
        decoder: Callable[[int, Encoder, AttentionFactory], Decoder],
        head: Callable[[Decoder, int, TargetSpace], Head],
        control: Callable[..., ControlHead],
    ) -> None:
        if not targets.numbers:
            raise UserError(f"a {type(self).__name__} forecasts numbers, which the targets here are not: choose another model")

        def make_head(own: Decoder, size: int, targets: TargetSpace) -> Head:
            if own.attention.context_size:
                raise UserError("this control has no place for an attention: choose the attention none")
            chosen = head(own, size, targets)
            if not isinstance(chosen, ValueHead):
                raise UserError(f"a {type(chosen).__name__} does not write values: choose a head that does")
            return control(own, size, targets, criterion=chosen.criterion)

        super().__init__(
            lambda _: PlainRows(source_frontend(1).input_size or 1),
            lambda _: PlainRows(target_frontend(1).input_size or 1),
            targets,
            seed,
            encoder=EmbeddingEncoder,
            attention=attention,
            decoder=StepCounter,
            head=make_head,
            embedding_size=1,
            dropout=0.0,
        )
