"""The decoder of Luong, Pham and Manning (2015)."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory, Query
from attnlab.decoders.decoder import DecoderOutput, DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.decoders.recurrent import RecurrentDecoder, Step, Trace
from attnlab.encoders import Encoder
from attnlab.layers.recurrence import Recurrence, StateSizes, Stepper


class LuongDecoder(RecurrentDecoder):
    """The current state asks; the context enters after the cell (Luong et al. 2015, sections 3 and 3.3).

    s_t = f(E y_{t-1}, s_{t-1}), or with input feeding s_t = f([E y_{t-1}; h̃_{t-1}], s_{t-1}); c_t = attention(s_t);
    h̃_t = tanh(W_c [c_t; s_t]). Without input feeding the network waits for no attention: it runs over the whole sequence
    at once, and so does the attention unless it waits for itself, as one with a history does.

    Parameters:
        recurrence: the network f.
        combine: W_c (hidden_size, context_size + hidden_size), no bias.
        attention, initial_state: their own.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: makes the attention.
        cell: makes the network f.
        initial_state: makes the initial state from (encoder, sizes).
        hidden_size: units; also the size of h̃ and of the query.
        num_layers: stacked layers.
        dropout: between layers, a probability.
        input_feeding: feed h̃_{t-1} to the network.

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
        hidden_size: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        input_feeding: bool = False,
    ) -> None:
        super().__init__(embedding_size, encoder, attention, hidden_size)
        self.feedback_size = hidden_size if input_feeding else 0
        self.recurrence = cell(embedding_size, self.feedback_size, hidden_size, num_layers=num_layers, dropout=dropout)
        self.initial_state = initial_state(encoder, self.recurrence.state_sizes)
        self.combine = nn.Linear(self.attention.context_size + hidden_size, hidden_size, bias=False)

    @override
    def forward(self, embeddings: Tensor, memory: Memory, state: DecoderState) -> DecoderOutput:
        if self.feedback_size:
            return super().forward(embeddings, memory, state)
        states, hidden = self.recurrence.sequence(embeddings, state.hidden)
        contexts, weights, attention = self.attention(Query(states, embeddings), memory, state.attention)
        after = DecoderState(hidden, state.feedback, attention)
        return DecoderOutput(self._combine(contexts, states), weights, contexts, states, embeddings, after)

    @override
    def step(self, index: int, embedding: Tensor, steppers: Sequence[Stepper], memory: Memory, state: DecoderState) -> Step:
        output, hidden = steppers[0](index, state.feedback, state.hidden)
        query = Query(output.unsqueeze(1), embedding)
        context, weights, attention = self.attention(query, memory, state.attention)
        feedback = self._combine(context.squeeze(1), output)
        return Step(output, context, weights, DecoderState(hidden, feedback, attention))

    @override
    def readouts(self, trace: Trace) -> Tensor:
        return torch.stack(list(trace.feedbacks), dim=1)

    def _combine(self, context: Tensor, output: Tensor) -> Tensor:
        return torch.tanh(self.combine(torch.cat([context, output], dim=-1)))
