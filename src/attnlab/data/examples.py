"""The examples of one split."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from attnlab.data.batches import Batch
from attnlab.data.links import BatchLinks
from attnlab.data.ragged import Padded, Ragged, RaggedView


class Examples(Dataset[Batch], ABC):
    """Sources and targets as tensors; asked for a list of positions it returns a :class:`Batch`.

    Args:
        source: of each example, ending with its end element.
        target: of each example ids, from the start symbol to the end symbol.

    Attributes:
        labels: what is to be predicted where that is not what the target frontend reads; ids from the start symbol on.
        copy_ids: of each source the ids under which its tokens are copied.
        links: gold links, where batches are to have them.
        unit: what lengths are counted in.
        facts: what these examples have instead of what their task says of all; see :attr:`attnlab.tasks.task.Task.facts`.
    """

    unit: str = "items"
    facts: Mapping[str, str | bool] = MappingProxyType({})

    def __init__(self, source: Ragged | RaggedView, target: Ragged | RaggedView) -> None:
        self.source = source
        self.target = target
        self.labels: Padded | None = None
        self.copy_ids: Padded | None = None
        self.links: BatchLinks | None = None

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.source)

    @property
    def has_source(self) -> NDArray[np.bool_]:
        """(examples,): whether anything stands before the end element of a source. Where nothing does, nothing is predicted."""
        return self.source.lengths > 1

    def sort_by_length(self, chosen: Sequence[int] | None = None) -> NDArray[np.int64]:
        """Return the positions of all examples that have a source, or of those among the chosen ones, the shortest first."""
        order = np.lexsort((self.target.lengths, self.source.lengths))
        if chosen is not None:
            order = order[np.isin(order, chosen)]
        return order[self.has_source[order]]

    def __getitem__(self, indices: Sequence[int]) -> Batch:
        """Return the examples at some positions."""
        source, source_lengths = self.source.padded(indices)
        target, target_lengths = self.target.padded(indices)
        labels = target if self.labels is None else self.labels.padded(indices)[0]
        links = None if self.links is None else self.links.batch(indices, target.shape[1] - 1, source.shape[1])
        copy_ids = None if self.copy_ids is None else self.copy_ids.padded(indices)[0]
        return Batch(source, source_lengths, target, target_lengths, labels[:, 1:], torch.tensor(indices), links, copy_ids)

    @abstractmethod
    def source_tokens(self, index: int) -> list[str]:
        """Return an example's source as tokens to be shown, ending with the end symbol."""

    @abstractmethod
    def target_tokens(self, index: int) -> list[str]:
        """Return an example's target as tokens to be shown, without the start symbol and ending with the end symbol."""

    @property
    @abstractmethod
    def sources(self) -> Sequence[str]:
        """The sources as lines of text, made once: they are asked for an example at a time."""

    @property
    @abstractmethod
    def references(self) -> Sequence[str]:
        """The targets as lines of text, made once too."""

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(examples, 2): how long each source and each target is, in :attr:`unit`, by its line of text alone.

        Runs that make other tokens of the same data agree on it. Unless a task says otherwise, it is the number of its items
        at white space.
        """
        sides = [[len(line.split()) for line in lines] for lines in (self.sources, self.references)]
        return np.array(sides, dtype=np.int64).T

    @property
    def blocks(self) -> NDArray[np.int64] | None:
        """(examples,): a number for each example, the same for those that share data, as windows of a series that overlap do.

        They vary together, so that tests and intervals draw them together. None where every example is by itself.
        """
        return None

    def gold_links(self) -> BatchLinks | None:
        """Return the gold links of all examples, whether or not batches have them; None where they are not known."""
        return self.links
