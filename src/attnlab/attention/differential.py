"""The difference of two maps of weights."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.composition import Composition, validate_composition
from attnlab.attention.mechanism import Memory
from attnlab.attention.normalizers import Normalizer, StatelessNormalizer
from attnlab.attention.scores import Score


class Differential(Normalizer):
    """Differential attention, a_t = f(e_t) - λ f(e'_t) with λ = exp(λ_q1 · λ_k1) - exp(λ_q2 · λ_k2) + λ_init: what two maps
    have in common cancels (Ye et al. 2024, section 2.1, equations 1 and 2).

    f is another normalizer, the paper's a softmax; e are the logits and e' those of a second score, with which the paper's
    second query and key are compared. Weights may be negative. What a window or a history adds to the logits is in the first
    map alone; what a window forbids has no weight in either. The paper's normalisation of each head's context is left out.

    Parameters:
        vectors: λ_q1, λ_k1, λ_q2 and λ_k2 (4, query_size), drawn from N(0, 0.1²).
        second: its own, the score of e'.
        each: its own, f.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        second: makes the second score from (query_size, memory_size).
        each: makes f from (query_size, memory_size).
        initial_lambda: λ_init; the paper's is 0.2 in the first layer and goes up to 0.8.

    Raises:
        UserError: an f that ignores the score, or that cannot normalise a map by itself.
    """

    sums_to_one = False
    shares = False
    reads_query = True

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        second: Callable[[int, int], Score],
        each: Callable[[int, int], StatelessNormalizer],
        initial_lambda: float = 0.2,
    ) -> None:
        super().__init__(query_size, memory_size)
        self.second = second(query_size, memory_size)
        self.each = each(query_size, memory_size)
        validate_composition(Composition(normalizer=self.each, chunk=self.each, comparison="two maps"))
        self.initial_lambda = initial_lambda
        self.vectors = nn.Parameter(torch.empty(4, query_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors that make λ."""
        nn.init.normal_(self.vectors, std=0.1)

    @override
    def prepare(self, states: Tensor) -> Tensor:
        """Return the keys of the second score."""
        return self.second.project_keys(states)

    @override
    def advance(self, logits: Tensor, allowed: Tensor, query: Tensor, memory: Memory, state: None) -> tuple[Tensor, None]:
        q1, k1, q2, k2 = self.vectors
        factor = (q1 @ k1).exp() - (q2 @ k2).exp() + self.initial_lambda
        weights: Tensor = self.each(logits, allowed) - factor * self.each(self.second(query, memory.normalizer), allowed)
        return weights, None
