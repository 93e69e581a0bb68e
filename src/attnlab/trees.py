"""Trees of tensors: what a model prepares of a source, and what a decoder passes on from step to step."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only


def map_tensors(function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """Return a tree with a function of every tensor in its place.

    Tuples, of which the states here are made, are walked through at once: torch's own walk takes longer than small tensors do.
    """
    if isinstance(tree, Tensor):
        return function(tree)
    if tree is None:
        return None
    if isinstance(tree, tuple):
        parts = [map_tensors(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree_map_only(Tensor, function, tree)


def select(tree: Any, rows: Tensor) -> Any:
    """Pick rows of every tensor in a tree, batch first."""
    return map_tensors(lambda tensor: tensor.index_select(0, rows), tree)


def move(tree: Any, device: torch.device) -> Any:
    """Bring every tensor in a tree to a device; from the CPU to a GPU without waiting for what the GPU does meanwhile."""
    return map_tensors(lambda tensor: _send(tensor, device), tree)


def _send(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.contiguous().pin_memory().to(device, non_blocking=True)  # no view of one number can be pinned
    return tensor.to(device)
