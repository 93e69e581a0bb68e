"""Kernels of scaled dot-product attention: PyTorch's fused one, and the same written out, which gives the weights too."""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def fused_attention(query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, *, dropout: float = 0.0) -> Tensor:
    """Average the values by softmax(q kᵀ / √head_size) (Vaswani et al. 2017, equation 1) without writing the weights down.

    Args:
        query: (batch, heads, target_len, head_size).
        keys: (batch, heads, source_len, head_size).
        values: (batch, heads, source_len, head_size).
        allowed: boolean, broadcastable to (batch, heads, target_len, source_len).
        dropout: on the weights, a probability.

    Returns:
        (batch, heads, target_len, head_size).
    """
    return scaled_dot_product_attention(query, keys, values, attn_mask=allowed, dropout_p=dropout)


def attention_weights(query: Tensor, keys: Tensor, allowed: Tensor) -> Tensor:
    """Return the weights that :func:`fused_attention` averages with, without dropout.

    Args:
        query: (batch, heads, target_len, head_size).
        keys: (batch, heads, source_len, head_size).
        allowed: boolean, broadcastable to (batch, heads, target_len, source_len).

    Returns:
        (batch, heads, target_len, source_len): rows sum to one; one without any allowed position is all zero.
    """
    logits = query @ keys.transpose(2, 3) * query.shape[-1] ** -0.5
    # The dtype's own minimum, not -inf: a row without any allowed position must give zeros, not NaN.
    weights: Tensor = logits.masked_fill(~allowed, torch.finfo(logits.dtype).min).softmax(dim=-1) * allowed
    return weights
