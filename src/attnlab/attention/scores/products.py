"""Scores that are products of a query and a key."""

import math

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.scores.score import EqualSizes, Score
from attnlab.errors import UserError


class Dot(EqualSizes):
    """Dot product, e(s, h) = sᵀh (Luong et al. 2015, section 3.1, "dot").

    No parameters.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


class ScaledDot(Dot):
    """Scaled dot product, e(s, h) = sᵀh / √d, with d the size of s (Vaswani et al. 2017, equation 1).

    No parameters.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query * self.query_size**-0.5, keys)


class LearnedScaleDot(Dot):
    """Dot product with a learned scale, e(s, h) = g sᵀh.

    A plain dot product of large vectors saturates the softmax (Britz et al. 2017); this one can grow out of it.

    Parameters:
        scale: g (1), initialised with 1 / √d, with d the size of s.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.scale = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set g."""
        nn.init.constant_(self.scale, self.query_size**-0.5)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query * self.scale, keys)


class Cosine(EqualSizes):
    """Cosine similarity over a temperature, e(s, h) = sᵀh / (τ ‖s‖ ‖h‖) (after Graves et al. 2014, equations 5 and 6).

    1 / τ is the paper's β, which there the controller emits at every step; here it is constant.

    No parameters.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        temperature: τ; without one below 1 the weights stay close to uniform, since a cosine is at most 1.

    Raises:
        UserError: the query and the encoder states differ in size, or a temperature that is not positive.
    """

    linear_keys = False

    def __init__(self, query_size: int, memory_size: int, *, temperature: float = 0.1) -> None:
        super().__init__(query_size, memory_size)
        if temperature <= 0:
            raise UserError(f"temperature must be above 0, not {temperature}")
        self.temperature = temperature

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return h / ‖h‖."""
        return nn.functional.normalize(states, dim=-1, eps=_smallest_norm(states))

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        unit = nn.functional.normalize(query, dim=-1, eps=_smallest_norm(query))
        return unit @ keys.transpose(1, 2) / self.temperature


class General(Score):
    """Bilinear, e(s, h) = sᵀ W h (Luong et al. 2015, section 3.1, "general"), or g sᵀ W h with a learned scale.

    W is applied to the memory, once for a source.

    Parameters:
        projection: W (query_size, memory_size), initialised as a ``torch.nn.Linear`` is.
        scale: g (1) if ``learned_scale``, initialised with 1.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        learned_scale: multiply by g.
    """

    def __init__(self, query_size: int, memory_size: int, *, learned_scale: bool = False) -> None:
        super().__init__(query_size, memory_size)
        self.projection = nn.Linear(memory_size, query_size, bias=False)
        self.scale = nn.Parameter(torch.ones(1)) if learned_scale else None

    def reset_parameters(self) -> None:
        """Set g."""
        if self.scale is not None:
            nn.init.ones_(self.scale)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return W h, or g W h, for every encoder state."""
        projected: Tensor = self.projection(states)
        return projected if self.scale is None else projected * self.scale

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


def _smallest_norm(vectors: Tensor) -> float:
    return math.sqrt(torch.finfo(vectors.dtype).tiny)  # torch's own default underflows to zero in half precision
