"""Attention as the composition of a score, a window, a normalizer, keys and a history."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.attention.composition import Composition, kernel_obstacle, validate_composition
from attnlab.attention.histories import History, HistorySizes
from attnlab.attention.kernels import KERNELS, Kernel, KernelName, ProductAttention, Situation, choose_kernel
from attnlab.attention.keys import Keys
from attnlab.attention.mechanism import AttentionMechanism, AttentionOutput, Memory, Query
from attnlab.attention.normalizers import Normalizer
from attnlab.attention.scores import Score, score_within, validate_score
from attnlab.attention.validation import Sizes, as_part, validate_parts
from attnlab.attention.windows import Window
from attnlab.errors import UserError
from attnlab.hints import Range

QueryPart = Literal["state", "embedding", "context", "language"]

Replacement = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Returns other weights in place of weights (batch, target_len, source_len), from them, the mask of the source (batch,
source_len) and the number of target tokens before (batch,)."""


class AttentionState(NamedTuple):
    """What an attention carries from one target token to the next, batch first."""

    step: Tensor
    """(batch,): target tokens so far."""
    context: Tensor
    """(batch, context_size): the previous context, or size 0 where the query does not have it."""
    language: Tensor
    """(batch, embedding_size): the embedding of the language token, or size 0 where the query does not have it."""
    normalizer: Any
    history: Any


