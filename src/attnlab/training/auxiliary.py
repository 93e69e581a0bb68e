"""Losses on where an attention looks, beside the likelihood of what the decoder writes."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.attention import Attention, AttentionMechanism
from attnlab.attention.normalizers import Normalizer, Uniform
from attnlab.errors import UserError
from attnlab.precision import widen


class AuxiliaryLoss(ABC):
    """A loss on attention weights.

    Args:
        weight: what it is multiplied by when it is added to the likelihood's loss, once it counts in full.
        start: share of the training's steps before it begins to count.
        ramp: share of the steps in which its weight then grows, linearly from 0.

    Attributes:
        needs_links: whether the training data must have gold links.

    Raises:
        UserError: a negative weight, or shares that are none or go beyond the training.
    """

    needs_links: ClassVar[bool] = False

    def __init__(self, *, weight: float = 1.0, start: float = 0.0, ramp: float = 0.0) -> None:
        if weight < 0:
            raise UserError(f"weight must not be negative, as {weight} is")
        if not (start >= 0 and ramp >= 0 and start + ramp <= 1 and start < 1):
            raise UserError(f"start and ramp are shares of the training, at most 1 together, not {start} and {ramp}")
        self.weight = weight
        self.start = start
        self.ramp = ramp

    def weight_at(self, progress: float) -> float:
        """Return the weight when a share of the training's steps is done."""
        if progress < self.start:
            return 0.0
        return self.weight * min(1.0, (progress - self.start) / self.ramp) if self.ramp else self.weight

    def validate(self, name: str, attention: AttentionMechanism) -> None:
        """Refuse an attention that the loss could not change.

        Args:
            name: of the loss, for the message.
            attention: what the decoder was given.

        Raises:
            UserError: such an attention.
        """
        if not attention.context_size:
            raise UserError(f"the auxiliary loss {name} is one on attention weights, and this attention has none")
        # Inside a chunk of MoChA one does no harm: its place is learned, as that of some windows is.
        equal = [part for part in attention.modules() if isinstance(part, Attention) and isinstance(part.normalizer, Uniform)]
        if any(not any(True for _ in part.window.parameters()) for part in equal):
            raise UserError(
                f"the auxiliary loss {name} is one on attention weights, which do not learn with a uniform normalizer"
            )
        if not attention.shares:
            others = sorted({type(part).__name__ for part in attention.parts if not part.shares})
            raise UserError(
                f"the auxiliary loss {name} is one on weights that are shares of one, which those of {' and '.join(others)} "
                "are not: choose another normalizer"
            )

    def counted(self, real: Tensor, links: Tensor | None) -> Tensor:
        """Return which tokens the loss is the mean over, boolean (batch, target_len); arguments as those of a call."""
        return real

    @abstractmethod
    def __call__(self, weights: Tensor, real: Tensor, links: Tensor | None) -> Tensor:
        """Return the loss, a scalar.

        Args:
            weights: (batch, target_len, source_len).
            real: (batch, target_len), true where there is a token to be predicted.
            links: (batch, target_len, source_len), the gold links of each token to be predicted: a distribution over source
                tokens, or zeros for one that is linked to none; None where they are not known.
        """


class CoverageLoss(AuxiliaryLoss):
    """Looking twice at one place costs, Σ_j min(a_tj, c_tj), c_t = Σ_{i<t} a_i (See et al. 2017, equation 12).

    The mean over target tokens. It goes with every attention; the paper's has the coverage in its score too
    (the history ``coverage_sum``), and is trained without this loss first: from the first step on it keeps an attention from
    learning where to look (section 5). By default it begins late for that reason.
    """

    def __init__(self, *, weight: float = 1.0, start: float = 0.7, ramp: float = 0.1) -> None:
        super().__init__(weight=weight, start=start, ramp=ramp)

    @override
    def __call__(self, weights: Tensor, real: Tensor, links: Tensor | None) -> Tensor:
        weights = widen(weights)
        before = weights.cumsum(dim=1) - weights
        looked = torch.minimum(weights, before).sum(dim=-1)
        return (looked * real).sum() / real.sum().clamp(min=1)


class SupervisedLoss(AuxiliaryLoss):
    """The weights are to be those of gold links, -Σ_j â_tj log a_tj (Liu et al. 2016; Mi et al. 2016; Chen et al.
    2016).

    The mean over those target tokens that are linked; zero if none is. A weight below 10^-6, as of a sparse normalizer, counts
    as that much and passes no gradient.
    """

    needs_links = True

    @override
    def validate(self, name: str, attention: AttentionMechanism) -> None:
        super().validate(name, attention)
        if any(isinstance(part, Normalizer) and part.one_hot for part in attention.modules()):
            raise UserError(
                f"the auxiliary loss {name} learns from the weights of positions that are not chosen, and this normalizer "
                "gives them none: choose another normalizer"
            )

    @override
    def counted(self, real: Tensor, links: Tensor | None) -> Tensor:
        assert links is not None, "the task was asked for links"
        return (links.sum(dim=-1) > 0) & real

    @override
    def __call__(self, weights: Tensor, real: Tensor, links: Tensor | None) -> Tensor:
        assert links is not None, "the task was asked for links"
        # A sparse normalizer gives linked tokens no weight at all, whose logarithm no optimizer survives.
        logarithms = widen(weights).clamp(min=1e-6).log()
        return -(links * logarithms).sum() / self.counted(real, links).sum().clamp(min=1)
