"""Scores that are products of a query and a key."""

import math
from abc import ABC

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.scores.score import EqualSizes, Score
from attnlab.attention.scores.sharpness import FixedSharpness, SharpnessKind, make_sharpness


class Product(Score, ABC):
    """e(s, h) = β γ q(s)ᵀ k(h): :meth:`project_query` is q, ``project_keys`` is k, and ``scale`` is γ, 1 unless a score says
    otherwise.

    β is 1 / τ with a fixed sharpness, one number that is learned from 1 / τ on, or softplus(wᵀs + b), emitted for each query
    (after Graves et al. 2014, section 3.3.1), b being such that β begins near 1 / τ.

    Parameters:
        sharpness: of a fixed one none; of a learned one β (1); of an emitted one w (query_size) and b (1).

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        temperature: τ; below one the weights are sharper, above one flatter.
        sharpness: fixed, learned or emitted.

    Raises:
        UserError: a temperature that is not positive, or an unknown sharpness.
    """

    is_product = True

    def __init__(
        self, query_size: int, memory_size: int, *, temperature: float = 1.0, sharpness: SharpnessKind = "fixed"
    ) -> None:
        super().__init__(query_size, memory_size)
        self.sharpness = make_sharpness(sharpness, query_size, temperature)

    @property
    def scale(self) -> float:
        """γ, a constant."""
        return 1.0

    @property
    def has_unit_sharpness(self) -> bool:
        """Whether β is 1, whatever is learned."""
        return isinstance(self.sharpness, FixedSharpness) and self.sharpness.temperature == 1.0

    def project_query(self, query: Tensor) -> Tensor:
        """Turn queries (batch, target_len, query_size) into what is multiplied by the keys, (batch, target_len, size)."""
        return query

    @override
    def as_product(self, query: Tensor) -> tuple[Tensor, float]:
        return self.sharpness.sharpen(query, self.project_query(query)), self.scale / self.sharpness.divisor

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        vectors, scale = self.as_product(query)
        logits: Tensor = (vectors if scale == 1.0 else vectors * scale) @ keys.transpose(1, 2)
        return logits


class Dot(Product, EqualSizes):
    """Dot product, e(s, h) = β sᵀh, with β = 1 (Luong et al. 2015, section 3.1, "dot") or another, see :class:`Product`.

    Parameters:
        sharpness: that of β, where it is not fixed.

    Raises:
        UserError: the query and the encoder states differ in size, or see :class:`Product`.
    """


class ScaledDot(Dot):
    """Scaled dot product, e(s, h) = β sᵀh / √d, with d the size of s, and β = 1 (Vaswani et al. 2017, equation 1) or another,
    see :class:`Product`.

    Parameters:
        sharpness: that of β, where it is not fixed.

    Raises:
        UserError: the query and the encoder states differ in size, or see :class:`Product`.
    """

    @property
    @override
    def scale(self) -> float:
        """1 / √d."""
        return float(self.query_size**-0.5)


class LearnedScaleDot(Dot):
    """Dot product with a learned scale, e(s, h) = β sᵀh.

    A plain dot product of large vectors saturates the softmax (Britz et al. 2017); this one can grow out of it. It is
    :class:`Dot` with a learned sharpness and a temperature of √d, d being the size of s.

    Parameters:
        sharpness: β (1), initialised with 1 / √d.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size, temperature=math.sqrt(query_size), sharpness="learned")


class Cosine(Product, EqualSizes):
    """Cosine similarity, e(s, h) = β sᵀh / (‖s‖ ‖h‖), with β = 1 / τ or another, see :class:`Product` (Graves et al. 2014,
    equations 5 and 6, with an emitted β; Henry et al. 2020, with a learned one).

    Parameters:
        sharpness: that of β, where it is not fixed.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        temperature: τ; without one below 1 the weights stay close to uniform, since a cosine is at most 1.
        sharpness: fixed, learned or emitted.

    Raises:
        UserError: the query and the encoder states differ in size, or see :class:`Product`.
    """

    linear_keys = False

    def __init__(
        self, query_size: int, memory_size: int, *, temperature: float = 0.1, sharpness: SharpnessKind = "fixed"
    ) -> None:
        super().__init__(query_size, memory_size, temperature=temperature, sharpness=sharpness)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return h / ‖h‖."""
        return nn.functional.normalize(states, dim=-1, eps=_smallest_norm(states))

    @override
    def project_query(self, query: Tensor) -> Tensor:
        """Return s / ‖s‖."""
        return nn.functional.normalize(query, dim=-1, eps=_smallest_norm(query))


class NormalizedDot(ScaledDot):
    """Scaled dot product of normalised states, e(s, h) = β LN(s)ᵀ LN(h) / √d, with β = 1 (Dehghani et al. 2023, section 2, "QK
    normalization") or another, see :class:`Product`.

    LN is a layer normalisation with a gain and without a bias, one for queries and one for keys: however large states grow, a
    logit does not.

    Parameters:
        query_norm: the gain of LN(s) (query_size).
        key_norm: the gain of LN(h) (memory_size). Both are initialised with ones.
        sharpness: that of β, where it is not fixed.

    Raises:
        UserError: the query and the encoder states differ in size, or see :class:`Product`.
    """

    linear_keys = False

    def __init__(
        self, query_size: int, memory_size: int, *, temperature: float = 1.0, sharpness: SharpnessKind = "fixed"
    ) -> None:
        super().__init__(query_size, memory_size, temperature=temperature, sharpness=sharpness)
        self.query_norm = nn.LayerNorm(query_size, bias=False)
        self.key_norm = nn.LayerNorm(memory_size, bias=False)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return LN(h)."""
        normalized: Tensor = self.key_norm(states)
        return normalized

    @override
    def project_query(self, query: Tensor) -> Tensor:
        """Return LN(s)."""
        normalized: Tensor = self.query_norm(query)
        return normalized


class General(Product):
    """Bilinear, e(s, h) = β sᵀ W h, with β = 1 (Luong et al. 2015, section 3.1, "general") or another, see :class:`Product`.

    W is applied to the memory, once for a source.

    Parameters:
        projection: W (query_size, memory_size), initialised as a ``torch.nn.Linear`` is.
        sharpness: that of β, where it is not fixed.
    """

    def __init__(
        self, query_size: int, memory_size: int, *, temperature: float = 1.0, sharpness: SharpnessKind = "fixed"
    ) -> None:
        super().__init__(query_size, memory_size, temperature=temperature, sharpness=sharpness)
        self.projection = nn.Linear(memory_size, query_size, bias=False)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return W h for every encoder state."""
        projected: Tensor = self.projection(states)
        return projected


def _smallest_norm(vectors: Tensor) -> float:
    return math.sqrt(torch.finfo(vectors.dtype).tiny)  # torch's own default underflows to zero in half precision
