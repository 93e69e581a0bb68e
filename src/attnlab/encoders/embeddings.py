"""The encoder that does not encode."""

from torch import Tensor
from typing_extensions import override

from attnlab.encoders.encoder import EncoderOutput, ParallelEncoder, token_mask
from attnlab.layers.transformer import sinusoids


class EmbeddingEncoder(ParallelEncoder):
    """The control: h_j = E x_j, so that the attention sees tokens and no token sees another.

    With ``positions`` h_j = E x_j + PE(j), PE being the sinusoids of Vaswani et al. (2017, section 3.5): without them the
    attention looks into a bag of tokens. The final state is the mean of the states. No parameters.

    Args:
        input_size: size of an embedding, and of a state.
        positions: add the positional encodings.
    """

    def __init__(self, input_size: int, *, positions: bool = False) -> None:
        super().__init__(input_size)
        self.positions = positions

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        states = embeddings
        if self.positions:
            states = embeddings + sinusoids(0, embeddings.shape[1], embeddings.shape[2], embeddings)
        return self._output(states, token_mask(embeddings, lengths))
