"""Types of numbers: in single precision at least, or as mixed precision has them."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def wide_type(numbers: Tensor) -> torch.dtype:
    """Return the type of numbers, or single precision in the place of half."""
    return torch.promote_types(numbers.dtype, torch.float32)


def product_type(numbers: Tensor) -> torch.dtype:
    """Return the type of products of numbers: in mixed precision half, unless they are in double, and otherwise their own."""
    device = numbers.device.type
    return torch.get_autocast_dtype(device) if is_mixed(device) and numbers.dtype != torch.float64 else numbers.dtype


def state_type(numbers: Tensor) -> torch.dtype:
    """Return the type of what is carried from step to step: single precision at least where mixed precision halves products."""
    return wide_type(numbers) if is_mixed(numbers.device.type) else numbers.dtype


def without_autocast(device: str) -> AbstractContextManager[None]:
    """Return a context in which a type of device, such as cuda, computes in the types that it is given."""
    return torch.autocast(device, enabled=False) if is_mixed(device) else nullcontext()


def is_mixed(device: str) -> bool:
    """Tell whether a type of device, such as cuda, now computes in mixed precision."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def widen(numbers: Tensor) -> Tensor:
    """Return numbers in single precision where they are in half, and as they are otherwise."""
    return numbers.to(wide_type(numbers))
