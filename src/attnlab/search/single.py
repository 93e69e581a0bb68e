"""Searches that follow one hypothesis a source: greedy and sampling."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.search.search import Count, Hypothesis, KeptSteps, Model, Search, first_tokens, score_dtype, top_tokens, unbatch
from attnlab.seeding import derive_seed
from attnlab.trees import move, select

LIMITS = {"samples": Range(1), "temperature": Range(1e-6, 1e6), "top_k": Range(0), "top_p": Range(above=0, most=1)}
"""Of the settings of a :class:`SamplingSearch`."""


class SinglePathSearch(Search):
    """Follows one hypothesis, or several that know nothing of each other. What is finished leaves the batch."""

    @abstractmethod
    def choose(self, log_probabilities: Tensor, draws: Tensor) -> Tensor:
        """Choose the next tokens (n,).

        Args:
            log_probabilities: (n, tokens), -inf for what is forbidden.
            draws: a number from 0 to 1 for each hypothesis (n,), from :meth:`draw`.
        """

    def draw(self, source: Tensor, lengths: Tensor, longest: int) -> Tensor:
        """Return the numbers of all steps of each hypothesis (batch · hypotheses, longest); zeros for a search that draws none.

        The hypotheses of a source stand together.
        """
        return torch.zeros(len(source), longest)

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
        memory, state = model.encode(source, lengths, copy_ids)
        paths = self.max_hypotheses
        bounds = self.bounds(lengths, target_lengths)
        longest = int(bounds.longest.max())
        draws = move(self.draw(source, lengths, longest), source.device)
        rows = torch.arange(paths * len(source), device=source.device)
        bounds = select(move(bounds, source.device), rows // paths)
        if paths > 1:
            memory, state = select(memory, rows // paths), select(state, rows // paths)
        tokens = first_tokens(bos, len(source), source.device)[rows // paths]
        chosen = torch.full((len(rows), longest), eos, device=source.device)
        scores = torch.zeros(len(rows), dtype=score_dtype(source.device), device=source.device)
        weights = KeptSteps()
        owners: list[Tensor] = []
        for step in range(longest):
            log_probabilities, step_weights, state = model.step(tokens, memory, state)
            self.constrain(log_probabilities, chosen[rows, :step], select(bounds, rows), eos, padding)
            tokens = self.choose(log_probabilities, draws[rows, step])
            chosen[rows, step] = tokens
            scores[rows] += log_probabilities.gather(1, tokens.unsqueeze(1)).squeeze(1)
            weights.keep(step_weights)
            owners.append(rows)
            open_rows = (tokens != eos).nonzero().squeeze(1)
            if not len(open_rows):
                break
            if len(open_rows) < len(tokens):
                rows, tokens = rows[open_rows], tokens[open_rows]
                memory, state = select(memory, open_rows), select(state, open_rows)
        found: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        each = zip(chosen.tolist(), scores.tolist(), unbatch(weights, owners), strict=True)
        for row, (ids, score, own) in enumerate(each):
            found[row // paths].append(Hypothesis(ids[: len(own)], score, score, own))
        return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in found]


class GreedySearch(SinglePathSearch):
    """Takes the most probable token at every step."""

    @override
    def choose(self, log_probabilities: Tensor, draws: Tensor) -> Tensor:
        return top_tokens(log_probabilities, 1)[1].squeeze(1)  # of equal ones that which a beam of width 1 takes


@dataclass(kw_only=True, eq=False)
class SamplingSearch(SinglePathSearch):
    """Draws every token from the model's distribution, sharpened and cut.

    p(y)^(1/τ) is cut to the ``top_k`` most probable tokens and then to the smallest set of these whose probability is at least
    ``top_p`` (Fan et al. 2018, section 4; Holtzman et al. 2020, section 3.1). What a source gets depends on the seed and the
    source alone, not on the others of its batch. Scores are log-probabilities of the model's own distribution.

    Attributes:
        samples: hypotheses of each source.
        temperature: τ; close to 0 it is greedy search.
        top_k: keep so many tokens; 0 keeps all.
        top_p: keep tokens of so much probability; 1 keeps all.
        seed: of the draws.

    Raises:
        UserError: settings outside their range, or without effect beside a ``top_k`` of 1.
    """

    max_hypotheses_setting = "samples"

    samples: Count = 1
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        for name, limits in LIMITS.items():
            if (given := getattr(self, name)) not in limits:
                raise UserError(f"{name} must be {limits}, not {given}")
        if self.top_k == 1 and (self.samples, self.temperature, self.top_p) != (1, 1.0, 1.0):
            raise UserError(
                "a top_k of 1 always draws the most probable token, so that samples, temperature and top_p would have no "
                "effect: leave them at 1, or raise top_k"
            )

    @override
    def draw(self, source: Tensor, lengths: Tensor, longest: int) -> Tensor:
        elements = zip(source.tolist(), lengths.tolist(), strict=True)
        seeds = [derive_seed(self.seed, f"sample {n} of {own[:size]}") for own, size in elements for n in range(self.samples)]
        generators = (torch.Generator().manual_seed(seed) for seed in seeds)
        return torch.stack([torch.rand(longest, dtype=torch.float32, generator=generator) for generator in generators])

    @override
    def choose(self, log_probabilities: Tensor, draws: Tensor) -> Tensor:
        sharpened = log_probabilities / self.temperature
        if self.top_k:  # a sort of a large vocabulary takes many times as long as the search for a few tokens
            best, tokens = top_tokens(sharpened, min(self.top_k, sharpened.shape[1]))
            mass = best.softmax(dim=-1)
        else:
            mass, tokens = sharpened.softmax(dim=-1).sort(dim=-1, descending=True)
        if self.top_p < 1:
            before = mass.cumsum(dim=-1) - mass
            mass[before >= self.top_p * mass.sum(dim=-1, keepdim=True)] = 0
        cumulative = mass.cumsum(dim=-1)
        place = (cumulative <= draws.unsqueeze(1) * cumulative[:, -1:]).sum(dim=-1)
        place = place.clamp(max=((mass > 0).sum(dim=-1) - 1).clamp(min=0))  # none where the model gives no numbers
        return tokens.gather(1, place.unsqueeze(1)).squeeze(1)
