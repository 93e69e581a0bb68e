"""The conditional recurrent decoder of Nematus."""

from collections.abc import Callable, Sequence

from torch import Tensor
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory, Query
from attnlab.decoders.decoder import DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.decoders.readout import Readout
from attnlab.decoders.recurrent import ReadoutDecoder, Step
from attnlab.encoders import Encoder
from attnlab.errors import UserError
from attnlab.layers.recurrence import Recurrence, StateSizes, Stepper


class ConditionalDecoder(ReadoutDecoder):
    """Two cells a step, the attention between them (Sennrich et al. 2017, section 2, "conditional GRU with attention").

    s'_t = f_1(E y_{t-1}, s_{t-1}); c_t = attention(s'_t); s_t = f_2(c_t, s'_t); readout_t = g(s_{t-1}, s_t, E y_{t-1}, c_t).
    With LSTM cells both parts of the state pass through both. One layer; the two cells are its depth. The paper starts from the
    mean of the encoder's states.

    Parameters:
        recurrence: the network f_1, before the attention.
        second: the network f_2, after it.
        readout, attention, initial_state: their own.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: makes the attention.
        cell: makes f_1 and f_2.
        initial_state: makes the initial state from (encoder, sizes).
        readout: makes g from (hidden_size, embedding_size, context_size).
        hidden_size: units; also the size of the readout and of the query.

    Raises:
        UserError: an attention without a context.
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
    ) -> None:
        super().__init__(embedding_size, encoder, attention, hidden_size)
        context_size = self.attention.context_size
        if not context_size:
            raise UserError(
                "the second cell of a conditional decoder reads the context and nothing else, and this attention has none: "
                "choose another attention, or a plain decoder"
            )
        self.recurrence = cell(embedding_size, 0, hidden_size)
        self.second = cell(0, context_size, hidden_size)
        self.initial_state = initial_state(encoder, self.recurrence.state_sizes)
        self.readout = readout(hidden_size, embedding_size, context_size)

    @override
    def steppers(self, embeddings: Tensor) -> Sequence[Stepper]:
        return [*super().steppers(embeddings), self.second.stepper(embeddings[..., :0])]

    @override
    def step(self, index: int, embedding: Tensor, steppers: Sequence[Stepper], memory: Memory, state: DecoderState) -> Step:
        first, second = steppers
        between, hidden = first(index, state.feedback, state.hidden)
        context, weights, attention = self.attention(Query(between.unsqueeze(1), embedding), memory, state.attention)
        output, hidden = second(index, context.squeeze(1), hidden)
        return Step(output, context, weights, DecoderState(hidden, state.feedback, attention))
