"""Numbers in single precision at least."""

import torch
from torch import Tensor


def wide_type(numbers: Tensor) -> torch.dtype:
    """Return the type of numbers, or single precision in the place of half."""
    return torch.promote_types(numbers.dtype, torch.float32)


def widen(numbers: Tensor) -> Tensor:
    """Return numbers in single precision where they are in half, and as they are otherwise."""
    return numbers.to(wide_type(numbers))
