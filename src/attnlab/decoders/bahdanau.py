"""The decoder of Bahdanau, Cho and Bengio (2015), in its simple form."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlab.attention import AttentionMechanism, Memory
from attnlab.decoders.decoder import Decoded, Decoder, DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.layers.recurrence import Recurrence
from attnlab.encoders import Encoded, Encoder


class BahdanauDecoder(Decoder):
    """The previous state asks; the context enters the cell and the readout (Bahdanau et al. 2015, section 3.1).

    c_t = attention(s_{t-1}); s_t = f([E y_{t-1}; c_t], s_{t-1}); readout_t = tanh(W_r [s_t; E y_{t-1}; c_t]). With several
    layers the top one asks and the lowest receives the context.

    Parameters:
        recurrence: the network f; the context enters its gates and its candidate.
        readout: W_r (hidden_size, hidden_size + embedding_size + context_size), no bias.
        attention, initial_state: their own.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: makes the attention from (query_size, memory_size).
        cell: makes the network f.
        initial_state: makes the initial state from (encoder, recurrence).
        hidden_size: units; also the size of the readout and of the query.
        num_layers: stacked layers.
        dropout: between layers, a probability.
    """

    def __init__(
        self,
        embedding_size: int,
        encoder: Encoder,
        attention: Callable[[int, int], AttentionMechanism],
        *,
        cell: Callable[..., Recurrence],
        initial_state: Callable[[Encoder, Recurrence], InitialState],
        hidden_size: int,
        num_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = attention(hidden_size, encoder.output_size)
        context_size = self.attention.context_size
        self.recurrence = cell(embedding_size, context_size, hidden_size, num_layers=num_layers, dropout=dropout)
        self.initial_state = initial_state(encoder, self.recurrence)
        self.readout = nn.Linear(hidden_size + embedding_size + context_size, hidden_size, bias=False)
        self.readout_size = hidden_size

    def start(self, encoded: Encoded) -> tuple[Memory, DecoderState]:
        """See :meth:`Decoder.start`."""
        memory = self.attention.memory(encoded.states, encoded.mask)
        nothing = encoded.states.new_zeros(len(encoded.states), 0)
        return memory, DecoderState(self.initial_state(encoded), nothing, self.attention.start(memory))

    def forward(self, embeddings: Tensor, memory: Memory, state: DecoderState) -> Decoded:
        """See :meth:`Decoder.forward`."""
        hidden, nothing, attention = state
        advance = self.recurrence.stepper(embeddings)
        outputs, contexts, weights = [], [], []
        for step in range(embeddings.shape[1]):
            query = hidden[0][:, -1:]
            context, step_weights, attention = self.attention(query, memory, attention)
            output, hidden = advance(step, context.squeeze(1), hidden)
            outputs.append(output)
            contexts.append(context)
            weights.append(step_weights)
        everything = torch.cat([torch.stack(outputs, 1), embeddings, torch.cat(contexts, 1)], dim=-1)
        readouts = torch.tanh(self.readout(everything))
        return Decoded(readouts, torch.cat(weights, 1), DecoderState(hidden, nothing, attention))
