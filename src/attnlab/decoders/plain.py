"""The control: a decoder with no place for an attention."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory, Query
from attnlab.decoders.decoder import Decoder, DecoderOutput, DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.encoders import Encoder, EncoderOutput
from attnlab.errors import UserError
from attnlab.layers.recurrence import Recurrence, StateSizes


class PlainMemory(NamedTuple):
    """What stays the same for a whole target sequence."""

    attention: Memory
    """Of an attention without a context."""
    summary: Tensor
    """(batch, size): the encoder's final state, or size 0 where it is not told again."""


class PlainDecoder(Decoder):
    """A recurrent language model that starts from the encoded source: s_t = f(E y_{t-1}, s_{t-1}).

    With ``summary="every_step"`` it is told the encoder's final state e again at every step, s_t = f([E y_{t-1}; e],
    s_{t-1}) (Cho et al. 2014); with ``summary="start"`` it knows the source from its initial state alone (Sutskever et
    al. 2014). The readout is s_t.

    Parameters:
        recurrence: the network f.
        initial_state: its own.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: must make one without a context.
        cell: makes the network f.
        initial_state: makes the initial state from (encoder, sizes).
        hidden_size: units; also the size of the readout.
        num_layers: stacked layers.
        dropout: between layers, a probability.
        summary: where the encoder's final state enters.

    Raises:
        UserError: an attention with a context, a ``summary`` that is unknown, or dropout between the layers of one.
    """

    def __init__(
        self,
        embedding_size: int,
        encoder: Encoder,
        attention: AttentionFactory,
        *,
        cell: Callable[..., Recurrence],
        initial_state: Callable[[Encoder, StateSizes], InitialState],
        hidden_size: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        summary: Literal["start", "every_step"] = "every_step",
    ) -> None:
        super().__init__(encoder, hidden_size)
        self.attention = attention(hidden_size, encoder.output_size, embedding_size)
        if self.attention.context_size:
            raise UserError("a plain decoder has no place for a context: choose no attention, or another decoder")
        if summary not in ("start", "every_step"):
            raise UserError(f"summary is start or every_step, not {summary!r}")
        self.summary_size = encoder.hidden_size * encoder.num_directions if summary == "every_step" else 0
        input_size = embedding_size + self.summary_size
        self.recurrence = cell(input_size, 0, hidden_size, num_layers=num_layers, dropout=dropout)
        self.initial_state = initial_state(encoder, self.recurrence.state_sizes)

    @property
    @override
    def reads_source(self) -> bool:
        return bool(self.summary_size) or self.initial_state.reads_source

    @override
    def start(self, encoded: EncoderOutput) -> tuple[PlainMemory, DecoderState]:
        memory = self.attention.memory(encoded.states, encoded.mask)
        summary = encoded.final[0][:, -1].flatten(1)[:, : self.summary_size]
        return PlainMemory(memory, summary), DecoderState(self.initial_state(encoded), summary[:, :0], None)

    @override
    def forward(self, embeddings: Tensor, memory: PlainMemory, state: DecoderState) -> DecoderOutput:
        summary = memory.summary.unsqueeze(1).expand(-1, embeddings.shape[1], -1)
        states, hidden = self.recurrence.sequence(torch.cat([embeddings, summary], dim=-1), state.hidden)
        contexts, weights, _ = self.attention(Query(states, embeddings), memory.attention, None)
        return DecoderOutput(states, weights, contexts, states, embeddings, DecoderState(hidden, state.feedback, None))
