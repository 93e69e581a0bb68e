"""Deep recurrent encoders."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.encoders.encoder import Encoder, EncoderOutput, last_state, token_mask
from attnlab.errors import UserError
from attnlab.layers.packing import pack, pad
from attnlab.layers.recurrence import refuse_idle_dropout


class DeepRecurrentEncoder(Encoder):
    """Recurrent networks with residual connections (Wu et al. 2016, equation 6) and layer normalisation (Ba et al. 2016).

    x^l = x^{l-1} + LN(f^l(x^{l-1})), x^0 being the embeddings: residual connections wherever the sizes are equal, around a
    layer normalisation, which is applied to what a network puts out and not inside its gates. Every network may read the
    source in both directions; then f(x) is [→h; ←h]. The states are those of the top, x^L. The final state has for h what a
    layer puts out where a direction ends, x^l of the last token for the forward half and of the first for the backward half, so
    that without attention too all that the encoder learns is used; c is the network's own.

    Parameters:
        networks: the f^l, initialised as torch's own.
        norms: for each layer gain (output_size), from one, and bias (output_size), from zero, if ``layer_norm``.

    Args:
        input_size: size of an embedding.
        network: makes a network of one layer, ``RNN``, ``GRU`` or ``LSTM`` of :mod:`attnlab.layers.networks`.
        hidden_size: units in one direction.
        num_layers: networks.
        bidirectional: every network reads the source in both directions.
        residual: add what a network reads to what it puts out, where both are of one size.
        layer_norm: normalise what a network puts out.
        dropout: on what a network reads of the one below, a probability; the sum takes it whole.

    Raises:
        UserError: dropout between the layers of one, or residual connections without any layer that could have
            one: a single layer that reads embeddings of another size than its states.
    """

    def __init__(
        self,
        input_size: int,
        *,
        network: Callable[..., nn.RNNBase],
        hidden_size: int,
        num_layers: int = 2,
        bidirectional: bool = True,
        residual: bool = True,
        layer_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.num_directions = 2 if bidirectional else 1
        self.output_size = hidden_size * self.num_directions
        refuse_idle_dropout(num_layers, dropout)
        if residual and num_layers == 1 and input_size != self.output_size:
            raise UserError(
                f"a residual connection cannot add embeddings of size {input_size} to states of size {self.output_size} "
                "(hidden size times directions): set residual to false, num_layers to 2 or more, or make the sizes equal"
            )
        self.residual = residual
        self.networks = nn.ModuleList(
            network(size, hidden_size, bidirectional=bidirectional, batch_first=True)
            for size in [input_size, *[self.output_size] * (num_layers - 1)]
        )
        self.norms = nn.ModuleList(nn.LayerNorm(self.output_size) if layer_norm else nn.Identity() for _ in range(num_layers))
        self.dropout = nn.Dropout(dropout)

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        mask = token_mask(embeddings, lengths)
        packed = pack(embeddings, lengths)
        finals: list[tuple[Tensor, ...]] = []
        for layer, (network, norm) in enumerate(zip(self.networks, self.norms, strict=True)):
            below = packed.data
            outputs, final = network(packed._replace(data=self.dropout(below)) if layer else packed)
            states = norm(outputs.data)
            if self.residual and below.shape == states.shape:
                states = below + states
            packed = packed._replace(data=states)  # as they stay to the top: nothing is ever computed for padding
            states = pad(packed, embeddings.shape[1])
            hidden = self._ends(states, mask)
            finals.append((hidden, final[1].transpose(0, 1)) if isinstance(final, tuple) else (hidden,))
        return EncoderOutput(states, mask, tuple(torch.stack(layers, dim=1) for layers in zip(*finals, strict=True)))

    def _ends(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the states where each direction ends, (batch, directions, hidden_size)."""
        ends = [last_state(states[..., : self.hidden_size], mask), states[:, 0, self.hidden_size :]]
        return torch.stack(ends[: self.num_directions], dim=1)
