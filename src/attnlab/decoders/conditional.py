"""The conditional recurrent decoder of Nematus."""

from collections.abc import Callable

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory, Query
from attnlab.decoders.decoder import DecoderOutput, DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.decoders.readout import Readout
from attnlab.decoders.recurrent import RecurrentDecoder
from attnlab.encoders import Encoder
from attnlab.errors import UserError
from attnlab.layers.recurrence import Recurrence, StateSizes


class ConditionalDecoder(RecurrentDecoder):
    """Two cells a step, the attention between them (Sennrich et al. 2017, section 2, "conditional GRU with attention").

    s'_t = f_1(E y_{t-1}, s_{t-1}); c_t = attention(s'_t); s_t = f_2(c_t, s'_t); readout_t = g(s_{t-1}, s_t, E y_{t-1}, c_t).
    With LSTM cells both parts of the state pass through both. One layer; the two cells are its depth.

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
        super().__init__()
        self.attention = attention(hidden_size, encoder.output_size, embedding_size)
        context_size = self.attention.context_size
        if not context_size:
            raise UserError(
                "decoder=conditional reads the context, and nothing else, with its second cell: attention=none has no place in "
                "it; choose decoder=plain"
            )
        self.recurrence = cell(embedding_size, 0, hidden_size)
        self.second = cell(0, context_size, hidden_size)
        self.initial_state = initial_state(encoder, self.recurrence.state_sizes)
        self.readout = readout(hidden_size, embedding_size, context_size)
        self.hidden_size = self.readout_size = hidden_size

    @override
    def forward(self, embeddings: Tensor, memory: Memory, state: DecoderState) -> DecoderOutput:
        hidden, nothing, attention = state
        first, second = self.recurrence.stepper(embeddings), self.second.stepper(embeddings[..., :0])
        previous, current, contexts, weights = [], [], [], []
        for step, embedding in enumerate(torch.split(embeddings, 1, dim=1)):
            previous.append(hidden[0][:, -1:])
            between, hidden = first(step, nothing, hidden)
            query = Query(between.unsqueeze(1), embedding)
            context, step_weights, attention = self.attention(query, memory, attention)
            output, hidden = second(step, context.squeeze(1), hidden)
            current.append(output)
            contexts.append(context)
            weights.append(step_weights)
        states, seen = torch.stack(current, 1), torch.cat(contexts, 1)
        readouts = self.readout(torch.cat(previous, 1), states, embeddings, seen)
        after = DecoderState(hidden, nothing, attention)
        return DecoderOutput(readouts, torch.cat(weights, 1), seen, states, embeddings, after)
