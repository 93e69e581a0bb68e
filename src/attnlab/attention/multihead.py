"""Attention in several heads: the matrices of the heads, and any attention inside them."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.attention import Attention, QueryPart
from attnlab.attention.composition import Composition, validate_composition
from attnlab.attention.histories import History, HistorySizes
from attnlab.attention.kernels import KernelName, fused_attention
from attnlab.attention.keys import States
from attnlab.attention.mechanism import AttentionMechanism, AttentionOutput, Memory, Query
from attnlab.attention.normalizers import Normalizer, Softmax
from attnlab.attention.scores import ScaledDot, Score
from attnlab.attention.windows import Global, Window
from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.trees import map_tensors


class HeadProjections(nn.Module):
    """The matrices of several heads: into a subspace for each, and out of all (Vaswani et al. 2017, section 3.2.2).

    q_i = W_i^Q q, k_i = W_i^K h, v_i = W_i^V h; the output is W^O [c_1; …; c_n], with c_i the context of head i.

    Parameters:
        query_projection: W^Q of all heads (heads · head_size, query_size), no bias.
        key_projection: W^K (heads · head_size, memory_size), no bias.
        value_projection: W^V (heads · head_size, memory_size), no bias.
        output_projection: W^O (query_size, heads · head_size), no bias. All are initialised by Glorot and Bengio's (2010)
            uniform rule.

    Args:
        query_size: size of a query; also of the output.
        memory_size: size of what keys and values are made of.
        heads: number of heads; head_size is query_size / heads.

    Raises:
        UserError: the heads do not divide the query.
    """

    def __init__(self, query_size: int, memory_size: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or query_size % heads:
            raise UserError(
                f"{heads} heads cannot share a query of size {query_size}: choose a number of heads that divides it, or "
                "another size"
            )
        self.heads = heads
        self.head_size = query_size // heads
        self.query_projection = nn.Linear(query_size, query_size, bias=False)
        self.key_projection = nn.Linear(memory_size, query_size, bias=False)
        self.value_projection = nn.Linear(memory_size, query_size, bias=False)
        self.output_projection = nn.Linear(query_size, query_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the matrices."""
        for projection in (self.query_projection, self.key_projection, self.value_projection, self.output_projection):
            nn.init.xavier_uniform_(projection.weight)

    def project_queries(self, states: Tensor) -> Tensor:
        """Turn (batch, len, query_size) into the queries of all heads (batch, heads, len, head_size)."""
        return self.split(self.query_projection(states))

    def project_keys(self, states: Tensor) -> Tensor:
        """Turn (batch, len, memory_size) into the keys of all heads (batch, heads, len, head_size)."""
        return self.split(self.key_projection(states))

    def project_values(self, states: Tensor) -> Tensor:
        """Turn (batch, len, memory_size) into the values of all heads (batch, heads, len, head_size)."""
        return self.split(self.value_projection(states))

    def split(self, states: Tensor) -> Tensor:
        """Turn (batch, len, heads · head_size) into (batch, heads, len, head_size)."""
        return torch.unflatten(states, -1, (self.heads, self.head_size)).transpose(1, 2)

    def merge(self, contexts: Tensor) -> Tensor:
        """Turn the contexts of all heads (batch, heads, len, head_size) into the output (batch, len, query_size)."""
        merged: Tensor = self.output_projection(contexts.transpose(1, 2).flatten(2))
        return merged

    def attend(self, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, *, dropout: float = 0.0) -> Tensor:
        """Return the output (batch, target_len, query_size) of scaled dot-product attention, by PyTorch's fused kernel.

        Args:
            query: from :meth:`project_queries`.
            keys: from :meth:`project_keys`.
            values: from :meth:`project_values`.
            allowed: boolean, or numbers to be added to the logits, broadcastable to (batch, heads, target_len, source_len).
            dropout: on the weights, a probability.
        """
        return self.merge(fused_attention(query, keys, values, allowed, dropout=dropout))


