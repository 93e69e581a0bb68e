"""Normalizers: from logits to weights."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Normalizer(nn.Module, ABC):
    """Turns logits into non-negative weights over the allowed positions."""

    @abstractmethod
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """Normalise over the last dimension.

        Args:
            logits: (batch, target_len, source_len).
            allowed: boolean, broadcastable to the logits.

        Returns:
            Weights in the shape of the logits: zero where not allowed; a row without any allowed position is all zero.
        """


class Softmax(Normalizer):
    """Softmax, a_j = exp(e_j) / Σ_k exp(e_k), over the allowed positions (Bahdanau et al. 2015, equation 6)."""

    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """See :meth:`Normalizer.forward`."""
        # The dtype's own minimum, not -inf: a row without any allowed position must give zeros, not NaN.
        masked = logits.masked_fill(~allowed, torch.finfo(logits.dtype).min)
        return masked.softmax(dim=-1) * allowed
