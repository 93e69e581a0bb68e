"""Sentences as ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.tasks.translation.vocabulary import PAD


@dataclass(frozen=True)
class Ids:
    """The sentences of one side, as flat arrays that may be memory-mapped.

    Attributes:
        flat: all ids, sentence after sentence (int32).
        offsets: where each sentence starts, and at last the end (int64).
    """

    flat: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[int]]) -> "Ids":
        """Return the ids of sentences."""
        listed = list(sentences)
        offsets = np.cumsum([0, *map(len, listed)], dtype=np.int64)
        return cls(np.fromiter(chain.from_iterable(listed), np.int32, count=int(offsets[-1])), offsets)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens in each sentence."""
        return np.diff(self.offsets)

    def padded(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return some sentences as one padded tensor (len(indices), longest), and their lengths."""
        chosen = np.asarray(indices)
        starts, ends = self.offsets[chosen], self.offsets[chosen + 1]
        lengths = ends - starts
        padded = np.full((len(chosen), int(lengths.max())), PAD, dtype=np.int64)
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            padded[row, : end - start] = self.flat[start:end]
        return torch.from_numpy(padded), torch.from_numpy(lengths)
