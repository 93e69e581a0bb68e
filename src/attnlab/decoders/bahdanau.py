"""The decoder of Bahdanau, Cho and Bengio (2015)."""

from collections.abc import Callable, Sequence

from torch import Tensor
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory, Query
from attnlab.decoders.decoder import DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.decoders.readout import Readout
from attnlab.decoders.recurrent import ReadoutDecoder, Step
from attnlab.encoders import Encoder
from attnlab.layers.recurrence import Recurrence, StateSizes, Stepper


class BahdanauDecoder(ReadoutDecoder):
    """The previous state asks; the context enters the cell and the readout (Bahdanau et al. 2015, section 3.1).

    c_t = attention(s_{t-1}); s_t = f([E y_{t-1}; c_t], s_{t-1}); readout_t = g(s_{t-1}, s_t, E y_{t-1}, c_t). With several
    layers the top one asks and the lowest receives the context.

    The paper's appendix has for f a GRU whose reset gate acts before the matrix, for g a maxout of the previous state, and
    starts from the backward encoder's first state; the simple form takes any cell and for g the tanh of the current state.

    Parameters:
        recurrence: the network f; the context enters its gates and its candidate.
        readout, attention, initial_state: their own.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: makes the attention.
        cell: makes the network f.
        initial_state: makes the initial state from (encoder, sizes).
        readout: makes g from (hidden_size, embedding_size, context_size).
        hidden_size: units; also the size of the readout and of the query.
        num_layers: stacked layers.
        dropout: between layers, a probability.

    Raises:
        UserError: dropout between the layers of one.
    """

    def __init__(
        self,
        embedding_size: int,
        encoder: Encoder,
        attention: AttentionFactory,
        *,
        cell: Callable[..., Recurrence],
        initial_state: Callable[[Encoder, StateSizes], InitialState],
        readout: Callable[[int, int, int], Readout],
        hidden_size: int,
        num_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding_size, encoder, attention, hidden_size)
        context_size = self.attention.context_size
        self.recurrence = cell(embedding_size, context_size, hidden_size, num_layers=num_layers, dropout=dropout)
        self.initial_state = initial_state(encoder, self.recurrence.state_sizes)
        self.readout = readout(hidden_size, embedding_size, context_size)

    @override
    def step(self, index: int, embedding: Tensor, steppers: Sequence[Stepper], memory: Memory, state: DecoderState) -> Step:
        query = Query(state.hidden[0][:, -1:], embedding)
        context, weights, attention = self.attention(query, memory, state.attention)
        output, hidden = steppers[0](index, context.squeeze(1), state.hidden)
        return Step(output, context, weights, DecoderState(hidden, state.feedback, attention))
