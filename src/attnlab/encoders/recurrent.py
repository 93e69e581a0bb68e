"""Recurrent encoders."""

from collections.abc import Callable

from torch import Tensor, nn
from typing_extensions import override

from attnlab.encoders.encoder import Encoder, EncoderOutput, token_mask
from attnlab.layers.packing import pack, pad
from attnlab.layers.recurrence import refuse_idle_dropout


class RecurrentEncoder(Encoder):
    """A stacked recurrent network over the source: h_j = f(E x_j, h_{j-1}), in both directions if asked.

    With two directions a state is [→h_j; ←h_j] (Bahdanau et al. 2015, section 3.2), of size 2 · hidden_size. Sources
    are packed, so that the backward direction starts at a source's own last token and padding is never read.

    Parameters:
        network: torch's own, drawn from U(-1/√hidden_size, 1/√hidden_size).

    Args:
        input_size: size of an embedding.
        network: makes the network, ``RNN``, ``GRU`` or ``LSTM`` of :mod:`attnlab.layers.networks`.
        hidden_size: units in one direction.
        num_layers: stacked layers.
        bidirectional: read the source in both directions.
        dropout: between layers, a probability.

    Raises:
        UserError: dropout between the layers of one.
    """

    def __init__(
        self,
        input_size: int,
        *,
        network: Callable[..., nn.RNNBase],
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        refuse_idle_dropout(num_layers, dropout)
        self.network = network(
            input_size,
            hidden_size,
            num_layers=num_layers,
            bidirectional=bidirectional,
            dropout=dropout,
            batch_first=True,
        )
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.num_directions = 2 if bidirectional else 1
        self.output_size = hidden_size * self.num_directions

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        outputs, final = self.network(pack(embeddings, lengths))
        states = pad(outputs, embeddings.shape[1])
        mask = token_mask(embeddings, lengths)
        parts = final if isinstance(final, tuple) else (final,)
        return EncoderOutput(states, mask, tuple(self._by_layer(part) for part in parts))

    def _by_layer(self, final: Tensor) -> Tensor:
        """Turn torch's (layers · directions, batch, hidden) into (batch, layers, directions, hidden)."""
        by_layer = final.view(self.num_layers, self.num_directions, -1, self.hidden_size)
        return by_layer.permute(2, 0, 1, 3)
