"""The encoder that does not encode."""

from torch import Tensor
from typing_extensions import override

from attnlab.encoders.encoder import EncoderOutput, ParallelEncoder, token_mask
from attnlab.errors import UserError
from attnlab.layers.positions import NoPositions, PositionsFactory


class EmbeddingEncoder(ParallelEncoder):
    """The control: h_j = E x_j, so that the attention sees tokens and no token sees another.

    With ``positions`` that are added to embeddings, such as sinusoids, h_j = E x_j + PE(j); without them the attention looks
    into a bag of tokens. The final state is the mean of the states. No parameters.

    Args:
        input_size: size of an embedding, and of a state.
        positions: makes what embeddings are told of where they stand from (size, heads, causal=...).

    Raises:
        UserError: positions that act in self-attention.
    """

    def __init__(self, input_size: int, *, positions: PositionsFactory = NoPositions) -> None:
        super().__init__(input_size)
        self.positions = positions(input_size, 1, causal=False)
        if not self.positions.in_embeddings:
            raise UserError(
                f"{type(self.positions).__name__} acts in self-attention, which an encoder of embeddings has not: choose "
                "positions that are added to embeddings, such as sinusoids"
            )

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        return self._output(self.positions.add(embeddings), token_mask(embeddings, lengths))