class MultiHeadAttention(AttentionMechanism):
    """Several heads, each an attention of its own in a subspace of its own (Vaswani et al. 2017, section 3.2.2).

    head_i = Attention(W_i^Q q, W_i^K h, W_i^V h); c_t = W^O [head_1; …; head_n]. Any score, window, normalizer and history may
    sit in the heads; what parameters these have, such as the v of an additive score, the heads share: W_i^Q, W_i^K and W_i^V
    are what tells the heads apart. Reported weights are the mean over the heads.

    A scaled dot product over the whole source runs in PyTorch's fused kernel when nobody needs its weights, on a CPU too.

    Parameters:
        projections: W^Q (heads · head_size, query_size), W^K and W^V (heads · head_size, memory_size) and W^O (query_size,
            heads · head_size), no bias, initialised by Glorot and Bengio's (2010) uniform rule.
        head: its own.

    Args:
        query_size: size of a decoder state; also of the context.
        memory_size: size of an encoder state.
        embedding_size: size of a target embedding.
        heads: number of heads; head_size is query_size / heads.
        score: makes the score function from (query size, key size) of a head.
        window: makes the window from (query size, memory size) of a head.
        normalizer: makes the normalizer from (query size, memory size) of a head.
        history: makes what is remembered over time from (sizes) of a head.
        query: what a head's query is made of; the decoder's state is that of the head's subspace.
        kernel: what computes the contexts where nobody reads the weights; see :class:`Attention`.
        score_memory: MiB that the score may hold of each pair of query and key; see :class:`Attention`.

    Raises:
        UserError: the heads do not divide the query, a score that does not look at keys, or a kernel that cannot compute this.
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
        normalizer: Callable[[int, int], Normalizer],
        history: Callable[[HistorySizes], History],
        query: QueryPart | Sequence[QueryPart] = ("state",),
        kernel: KernelName = "auto",
        score_memory: Annotated[float, Range(0)] = 1024,
    ) -> None:
        super().__init__()
        comparison, parts = f"{heads} heads", (query,) if isinstance(query, str) else query
        validate_composition(Composition(query=parts, comparison=comparison))
        self.projections = HeadProjections(query_size, memory_size, heads)
        self.context_size = query_size
        self.head = Attention(
            self.projections.head_size,
            self.projections.head_size,
            embedding_size,
            score=score,
            window=window,
            normalizer=normalizer,
            keys=States,
            history=history,
            query=query,
            kernel=kernel,
            score_memory=score_memory,
        )
        validate_composition(Composition(self.head.score, normalizer=self.head.normalizer, comparison=comparison))
        self.head.fused_on_cpu = self._is_plain()

    def _is_plain(self) -> bool:
        score, normalizer = self.head.score, self.head.normalizer
        is_softmax = type(self.head.window) is Global and type(normalizer) is Softmax and normalizer.softmax_temperature == 1.0
        return is_softmax and type(score) is ScaledDot and score.has_unit_sharpness and self.head.query_parts == ("state",)

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        """Everything but the mask, and a language, is (batch, heads, …)."""
        keys = self.projections.project_keys(states).flatten(0, 1)
        own_values = self.projections.project_values(states if values is None else values).flatten(0, 1)
        memory: Memory = self._unfold(self.head.memory(keys, self._repeat(mask), own_values))
        return memory._replace(mask=mask)

    @override
    def start(self, memory: Memory) -> Any:
        """Everything is (batch, heads, …)."""
        return self._unfold(self.head.start(self._fold_memory(memory)))

    @override
    def forward(self, query: Query, memory: Memory, state: Any, *, need_weights: bool = True) -> AttentionOutput:
        queries = self.projections.project_queries(query.state)
        embedding = query.embedding if self.head.reads_embedding else query.embedding[..., :0]
        head_query = Query(queries.flatten(0, 1), self._repeat(embedding))
        contexts, weights, state = self._unfold(
            self.head(head_query, self._fold_memory(memory), self._fold(state), need_weights=need_weights)
        )
        return AttentionOutput(self.projections.merge(contexts), weights.mean(dim=1), state)

    def _repeat(self, shared: Tensor) -> Tensor:
        """Repeat (batch, …) for every head: (batch · heads, …)."""
        return shared.repeat_interleave(self.projections.heads, dim=0)

    def _fold(self, tree: Any) -> Any:
        """Turn tensors (batch, heads, …) into (batch · heads, …), as if every head were a sequence."""
        return map_tensors(lambda x: x.flatten(0, 1), tree)

    def _unfold(self, tree: Any) -> Any:
        return map_tensors(lambda x: torch.unflatten(x, 0, (-1, self.projections.heads)), tree)

    def _fold_memory(self, memory: Memory) -> Memory:
        def share(tensor: Tensor) -> Tensor:
            return tensor.unsqueeze(1).expand(-1, self.projections.heads, -1)

        language = None if memory.language is None else share(memory.language)
        folded: Memory = self._fold(memory._replace(mask=share(memory.mask), language=language))
        return folded
