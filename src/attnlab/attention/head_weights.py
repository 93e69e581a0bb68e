"""The attentions over the source in a module, and the weights of every head, for those who want more than a decoder reports."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.attention.attention import Attention
from attnlab.attention.mechanism import AttentionOutput
from attnlab.attention.multihead import MultiHeadAttention


class SourceAttention(NamedTuple):
    """One attention over the source in a module."""

    name: str
    """In the module, such as ``layers.0.attention``."""
    attention: Attention
    """What makes the weights: of several heads, the one that all of them share."""
    heads: int


def find_attentions(module: nn.Module) -> list[SourceAttention]:
    """Return all attentions over the source in a module, such as a decoder, those inside other attentions included."""
    shared = {id(part.head) for part in module.modules() if isinstance(part, MultiHeadAttention)}
    found = []
    for name, part in module.named_modules():
        if isinstance(part, MultiHeadAttention):
            found.append(SourceAttention(name, part.head, part.projections.heads))
        elif isinstance(part, Attention) and id(part) not in shared:
            found.append(SourceAttention(name, part, 1))
    return found


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
    for name, attention, heads in find_attentions(module):
        handles.append(attention.register_forward_pre_hook(request_weights, with_kwargs=True))
        handles.append(attention.register_forward_hook(partial(_collect, collected[name], heads)))
    try:
        yield collected
    finally:
        for handle in handles:
            handle.remove()


HEAD = ", head "


def name_heads(collected: Mapping[str, list[Tensor]]) -> dict[str, Tensor]:
    """Return what was collected by head, named as in "layers.0.attention, head 1": weights (batch, target_len, source_len)."""
    return {
        f"{name}{HEAD}{head}": weights.float().cpu()
        for name, calls in collected.items()
        for head, weights in enumerate(torch.cat(calls, dim=2).unbind(1))
    }


def choose_heads(names: Iterable[str], layer: int | None, head: int | None) -> list[str]:
    """Return those of some heads that belong to one layer, one head of every layer, or one of one, all counted from 0.

    A layer is an attention over the source; a decoder that is no Transformer has one, or one inside another.
    """
    layers: dict[str, list[str]] = defaultdict(list)
    for name in names:
        layers[name.rpartition(HEAD)[0]].append(name)
    chosen = list(layers.values())[slice(None) if layer is None else slice(layer, layer + 1)]
    return [name for one in chosen for name in one[slice(None) if head is None else slice(head, head + 1)]]


def request_weights(module: nn.Module, arguments: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Ask an attention for its weights, as a hook before its call, so that none stay inside a kernel."""
    return arguments, {**options, "need_weights": True}


def _collect(weights: list[Tensor], heads: int, module: nn.Module, arguments: Any, output: AttentionOutput) -> None:
    """Append weights to a list, as a hook after the call, those of several heads unfolded from the batch."""
    weights.append(torch.unflatten(output.weights, 0, (-1, heads)))
