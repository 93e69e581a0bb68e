"""Trials of components on a few numbers, which leave everything as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from attnlab.attention.noise import NOISE


@contextmanager
def preserve_state(module: nn.Module) -> Iterator[None]:
    """Compute with a module in evaluation, and give back its mode and the random numbers that it draws."""
    mode, noise = module.training, NOISE.state_dict()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            module.eval()
            yield
    finally:
        module.train(mode)
        NOISE.load_state_dict(noise)


def are_close(one: Tensor, other: Tensor) -> bool:
    """Tell whether tensors have one shape, and the same numbers but for rounding in float32."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4)
