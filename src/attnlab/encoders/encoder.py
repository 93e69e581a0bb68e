"""What an encoder promises to a decoder."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn


class Encoded(NamedTuple):
    """Encoded source sentences."""

    states: Tensor
    """(batch, source_len, output_size): one state a source token."""
    mask: Tensor
    """(batch, source_len), true where the source has a token."""
    final: tuple[Tensor, ...]
    """What is known after the whole sentence, one tensor (batch, layers, directions, hidden_size) for each part of a
    recurrent state: h alone, or h and c of an LSTM. The last direction is the one that read the sentence backwards."""


class Encoder(nn.Module, ABC):
    """Reads a source sentence.

    Attributes:
        output_size: size of a state.
        hidden_size: size of one direction of the final state.
        num_layers: layers in the final state.
        num_directions: directions in the final state.
    """

    output_size: int
    hidden_size: int
    num_layers: int
    num_directions: int

    @abstractmethod
    def forward(self, embeddings: Tensor, lengths: Tensor) -> Encoded:
        """Encode padded sentences.

        Args:
            embeddings: (batch, source_len, input_size).
            lengths: (batch,), on the CPU.
        """
