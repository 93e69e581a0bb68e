"""The decoder of Luong, Pham and Manning (2015)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory, Query
from attnlab.decoders.decoder import DecoderOutput, DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.decoders.recurrent import RecurrentDecoder
from attnlab.encoders import Encoder
from attnlab.layers.recurrence import Recurrence, StateSizes


class LuongDecoder(RecurrentDecoder):
    """The current state asks; the context enters after the cell (Luong et al. 2015, sections 3 and 3.3).

    s_t = f(E y_{t-1}, s_{t-1}), or with input feeding s_t = f([E y_{t-1}; h̃_{t-1}], s_{t-1}); c_t = attention(s_t);
    h̃_t = tanh(W_c [c_t; s_t]). Without input feeding nothing waits for the attention: the whole sentence is one fused
    run of the network and one batched attention.

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
        super().__init__()
        self.carried_size = hidden_size if input_feeding else 0
        self.recurrence = cell(embedding_size, self.carried_size, hidden_size, num_layers=num_layers, dropout=dropout)
        self.initial_state = initial_state(encoder, self.recurrence.state_sizes)
        self.attention = attention(hidden_size, encoder.output_size, embedding_size)
        self.combine = nn.Linear(self.attention.context_size + hidden_size, hidden_size, bias=False)
        self.hidden_size = self.readout_size = hidden_size

    @override
    def forward(self, embeddings: Tensor, memory: Memory, state: DecoderState) -> DecoderOutput:
        if self.carried_size:
            return self._step_by_step(embeddings, memory, state)
        states, hidden = self.recurrence.sequence(embeddings, state.hidden)
        contexts, weights, attention = self.attention(Query(states, embeddings), memory, state.attention)
        after = DecoderState(hidden, state.carried, attention)
        return DecoderOutput(self._combine(contexts, states), weights, contexts, states, embeddings, after)

    def _step_by_step(self, embeddings: Tensor, memory: Memory, state: DecoderState) -> DecoderOutput:
        hidden, fed, attention = state
        advance = self.recurrence.stepper(embeddings)
        readouts, weights, contexts, states = [], [], [], []
        for step, embedding in enumerate(torch.split(embeddings, 1, dim=1)):
            output, hidden = advance(step, fed, hidden)
            query = Query(output.unsqueeze(1), embedding)
            context, step_weights, attention = self.attention(query, memory, attention)
            fed = self._combine(context.squeeze(1), output)
            readouts.append(fed)
            weights.append(step_weights)
            contexts.append(context)
            states.append(output)
        after = DecoderState(hidden, fed, attention)
        seen, own = torch.cat(contexts, 1), torch.stack(states, 1)
        return DecoderOutput(torch.stack(readouts, 1), torch.cat(weights, 1), seen, own, embeddings, after)

    def _combine(self, context: Tensor, output: Tensor) -> Tensor:
        return torch.tanh(self.combine(torch.cat([context, output], dim=-1)))
