"""Attentions around attentions: the decoder's own past, a gate on the context."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.composition import Composition, validate_composition
from attnlab.attention.mechanism import AttentionFactory, AttentionMechanism, AttentionOutput, Memory, Query
from attnlab.attention.normalizers import Softmax
from attnlab.attention.scores import Score


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
        self.wrapped = wrapped(query_size, memory_size, embedding_size)
        self.own_score = score(query_size, query_size)
        self.normalizer = Softmax(query_size, query_size)
        self.query_size = query_size
        self.context_size = self.wrapped.context_size + query_size
        validate_composition(Composition(self.own_score, comparison="past states", outer=self, inner=self.wrapped))

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
        self.wrapped = wrapped(query_size, memory_size, embedding_size)
        self.context_size = self.wrapped.context_size
        validate_composition(Composition(outer=self, inner=self.wrapped))
        self.gate = nn.Linear(embedding_size + query_size + self.context_size, self.context_size)

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
