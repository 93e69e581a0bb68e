"""What an attention promises to a decoder, and what its parts have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch import Tensor, nn
from typing_extensions import override


class Part(nn.Module):
    """What an attention is made of: a score, a window, a normalizer, keys or a history.

    Attributes:
        sequential: whether the weights of one target token need those of the token before.
        sums_to_one: whether weights that sum to one still do so with it.
        shares: whether weights are shares, none of them negative and no row summing to more than one.
        max_length: the longest source that it can read, in tokens, or None; it counts wherever in a model the part sits.
    """

    sequential: bool = False
    sums_to_one: bool = True
    shares: bool = True
    max_length: int | None = None


class Query(NamedTuple):
    """What a decoder knows when it attends, for one target token or for a whole sequence of them."""

    state: Tensor
    """(batch, target_len, query_size): the decoder's state, the previous or the current one as the decoder has it."""
    embedding: Tensor
    """(batch, target_len, embedding_size): of the previous target token."""


class Memory(NamedTuple):
    """What the decoder may attend to, made once for a source."""

    keys: Tensor
    """(batch, source_len, key_size): what a query is compared with."""
    values: Tensor
    """(batch, source_len, value_size): what is averaged into the context."""
    mask: Tensor
    """(batch, source_len), true where the attention may look: where the source has a token, but for one that a decoder
    keeps out, as that of answers does the question.
    """
    normalizer: Any = None
    """What the normalizer prepared, a tree of tensors, or None."""
    history: Any = None
    """What the history prepared, a tree of tensors, or None."""
    language: Tensor | None = None
    """(batch, embedding_size): the target language, where it is known before the first token; else None."""


class AttentionMechanism(nn.Module, ABC):
    """What a decoder may be given: one call for one query or for a whole sequence of queries.

    Attributes:
        context_size: size of the context that the decoder receives; 0 means that there is none.
    """

    context_size: int

    @property
    def parts(self) -> Iterator[Part]:
        """All parts, those of parts and of attentions inside included."""
        return (module for module in self.modules() if isinstance(module, Part))

    @property
    def sums_to_one(self) -> bool:
        """Whether the weights of every query sum to one."""
        return all(part.sums_to_one for part in self.parts)

    @property
    def asks_language(self) -> bool:
        """Whether the target language is a part of any query that is read."""
        return any(getattr(module, "carried_language_size", 0) and module.reads_query for module in self.modules())

    @property
    def shares(self) -> bool:
        """Whether weights are shares, none of them negative and no row summing to more than one."""
        return all(part.shares for part in self.parts)

    @abstractmethod
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        """Prepare a source, once for all of its target tokens.

        Args:
            states: the encoder's states (batch, source_len, memory_size).
            mask: (batch, source_len), true where the attention may look; see :class:`Memory`.
            values: what is averaged if that is not the states themselves, in their shape.
        """

    @abstractmethod
    def start(self, memory: Memory) -> Any:
        """Return the mechanism's state before the first target token: a tree of tensors, batch first, or None."""

    @abstractmethod
    def forward(self, query: Query, memory: Memory, state: Any, *, need_weights: bool = True) -> "AttentionOutput":
        """Attend to the memory.

        Args:
            query: for one target token when decoding step by step, or for all of a sequence.
            memory: from :meth:`memory`.
            state: from :meth:`start` or from the call before.
            need_weights: whether anybody will read the weights; if not, a mechanism that is faster without may leave them out.
        """


class AttentionOutput(NamedTuple):
    """What an attention gives to a decoder."""

    context: Tensor
    """(batch, target_len, context_size)."""
    weights: Tensor
    """(batch, target_len, source_len); empty (source_len 0) where they were not needed."""
    state: Any
    """The mechanism's state after the last query."""


AttentionFactory = Callable[[int, int, int], AttentionMechanism]
"""Makes an attention from (query_size, memory_size, embedding_size)."""


class NoAttention(AttentionMechanism):
    """The control: no context at all, so that a decoder knows the source from its initial state alone.

    The context has size 0 and all weights are zero (the documented exception to "weights sum to one").

    No parameters.

    Args:
        query_size: size of a decoder state, not used.
        memory_size: size of an encoder state, not used.
        embedding_size: size of a target embedding, not used.
    """

    def __init__(self, query_size: int, memory_size: int, embedding_size: int) -> None:
        super().__init__()
        self.context_size = 0

    @property
    @override
    def sums_to_one(self) -> bool:
        return False

    @override
    def memory(self, states: Tensor, mask: Tensor, values: Tensor | None = None) -> Memory:
        return Memory(states[..., :0], states[..., :0], mask)

    @override
    def start(self, memory: Memory) -> None:
        """Nothing is carried."""

    @override
    def forward(self, query: Query, memory: Memory, state: None, *, need_weights: bool = True) -> AttentionOutput:
        batch, target_len, _ = query.state.shape
        weights = query.state.new_zeros(batch, target_len, memory.mask.shape[1])
        return AttentionOutput(query.state.new_zeros(batch, target_len, 0), weights, None)
