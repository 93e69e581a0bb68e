"""What an encoder promises to a decoder."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attnlab.trees import move


class EncoderOutput(NamedTuple):
    """What came of a batch of sources."""

    states: Tensor
    """(batch, source_len, output_size): one state a source token."""
    mask: Tensor
    """(batch, source_len), true where the source has a token."""
    final: tuple[Tensor, ...]
    """What is known after the whole source, one tensor (batch, layers, directions, hidden_size) for each part of a
    recurrent state: h alone, or h and c of an LSTM. The last direction is the one that read the source backwards. Without
    a recurrence it is the mean of the states (:class:`ParallelEncoder`)."""
    values: Tensor | None = None
    """(batch, source_len, output_size): what an attention averages, where that is not the states themselves."""
    language: Tensor | None = None
    """(batch, size): the target language, where the source tells it; no encoder reads it from here."""


class Encoder(nn.Module, ABC):
    """Reads a source.

    Attributes:
        output_size: size of a state.
        hidden_size: size of one direction of the final state.
        num_layers: layers in the final state.
        num_directions: directions in the final state.
        source_length: how long every source must be, or None where it may have any length.
    """

    output_size: int
    hidden_size: int
    num_layers: int
    num_directions: int
    source_length: int | None = None

    @abstractmethod
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        """Encode padded sources.

        Args:
            embeddings: (batch, source_len, input_size), from the source frontend.
            lengths: (batch,), on the CPU.
        """


class ParallelEncoder(Encoder):
    """An encoder without a recurrence, which has all its states at once.

    No state of its own sums a source up, so the final state is the mean of the states over the source's tokens,
    n⁻¹ Σ_j h_j: one part, (batch, 1, 1, output_size), and hidden_size is output_size.

    Args:
        output_size: size of a state.
    """

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = self.hidden_size = output_size
        self.num_layers = self.num_directions = 1

    @staticmethod
    def _output(states: Tensor, mask: Tensor, values: Tensor | None = None) -> EncoderOutput:
        """Put zeros at padding, and add the mean."""
        padding = ~mask.unsqueeze(-1)
        return EncoderOutput(
            states.masked_fill(padding, 0.0),
            mask,
            (mean_state(states, mask).unsqueeze(1).unsqueeze(1),),
            None if values is None else values.masked_fill(padding, 0.0),
        )


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the states of each source's tokens, (batch, size).

    Args:
        states: (batch, source_len, size).
        mask: (batch, source_len), true where the source has a token.
    """
    return states.masked_fill(~mask.unsqueeze(-1), 0.0).sum(1) / mask.sum(1, keepdim=True)


def last_state(states: Tensor, mask: Tensor) -> Tensor:
    """Return the state of each source's last token, (batch, …); see :func:`mean_state`."""
    return states[torch.arange(len(mask), device=mask.device), mask.sum(1) - 1]


def join_steps(states: Tensor, history: Sequence[tuple[Tensor, ...]], mask: Tensor) -> EncoderOutput:
    """Put together what a network gave that stepped over its sources from left to right.

    Args:
        states: (batch, source_len, output_size).
        history: the recurrent state after each element, parts of (batch, layers, hidden_size); that after the last is final.
        mask: (batch, source_len).
    """
    parts = tuple(last_state(torch.stack(part, dim=1), mask) for part in zip(*history, strict=True))
    return EncoderOutput(states.masked_fill(~mask.unsqueeze(-1), 0.0), mask, tuple(part.unsqueeze(2) for part in parts))


def token_mask(embeddings: Tensor, lengths: Tensor) -> Tensor:
    """Return where embeddings (batch, source_len, …) have a token: (batch, source_len), on their device."""
    positions = torch.arange(embeddings.shape[1], device=embeddings.device)
    own: Tensor = move(lengths, embeddings.device)
    return positions < own.unsqueeze(1)
