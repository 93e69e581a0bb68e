"""Attentions around attentions: several heads, the decoder's own past, a gate on the context."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._pytree import tree_map_only
from typing_extensions import override

from attnlab.attention.attention import Attention, Part
from attnlab.attention.histories import History, NoHistory, Sizes
from attnlab.attention.keys import States
from attnlab.attention.mechanism import AttentionFactory, AttentionMechanism, AttentionOutput, Memory, Query
from attnlab.attention.normalizers import Normalizer, Softmax
from attnlab.attention.scores import ScaledDot, Score
from attnlab.attention.windows import Global, Window
from attnlab.errors import UserError


class MultiHeadAttention(AttentionMechanism):
    """Several heads, each an attention of its own in a subspace of its own (Vaswani et al. 2017, section 3.2.2).

    head_i = Attention(W_i^Q q, W_i^K h, W_i^V h); c_t = W^O [head_1; …; head_n]. Any score, window, normalizer and history may
    sit in the heads; what parameters these have, such as the v of an additive score, the heads share: W_i^Q, W_i^K and W_i^V
    are what tells the heads apart. Reported weights are the mean over the heads.

    A scaled dot product over the whole sentence runs in PyTorch's fused kernel when nobody asks for its weights.

    Parameters:
        query_projection: W^Q of all heads (heads · head_size, query_size), no bias.
        key_projection: W^K (heads · head_size, memory_size), no bias.
        value_projection: W^V (heads · head_size, memory_size), no bias.
        combine: W^O (query_size, heads · head_size), no bias. All are initialised by Glorot and Bengio's (2010) uniform rule.
        head: its own.

    Args:
        query_size: size of a decoder state; also of the context.
        memory_size: size of an encoder state.
        embedding_size: size of a target embedding.
        heads: number of heads; head_size is query_size / heads.
        score: makes the score function from (query size, key size) of a head.
        window: makes the window from (query size, memory size) of a head.
        normalizer: makes the normalizer.
        history: makes what is remembered over time from (sizes) of a head.
        asks: what a head's query is made of; the decoder's state is that of the head's subspace.

    Raises:
        UserError: the heads do not divide the query, or a score that does not look at keys.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        embedding_size: int,
        *,
        heads: int = 4,
        score: Callable[[int, int], Score],
        window: Callable[[int, int], Window],
        normalizer: Callable[[], Normalizer],
        history: Callable[[Sizes], History],
        asks: Part | Sequence[Part] = ("state",),
    ) -> None:
        super().__init__()
        if heads < 1 or query_size % heads:
            raise UserError(
                f"attention.heads={heads} cannot share a query of size {query_size}: choose a number that divides it, or "
                "change decoder.hidden_size"
            )
        if "state" not in ((asks,) if isinstance(asks, str) else asks):
            raise UserError("attention.asks of several heads must have state in it, which is what W^Q is for")
        self.heads = heads
        size = query_size // heads
        self.query_projection = nn.Linear(query_size, query_size, bias=False)
        self.key_projection = nn.Linear(memory_size, query_size, bias=False)
        self.value_projection = nn.Linear(memory_size, query_size, bias=False)
        self.combine = nn.Linear(query_size, query_size, bias=False)
        self.context_size = query_size
        self.head = Attention(
            size,
            size,
            embedding_size,
            score=score,
            window=window,
            normalizer=normalizer,
            keys=States,
            history=history,
            asks=asks,
        )
        self._refuse_nonsense()
        self.sums_to_one = self.head.sums_to_one
        self.fused = self._is_plain()

    def _refuse_nonsense(self) -> None:
        if self.head.score is None or not self.head.score.content_based:
            part = type(self.head.score or self.head.normalizer).__name__
            raise UserError(
                f"{part} does not look at keys, so that the keys of {self.heads} heads would never learn: choose a score that "
                "compares, such as attention/score=scaled_dot, or an attention without heads"
            )

    def _is_plain(self) -> bool:
        parts = (self.head.score, self.head.window, self.head.normalizer, self.head.history)
        plain = tuple(map(type, parts)) == (ScaledDot, Global, Softmax, NoHistory) and self.head.asks == ("state",)
        return plain and getattr(self.head.normalizer, "temperature", 1.0) == 1.0

    def reset_parameters(self) -> None:
        """Draw the matrices."""
        for projection in (self.query_projection, self.key_projection, self.value_projection, self.combine):
            nn.init.xavier_uniform_(projection.weight)

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        """Everything but the mask is (batch, heads, …)."""
        keys = self._fold(self.key_projection(states))
        folded_values = self._fold(self.value_projection(states if values is None else values))
        memory = self.head.memory(keys, self._for_heads(mask), folded_values)
        unfolded: Memory = self._unfolded(memory)
        return unfolded._replace(mask=mask)

    @override
    def start(self, memory: Memory) -> Any:
        """Everything is (batch, heads, …)."""
        return self._unfolded(self.head.start(self._folded(memory)))

    @override
    def forward(self, query: Query, memory: Memory, state: Any, *, need_weights: bool = True) -> AttentionOutput:
        asked = self._fold(self.query_projection(query.state))
        if self.fused and not need_weights:
            heads = self._unfolded(asked)
            seen = memory.mask.unsqueeze(1).unsqueeze(1)
            contexts = scaled_dot_product_attention(heads, memory.keys, memory.values, attn_mask=seen)
            weights = asked.new_empty(*query.state.shape[:2], 0)
            state = state._replace(step=state.step + asked.shape[1])
        else:
            inside = Query(asked, self._for_heads(query.embedding))
            attended = self.head(inside, self._folded(memory), tree_map_only(Tensor, lambda x: x.flatten(0, 1), state))
            contexts, weights, state = self._unfolded(attended)
            weights = weights.mean(dim=1)
        return AttentionOutput(self.combine(contexts.transpose(1, 2).flatten(2)), weights, state)

    def _fold(self, states: Tensor) -> Tensor:
        """Turn (batch, len, heads · size) into (batch · heads, len, size), as if every head were a sentence."""
        folded: Tensor = torch.unflatten(states, -1, (self.heads, -1)).transpose(1, 2).flatten(0, 1)
        return folded

    def _for_heads(self, shared: Tensor) -> Tensor:
        """Repeat (batch, …) for every head: (batch · heads, …)."""
        return shared.repeat_interleave(self.heads, dim=0)

    def _folded(self, memory: Memory) -> Memory:
        mask = memory.mask.unsqueeze(1).expand(-1, self.heads, -1)
        folded: Memory = tree_map_only(Tensor, lambda x: x.flatten(0, 1), memory._replace(mask=mask))
        return folded

    def _unfolded(self, tree: Any) -> Any:
        return tree_map_only(Tensor, lambda x: torch.unflatten(x, 0, (-1, self.heads)), tree)


