"""Random numbers that depend on a seed and a name alone, so that variants of one study share all that they can share."""

import hashlib

import numpy as np
import torch
from torch import nn

from attnlab.errors import UserError


def derive_seed(seed: int, name: str) -> int:
    """Return a 63-bit seed for ``name``, independent of every other name's."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def make_generator(seed: int, name: str) -> np.random.Generator:
    """Return NumPy's generator for ``name``, by the name of its algorithm should NumPy's default become another."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, name)))


def initialize(model: nn.Module, seed: int) -> None:
    """Draw every parameter of a model anew, each submodule from its own generator.

    A submodule's generator is derived from the seed and its qualified name, so that two models that differ in one
    component start from the same weights in every other. ``inner`` does not count in a name, unless the attention around has a
    part of that name too: what an attention has inside draws as it would by itself, so that the two compare. Submodules draw in
    their own ``reset_parameters``; a parent after its children. The global generator is left as it was.

    Raises:
        UserError: a module owns parameters but has no ``reset_parameters`` to draw them with.
    """
    modules = list(model.named_modules())
    drawn = {name for name, module in modules if hasattr(module, "reset_parameters")}
    for name, module in reversed(modules):
        if name in drawn:
            by_itself = ".".join(part for part in name.split(".") if part != "inner")
            with torch.random.fork_rng(devices=[]):
                # torch.manual_seed would seed the generators of all GPUs too.
                torch.default_generator.manual_seed(derive_seed(seed, name if by_itself in drawn else by_itself))
                module.reset_parameters()
        elif next(module.parameters(recurse=False), None) is not None:
            raise UserError(
                f"{type(module).__name__} ({name}) has parameters of its own, but no method reset_parameters(self) that draws "
                "them from torch's generator: add it"
            )
