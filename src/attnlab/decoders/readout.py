"""Readouts: what of a step the head reads."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from typing_extensions import override


class Readout(nn.Module, ABC):
    """Makes a readout out of the decoder's states, the previous token's embedding and the context.

    Args:
        state_size: size of a state, and of the readout.
        embedding_size: size of a target embedding.
        context_size: size of a context.
    """

    def __init__(self, state_size: int, embedding_size: int, context_size: int) -> None:
        super().__init__()
        self.state_size = state_size
        self.input_size = state_size + embedding_size + context_size

    @abstractmethod
    def forward(self, previous: Tensor, current: Tensor, embedding: Tensor, context: Tensor) -> Tensor:
        """Return readouts (batch, target_len, state_size).

        Args:
            previous: s_{t-1} (batch, target_len, state_size).
            current: s_t (batch, target_len, state_size).
            embedding: E y_{t-1} (batch, target_len, embedding_size).
            context: c_t (batch, target_len, context_size).
        """


class TanhReadout(Readout):
    """t_t = tanh(W [s_t; E y_{t-1}; c_t]), the simple form, of the current state (Sennrich et al. 2017, section 2).

    Parameters:
        projection: W (state_size, state_size + embedding_size + context_size), no bias, initialised as a
            ``torch.nn.Linear`` is.
    """

    def __init__(self, state_size: int, embedding_size: int, context_size: int) -> None:
        super().__init__(state_size, embedding_size, context_size)
        self.projection = nn.Linear(self.input_size, state_size, bias=False)

    @override
    def forward(self, previous: Tensor, current: Tensor, embedding: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(self.projection(torch.cat([current, embedding, context], dim=-1)))


class MaxoutReadout(Readout):
    """t_t = [max(t̃_{t,2j-1}, t̃_{t,2j})]_j with t̃_t = U_o s_{t-1} + V_o E y_{t-1} + C_o c_t (Bahdanau et al. 2015, appendix
    A.2.2).

    Of the *previous* state, as in the paper.

    Parameters:
        projection: [U_o; V_o; C_o] (2 · state_size, state_size + embedding_size + context_size) and a bias, initialised as a
            ``torch.nn.Linear`` is.
    """

    def __init__(self, state_size: int, embedding_size: int, context_size: int) -> None:
        super().__init__(state_size, embedding_size, context_size)
        self.projection = nn.Linear(self.input_size, 2 * state_size)

    @override
    def forward(self, previous: Tensor, current: Tensor, embedding: Tensor, context: Tensor) -> Tensor:
        pairs = self.projection(torch.cat([previous, embedding, context], dim=-1)).unflatten(-1, (self.state_size, 2))
        largest: Tensor = pairs.amax(dim=-1)
        return largest
