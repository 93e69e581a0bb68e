"""Gold links: where an ideal attention would look."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class BatchLinks(Protocol):
    """Gold links, those of some examples at a time."""

    def batch(self, indices: Sequence[int], target_len: int, source_len: int, /) -> Tensor:
        """Return what attention should be at some examples; see :meth:`GoldLinks.batch`."""


@dataclass(frozen=True)
class GoldLinks:
    """The gold links of one split, as flat arrays.

    Attributes:
        blocks: (links, 4), spans of tokens that are linked to each other: positions of the first and after the last in the
            target, then in the source; the start symbol is not counted.
        offsets: where the links of each example start, and at last the end.
    """

    blocks: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, examples: Sequence[Sequence[tuple[int, int, int, int]]]) -> Self:
        """Return the links of examples, each a list of (first target position, end, first source position, end)."""
        blocks = np.array(list(chain.from_iterable(examples)), dtype=np.int32).reshape(-1, 4)
        return cls(blocks, np.cumsum([0, *map(len, examples)], dtype=np.int64))

    @classmethod
    def of_positions(cls, examples: Iterable[Iterable[tuple[int, int]]]) -> Self:
        """Return the links of examples, each pairs of a target position and the source position that it is linked to."""
        return cls.of([[(t, t + 1, j, j + 1) for t, j in pairs] for pairs in examples])

    def batch(self, indices: Sequence[int], target_len: int, source_len: int) -> Tensor:
        """Return what attention should be at some examples (Liu et al. 2016, Mi et al. 2016).

        The row of a token is spread evenly over the source tokens that it is linked to; the row of a token without links and of
        padding is zero.

        Args:
            indices: positions of the examples in their split.
            target_len: tokens to predict, of the longest target: its start symbol is none.
            source_len: of the longest source.

        Returns:
            (batch, target_len, source_len); row t is about the t-th token to predict.
        """
        linked = np.zeros((len(indices), target_len, source_len), dtype=np.float32)
        for row, index in enumerate(indices):
            for first, end, source_first, source_end in self.blocks[self.offsets[index] : self.offsets[index + 1]].tolist():
                linked[row, first:end, source_first:source_end] = 1.0
        return torch.from_numpy(linked / linked.sum(-1, keepdims=True).clip(min=1.0))


@dataclass(frozen=True)
class LinksOnDemand:
    """Gold links that are made when they are asked for, and not kept.

    Attributes:
        make: returns those of some examples.
    """

    make: Callable[[Sequence[int]], GoldLinks]

    def batch(self, indices: Sequence[int], target_len: int, source_len: int) -> Tensor:
        """Return what attention should be at some examples; see :meth:`GoldLinks.batch`."""
        return self.make(indices).batch(range(len(indices)), target_len, source_len)
