"""Initial decoder states: what of the encoded source the decoder starts from."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.encoders import Encoder, EncoderOutput
from attnlab.encoders.encoder import mean_state
from attnlab.errors import UserError
from attnlab.layers.recurrence import RecurrentState, StateSizes
from attnlab.precision import state_type


class InitialState(nn.Module, ABC):
    """Makes a recurrent state out of an encoded source.

    Args:
        encoder: the encoder, for its sizes.
        sizes: of the state.

    Attributes:
        reads_source: whether the state depends on the source.
    """

    reads_source: ClassVar[bool] = True

    def __init__(self, encoder: Encoder, sizes: StateSizes) -> None:
        super().__init__()
        self.state_parts, self.num_layers, self.hidden_size = sizes

    @abstractmethod
    def forward(self, encoded: EncoderOutput) -> RecurrentState:
        """Return the state, each part (batch, layers, hidden_size)."""


class Projection(InitialState, ABC):
    """s_0 = tanh(W e + b), with e a summary of the source; each part of the state (h, and c of an LSTM) has a W of its own.

    Args:
        encoder: the encoder, for its sizes.
        sizes: of the state.
        summary_size: size of e.
    """

    def __init__(self, encoder: Encoder, sizes: StateSizes, summary_size: int) -> None:
        super().__init__(encoder, sizes)
        size = self.num_layers * self.hidden_size
        self.projections = nn.ModuleList(nn.Linear(summary_size, size) for _ in range(self.state_parts))

    @abstractmethod
    def summary(self, encoded: EncoderOutput, part: int) -> Tensor:
        """Return e (batch, summary_size) for one part of the state, 0 being h."""

    @override
    def forward(self, encoded: EncoderOutput) -> RecurrentState:
        dtype = state_type(encoded.states)
        projected = (torch.tanh(made(self.summary(encoded, part)).to(dtype)) for part, made in enumerate(self.projections))
        return tuple(part.view(-1, self.num_layers, self.hidden_size) for part in projected)


class Bridge(Projection):
    """s_0 = tanh(W e + b), with e the encoder's final state of its top layer, both directions concatenated.

    With ``backward_only`` e is the last direction alone, which ends on the first source token (Bahdanau et al. 2015,
    appendix A.2.2: s_0 = tanh(W_s ←h_1)). Each part of the state (h, and c of an LSTM) has a W of its own; c comes from the
    encoder's c if it has one.

    Parameters:
        projections: for each part W (layers · hidden_size, directions · encoder hidden_size) and b.

    Raises:
        UserError: ``backward_only`` with an encoder that does not read backwards.
    """

    def __init__(self, encoder: Encoder, sizes: StateSizes, *, backward_only: bool = False) -> None:
        if backward_only and encoder.num_directions == 1:
            raise UserError(
                "backward_only starts from the state of an encoder that reads backwards, and this one reads forwards alone: "
                "choose a bidirectional encoder, or set backward_only to false"
            )
        super().__init__(encoder, sizes, encoder.hidden_size * (1 if backward_only else encoder.num_directions))
        self.backward_only = backward_only

    @override
    def summary(self, encoded: EncoderOutput, part: int) -> Tensor:
        final = encoded.final[min(part, len(encoded.final) - 1)][:, -1]
        return final[:, -1] if self.backward_only else final.flatten(1)


class Mean(Projection):
    """s_0 = tanh(W n⁻¹ Σ_j h_j + b), from the mean of the encoder's states over n source tokens (Sennrich et al. 2017, section
    2).

    Each part of the state (h, and c of an LSTM) has a W of its own.

    Parameters:
        projections: for each part W (layers · hidden_size, encoder output_size) and b, initialised as a ``torch.nn.Linear`` is.
    """

    def __init__(self, encoder: Encoder, sizes: StateSizes) -> None:
        super().__init__(encoder, sizes, encoder.output_size)

    @override
    def summary(self, encoded: EncoderOutput, part: int) -> Tensor:
        return mean_state(encoded.states, encoded.mask)


class LastState(InitialState):
    """s_0 is the encoder's final state itself, layer by layer, its directions concatenated (Sutskever et al. 2014).

    A c that the encoder lacks starts at zero. No parameters.

    Raises:
        UserError: layers or sizes differ.
    """

    def __init__(self, encoder: Encoder, sizes: StateSizes) -> None:
        super().__init__(encoder, sizes)
        layers, size = encoder.num_layers, encoder.hidden_size * encoder.num_directions
        if (layers, size) != (self.num_layers, self.hidden_size):
            raise UserError(
                f"the last state of the encoder ({layers} layers of {size}) cannot be that of the decoder "
                f"({self.num_layers} layers of {self.hidden_size}): make them equal, or choose a bridge as initial state"
            )

    @override
    def forward(self, encoded: EncoderOutput) -> RecurrentState:
        dtype = state_type(encoded.states)
        parts = [part.flatten(2).to(dtype) for part in encoded.final[: self.state_parts]]
        parts += [torch.zeros_like(parts[0])] * (self.state_parts - len(parts))
        return tuple(parts)


class Zeros(InitialState):
    """s_0 = 0: the source reaches the decoder through the attention alone. No parameters."""

    reads_source = False

    @override
    def forward(self, encoded: EncoderOutput) -> RecurrentState:
        shape = len(encoded.states), self.num_layers, self.hidden_size
        zeros: Tensor = encoded.states.new_zeros(shape, dtype=state_type(encoded.states))
        return (zeros,) * self.state_parts
