"""Attention as the composition of a score, a window and a normalizer."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.attention.composition import Composition, validate_composition
from attnlab.attention.histories import History, Sizes
from attnlab.attention.keys import Keys
from attnlab.attention.mechanism import AttentionMechanism, AttentionOutput, Memory, Query
from attnlab.attention.normalizers import Normalizer
from attnlab.attention.scores import Score
from attnlab.attention.windows import Window
from attnlab.errors import UserError

Part = Literal["state", "embedding", "context", "language"]


class AttentionState(NamedTuple):
    """What an attention carries from one target token to the next, batch first."""

    step: Tensor
    """(batch,): target tokens so far."""
    context: Tensor
    """(batch, context_size): the previous context, or size 0 where nothing asks with it."""
    language: Tensor
    """(batch, embedding_size): the embedding of the first target token, or size 0 where nothing asks with it."""
    normalizer: Any
    history: Any


class Attention(AttentionMechanism):
    """One composable attention: c_t = Σ_j a_tj v_j, with a_t = prior_t ∘ normalizer(score(q_t, k_j) + bias_t, allowed_t).

    The window says which positions are allowed, with a bias or a prior where it has one; a history may change keys and logits.
    Keys k_j and values v_j come from the encoder's states. The query q_t is what ``asks``: the concatenation of any of the
    decoder's state, the embedding of the previous target token, the previous context c_{t-1} (c_0 = 0), and a language
    token, which is the embedding of the token that opens the target sentence: with one target language a learned constant.

    Where nothing waits for the target token before, all queries of a sentence are answered at once, else one after another.

    Parameters:
        score, window, normalizer, keys, history: their own.

    Args:
        query_size: size of a decoder state.
        memory_size: size of an encoder state.
        embedding_size: size of a target embedding.
        score: makes the score function from (query size, key size).
        window: makes the window from (query size, memory size).
        normalizer: makes the normalizer from (query size, memory size).
        keys: makes keys and values from (memory_size).
        history: makes what is remembered over time from (sizes).
        asks: what the query is made of: one of state, embedding, context and language, or several.

    Raises:
        UserError: parts that make no sense together, or a query without a part.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        embedding_size: int,
        *,
        score: Callable[[int, int], Score],
        window: Callable[[int, int], Window],
        normalizer: Callable[[int, int], Normalizer],
        keys: Callable[[int], Keys],
        history: Callable[[Sizes], History],
        asks: Part | Sequence[Part] = ("state",),
    ) -> None:
        super().__init__()
        self.keys = keys(memory_size)
        self.context_size = self.keys.value_size
        self.asks = (asks,) if isinstance(asks, str) else tuple(asks)
        sizes = {"state": query_size, "embedding": embedding_size, "context": self.context_size, "language": embedding_size}
        if not self.asks or len(set(self.asks)) < len(self.asks) or not set(self.asks) <= set(sizes):
            raise UserError(f"attention.asks names one or more of {', '.join(sizes)}, each once, not [{','.join(self.asks)}]")
        self.context_carried = self.context_size if "context" in self.asks else 0
        self.language_carried = embedding_size if "language" in self.asks else 0
        asked_size = sum(sizes[part] for part in self.asks)

        self.normalizer = normalizer(asked_size, memory_size)
        self.score = score(asked_size, self.keys.key_size) if self.normalizer.reads_logits else None
        self.window = window(asked_size, memory_size)
        projected = self.score.project_keys(torch.zeros(1, 1, self.keys.key_size)).shape[-1] if self.score else 0
        self.history = history(Sizes(asked_size, self.keys.value_size, projected))
        self.sequential = bool(self.context_carried) or any(part.sequential for part in self.parts)
        validate_composition(Composition(self.score, self.window, self.normalizer, self.keys, self.history))

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        keys, own_values = self.keys(states, states if values is None else values)
        projected = keys[..., :0] if self.score is None else self.score.project_keys(keys)
        return Memory(projected, own_values, mask, self.normalizer.prepare(states), self.history.prepare(own_values))

    @override
    def start(self, memory: Memory) -> AttentionState:
        batch, values = len(memory.mask), memory.values
        return AttentionState(
            step=torch.zeros(batch, dtype=torch.long, device=values.device),
            context=values.new_zeros(batch, self.context_carried),
            language=values.new_zeros(batch, self.language_carried),
            normalizer=self.normalizer.start(memory.mask),
            history=self.history.start(memory.mask),
        )

    @override
    def forward(self, query: Query, memory: Memory, state: AttentionState, *, need_weights: bool = True) -> AttentionOutput:
        if not self.sequential:
            return self._look(query, memory, state)
        looks = []
        for step_state, embedding in zip(*(torch.split(part, 1, dim=1) for part in query), strict=True):
            looks.append(self._look(Query(step_state, embedding), memory, state))
            state = looks[-1].state
        contexts, weights = (torch.cat(part, dim=1) for part in ([x.context for x in looks], [x.weights for x in looks]))
        return AttentionOutput(contexts, weights, state)

    def _look(self, query: Query, memory: Memory, state: AttentionState) -> AttentionOutput:
        asked, language = self._ask(query, state)
        if self.score is None:
            logits = asked.new_zeros(*asked.shape[:2], memory.mask.shape[1])
        else:
            logits = self.score(asked, self.history.keys(memory.keys, state.history))
        region = self.window(asked, memory.mask, state.step)
        biased = self.history.logits(logits, state.history)
        if region.bias is not None:
            biased = biased + region.bias.to(biased.dtype)
        weights, normalizer = self.normalizer.advance(biased, region.allowed, asked, memory, state.normalizer)
        if region.prior is not None:
            weights = weights * region.prior.to(biased.dtype)
        context = weights @ memory.values
        history = self.history.after(state.history, logits, weights, asked, memory)
        carried = context[:, -1, : self.context_carried]
        return AttentionOutput(
            context, weights, AttentionState(state.step + asked.shape[1], carried, language, normalizer, history)
        )

    def _ask(self, query: Query, state: AttentionState) -> tuple[Tensor, Tensor]:
        """Return the query (batch, target_len, asked size), and the language token's embedding to be carried on."""
        language = state.language
        if self.language_carried:
            language = torch.where((state.step == 0).unsqueeze(1), query.embedding[:, 0], language)
        parts = {
            "state": query.state,
            "embedding": query.embedding,
            "context": state.context.unsqueeze(1),
            "language": language.unsqueeze(1).expand(-1, query.state.shape[1], -1),
        }
        if len(self.asks) == 1:
            return parts[self.asks[0]], language
        return torch.cat([parts[part] for part in self.asks], dim=-1), language
