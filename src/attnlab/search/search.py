"""What a search is, and what it finds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from lightning_utilities.core.apply_func import apply_to_collection
from torch import Tensor

from attnlab.errors import UserError
from attnlab.model import Seq2Seq


@dataclass(frozen=True)
class Hypothesis:
    """A translation that a search found.

    Attributes:
        tokens: target token ids, without the start symbol, ending with the end symbol.
        log_probability: Σ_t log p(y_t | y_<t, x), the end symbol included, in nats.
        score: what hypotheses are ranked by: the log-probability after the length penalty.
        weights: attention weights (len(tokens), source_len), on the CPU.
    """

    tokens: list[int]
    log_probability: float
    score: float
    weights: Tensor


class Search(ABC):
    """Finds translations of a batch of sentences.

    A hypothesis is at most ``max_length_factor`` · source length + ``max_length_offset`` tokens long, the end symbol
    included and the source's end symbol counted: at that length the end symbol is forced, at its own probability.

    Args:
        max_length_factor: target tokens allowed for a source token.
        max_length_offset: target tokens allowed beside them; at least 1.

    Raises:
        UserError: limits that allow no token.
    """

    def __init__(self, *, max_length_factor: float = 2.0, max_length_offset: int = 10) -> None:
        if max_length_factor < 0 or max_length_offset < 1:
            raise UserError("search.max_length_factor must not be negative and search.max_length_offset be 1 or more")
        self.max_length_factor = max_length_factor
        self.max_length_offset = max_length_offset

    @abstractmethod
    def __call__(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, *, bos: int, eos: int, copyable: Tensor | None = None
    ) -> list[list[Hypothesis]]:
        """Translate.

        Args:
            model: in evaluation mode.
            source: token ids (batch, source_len).
            lengths: (batch,), on the CPU.
            bos: id of the start symbol.
            eos: id of the end symbol.
            copyable: see :meth:`Seq2Seq.encode`; ids that go beyond the vocabulary come back in hypotheses.

        Returns:
            For each sentence its hypotheses, best first.
        """

    def limits(self, lengths: Tensor) -> Tensor:
        """Return the longest hypothesis allowed for each source length (batch,)."""
        return (self.max_length_factor * lengths).long() + self.max_length_offset


def select(tree: Any, rows: Tensor) -> Any:
    """Pick rows of every tensor in a tree, batch first."""
    return apply_to_collection(tree, Tensor, lambda tensor: tensor.index_select(0, rows))


def only(log_probabilities: Tensor, token: int, rows: Tensor) -> Tensor:
    """Forbid every token but one in the given rows (boolean, (batch,)), leaving that token's log-probability as it is."""
    if not bool(rows.any()):
        return log_probabilities
    allowed = torch.full_like(log_probabilities, -torch.inf)
    allowed[:, token] = log_probabilities[:, token]
    return torch.where(rows.unsqueeze(1), allowed, log_probabilities)


Penalty = Callable[[int], float]
"""A length penalty: from a hypothesis' length, the end symbol included, to what divides its log-probability."""
