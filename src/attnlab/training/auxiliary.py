"""Losses on where an attention looks, beside the likelihood of what the decoder writes."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from attnlab.errors import UserError


class AuxiliaryLoss(ABC):
    """A loss on attention weights.

    Args:
        weight: what it is multiplied by when it is added to the likelihood's loss.

    Attributes:
        needs_links: whether the training data must have word alignments.

    Raises:
        UserError: a negative weight.
    """

    needs_links: ClassVar[bool] = False

    def __init__(self, *, weight: float = 1.0) -> None:
        if weight < 0:
            raise UserError(f"the weight of an auxiliary loss must not be negative, as {weight} is")
        self.weight = weight

    @abstractmethod
    def __call__(self, weights: Tensor, real: Tensor, links: Tensor | None) -> Tensor:
        """Return the loss, a scalar.

        Args:
            weights: (batch, target_len, source_len).
            real: (batch, target_len), true where there is a token to be predicted.
            links: (batch, target_len, source_len), the given alignment of each token to be predicted: a distribution over
            source
                tokens, or zeros for one that is linked to none; None where the data has no alignments.
        """


class CoverageLoss(AuxiliaryLoss):
    """Looking twice at one place costs, Σ_j min(a_tj, c_tj), c_t = Σ_{i<t} a_i (See et al. 2017, equation 12).

    The mean over target tokens. It goes with every attention; the paper's has the coverage in its score too
    (``attention=coverage``).
    """

    def __call__(self, weights: Tensor, real: Tensor, links: Tensor | None) -> Tensor:
        """See :meth:`AuxiliaryLoss.__call__`."""
        before = weights.cumsum(dim=1) - weights
        return torch.minimum(weights, before).sum(dim=-1)[real].mean()


class SupervisedLoss(AuxiliaryLoss):
    """The weights are to be those of given word alignments, -Σ_j â_tj log a_tj (Liu et al. 2016; Mi et al. 2016; Chen et al.
    2016).

    The mean over those target tokens that are linked; zero if none is.
    """

    needs_links = True

    def __call__(self, weights: Tensor, real: Tensor, links: Tensor | None) -> Tensor:
        """See :meth:`AuxiliaryLoss.__call__`."""
        assert links is not None, "the data module was asked for links"
        # A sparse normalizer gives linked tokens no weight at all, whose logarithm no optimizer survives.
        logarithms = weights.float().clamp(min=1e-6).log()
        linked = (links.sum(dim=-1) > 0) & real
        return -(links * logarithms).sum() / linked.sum().clamp(min=1)
