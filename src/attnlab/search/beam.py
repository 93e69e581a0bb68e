"""Beam search."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.errors import UserError, attempt
from attnlab.search.penalties import AveragePenalty, LengthPenalty
from attnlab.search.search import Count, Hypothesis, KeptSteps, Model, Search, first_tokens, score_dtype, top_tokens, unbatch
from attnlab.trees import move, select


@dataclass(kw_only=True, eq=False)
class BeamSearch(Search):
    """Beam search, batched over sources; a finished hypothesis frees no place (Bahdanau et al. 2015's own search).

    Each source has ``width`` places. At every step the best extensions of its open hypotheses take the places that are left;
    one that ends with the end symbol is finished and keeps its place for good, so that a beam of width 1 is greedy search, and
    a beam wide enough for every sequence is exhaustive. The model reads open hypotheses alone.

    Attributes:
        width: places for a source.
        length_penalty: divides the log-probability when finished hypotheses are ranked.
        coverage_penalty: β; β Σ_j log(min(Σ_t a_tj, 1)) is added when finished hypotheses are ranked (Wu et al. 2016,
            equation 14), a sum over the source tokens, the end included. A position that was never looked at counts as one in a
            million.
        relative_threshold: an extension whose log-probability is more nats than this below that of the best extension of its
            source in the same step is dropped, though it had a place (relative threshold pruning, Freitag and Al-Onaizan 2017,
            section 3, in logarithms): the search becomes faster, and may find less. None drops nothing.

    Raises:
        UserError: a width below 1, a negative penalty or threshold, one that has nothing to choose from, or a length penalty
            that is no function of a length, or not above 0.
    """

    max_hypotheses_setting = "width"

    width: Count = 5
    length_penalty: LengthPenalty = AveragePenalty()  # noqa: RUF009  # frozen
    coverage_penalty: float = 0.0
    relative_threshold: float | None = None

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width < 1:
            raise UserError(f"width must be 1 or more, not {self.width}")
        if self.coverage_penalty < 0:
            raise UserError(f"coverage_penalty must not be negative, as {self.coverage_penalty} is")
        if self.coverage_penalty and self.width == 1:
            raise UserError("a width of 1 leaves nothing to rank, so that coverage_penalty would have no effect: set it to 0")
        if self.relative_threshold is not None and self.relative_threshold < 0:
            raise UserError(f"relative_threshold must not be negative, as {self.relative_threshold} is; null drops nothing")
        if self.relative_threshold is not None and self.width == 1:
            raise UserError("a width of 1 leaves nothing to drop, so that relative_threshold has no effect: set it to null")
        if not callable(self.length_penalty):
            raise UserError(
                f"length_penalty is a part of its own and not a value, as {self.length_penalty!r} is: choose an option of its "
                "group"
            )
        _check_penalty(self.length_penalty)

    @property
    @override
    def reads_weights(self) -> bool:
        return self.coverage_penalty > 0

    @torch.inference_mode()
    @override
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
        device, width = source.device, self.width
        memory, state = model.encode(source, lengths, copy_ids)
        bounds = self.bounds(lengths, target_lengths)
        longest, bounds = int(bounds.longest.max()), move(bounds, device)

        # A row of the model is a hypothesis that is open. Until the first step each source has one, in the first of its places.
        sources = torch.arange(len(source), device=device)
        cells, open_width = sources, 1
        tokens = first_tokens(bos, len(source), device)
        history = torch.empty(len(source), 0, dtype=torch.long, device=device)
        scores = torch.zeros(len(source), 1, dtype=score_dtype(device), device=device)
        places = torch.full((len(source),), width, device=device)
        finished = FinishedHypotheses()

        for _ in range(longest):
            log_probabilities, weights, state = model.step(tokens, memory, state)
            owners = cells // open_width
            self.constrain(log_probabilities, history, select(bounds, sources[owners]), eos, padding)
            # No hypothesis has more than width extensions among the best: the other tokens are not looked at again.
            best, extensions = top_tokens(log_probabilities, min(width, log_probabilities.shape[-1]))
            candidates = scores.new_full((scores.numel(), best.shape[1]), -torch.inf)
            candidates[cells] = scores.view(-1, 1)[cells] + best
            candidates = candidates.view(len(sources), -1)
            scores, flat = candidates.topk(min(width, candidates.shape[1]), dim=-1)

            # From places to rows; what is no candidate has none, and is not used.
            rows = torch.zeros(len(sources) * open_width, dtype=torch.long, device=device)
            rows[cells] = torch.arange(len(cells), device=device)
            parents = rows.view(len(sources), -1).gather(1, flat // best.shape[1])
            next_tokens = extensions[parents, flat % best.shape[1]]

            has_place = torch.arange(scores.shape[1], device=device) < places.unsqueeze(1)
            valid = has_place & scores.isfinite()
            if self.relative_threshold is not None:
                valid &= scores >= scores[:, :1] - self.relative_threshold
            ended = valid & (next_tokens == eos)
            ended_at = ended.nonzero(as_tuple=True)  # a GPU is waited for once, and not at each index by a mask
            ends = parents[ended_at]
            whole = torch.cat([history[ends], next_tokens[ended_at].unsqueeze(1)], dim=1)
            finished.add(weights, sources[ended_at[0]], scores[ended_at], whole, ends)
            places = places - ended.sum(dim=1)
            alive = valid & ~ended

            alive_at = alive.nonzero(as_tuple=True)
            if not len(alive_at[0]):
                break
            hypotheses, tokens = parents[alive_at], next_tokens[alive_at]
            finished.origins.append(hypotheses)
            state = select(state, hypotheses)
            history = torch.cat([history[hypotheses], tokens.unsqueeze(1)], dim=1)
            if not torch.equal(alive_at[0], owners):
                memory = select(memory, hypotheses)
            open_sources = alive.any(dim=1).nonzero().squeeze(1)
            sources, places = sources[open_sources], places[open_sources]
            scores, alive = scores[open_sources], alive[open_sources]
            cells, open_width = alive.flatten().nonzero().squeeze(1), scores.shape[1]
        return self._rank(finished, lengths)

    def _rank(self, finished: "FinishedHypotheses", lengths: Tensor) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in lengths]
        sizes = lengths.tolist()
        each = zip(finished.sources, finished.scores, finished.tokens, finished.weights(), strict=True)
        for source, score, tokens, weights in each:
            ranked = score / self.length_penalty(len(tokens))
            if self.coverage_penalty:
                covered = weights[:, : sizes[source]].sum(dim=0).clamp(min=1e-6, max=1.0)
                ranked += self.coverage_penalty * float(covered.log().sum())
            found[source].append(Hypothesis(tokens, score, ranked, weights))
        return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in found]


def _check_penalty(penalty: LengthPenalty) -> None:
    name = f"the length penalty {getattr(penalty, '__name__', type(penalty).__name__)}"
    for length in (1, 2, 100):
        with attempt(name, penalty, type(penalty)):
            divisor = penalty(length)
            if not (math.isfinite(divisor) and divisor > 0):
                raise UserError(f"{name} is {divisor} for {length} tokens: what log-probabilities are divided by is above 0")


class FinishedHypotheses:
    """What ended in a search, and where it came from: attention weights are gathered at the end alone, by going back.

    Attributes:
        sources: of each hypothesis, in the order in which they ended.
        scores: its log-probability.
        tokens: its own.
        origins: for each row of the second step, of the third, …, its row in the step before.
    """

    def __init__(self) -> None:
        self.sources: list[int] = []
        self.scores: list[float] = []
        self.tokens: list[list[int]] = []
        self.origins: list[Tensor] = []
        self._weights = KeptSteps()
        self._last: list[Tensor] = []

    def add(self, weights: Tensor, sources: Tensor, scores: Tensor, tokens: Tensor, rows: Tensor) -> None:
        """Take a step's weights (rows, source_len), and of what ended in it the row that it grew from."""
        self._weights.keep(weights)
        self._last.append(rows)
        self.sources += sources.tolist()
        self.scores += scores.tolist()
        self.tokens += tokens.tolist()

    def weights(self) -> list[Tensor]:
        """Return the weights of every hypothesis (its length, source_len), on the CPU."""
        rows = self._last[-1]
        steps = [rows]
        for last, origins in zip(reversed(self._last[:-1]), reversed(self.origins), strict=True):
            # Those that ended earlier come first, so that the order stays that in which they ended.
            rows = torch.cat([last, origins[rows]])
            steps.append(rows)
        steps.reverse()
        count = len(self.sources)
        owners = [torch.arange(count - len(rows), count, device=rows.device) for rows in steps]
        return unbatch([weights[rows] for weights, rows in zip(self._weights, steps, strict=True)], owners)
