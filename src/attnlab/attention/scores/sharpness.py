"""How sharp the scores that multiply a query by a key are: one mechanism for all of them."""

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from typing_extensions import override

from attnlab.errors import UserError


class Sharpness(nn.Module, ABC):
    """β in e(s, h) = β sᵀh, the inverse of a temperature.

    Args:
        query_size: size of a query.
        temperature: τ; β is, or begins with, 1 / τ.
    """

    def __init__(self, query_size: int, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    @property
    def divisor(self) -> float:
        """What the products are divided by, beside what :meth:`sharpen` multiplies the query by."""
        return 1.0

    @abstractmethod
    def sharpen(self, state: Tensor, query: Tensor) -> Tensor:
        """Return the query times what of β is learned or emitted.

        Args:
            state: what the decoder asks with (batch, target_len, query_size).
            query: what is multiplied (batch, target_len, size), made from it.
        """


class FixedSharpness(Sharpness):
    """β = 1 / τ.

    No parameters.
    """

    @property
    @override
    def divisor(self) -> float:
        return self.temperature

    @override
    def sharpen(self, state: Tensor, query: Tensor) -> Tensor:
        return query


class LearnedSharpness(Sharpness):
    """β is one learned number.

    Parameters:
        beta: β (1), initialised with 1 / τ.
    """

    def __init__(self, query_size: int, temperature: float) -> None:
        super().__init__(query_size, temperature)
        self.beta = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set β."""
        nn.init.constant_(self.beta, 1.0 / self.temperature)

    @override
    def sharpen(self, state: Tensor, query: Tensor) -> Tensor:
        return query * self.beta


class EmittedSharpness(Sharpness):
    """β_t = softplus(wᵀs_t + b), which the decoder emits at every step (after Graves et al. 2014, section 3.3.1, where it is a
    positive number that the controller emits).

    Parameters:
        emission: w (query_size), initialised as a ``torch.nn.Linear`` is, and b (1), with which a query of zeros has
            β = 1 / τ.
    """

    def __init__(self, query_size: int, temperature: float) -> None:
        super().__init__(query_size, temperature)
        self.emission = nn.Linear(query_size, 1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set b."""
        start = 1.0 / self.temperature
        nn.init.constant_(self.emission.bias, start + math.log(-math.expm1(-start)))  # the inverse of a softplus

    @override
    def sharpen(self, state: Tensor, query: Tensor) -> Tensor:
        return query * softplus(self.emission(state))


SharpnessKind = Literal["fixed", "learned", "emitted"]

KINDS: dict[SharpnessKind, type[Sharpness]] = {
    "fixed": FixedSharpness,
    "learned": LearnedSharpness,
    "emitted": EmittedSharpness,
}


def make_sharpness(kind: SharpnessKind, query_size: int, temperature: float) -> Sharpness:
    """Make the sharpness of a score.

    Raises:
        UserError: an unknown kind, or a temperature that is not positive.
    """
    if kind not in KINDS:
        raise UserError(f"sharpness is {', '.join(KINDS)}, not {kind!r}")
    check_temperature(temperature)
    return KINDS[kind](query_size, temperature)


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that is not positive.

    Raises:
        UserError: it is not.
    """
    if temperature <= 0:
        raise UserError(f"temperature must be above 0, not {temperature}")
