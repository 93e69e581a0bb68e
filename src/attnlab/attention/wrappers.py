"""Attentions around attentions: the decoder's own past, a gate on the context."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.composition import Composition, validate_composition
from attnlab.attention.mechanism import AttentionFactory, AttentionMechanism, AttentionOutput, Memory, Query
from attnlab.attention.normalizers import Softmax
from attnlab.attention.scores import Score
from attnlab.errors import UserError


class DecoderPast(NamedTuple):
    """What an intra-decoder attention carries from one target token to the next."""

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
        inner, past_score: their own.

    Args:
        query_size: size of a decoder state.
        memory_size: size of an encoder state.
        embedding_size: size of a target embedding.
        inner: makes the attention over the source.
        score: makes the score over the past from (query_size, query_size); the paper's is bilinear.

    Raises:
        UserError: a score that does not compare, or not any number of states, or an inner attention without a context.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        embedding_size: int,
        *,
        inner: AttentionFactory,
        score: Callable[[int, int], Score],
    ) -> None:
        super().__init__()
        self.inner = inner(query_size, memory_size, embedding_size)
        self.past_score = score(query_size, query_size)
        self.normalizer = Softmax(query_size, query_size)
        self.query_size = query_size
        self.context_size = self.inner.context_size + query_size
        validate_composition(Composition(self.past_score, comparison="past states", outer=self, inner=self.inner))
        if self.past_score.max_length is not None:
            raise UserError(
                f"a {type(self.past_score).__name__} score reads {self.past_score.max_length} states at most, and a target has "
                "no such limit: choose another for the past states, such as general"
            )

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        return self.inner.memory(states, mask, values)

    @override
    def start(self, memory: Memory) -> DecoderPast:
        nothing = memory.values.new_zeros(len(memory.mask), 0, self.query_size)
        return DecoderPast(self.inner.start(memory), self.past_score.project_keys(nothing), nothing)

    @override
    def forward(self, query: Query, memory: Memory, state: DecoderPast, *, need_weights: bool = True) -> AttentionOutput:
        output = self.inner(query, memory, state.source, need_weights=need_weights)
        keys = torch.cat([state.keys, self.past_score.project_keys(query.state)], dim=1)
        states = torch.cat([state.states, query.state], dim=1)
        target_len, past_len = query.state.shape[1], state.states.shape[1]
        earlier = torch.ones(target_len, past_len + target_len, dtype=torch.bool, device=states.device).tril(past_len - 1)
        past_context = self.normalizer(self.past_score(query.state, keys), earlier) @ states
        context = torch.cat([output.context, past_context], dim=-1)
        return AttentionOutput(context, output.weights, DecoderPast(output.state, keys, states))


GateForm = Literal["source", "target", "both"]


class ContextGate(AttentionMechanism):
    """A gate weighs the source against what is written already, c'_t = tanh(g_s ∘ (C c_t) + g_t ∘ (W E y_{t-1} + U s_t)) (after
    Tu et al. 2017, section 3, "context gate (source)", "(target)" and "(both)").

    z_t = sigmoid(W_z E y_{t-1} + U_z s_t + C_z c_t + b), s_t being the query. The forms differ in (g_s, g_t): (z, 1) gates the
    source, (1, z) the target, (z, 1 - z) both. In the paper the decoder's own cell stands in the place of the tanh, with its
    matrices C, W and U; here, as in OpenNMT (Klein et al. 2017), it is a layer between attention and decoder, so that any
    decoder will do, and the decoder's own inputs stay without a gate.

    Parameters:
        gate: [W_z; U_z; C_z] (query_size, embedding_size + query_size + inner context_size) and b.
        source_projection: C (query_size, inner context_size), no bias.
        target_projection: [W; U] (query_size, embedding_size + query_size), no bias. All are initialised as a
            ``torch.nn.Linear`` is.
        inner: its own.

    Args:
        query_size: size of a decoder state; also of the context.
        memory_size: size of an encoder state.
        embedding_size: size of a target embedding.
        inner: makes the attention whose context is gated.
        form: what is gated: source, target or both.

    Raises:
        UserError: an inner attention without a context.
    """

    def __init__(
        self, query_size: int, memory_size: int, embedding_size: int, *, inner: AttentionFactory, form: GateForm = "source"
    ) -> None:
        super().__init__()
        self.inner = inner(query_size, memory_size, embedding_size)
        self.context_size = query_size
        self.form = form
        validate_composition(Composition(outer=self, inner=self.inner))
        target_size = embedding_size + query_size
        self.gate = nn.Linear(target_size + self.inner.context_size, query_size)
        self.source_projection = nn.Linear(self.inner.context_size, query_size, bias=False)
        self.target_projection = nn.Linear(target_size, query_size, bias=False)

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        return self.inner.memory(states, mask, values)

    @override
    def start(self, memory: Memory) -> Any:
        return self.inner.start(memory)

    @override
    def forward(self, query: Query, memory: Memory, state: Any, *, need_weights: bool = True) -> AttentionOutput:
        context, weights, state = self.inner(query, memory, state, need_weights=need_weights)
        target = torch.cat([query.embedding, query.state], dim=-1)
        gate = torch.sigmoid(self.gate(torch.cat([target, context], dim=-1)))
        of_source = 1.0 if self.form == "target" else gate
        of_target = {"source": 1.0, "target": gate, "both": 1.0 - gate}[self.form]
        mixed = of_source * self.source_projection(context) + of_target * self.target_projection(target)
        return AttentionOutput(torch.tanh(mixed), weights, state)
