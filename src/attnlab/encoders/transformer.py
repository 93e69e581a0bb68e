"""The Transformer's encoder."""

from torch import Tensor, nn
from typing_extensions import override

from attnlab.encoders.encoder import EncoderOutput, ParallelEncoder, token_mask
from attnlab.layers.positions import Positions, PositionsFactory, Sinusoids
from attnlab.layers.transformer import FeedForward, Residual, SelfAttention


class TransformerEncoderLayer(nn.Module):
    """Self-attention and a feed-forward layer, each with its residual connection (Vaswani et al. 2017, section 3.1).

    Parameters:
        attention, attention_residual, feedforward, feedforward_residual: their own.

    Args:
        size: of a state.
        heads: of the self-attention.
        feedforward_size: hidden units of the feed-forward layer.
        pre_norm: normalise before the sublayers and not after them.
        dropout: on weights, on hidden units and on what the sublayers put out, a probability.
    """

    def __init__(self, size: int, *, heads: int, feedforward_size: int, pre_norm: bool, dropout: float) -> None:
        super().__init__()
        self.attention = SelfAttention(size, heads=heads, dropout=dropout)
        self.attention_residual = Residual(size, pre_norm=pre_norm, dropout=dropout)
        self.feedforward = FeedForward(size, hidden_size=feedforward_size, dropout=dropout)
        self.feedforward_residual = Residual(size, pre_norm=pre_norm, dropout=dropout)

    def forward(self, states: Tensor, mask: Tensor, positions: Positions) -> Tensor:
        """Turn states (batch, len, size) into new ones; the mask (batch, len) is true where there is a token."""
        contexts = self.attention(self.attention_residual.prepare(states), mask, positions)
        states = self.attention_residual.add(states, contexts)
        output = self.feedforward(self.feedforward_residual.prepare(states))
        result: Tensor = self.feedforward_residual.add(states, output)
        return result


class TransformerEncoder(ParallelEncoder):
    """Self-attention and feed-forward layers on top of each other (Vaswani et al. 2017, section 3.1).

    x^0_j = W E x_j + b + PE(j), PE being the sinusoids of section 3.5 unless other positions are chosen, and W there only if
    the sizes differ; with ``pre_norm`` the top is normalised, h = LN(x^L) (Xiong et al. 2020), else h = x^L. Embeddings come
    with unit variance, so they are not multiplied by √size; their dropout is the model's. The final state is the mean of the
    states.

    Parameters:
        projection: W (hidden_size, input_size) and b, initialised as a ``torch.nn.Linear`` is, unless the sizes are equal.
        positions: their own.
        layers: their own.
        norm: gain (hidden_size), from one, and bias, from zero, if ``pre_norm``.

    Args:
        input_size: size of an embedding.
        hidden_size: size of a state.
        num_layers: layers.
        heads: of the self-attention; they divide the hidden size.
        feedforward_size: hidden units of the feed-forward layers.
        pre_norm: normalise before the sublayers and not after them.
        dropout: on weights, on hidden units and on what the sublayers put out, a probability.
        positions: makes what the layers know of where a token stands from (size, heads, causal=...).

    Raises:
        UserError: heads that do not divide the hidden size.
    """

    def __init__(
        self,
        input_size: int,
        *,
        hidden_size: int,
        num_layers: int = 2,
        heads: int = 4,
        feedforward_size: int = 256,
        pre_norm: bool = True,
        dropout: float = 0.0,
        positions: PositionsFactory = Sinusoids,
    ) -> None:
        super().__init__(hidden_size)
        self.projection = nn.Identity() if input_size == hidden_size else nn.Linear(input_size, hidden_size)
        self.layers = nn.ModuleList(
            TransformerEncoderLayer(
                hidden_size, heads=heads, feedforward_size=feedforward_size, pre_norm=pre_norm, dropout=dropout
            )
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(hidden_size) if pre_norm else nn.Identity()
        self.positions = positions(hidden_size, heads, causal=False)

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        mask = token_mask(embeddings, lengths)
        states = self.positions.add(self.projection(embeddings).to(embeddings.dtype))
        for layer in self.layers:
            states = layer(states, mask, self.positions)
        return self._output(self.norm(states), mask)
