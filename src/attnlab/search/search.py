"""What a search is, and what it finds."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from attnlab.errors import UserError
from attnlab.hints import Range

Count = Annotated[int, Range(1, 1000)]
"""How many hypotheses a source may have: with many more, memory ends."""


@dataclass(frozen=True)
class Hypothesis:
    """A target sequence that a search found.

    Attributes:
        tokens: target token ids, without the start symbol, ending with the end symbol.
        log_probability: Σ_t log p(y_t | y_<t, x), the end symbol included, in nats.
        score: what hypotheses are ranked by: the log-probability after the length penalty, plus the coverage penalty.
        weights: attention weights (len(tokens), source_len), on the CPU.
    """

    tokens: list[int]
    log_probability: float
    score: float
    weights: Tensor


class Bounds(NamedTuple):
    """How long hypotheses may be, in tokens with the end symbol."""

    shortest: Tensor | None
    """(n,), or None where any length will do."""
    longest: Tensor
    """(n,)."""


class Model(Protocol):
    """What a search steps through: a :class:`Seq2Seq`, or an :class:`Ensemble` of them."""

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Any, Any]:
        """Read sources; return a memory and the state before the first token."""

    def step(self, tokens: Tensor, memory: Any, state: Any) -> tuple[Tensor, Tensor, Any]:
        """Return log-probabilities of the next token, which a search may overwrite, attention weights, and the new state."""


ROUNDING = 1e-9
"""What a product of a factor and a length may be off by, such as 1.3 times 90."""


@dataclass(kw_only=True, eq=False)
class Search(ABC):
    """Finds target sequences for a batch of sources.

    Lengths count target tokens with the end symbol; the source's length counts its end too. A hypothesis is at most
    ``max_length_factor`` · source length + ``max_length_offset`` long, where the end symbol is forced, at its own probability;
    it is at least ``min_length_factor`` · source length + ``min_length_offset`` long, the end symbol being forbidden before,
    unless nothing else is possible. A factor of 0 makes the limit an absolute one.

    Attributes:
        max_length_factor: target tokens allowed for a source token; a config takes at most 100, since a model that never ends
            writes so many.
        max_length_offset: target tokens allowed beside them; at least 1, and from a config at most 10,000.
        min_length_factor: target tokens demanded for a source token.
        min_length_offset: target tokens demanded beside them.
        no_repeat_ngram: no hypothesis has the same n tokens in a row twice, n being this; 0 allows all (Paulus et al. 2018,
            section 2.5).
        max_hypotheses_setting: the setting that decides how many hypotheses of a source there are at most, or None where there
            is one.

    Raises:
        UserError: limits that allow no token, that no hypothesis can meet, or that every hypothesis meets.
    """

    max_length_factor: Annotated[float, Range(0, 100)] = 2.0
    max_length_offset: Annotated[int, Range(1, 10_000)] = 10
    min_length_factor: float = 0.0
    min_length_offset: int = 0
    no_repeat_ngram: int = 0
    max_hypotheses_setting: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.max_length_factor < 0 or self.max_length_offset < 1:
            raise UserError(
                "max_length_factor must not be negative and max_length_offset be 1 or more, not "
                f"{self.max_length_factor} and {self.max_length_offset}"
            )
        if min(self.min_length_factor, self.min_length_offset, self.no_repeat_ngram) < 0:
            raise UserError("min_length_factor, min_length_offset and no_repeat_ngram must not be negative")
        if self.min_length_factor > self.max_length_factor or self.min_length_offset > self.max_length_offset:
            raise UserError("min_length_factor and min_length_offset must not be above those of the longest hypothesis")
        if self.min_length_factor == 0 and self.min_length_offset == 1:
            raise UserError("every hypothesis has its end symbol, so that a min_length_offset of 1 would have no effect")
        if self.max_length_factor == 0 and self.no_repeat_ngram >= max(1, self.max_length_offset - 1):
            raise UserError(
                f"a hypothesis of at most {self.max_length_offset} tokens, its end among them, has no {self.no_repeat_ngram} "
                "tokens twice, so that no_repeat_ngram would have no effect: make it smaller, or 0"
            )

    @property
    def reads_weights(self) -> bool:
        """Whether hypotheses are ranked by what an attention looked at."""
        return False

    @property
    def max_hypotheses(self) -> int:
        """How many hypotheses of a source there are at most."""
        return 1 if self.max_hypotheses_setting is None else int(getattr(self, self.max_hypotheses_setting))

    @abstractmethod
    def __call__(
        self,
        model: Model,
        source: Tensor,
        lengths: Tensor,
        *,
        bos: int | Tensor,
        eos: int,
        padding: int | None = None,
        copy_ids: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> list[list[Hypothesis]]:
        """Find target sequences.

        Args:
            model: in evaluation mode.
            source: (batch, source_len, …), as the model reads it.
            lengths: (batch,), on the CPU.
            bos: id of the start symbol, or of that of each source (batch,).
            eos: id of the end symbol.
            padding: id of the symbol of padding, which no hypothesis holds; None where there is none.
            copy_ids: see :meth:`Seq2Seq.encode`; ids that go beyond the vocabulary come back in hypotheses.
            target_lengths: (batch,), on the CPU: every hypothesis of a source has exactly this length, whatever the limits are,
                unless ``no_repeat_ngram`` leaves nothing but an end before; None leaves it to the limits.

        Returns:
            For each source its hypotheses, best first.
        """

    def limits(self, lengths: Tensor) -> Tensor:
        """Return the longest hypothesis allowed for each source length (batch,)."""
        return (self.max_length_factor * lengths.double() + ROUNDING).long() + self.max_length_offset

    def bounds(self, lengths: Tensor, target_lengths: Tensor | None = None) -> Bounds:
        """Return how long the hypotheses of each source may be.

        Args:
            lengths: of the sources (batch,).
            target_lengths: that hypotheses are to have (batch,), or None.
        """
        if target_lengths is not None:
            return Bounds(target_lengths, target_lengths)
        has_least = self.min_length_factor or self.min_length_offset
        least = (self.min_length_factor * lengths.double() - ROUNDING).ceil().long() + self.min_length_offset
        return Bounds(least if has_least else None, self.limits(lengths))

    def constrain(
        self, log_probabilities: Tensor, history: Tensor, bounds: Bounds, eos: int, padding: int | None = None
    ) -> None:
        """Forbid what may not come next: its log-probability becomes -inf, in place.

        Args:
            log_probabilities: of the next token (n, tokens).
            history: tokens so far (n, steps).
            bounds: of the hypotheses (n,).
            eos: id of the end symbol, which keeps its own log-probability where it is forced.
            padding: id of the symbol of padding, which is always forbidden; None where there is none.
        """
        if padding is not None:
            log_probabilities[:, padding] = -torch.inf
        next_length = history.shape[1] + 1
        must_end = bounds.longest == next_length
        too_short = None if bounds.shortest is None else next_length < bounds.shortest
        end = log_probabilities[:, eos].clone()
        if self.no_repeat_ngram or (too_short is not None and bool(too_short.any())):
            self._forbid_repetition(log_probabilities, history)
            if too_short is not None:
                log_probabilities[too_short, eos] = -torch.inf
            must_end |= log_probabilities.amax(dim=-1).isneginf()
        if bool(must_end.any()):
            log_probabilities[must_end] = -torch.inf
            log_probabilities[must_end, eos] = end[must_end]

    def _forbid_repetition(self, log_probabilities: Tensor, history: Tensor) -> None:
        """Forbid what would make an n-gram come twice."""
        size = self.no_repeat_ngram
        if size and history.shape[1] >= size:
            spans = history.unfold(1, size, 1)
            again = (spans[..., :-1] == history[:, history.shape[1] - size + 1 :].unsqueeze(1)).all(-1)
            rows, where = again.nonzero(as_tuple=True)
            log_probabilities[rows, spans[rows, where, -1]] = -torch.inf


PIECE = 64
"""Of how many steps a piece of memory holds what is kept."""


class KeptSteps(list[Tensor]):
    """What a search keeps of each step (rows, n), in single precision, many steps in one piece of memory.

    Small pieces between the large ones that come and go with every step tear the heap, of which a search for a long source
    would then take gigabytes.
    """

    _free: Tensor | None = None

    def keep(self, step: Tensor) -> None:
        """Take a copy of what a step computed."""
        rows, width = step.shape
        if self._free is None or len(self._free) < rows:
            self._free = torch.empty(PIECE * rows, width, device=step.device)
        own, self._free = self._free[:rows], self._free[rows:]
        self.append(own.copy_(step))


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
    own = torch.split(torch.cat(list(steps))[order].cpu(), whose.bincount().tolist())
    return [rows.clone() for rows in own]  # a view is sent to another process with all of the batch


def first_tokens(bos: int | Tensor, count: int, device: torch.device) -> Tensor:
    """Return the token that opens each of so many targets (count,)."""
    return torch.as_tensor(bos, device=device).expand(count).clone()


def score_dtype(device: torch.device) -> torch.dtype:
    """Return what log-probabilities are summed in: in single precision the rounding of many steps shows in a score."""
    return torch.float32 if device.type == "mps" else torch.float64  # which that device lacks


BLOCK, MANY = 64, 2048
"""Tokens of a block, and of a vocabulary of which blocks are looked at first."""


def top_tokens(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the best scores (rows, count), best first, and their tokens; among equal ones any.

    Of a large vocabulary on a CPU the blocks with the best maxima hold them all: to look at these alone takes .4 of the time.

    Args:
        scores: (rows, tokens).
        count: at most as many as there are tokens.
    """
    size = scores.shape[1]
    if scores.device.type != "cpu" or size < MANY or count * BLOCK > size:
        best, tokens = scores.topk(count, dim=-1)
        return best, tokens
    last = (size - 1) // BLOCK * BLOCK  # where the last block starts, which may be shorter
    maxima = [scores[:, :last].reshape(len(scores), last // BLOCK, BLOCK).amax(-1), scores[:, last:].amax(-1, keepdim=True)]
    blocks = torch.cat(maxima, dim=1).topk(count, dim=-1).indices
    places = (blocks.unsqueeze(-1) * BLOCK + torch.arange(BLOCK)).flatten(1)
    inside = scores.gather(1, places.clamp(max=size - 1)).masked_fill_(places >= size, -torch.inf)
    best, chosen = inside.topk(count, dim=-1)
    return best, places.gather(1, chosen).clamp_(max=size - 1)  # a token even where all of a row are forbidden
