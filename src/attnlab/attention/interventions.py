"""Other weights in the place of those that a trained attention makes, for experiments at test."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.head_weights import find_attentions, request_weights


class Place(NamedTuple):
    """Which of the attentions over the source in a module is asked."""

    number: int
    """In the order of :func:`attnlab.attention.head_weights.find_attentions`."""
    heads: int


class Intervention(ABC):
    """Replaces the weights a_t that the context c_t = Σ_j a_tj v_j is made of.

    What follows is computed from the new weights: the context, what a history keeps, what is reported and what a head copies
    by, and where a decoder reads its own context or readout again, all later target tokens. The state of a normalizer, such as
    the position of a monotonic one, goes on as if its own weights had been used.

    Attributes:
        reads: whether it reads weights, so that they must not stay inside a kernel.
    """

    reads: ClassVar[bool] = True

    @abstractmethod
    def replace(self, place: Place, weights: Tensor, mask: Tensor, step: int) -> Tensor:
        """Return other weights.

        Args:
            place: whose weights they are.
            weights: (batch, heads, target_len, source_len).
            mask: (batch, source_len), true where the source has a token: of every source, the first so many positions.
            step: number of target tokens before the first of these.

        Returns:
            Weights in the same shape, zero where the source has no token.
        """


class OwnWeights(Intervention):
    """The weights as they are."""

    reads = False

    @override
    def replace(self, place: Place, weights: Tensor, mask: Tensor, step: int) -> Tensor:
        return weights


class PermutedWeights(Intervention):
    """The weights of every head and target token, permuted at random among the positions of the source (Jain and Wallace 2019,
    section 4.2.1).

    Args:
        seed: of the permutations; they are drawn call by call, so that what is drawn depends on the batch.
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    @override
    def replace(self, place: Place, weights: Tensor, mask: Tensor, step: int) -> Tensor:
        noise = torch.rand(weights.shape, generator=self.generator).to(weights.device)
        order = noise.masked_fill(~mask[:, None, None], 2.0).argsort(dim=-1, stable=True)
        return weights.gather(-1, order)


class UniformWeights(Intervention):
    """As much weight in all, the same on every position of the source, a'_tj = Σ_k a_tk / n (after Wiegreffe and Pinter 2019,
    whose uniform model is trained so too; here it is not).

    What weights sum to is kept, for it is no matter of where a model looks.
    """

    @override
    def replace(self, place: Place, weights: Tensor, mask: Tensor, step: int) -> Tensor:
        real = mask[:, None, None].to(weights.dtype)
        return weights.sum(dim=-1, keepdim=True) * real / real.sum(dim=-1, keepdim=True)


class GivenWeights(Intervention):
    """Weights that are given, such as those of another model.

    Args:
        weights: for each attention, (batch, heads, target_len, source_len). Where the attention has another number of heads,
            each takes the mean.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self.weights = weights

    @override
    def replace(self, place: Place, weights: Tensor, mask: Tensor, step: int) -> Tensor:
        given = self.weights[place.number][:, :, step : step + weights.shape[2]].to(weights)
        return given if given.shape == weights.shape else given.mean(dim=1, keepdim=True).expand_as(weights)


class HeadAblation(Intervention):
    """One head gives nothing: its weights, and with them its context, are zero (Michel et al. 2019, section 2.3, ξ_h = 0).

    Args:
        number: of the attention.
        head: its own number.
    """

    def __init__(self, number: int, head: int) -> None:
        self.number = number
        self.head = head

    @override
    def replace(self, place: Place, weights: Tensor, mask: Tensor, step: int) -> Tensor:
        if place.number != self.number:
            return weights
        kept = torch.arange(place.heads, device=weights.device) != self.head
        return weights * kept[:, None, None]


@contextmanager
def intervene(module: nn.Module, intervention: Intervention) -> Iterator[None]:
    """Let all attentions over the source in a module, such as a decoder, go on with other weights.

    Args:
        module: with any attention; one without has nothing to be replaced.
        intervention: returns the other weights.
    """
    found = find_attentions(module)
    before = [one.attention.replacement for one in found]
    handles = []
    for number, (_, attention, heads) in enumerate(found):
        attention.replacement = partial(_replace, intervention, Place(number, heads))
        if intervention.reads:
            handles.append(attention.register_forward_pre_hook(request_weights, with_kwargs=True))
    try:
        yield
    finally:
        for one, replacement in zip(found, before, strict=True):
            one.attention.replacement = replacement
        for handle in handles:
            handle.remove()


def _replace(intervention: Intervention, place: Place, weights: Tensor, mask: Tensor, step: Tensor) -> Tensor:
    """Ask an intervention, with the heads unfolded from the batch."""
    by_head = torch.unflatten(weights, 0, (-1, place.heads))
    return intervention.replace(place, by_head, mask[:: place.heads], int(step[0])).flatten(0, 1)
