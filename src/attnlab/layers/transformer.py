"""What Transformer encoders and decoders share: self-attention, the feed-forward layer, residual connections."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from attnlab.attention.multihead import HeadProjections
from attnlab.layers.positions import Positions


class PastStates(NamedTuple):
    """Keys and values of the positions before, for a decoder that goes step by step."""

    keys: Tensor
    """(batch, heads, past, head_size)."""
    values: Tensor
    """(batch, heads, past, head_size)."""


class SelfAttention(nn.Module):
    """Multi-head self-attention by PyTorch's fused kernel (Vaswani et al. 2017, section 3.2.2).

    head_i = softmax(W_i^Q x (W_i^K x)ᵀ / √d) W_i^V x; the output is W^O [head_1; …; head_n]. Positions may turn queries and
    keys, or add to the logits.

    Parameters:
        projections: W^Q, W^K, W^V and W^O of all heads (size, size), no bias, initialised by Glorot and Bengio's (2010)
            uniform rule.

    Args:
        size: of a state.
        heads: number of heads.
        dropout: on the weights, a probability.

    Raises:
        UserError: the heads do not divide the size.
    """

    def __init__(self, size: int, *, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.projections = HeadProjections(size, size, heads)
        self.dropout = dropout

    def start(self, batch: int, like: Tensor) -> PastStates:
        """Return the past of a sequence that has not begun."""
        nothing = like.new_zeros(batch, self.projections.heads, 0, self.projections.head_size)
        return PastStates(nothing, nothing)

    def forward(self, states: Tensor, mask: Tensor, positions: Positions) -> Tensor:
        """Look at the whole sequence.

        Args:
            states: (batch, len, size).
            mask: (batch, len), true where there is a token.
            positions: of the stack.

        Returns:
            (batch, len, size).
        """
        query, keys, values = self._project(states, positions)
        return self._attend(query, keys, values, mask.unsqueeze(1).unsqueeze(1), positions)

    def attend_backwards(self, states: Tensor, past: PastStates, positions: Positions) -> tuple[Tensor, PastStates]:
        """Look at the positions before and at one's own; the rest of the sequence is not known yet.

        Args:
            states: (batch, len, size), the positions after ``past``.
            past: from :meth:`start`, or from the call before.
            positions: of the stack.

        Returns:
            (batch, len, size), and the past with these positions.
        """
        query, keys, values = self._project(states, positions, past.keys.shape[2])
        if past.keys.shape[2]:  # at the start there is nothing to copy, and the type is that of the new ones
            keys, values = torch.cat([past.keys, keys], dim=2), torch.cat([past.values, values], dim=2)
        past = PastStates(keys, values)
        total, length = past.keys.shape[2], states.shape[1]
        mask = torch.ones(length, total, dtype=torch.bool, device=states.device).tril(total - length)
        return self._attend(query, past.keys, past.values, mask, positions), past

    def _project(self, states: Tensor, positions: Positions, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        project = self.projections
        query, keys = project.project_queries(states), project.project_keys(states)
        return positions.rotate(query, start), positions.rotate(keys, start), project.project_values(states)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, positions: Positions) -> Tensor:
        bias = positions.bias(query.shape[2], keys.shape[2], query)
        allowed = mask if bias is None else torch.where(mask, bias, -torch.inf)
        return self.projections.attend(query, keys, values, allowed, dropout=self.dropout if self.training else 0.0)


class FeedForward(nn.Sequential):
    """FFN(x) = W_2 relu(W_1 x + b_1) + b_2 (Vaswani et al. 2017, equation 2)."""

    def __init__(self, size: int, *, hidden_size: int, dropout: float) -> None:
        super().__init__(nn.Linear(size, hidden_size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_size, size))


class Residual(nn.Module):
    """Layer normalisation around a sublayer f: x + f(LN(x)) before it, or LN(x + f(x)) after it.

    Vaswani et al. (2017, section 3.1) normalise after; normalising before trains without warm-up (Xiong et al. 2020).

    Parameters:
        norm: gain and bias of the layer normalisation (size).

    Args:
        size: of a state.
        pre_norm: normalise before the sublayer.
        dropout: on the sublayer's output, a probability.
    """

    def __init__(self, size: int, *, pre_norm: bool, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.pre_norm = pre_norm
        self.dropout = nn.Dropout(dropout)

    def prepare(self, states: Tensor) -> Tensor:
        """Return what the sublayer reads."""
        read: Tensor = self.norm(states) if self.pre_norm else states
        return read

    def add(self, states: Tensor, output: Tensor) -> Tensor:
        """Return the states with the sublayer's output added."""
        added = states + self.dropout(output)
        result: Tensor = added if self.pre_norm else self.norm(added)
        return result
