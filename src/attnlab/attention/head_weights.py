"""The weights of every head of every layer, for those who want more than what a decoder reports."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.attention.attention import Attention
from attnlab.attention.mechanism import AttentionOutput
from attnlab.attention.multihead import MultiHeadAttention


@contextmanager
def collect_head_weights(module: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Collect the weights of all attentions in a module while it runs.

    Args:
        module: a decoder, say.

    Yields:
        By the name of each attention in the module, the weights (batch, heads, target_len, source_len) of each of its calls;
        the calls of a decoder that goes step by step belong side by side.
    """
    collected: dict[str, list[Tensor]] = defaultdict(list)
    handles = []
    heads = {id(part.head) for part in module.modules() if isinstance(part, MultiHeadAttention)}
    for name, part in module.named_modules():
        if isinstance(part, MultiHeadAttention):
            handles.append(part.register_forward_pre_hook(_request_weights, with_kwargs=True))
            handles.append(part.head.register_forward_hook(_WeightCollector(collected[name], part.projections.heads)))
        elif isinstance(part, Attention) and id(part) not in heads:
            handles.append(part.register_forward_hook(_WeightCollector(collected[name], 1)))
    try:
        yield collected
    finally:
        for handle in handles:
            handle.remove()


def _request_weights(module: nn.Module, arguments: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return arguments, {**options, "need_weights": True}


class _WeightCollector:
    """A forward hook that appends weights to a list, those of several heads unfolded from the batch."""

    def __init__(self, weights: list[Tensor], heads: int) -> None:
        self.weights = weights
        self.heads = heads

    def __call__(self, module: nn.Module, arguments: Any, output: AttentionOutput) -> None:
        self.weights.append(torch.unflatten(output.weights, 0, (-1, self.heads)))
