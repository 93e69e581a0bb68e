"""Trees of tensors: what a model prepares of a source, and what a decoder passes on from step to step."""

from typing import Any

from lightning_utilities.core.apply_func import apply_to_collection
from torch import Tensor


def select(tree: Any, rows: Tensor) -> Any:
    """Pick rows of every tensor in a tree, batch first."""
    return apply_to_collection(tree, Tensor, lambda tensor: tensor.index_select(0, rows))
