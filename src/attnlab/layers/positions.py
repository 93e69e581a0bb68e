"""Positions: how a Transformer knows which token stands where."""

import math
from collections.abc import Callable
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.precision import wide_type


class Positions(nn.Module):
    """What the tokens of a sequence are told of where they stand, from position 0 on; one for all layers of a stack.

    A subclass overrides what it changes: the embeddings, the queries and keys of each head, or the logits. There is no longest
    sequence.

    Args:
        size: of a state.
        heads: of the self-attention.
        causal: whether a token sees itself and those before it alone.
    """

    in_embeddings: ClassVar[bool] = False
    """Whether all that it tells is added to embeddings, so that an encoder without self-attention can have it."""

    def __init__(self, size: int, heads: int, *, causal: bool) -> None:  # what subclasses may need
        super().__init__()

    def add(self, states: Tensor, start: int = 0) -> Tensor:
        """Return the embeddings (batch, len, size) of positions start, start + 1, … with what is added to them."""
        return states

    def rotate(self, vectors: Tensor, start: int = 0) -> Tensor:
        """Return queries or keys of all heads (batch, heads, len, head_size) as they are compared, from position start on."""
        return vectors

    def bias(self, queries: int, keys: int, like: Tensor) -> Tensor | None:
        """Return what is added to the logits of the last positions of a sequence; None is nothing.

        Args:
            queries: how many positions ask, the last ones.
            keys: positions of the sequence.
            like: a tensor of the device and the precision wanted, single at least.

        Returns:
            (heads, queries, keys).
        """
        return None


PositionsFactory = Callable[..., Positions]
"""Makes positions from (size, heads, causal=...)."""


class NoPositions(Positions):
    """The control: an encoder sees a bag of tokens, and a decoder tells tokens apart by how many each sees before it.

    No parameters.
    """

    in_embeddings = True


class Sinusoids(Positions):
    """Sines and cosines, added to the embeddings (Vaswani et al. 2017, section 3.5).

    x_p = e_p + PE(p), PE(p, 2i) = sin(p / 10000^(2i / size)), PE(p, 2i + 1) = cos(p / 10000^(2i / size)). No parameters.
    """

    in_embeddings = True

    @override
    def add(self, states: Tensor, start: int = 0) -> Tensor:
        return states + sinusoids(start, states.shape[1], states.shape[2], states)


class Rotary(Positions):
    """Queries and keys are turned by angles that grow with the position (Su et al. 2021, section 3.2.2, equation 15).

    e_pj = (R_p q_p)ᵀ (R_j k_j) / √head_size, R_p turning numbers 2i and 2i + 1 of a head, as a vector of two, by the angle
    p / 10000^(2i / head_size): as R_pᵀ R_j = R_{j-p}, the product depends on the distance alone. No parameters.

    Raises:
        UserError: heads of an odd size.
    """

    def __init__(self, size: int, heads: int, *, causal: bool) -> None:
        super().__init__(size, heads, causal=causal)
        if size // heads % 2:
            raise UserError(
                f"rotary positions turn numbers two by two, and {heads} heads of a state of {size} have {size // heads}: "
                "choose sizes by which each head has an even number"
            )

    @override
    def rotate(self, vectors: Tensor, start: int = 0) -> Tensor:
        angles = _angles(start, vectors.shape[2], vectors.shape[3], vectors)
        sine, cosine = angles.sin(), angles.cos()
        first, second = vectors[..., ::2], vectors[..., 1::2]
        turned = torch.stack([first * cosine - second * sine, first * sine + second * cosine], dim=-1)
        return turned.flatten(-2).to(vectors.dtype)


