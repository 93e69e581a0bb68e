"""What a search is, and what it finds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from attnlab.errors import UserError


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


class Model(Protocol):
    """What a search steps through: a :class:`Seq2Seq`, or an :class:`Ensemble` of them."""

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Any, Any]:
        """Read sources; return a memory and the state before the first token."""

    def step(self, tokens: Tensor, memory: Any, state: Any) -> tuple[Tensor, Tensor, Any]:
        """Return log-probabilities of the next token, attention weights, and the new state."""


class Search(ABC):
    """Finds translations of a batch of sentences.

    Lengths count target tokens with the end symbol; the source's length counts its end symbol too. A hypothesis is at most
    ``max_length_factor`` · source length + ``max_length_offset`` long, where the end symbol is forced, at its own probability;
    it is at least ``min_length_factor`` · source length + ``min_length_offset`` long, the end symbol being forbidden before. A
    factor of 0 makes the limit an absolute one.

    Args:
        max_length_factor: target tokens allowed for a source token.
        max_length_offset: target tokens allowed beside them; at least 1.
        min_length_factor: target tokens demanded for a source token.
        min_length_offset: target tokens demanded beside them.
        no_repeat_ngram: no hypothesis has the same n tokens in a row twice, n being this; 0 allows all (Paulus et al. 2018,
            section 2.5).

    Attributes:
        kept_by: the setting that decides how many hypotheses of a sentence there are, or None where there is one.

    Raises:
        UserError: limits that allow no token, or that no hypothesis can meet.
    """

    kept_by: ClassVar[str | None] = None

    def __init__(
        self,
        *,
        max_length_factor: float = 2.0,
        max_length_offset: int = 10,
        min_length_factor: float = 0.0,
        min_length_offset: int = 0,
        no_repeat_ngram: int = 0,
    ) -> None:
        if max_length_factor < 0 or max_length_offset < 1:
            raise UserError("search.max_length_factor must not be negative and search.max_length_offset be 1 or more")
        if min(min_length_factor, min_length_offset, no_repeat_ngram) < 0:
            raise UserError("search.min_length_factor, min_length_offset and no_repeat_ngram must not be negative")
        if min_length_factor > max_length_factor or min_length_offset > max_length_offset:
            raise UserError("search.min_length_factor and min_length_offset must not be above those of the longest hypothesis")
        self.max_length_factor = max_length_factor
        self.max_length_offset = max_length_offset
        self.min_length_factor = min_length_factor
        self.min_length_offset = min_length_offset
        self.no_repeat_ngram = no_repeat_ngram

    @property
    @abstractmethod
    def kept(self) -> int:
        """How many hypotheses of a sentence there are at most."""

    @abstractmethod
    def __call__(
        self, model: Model, source: Tensor, lengths: Tensor, *, bos: int, eos: int, copy_ids: Tensor | None = None
    ) -> list[list[Hypothesis]]:
        """Translate.

        Args:
            model: in evaluation mode.
            source: token ids (batch, source_len).
            lengths: (batch,), on the CPU.
            bos: id of the start symbol.
            eos: id of the end symbol.
            copy_ids: see :meth:`Seq2Seq.encode`; ids that go beyond the vocabulary come back in hypotheses.

        Returns:
            For each sentence its hypotheses, best first.
        """

    def limits(self, lengths: Tensor) -> Tensor:
        """Return the longest hypothesis allowed for each source length (batch,)."""
        return (self.max_length_factor * lengths).long() + self.max_length_offset

    def constrain(self, log_probabilities: Tensor, history: Tensor, lengths: Tensor, eos: int) -> Tensor:
        """Forbid what may not come next.

        Args:
            log_probabilities: of the next token (n, vocabulary size).
            history: tokens so far (n, steps).
            lengths: of the source sentences (n,).
            eos: id of the end symbol.

        Returns:
            The log-probabilities, -inf for what is forbidden.
        """
        coming = history.shape[1] + 1
        if self.min_length_factor or self.min_length_offset or self.no_repeat_ngram:
            forbidden = self._forbidden(log_probabilities, history, lengths, eos)
            log_probabilities = log_probabilities.masked_fill(forbidden, -torch.inf)
        return only(log_probabilities, eos, self.limits(lengths) == coming)

    def _forbidden(self, log_probabilities: Tensor, history: Tensor, lengths: Tensor, eos: int) -> Tensor:
        coming, size = history.shape[1] + 1, self.no_repeat_ngram
        forbidden = torch.zeros_like(log_probabilities, dtype=torch.bool)
        forbidden[:, eos] = coming < (self.min_length_factor * lengths).long() + self.min_length_offset
        if size and history.shape[1] >= size:
            spans = history.unfold(1, size, 1)
            again = (spans[..., :-1] == history[:, history.shape[1] - size + 1 :].unsqueeze(1)).all(-1)
            rows, where = again.nonzero(as_tuple=True)
            forbidden[rows, spans[rows, where, -1]] = True
        return forbidden


def unbatch(steps: Sequence[Tensor], owners: Sequence[Tensor]) -> list[Tensor]:
    """Give back to every hypothesis what the steps of a search computed for it.

    Args:
        steps: of each step (rows, n).
        owners: of each step the hypotheses (rows,), counted from 0, each of which has a row somewhere.

    Returns:
        For each hypothesis its rows in the order of the steps, on the CPU.
    """
    whose = torch.cat(list(owners))
    order = whose.argsort(stable=True)
    return list(torch.split(torch.cat(list(steps))[order].cpu(), whose.bincount().tolist()))


def only(log_probabilities: Tensor, token: int, rows: Tensor) -> Tensor:
    """Forbid every token but one in the given rows (boolean, (n,)), leaving that token's log-probability as it is."""
    if not bool(rows.any()):
        return log_probabilities
    allowed = torch.full_like(log_probabilities, -torch.inf)
    allowed[:, token] = log_probabilities[:, token]
    return torch.where(rows.unsqueeze(1), allowed, log_probabilities)


LengthPenalty = Callable[[int], float]
"""A length penalty: from a hypothesis' length, the end symbol included, to what divides its log-probability."""
