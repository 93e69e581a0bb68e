"""Attention as the composition of a score, a window and a normalizer."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn

from attnlab.attention.normalizers import Normalizer
from attnlab.attention.scores import Score
from attnlab.attention.windows import Window


class Memory(NamedTuple):
    """What the decoder may look at, made once per source sentence."""

    keys: Tensor
    """(batch, source_len, key_size): what a query is compared with."""
    values: Tensor
    """(batch, source_len, value_size): what is averaged into the context."""
    mask: Tensor
    """(batch, source_len), true where the source has a token."""


class AttentionMechanism(nn.Module, ABC):
    """What a decoder may be given: one call for one query or for a whole sentence of queries.

    Attributes:
        context_size: size of the context that the decoder receives; 0 means that there is none.
    """

    context_size: int

    @abstractmethod
    def memory(self, states: Tensor, mask: Tensor) -> Memory:
        """Prepare the encoder's states (batch, source_len, memory_size), once per source sentence."""

    @abstractmethod
    def start(self, memory: Memory) -> Any:
        """Return the mechanism's state before the first target token: a tree of tensors, batch first, or None."""

    @abstractmethod
    def forward(self, query: Tensor, memory: Memory, state: Any) -> tuple[Tensor, Tensor, Any]:
        """Look at the memory.

        Args:
            query: (batch, target_len, query_size); target_len is 1 when decoding step by step.
            memory: from :meth:`memory`.
            state: from :meth:`start` or from the call before.

        Returns:
            The contexts (batch, target_len, context_size), the weights (batch, target_len, source_len), the new state.
        """


class Attention(AttentionMechanism):
    """Content-based attention: c_t = Σ_j a_tj h_j, with a_t = normalizer(score(q_t, h) inside the window).

    Args:
        query_size: size of a query, from the decoder.
        memory_size: size of an encoder state, from the encoder.
        score: makes the score function from (query_size, memory_size).
        window: makes the window from (query_size).
        normalizer: turns logits into weights.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        score: Callable[[int, int], Score],
        window: Callable[[int], Window],
        normalizer: Normalizer,
    ) -> None:
        super().__init__()
        self.context_size = memory_size
        self.score = score(query_size, memory_size)
        self.window = window(query_size)
        self.normalizer = normalizer

    def memory(self, states: Tensor, mask: Tensor) -> Memory:
        """See :meth:`AttentionMechanism.memory`."""
        return Memory(self.score.project_keys(states), states, mask)

    def start(self, memory: Memory) -> None:
        """Return None: nothing is carried from one target token to the next."""
        return

    def forward(self, query: Tensor, memory: Memory, state: None) -> tuple[Tensor, Tensor, None]:
        """See :meth:`AttentionMechanism.forward`."""
        allowed, prior = self.window(query, memory.mask)
        weights = self.normalizer(self.score(query, memory.keys), allowed)
        if prior is not None:
            weights = weights * prior
        return weights @ memory.values, weights, None


class NoAttention(AttentionMechanism):
    """The control: no context at all, so that a decoder knows the source from its initial state alone.

    The context has size 0 and all weights are zero (the documented exception to "weights sum to one").

    Args:
        query_size: size of a query, not used.
        memory_size: size of an encoder state, not used.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.context_size = 0

    def memory(self, states: Tensor, mask: Tensor) -> Memory:
        """See :meth:`AttentionMechanism.memory`."""
        return Memory(states[..., :0], states[..., :0], mask)

    def start(self, memory: Memory) -> None:
        """Return None."""
        return

    def forward(self, query: Tensor, memory: Memory, state: None) -> tuple[Tensor, Tensor, None]:
        """See :meth:`AttentionMechanism.forward`."""
        batch, target_len, _ = query.shape
        return (
            query.new_zeros(batch, target_len, 0),
            query.new_zeros(batch, target_len, memory.mask.shape[1]),
            None,
        )
