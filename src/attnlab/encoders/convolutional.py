"""The convolutional encoder."""

import math

from torch import Tensor, nn
from torch.nn.functional import glu
from typing_extensions import override

from attnlab.encoders.encoder import EncoderOutput, ParallelEncoder, token_mask
from attnlab.errors import UserError
from attnlab.layers.positions import sinusoids


class ConvolutionBlock(nn.Module):
    """A gated convolution over a token and its neighbours with a residual connection.

    z'_j = (GLU(W [z_{j-k/2}; …; z_{j+k/2}] + b) + z_j) · √½, with GLU([a; g]) = a ∘ σ(g) (Gehring et al. 2017, sections 3.2
    and 3.4). What lies outside the source is zero.

    Parameters:
        convolution: W (2 · size, size, kernel_size), drawn from a normal distribution of variance 4p / (size · kernel_size),
            p being the probability that an input is not dropped (section 3.5), and b (2 · size), from zero.

    Args:
        size: of a state.
        kernel_size: tokens that one state is made from, odd.
        dropout: on what the convolution reads, a probability.
    """

    def __init__(self, size: int, *, kernel_size: int, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(size, 2 * size, kernel_size, padding=kernel_size // 2)
        self.dropout = nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the kernel so that the variance of the states stays what it is."""
        inputs = self.convolution.weight[0].numel()
        nn.init.normal_(self.convolution.weight, std=math.sqrt(4 * (1 - self.dropout.p) / inputs))
        nn.init.zeros_(self.convolution.bias)  # type: ignore[arg-type]  # Conv1d's bias is there unless one asks it away

    def forward(self, states: Tensor, padding: Tensor) -> Tensor:
        """Mix neighbours.

        Args:
            states: (batch, size, len).
            padding: (batch, 1, len), true where there is no token.

        Returns:
            (batch, size, len).
        """
        # The block before left its bias at padding, and a neighbour must find there what it finds beyond the source.
        read = self.dropout(states).masked_fill(padding, 0.0)
        mixed: Tensor = glu(self.convolution(read), dim=1)
        return (mixed + states) * math.sqrt(0.5)


class ConvolutionalEncoder(ParallelEncoder):
    """Gated convolutions on top of each other (Gehring et al. 2017, sections 3.1 and 3.2).

    e_j = W (E x_j + PE(j)) + b; z^0_j = e_j; z^l = block^l(z^{l-1}). The states, which a decoder compares its query with, are
    the top's, z_j; what it averages is z_j + e_j (equation 2), the token beside its surroundings. PE are the sinusoids of
    Vaswani et al. (2017, section 3.5) where the paper learns an embedding of each position, so that there is no longest
    source. The final state is the mean of the states.

    Parameters:
        projection: W (hidden_size, input_size), drawn from a normal distribution of variance 1 / input_size (section 3.5), and
            b (hidden_size), from zero.
        blocks: their own.

    Args:
        input_size: size of an embedding.
        hidden_size: size of a state.
        num_layers: blocks; a state sees num_layers · (kernel_size - 1) / 2 tokens to each side.
        kernel_size: tokens that one state is made from the layer below, odd.
        dropout: on what the convolutions read, a probability.

    Raises:
        UserError: a kernel that has no token in its middle.
    """

    def __init__(
        self, input_size: int, *, hidden_size: int, num_layers: int = 3, kernel_size: int = 3, dropout: float = 0.0
    ) -> None:
        super().__init__(hidden_size)
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise UserError(f"kernel_size is odd, a token and as many to its left as to its right, not {kernel_size}")
        self.projection = nn.Linear(input_size, hidden_size)
        self.blocks = nn.ModuleList(
            ConvolutionBlock(hidden_size, kernel_size=kernel_size, dropout=dropout) for _ in range(num_layers)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the projection so that the variance of the embeddings stays what it is."""
        nn.init.normal_(self.projection.weight, std=math.sqrt(1 / self.projection.in_features))
        nn.init.zeros_(self.projection.bias)

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        mask = token_mask(embeddings, lengths)
        positions = sinusoids(0, embeddings.shape[1], embeddings.shape[2], embeddings)
        elements = self.projection(embeddings + positions).to(embeddings.dtype)  # which the blocks add to
        states = elements.transpose(1, 2)  # torch convolves over the last dimension
        for block in self.blocks:
            states = block(states, ~mask.unsqueeze(1))
        states = states.transpose(1, 2)
        return self._output(states, mask, values=states + elements)
