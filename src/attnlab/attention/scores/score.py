"""What a score promises to an attention."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from attnlab.attention.mechanism import Part
from attnlab.errors import UserError


class Score(Part, ABC):
    """A score function e(q, k).

    Args:
        query_size: size of a query, from the decoder.
        memory_size: size of an encoder state, from the encoder.

    Attributes:
        linear_keys: whether :meth:`project_keys` is linear, so that a history may add to the keys after it.
        content_based: whether it compares the query with the keys; if not, it sees their number alone.
        is_product: whether it is a product of query and key, so that :meth:`as_product` may be called.
    """

    linear_keys: ClassVar[bool] = True
    content_based: ClassVar[bool] = True
    is_product: ClassVar[bool] = False

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.query_size = query_size
        self.memory_size = memory_size

    def project_keys(self, states: Tensor) -> Tensor:
        """Turn encoder states (batch, source_len, memory_size) into keys (batch, source_len, key_size)."""
        return states

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score queries (batch, target_len, query_size) against keys; returns (batch, target_len, source_len)."""

    def as_product(self, query: Tensor) -> tuple[Tensor, float]:
        """Return vectors (batch, target_len, key_size) and a number: e is the number times their products with the keys."""
        raise TypeError(f"a {type(self).__name__} score is no product of query and key")


class EqualSizes(Score, ABC):
    """A score that compares vectors of one size.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        if query_size != memory_size:
            raise UserError(
                f"a {type(self).__name__} score compares vectors of one size, but query size {query_size} does not match key "
                f"size {memory_size}: make them equal, or choose a score that compares different sizes, such as general"
            )