class Attention(AttentionMechanism):
    """One composable attention: c_t = Σ_j a_tj v_j, with a_t = prior_t ∘ normalizer(score(q_t, k_j) + bias_t, allowed_t).

    The window says which positions are allowed, with a bias or a prior where it has one; a history may change keys and logits.
    Keys k_j and values v_j come from the encoder's states. The query q_t is the concatenation of any of the decoder's state,
    the embedding of the previous target token, the previous context c_{t-1} (c_0 = 0), and a language token, which is the
    embedding of the token that opens the target: with one target language a learned constant. Where a source tells the
    language, the language token is the source's.

    Where nothing waits for the target token before, all queries of a sequence are answered at once, else one after another.
    Where nobody reads the weights, and they are a softmax over products, a kernel may compute the context without them.

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
        query: what the query is made of: one of state, embedding, context and language, or several.
        kernel: what computes the context where nobody reads the weights: auto, eager, sdpa or flex; see
            :mod:`attnlab.attention.kernels`.
        score_memory: MiB that this score, not one inside another part, may hold of what it makes of each pair of query and key,
            such as its hidden layer, where all queries are answered at once; see :func:`attnlab.attention.scores.score_within`.

    Attributes:
        replacement: of the weights, while somebody intervenes; see :func:`attnlab.attention.interventions.intervene`.
        fused_on_cpu: whether a fused kernel is worth it on a CPU too.
        reads_embedding: whether its query has the embedding of the token before, or the language's.
        reads_query: whether its weights depend on what is in the query: not where the score is a control that cannot see it.

    Raises:
        UserError: parts that make no sense together or do not keep their promises, a query without a part, or a kernel that
            cannot compute this.
    """

    replacement: Replacement | None = None
    fused_on_cpu: bool = False

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
        history: Callable[[HistorySizes], History],
        query: QueryPart | Sequence[QueryPart] = ("state",),
        kernel: KernelName = "auto",
        score_memory: Annotated[float, Range(0)] = 1024,
    ) -> None:
        super().__init__()
        self.score_memory = score_memory
        self.keys = as_part(keys(memory_size), Keys)
        self.context_size = self.keys.value_size
        self.query_parts = (query,) if isinstance(query, str) else tuple(query)
        sizes = {"state": query_size, "embedding": embedding_size, "context": self.context_size, "language": embedding_size}
        known = set(self.query_parts) & set(sizes)
        if not known or len(known) < len(self.query_parts):
            raise UserError(f"query names one or more of {', '.join(sizes)}, each once, not [{','.join(self.query_parts)}]")
        self.reads_embedding = not known.isdisjoint(("embedding", "language"))
        self.carried_context_size = self.context_size if "context" in self.query_parts else 0
        self.carried_language_size = embedding_size if "language" in self.query_parts else 0
        full_query_size = sum(sizes[part] for part in self.query_parts)

        self.normalizer = as_part(normalizer(full_query_size, memory_size), Normalizer)
        self.score = as_part(score(full_query_size, self.keys.key_size), Score) if self.normalizer.reads_logits else None
        if self.score:
            validate_score(self.score)
        self.window = as_part(window(full_query_size, memory_size), Window)
        projected_size = self.score.project_keys(torch.zeros(1, 1, self.keys.key_size)).shape[-1] if self.score else 0
        self.history = as_part(history(HistorySizes(full_query_size, self.keys.value_size, projected_size)), History)
        self.sequential = bool(self.carried_context_size) or any(part.sequential for part in self.parts)
        is_cancelled = self.score is None or (self.score.is_separable and self.normalizer.ignores_shifts)
        self.reads_query = not is_cancelled or any(part.reads_query for part in (self.window, self.normalizer, self.history))
        composition = Composition(self.score, self.window, self.normalizer, self.keys, self.history)
        validate_composition(composition)
        self.kernel = kernel
        self.kernel_obstacle = kernel_obstacle(composition) or (
            "each of its steps needs the one before" if self.sequential else None
        )
        self._check_kernel()
        validate_parts(self, Sizes(query_size, memory_size, embedding_size))

    def _check_kernel(self) -> None:
        if self.kernel not in get_args(KernelName):
            raise UserError(f"kernel is {', '.join(get_args(KernelName))}, not {self.kernel!r}")
        if self.kernel in KERNELS and self.kernel_obstacle is not None:
            raise UserError(
                f"the kernel {self.kernel} computes a softmax over products alone, and {self.kernel_obstacle}: leave it at auto"
            )

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        keys, own_values = self.keys(states, states if values is None else values)
        projected_keys = keys[..., :0] if self.score is None else self.score.project_keys(keys)
        return Memory(projected_keys, own_values, mask, self.normalizer.prepare(states), self.history.prepare(own_values))

    @override
    def start(self, memory: Memory) -> AttentionState:
        batch, values = len(memory.mask), memory.values
        return AttentionState(
            step=torch.zeros(batch, dtype=torch.long, device=values.device),
            context=values.new_zeros(batch, self.carried_context_size),
            language=values.new_zeros(batch, self.carried_language_size),
            normalizer=self.normalizer.start(memory.mask),
            history=self.history.start(memory.mask),
        )

    @override
    def forward(self, query: Query, memory: Memory, state: AttentionState, *, need_weights: bool = True) -> AttentionOutput:
        if not need_weights and self.kernel_obstacle is None:
            kernel = choose_kernel(self.kernel, self._situation(query, memory))
            if kernel is not None:
                return self._fuse(kernel, query, memory, state)
        if not self.sequential:
            return self._attend(query, memory, state)
        contexts, weights = [], []
        for decoder_state, embedding in zip(*(torch.split(part, 1, dim=1) for part in query), strict=True):
            context, step_weights, state = self._attend(Query(decoder_state, embedding), memory, state)
            contexts.append(context)
            weights.append(step_weights)
        return AttentionOutput(torch.cat(contexts, dim=1), torch.cat(weights, dim=1), state)

    def _situation(self, query: Query, memory: Memory) -> Situation:
        dtypes = frozenset(tensor.dtype for tensor in (query.state, memory.keys, memory.values))
        size = min(memory.keys.shape[-1], memory.values.shape[-1])
        return Situation(query.state.device.type, dtypes, size, torch.is_grad_enabled(), self.fused_on_cpu)

    def _fuse(self, kernel: Kernel, query: Query, memory: Memory, state: AttentionState) -> AttentionOutput:
        """Answer all queries at once, without weights."""
        assert self.score is not None
        temperature = self.normalizer.softmax_temperature
        assert temperature is not None
        queries, language = self._compose_queries(query, memory, state)
        vectors, scale = self.score.as_product(queries)
        numbers = self.window.place(queries, memory.mask, state.step)
        asked = ProductAttention(vectors, memory.keys, memory.values, memory.mask, scale, self.window, numbers, temperature)
        context = kernel(asked)
        state = state._replace(step=state.step + queries.shape[1], language=language)
        return AttentionOutput(context, context.new_empty(*context.shape[:2], 0), state)

    def _attend(self, query: Query, memory: Memory, state: AttentionState) -> AttentionOutput:
        """Answer all queries at once, or one of them where the next one waits for it."""
        queries, language = self._compose_queries(query, memory, state)
        if self.score is None:
            logits = queries.new_zeros(*queries.shape[:2], memory.mask.shape[1])
        else:
            keys = self.history.adjust_keys(memory.keys, state.history)
            logits = score_within(self.score, queries, keys, self.score_memory)
        adjusted = self.history.adjust_logits(logits, state.history)
        region = self.window(queries, memory.mask, state.step)
        if region.bias is not None:
            adjusted = (adjusted + region.bias).to(adjusted.dtype)
        weights, normalizer = self.normalizer.advance(adjusted, region.allowed, queries, memory, state.normalizer)
        if region.prior is not None:
            weights = weights * region.prior.to(weights.dtype)
        if self.replacement is not None:
            weights = self.replacement(weights, memory.mask, state.step)
        context = torch.bmm(weights, memory.values)
        history = self.history.advance(state.history, logits, weights, queries, memory)
        carried_context = context[:, -1] if self.carried_context_size else state.context
        after = AttentionState(state.step + queries.shape[1], carried_context, language, normalizer, history)
        return AttentionOutput(context, weights, after)

    def _compose_queries(self, query: Query, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor]:
        """Return the queries (batch, target_len, full query size), and the language token's embedding to be carried on."""
        language = state.language
        if self.query_parts == ("state",):
            return query.state, language
        if self.carried_language_size:
            first = query.embedding[:, 0] if memory.language is None else memory.language
            language = torch.where((state.step == 0).unsqueeze(1), first, language)
        parts = {
            "state": query.state,
            "embedding": query.embedding,
            "context": state.context.unsqueeze(1),
            "language": language.unsqueeze(1).expand(-1, query.state.shape[1], -1),
        }
        return torch.cat([parts[part] for part in self.query_parts], dim=-1), language