class OwnPast(NamedTuple):
    """What an intra-decoder attention carries."""

    source: Any
    """The state of the attention over the source."""
    keys: Tensor
    """(batch, past, key size): of the decoder's states so far."""
    states: Tensor
    """(batch, past, query_size): the decoder's states so far."""


class IntraDecoderAttention(AttentionMechanism):
    """Beside the source, the decoder attends to its own past states (Paulus et al. 2018, section 2.2, equations 6 to 8).

    c_t = [c^e_t; c^d_t]; c^d_t = Σ_{i<t} a_ti s_i with a_t = softmax(score(s_t, s_i)), and c^d_1 = 0. Reported weights are
    those over the source.

    Parameters:
        wrapped, own_score: their own.

    Args:
        query_size: size of a decoder state.
        memory_size: size of an encoder state.
        embedding_size: size of a target embedding.
        wrapped: makes the attention over the source.
        score: makes the score over the past from (query_size, query_size); the paper's is bilinear.

    Raises:
        UserError: a score that does not compare.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        embedding_size: int,
        *,
        wrapped: AttentionFactory,
        score: Callable[[int, int], Score],
    ) -> None:
        super().__init__()
        self.wrapped = _wrapped(wrapped(query_size, memory_size, embedding_size), self)
        self.own_score = score(query_size, query_size)
        if not self.own_score.content_based:
            raise UserError(
                f"an intra-decoder attention compares states, which a {type(self.own_score).__name__} score does not: choose "
                "attention/score=general"
            )
        self.normalizer = Softmax()
        self.query_size = query_size
        self.context_size = self.wrapped.context_size + query_size
        self.sums_to_one = self.wrapped.sums_to_one
        self.max_length = self.wrapped.max_length

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        return self.wrapped.memory(states, mask, values)

    @override
    def start(self, memory: Memory) -> OwnPast:
        nothing = memory.values.new_zeros(len(memory.mask), 0, self.query_size)
        return OwnPast(self.wrapped.start(memory), self.own_score.project_keys(nothing), nothing)

    @override
    def forward(self, query: Query, memory: Memory, state: OwnPast, *, need_weights: bool = True) -> AttentionOutput:
        attended = self.wrapped(query, memory, state.source, need_weights=need_weights)
        keys = torch.cat([state.keys, self.own_score.project_keys(query.state)], dim=1)
        states = torch.cat([state.states, query.state], dim=1)
        target_len, past = query.state.shape[1], state.states.shape[1]
        earlier = torch.ones(target_len, past + target_len, dtype=torch.bool, device=states.device).tril(past - 1)
        own = self.normalizer(self.own_score(query.state, keys), earlier) @ states
        context = torch.cat([attended.context, own], dim=-1)
        return AttentionOutput(context, attended.weights, OwnPast(attended.state, keys, states))


class ContextGate(AttentionMechanism):
    """A gate decides how much of the context the decoder receives, z_t ∘ c_t (Tu et al. 2017, section 3,
    "context gate (source)").

    z_t = sigmoid(W [E y_{t-1}; s_t] + C c_t + b), s_t being the query.

    Parameters:
        gate: [W; C] (context_size, embedding_size + query_size + context_size) and b, initialised as a ``torch.nn.Linear`` is.
        wrapped: its own.

    Args:
        query_size: size of a decoder state.
        memory_size: size of an encoder state.
        embedding_size: size of a target embedding.
        wrapped: makes the attention whose context is gated.
    """

    def __init__(self, query_size: int, memory_size: int, embedding_size: int, *, wrapped: AttentionFactory) -> None:
        super().__init__()
        self.wrapped = _wrapped(wrapped(query_size, memory_size, embedding_size), self)
        self.context_size = self.wrapped.context_size
        self.gate = nn.Linear(embedding_size + query_size + self.context_size, self.context_size)
        self.sums_to_one = self.wrapped.sums_to_one
        self.max_length = self.wrapped.max_length

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        return self.wrapped.memory(states, mask, values)

    @override
    def start(self, memory: Memory) -> Any:
        return self.wrapped.start(memory)

    @override
    def forward(self, query: Query, memory: Memory, state: Any, *, need_weights: bool = True) -> AttentionOutput:
        context, weights, state = self.wrapped(query, memory, state, need_weights=need_weights)
        open_part = torch.sigmoid(self.gate(torch.cat([query.embedding, query.state, context], dim=-1)))
        return AttentionOutput(open_part * context, weights, state)


def _wrapped(attention: AttentionMechanism, around: AttentionMechanism) -> AttentionMechanism:
    if not attention.context_size:
        raise UserError(f"{type(around).__name__} around an attention without a context would hide the source from the decoder")
    return attention
