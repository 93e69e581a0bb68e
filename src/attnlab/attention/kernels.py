"""Kernels of scaled dot-product attention: PyTorch's fused one."""

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
