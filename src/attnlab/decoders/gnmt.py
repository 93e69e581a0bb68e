"""The decoder of Google's neural machine translation system."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory, Query
from attnlab.decoders.decoder import DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.decoders.recurrent import RecurrentDecoder, Step, Trace
from attnlab.encoders import Encoder
from attnlab.errors import UserError
from attnlab.layers.recurrence import Recurrence, StateSizes, Stepper


class GNMTDecoder(RecurrentDecoder):
    """The first layer asks, all layers receive (Wu et al. 2016, sections 3 and 3.1, equations 4 and 6).

    c_t = attention(s^1_{t-1}); s^1_t = f([E y_{t-1}; c_t], s^1_{t-1}); s^l_t = f([x^l_t; c_t], s^l_{t-1}), x^l_t being the
    output of the layer below: s^l_t, to which from the third layer on x^l_t is added (residual). The readout is the top
    layer's.

    Parameters:
        recurrence: the network of the first layer.
        upper: the networks of the other layers.
        attention, initial_state: their own.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: makes the attention.
        cell: makes the network of a layer.
        initial_state: makes the initial state of all layers from (encoder, sizes).
        hidden_size: units; also the size of the readout and of the query.
        num_layers: stacked layers, two or more; the paper's is 8.
        dropout: between layers, a probability.

    Raises:
        UserError: fewer than two layers.
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
        num_layers: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding_size, encoder, attention, hidden_size)
        if num_layers < 2:
            raise UserError(f"a GNMT decoder has 2 layers or more, not {num_layers}: for one layer choose a Bahdanau decoder")
        context_size = self.attention.context_size
        self.recurrence = cell(embedding_size, context_size, hidden_size)
        self.upper = nn.ModuleList(cell(0, hidden_size + context_size, hidden_size) for _ in range(num_layers - 1))
        self.initial_state = initial_state(encoder, self.recurrence.state_sizes._replace(layers=num_layers))
        self.dropout = dropout

    @override
    def steppers(self, embeddings: Tensor) -> Sequence[Stepper]:
        upper = (cast(Recurrence, layer).stepper(embeddings[..., :0]) for layer in self.upper)
        return [*super().steppers(embeddings), *upper]

    @override
    def step(self, index: int, embedding: Tensor, steppers: Sequence[Stepper], memory: Memory, state: DecoderState) -> Step:
        query = Query(state.hidden[0][:, :1], embedding)
        context, weights, attention = self.attention(query, memory, state.attention)
        read = context.squeeze(1)
        layers = list(zip(*(torch.split(part, 1, dim=1) for part in state.hidden), strict=True))
        output, layers[0] = steppers[0](index, read, layers[0])
        for layer, advance in enumerate(steppers[1:], start=1):
            below = dropout(output, self.dropout, self.training)
            above, layers[layer] = advance(index, torch.cat([below, read], dim=-1), layers[layer])
            output = above + output if layer > 1 else above
        hidden = tuple(torch.cat(parts, dim=1) for parts in zip(*layers, strict=True))
        return Step(output, context, weights, DecoderState(hidden, state.feedback, attention))

    @override
    def readouts(self, trace: Trace) -> Tensor:
        return trace.states
