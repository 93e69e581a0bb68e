"""Noise that normalizers draw in training, from a stream of its own, so that it does not move the masks of dropout."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


class NoiseStream:
    """Random numbers from one seed, by a generator for each device, beside torch's own.

    Until :meth:`seed` is called the seed is 0.
    """

    def __init__(self) -> None:
        self._seed = 0
        self._states: dict[str, Tensor] = {}
        self._generators: dict[str, torch.Generator] = {}

    def seed(self, seed: int) -> None:
        """Begin anew from a seed, on every device."""
        self._seed = seed
        self._states = {}
        self._generators = {}

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the generator of a device."""
        name = str(device)
        if name not in self._generators:
            made = torch.Generator(device).manual_seed(self._seed)
            if name in self._states:
                made.set_state(self._states[name])
            self._generators[name] = made
        return self._generators[name]

    def state_dict(self) -> dict[str, Any]:
        """Return where the stream is, as tensors on the CPU."""
        states = {name: generator.get_state() for name, generator in self._generators.items()}
        return {"seed": self._seed, "states": {**self._states, **states}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from where a stream was."""
        self.seed(state["seed"])
        self._states = {name: generator.cpu() for name, generator in state["states"].items()}


NOISE = NoiseStream()
"""The stream that all normalizers draw from."""


def draw_normal(like: Tensor) -> Tensor:
    """Draw from N(0, 1), in the shape and on the device of a tensor."""
    drawn: Tensor = _draw_normal(like.detach())
    return drawn


def draw_gumbel(like: Tensor) -> Tensor:
    """Draw from Gumbel(0, 1), in the shape and on the device of a tensor."""
    drawn: Tensor = _draw_exponential(like.detach())
    return -drawn.log()


# As operators of torch's, since torch.compile does not trace what a generator draws; the tag keeps it from drawing twice or
# from sharing a draw.
_RANDOM = (torch.Tag.nondeterministic_seeded,)


@torch.library.custom_op("attnlab::draw_normal", mutates_args=(), tags=_RANDOM)
def _draw_normal(like: Tensor) -> Tensor:
    return torch.empty_like(like).normal_(generator=NOISE.generator(like.device))


@torch.library.custom_op("attnlab::draw_exponential", mutates_args=(), tags=_RANDOM)
def _draw_exponential(like: Tensor) -> Tensor:
    return torch.empty_like(like).exponential_(generator=NOISE.generator(like.device))


@_draw_normal.register_fake
@_draw_exponential.register_fake
def _like(like: Tensor) -> Tensor:
    return torch.empty_like(like)