class Alibi(Positions):
    """Far tokens score less, by a slope of each head (Press et al. 2022, section 3: "attention with linear biases").

    e_pj = q_pᵀ k_j / √head_size - m_h |p - j|, m_h = 2^(-8h / heads) for heads h = 1, 2, …; the paper has decoders alone, and
    in an encoder both sides count alike. No parameters.
    """

    def __init__(self, size: int, heads: int, *, causal: bool) -> None:
        super().__init__(size, heads, causal=causal)
        self.heads = heads

    @override
    def bias(self, queries: int, keys: int, like: Tensor) -> Tensor:
        numbers = torch.arange(1, self.heads + 1, device=like.device, dtype=wide_type(like))
        slopes = 2.0 ** (-8.0 * numbers / self.heads)
        return -slopes.view(-1, 1, 1) * _offsets(queries, keys, like.device).abs()


class RelativeBias(Positions):
    """A number for each head and distance is learned and added to the logits (Raffel et al. 2020, section 2.1, "T5").

    e_pj = q_pᵀ k_j / √head_size + b_h[bucket(j - p)]; T5 itself leaves out the √head_size, by which all self-attention here
    divides. Half of the buckets have one distance each; those of the others grow with its logarithm up to ``max_distance``,
    from which on there is one. A stack that sees both sides has half of the buckets for each.

    Parameters:
        biases: b (heads, buckets), from zero.

    Args:
        size: of a state.
        heads: of the self-attention.
        causal: whether a token sees itself and those before it alone.
        buckets: how many distances are told apart; where both sides are seen, half of them for each.
        max_distance: in tokens, from which on all distances are one.

    Raises:
        UserError: a distance that is no further than those that have a bucket each.
    """

    def __init__(
        self, size: int, heads: int, *, causal: bool, buckets: Annotated[int, Range(4)] = 32, max_distance: int = 128
    ) -> None:
        super().__init__(size, heads, causal=causal)
        sides = 1 if causal else 2
        self.causal = causal
        self.each = buckets // sides
        exact = self.each // 2
        if max_distance <= exact:
            raise UserError(f"max_distance {max_distance}: the first {exact} distances have a bucket each, so it is larger")
        grown = (exact * (max_distance / exact) ** (k / (self.each - exact)) for k in range(self.each - exact))
        # Where a power is a whole number it may come out a little larger.
        bounds = [*range(1, exact), *(math.ceil(bound - 1e-9) for bound in grown)]
        self.register_buffer("bounds", torch.tensor(bounds), persistent=False)
        self.biases = nn.Parameter(torch.empty(heads, sides * self.each))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begin with none."""
        nn.init.zeros_(self.biases)

    @override
    def bias(self, queries: int, keys: int, like: Tensor) -> Tensor:
        offsets = _offsets(queries, keys, like.device)
        bounds: Tensor = self.bounds  # type: ignore[assignment]  # a buffer
        bucket = torch.bucketize(offsets.abs(), bounds, right=True)
        if not self.causal:
            bucket = bucket + self.each * (offsets > 0)
        return self.biases[:, bucket]


def sinusoids(start: int, length: int, size: int, like: Tensor) -> Tensor:
    """Return the encodings of :class:`Sinusoids` of positions start … start + length - 1.

    Args:
        start: the first position.
        length: how many.
        size: of an encoding; where it is odd the last cosine is left out.
        like: a tensor of the device and the dtype wanted.

    Returns:
        (length, size).
    """
    angles = _angles(start, length, size, like)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :size].to(like.dtype)


def _angles(start: int, length: int, size: int, like: Tensor) -> Tensor:
    """Return p / 10000^(2i / size) for positions p and pairs i of numbers, (length, size / 2, rounded up)."""
    precise = wide_type(like)  # half precision cannot count beyond 2048, or 256
    positions = torch.arange(start, start + length, device=like.device, dtype=precise)
    frequencies = 10000.0 ** (-torch.arange(0, size, 2, device=like.device, dtype=precise) / size)
    return positions.unsqueeze(1) * frequencies


def _offsets(queries: int, keys: int, device: torch.device) -> Tensor:
    """Return how far each key stands behind each of the last positions, (queries, keys); before it the offset is negative."""
    every = torch.arange(keys, device=device)
    return every - every[keys - queries :].unsqueeze(1)
