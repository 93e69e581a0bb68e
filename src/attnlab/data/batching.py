"""Batches: which sentences stand together, and in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from attnlab.data.ids import Ids
from attnlab.data.links import TokenLinks
from attnlab.seeding import derive_seed
from attnlab.tasks.translation.copying import Copies, ExtendedIds


@dataclass  # not frozen: Lightning writes into a copy of it where it changes the precision
class Batch:
    """A batch of sentence pairs.

    Attributes:
        source: ids (batch, source_len), each sentence ending with the end symbol, padded.
        source_lengths: (batch,), end symbols included; stays on the CPU, where packing wants it.
        target: ids (batch, target_len), from start symbol to end symbol, padded.
        target_lengths: (batch,), both symbols included; stays on the CPU.
        indices: (batch,), positions of the pairs in their split; stays on the CPU.
        links: (batch, target_len - 1, source_len), known alignments of the tokens to predict; see :meth:`TokenLinks.batch`.
        copies: which predictions can be copied from the source.
    """

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor
    indices: Tensor
    links: Tensor | None = None
    copies: Copies | None = None

    def to(self, device: torch.device, non_blocking: bool = False) -> "Batch":
        """Return the batch with its ids and links on a device."""
        source, target = (ids.to(device, non_blocking=non_blocking) for ids in (self.source, self.target))
        links = None if self.links is None else self.links.to(device, non_blocking=non_blocking)
        copies = None if self.copies is None else self.copies.to(device, non_blocking=non_blocking)
        return replace(self, source=source, target=target, links=links, copies=copies)


class PairDataset(Dataset[Batch]):
    """Sentence pairs of one split; asked for a list of positions it returns a :class:`Batch`.

    Args:
        source: sentences, each with the end symbol.
        target: their translations, each with both symbols.
        links: where a batch is to have links.
        copies: where a batch is to have copies.
    """

    def __init__(self, source: Ids, target: Ids, links: TokenLinks | None = None, copies: ExtendedIds | None = None) -> None:
        self.source = source
        self.target = target
        self.links = links
        self.copies = copies

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.source.offsets) - 1

    def __getitem__(self, indices: Sequence[int]) -> Batch:
        """Return the pairs at some positions."""
        source, source_lengths = self.source.padded(indices)
        target, target_lengths = self.target.padded(indices)
        links = None if self.links is None else self.links.batch(indices, target.shape[1] - 1, source.shape[1])
        copies = None if self.copies is None else self.copies.batch(indices)
        return Batch(source, source_lengths, target, target_lengths, torch.tensor(indices), links, copies)


def cut(order: NDArray[np.int64], lengths: NDArray[np.int64], size: int, by: Literal["sentences", "tokens"]) -> list[list[int]]:
    """Cut an order of sentences into batches.

    Args:
        order: positions of sentences.
        lengths: by position, tokens of a pair's longer side.
        size: at most so many sentences, or tokens with padding, in a batch; a sentence longer than that stands alone.
        by: what ``size`` counts.
    """
    if by == "sentences":
        return [order[start : start + size].tolist() for start in range(0, len(order), size)]
    batches: list[list[int]] = []
    longest = 0
    for index in order.tolist():
        longest = max(longest, int(lengths[index]))
        if not batches or longest * (len(batches[-1]) + 1) > size:
            batches.append([])
            longest = int(lengths[index])
        batches[-1].append(index)
    return batches


class BucketSampler(Sampler[list[int]]):
    """Training batches of sentences of similar length, drawn from (seed, epoch) alone.

    By sentences, all pairs are shuffled, cut into pools, sorted by length within a pool and cut into batches. By tokens, all
    pairs are sorted by the length of their longer side, equals in random order, and cut. The batches are shuffled at last.
    Either way every epoch has the same number of batches, which Lightning takes for granted.

    Process ``rank`` of ``world_size`` takes every ``world_size``-th sentence of each batch, so that the batch that all
    processes share is that of a single one; a batch of fewer sentences than processes is left out there.

    Args:
        source_lengths: tokens in each source sentence.
        target_lengths: tokens in each target sentence.
        size: of a batch; see :func:`cut`.
        by: what ``size`` counts.
        seed: of the run.
        pool: batches in a pool, by sentences: more is less padding, fewer is more random.
        rank: of this process.
        world_size: processes.

    Attributes:
        epoch: whose batches come next.
        skipped: batches at the beginning of the epoch that are left out, as a run that is resumed has seen them.
    """

    def __init__(
        self,
        source_lengths: NDArray[np.int64],
        target_lengths: NDArray[np.int64],
        *,
        size: int,
        by: Literal["sentences", "tokens"],
        seed: int,
        pool: int = 20,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.source_lengths = source_lengths
        self.target_lengths = target_lengths
        self.longer = np.maximum(source_lengths, target_lengths)
        self.size = size
        self.by = by
        self.seed = seed
        self.pool = pool
        self.rank = rank
        self.world_size = world_size
        self.epoch = 0
        self.skipped = 0
        self._drawn: tuple[int, list[list[int]]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose batches come next; Lightning calls it."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return len(self._batches())

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the positions of each batch's sentences."""
        for batch in self._batches()[self.skipped :]:
            yield batch[self.rank :: self.world_size]

    def _batches(self) -> list[list[int]]:
        if self._drawn is None or self._drawn[0] != self.epoch:
            self._drawn = (self.epoch, self._draw())
        return self._drawn[1]

    def _draw(self) -> list[list[int]]:
        generator = np.random.Generator(np.random.PCG64(derive_seed(self.seed, f"batches of epoch {self.epoch}")))
        order = generator.permutation(len(self.longer))
        if self.by == "tokens":
            order = order[np.argsort(self.longer[order], kind="stable")]
        else:
            pairs_in_pool = self.pool * self.size
            pools = (order[start : start + pairs_in_pool] for start in range(0, len(order), pairs_in_pool))
            order = np.concatenate([p[np.lexsort((self.source_lengths[p], self.target_lengths[p]))] for p in pools])
        batches = cut(order, self.longer, self.size, self.by)
        kept = [batch for batch in batches if len(batch) >= self.world_size]
        return [kept[index] for index in generator.permutation(len(kept))]


class LengthSampler(Sampler[list[int]]):
    """Evaluation batches in order of length: little padding, every sentence exactly once over all processes.

    Args:
        source_lengths: tokens in each source sentence.
        target_lengths: tokens in each target sentence.
        size: sentences in a batch.
        rank: of this process.
        world_size: processes.
    """

    def __init__(
        self,
        source_lengths: NDArray[np.int64],
        target_lengths: NDArray[np.int64],
        *,
        size: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        order = np.lexsort((target_lengths, source_lengths))[rank::world_size]
        self._batches = cut(order, source_lengths, size, "sentences")

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the positions of each batch's sentences."""
        yield from self._batches


class BatchLoader(DataLoader[Batch]):
    """Loads the batches of a sampler; draws nothing from the global random numbers, as torch's own does.

    Args:
        dataset: the pairs.
        sampler: says which stand together.
        num_workers: processes that load.
    """

    def __init__(self, dataset: PairDataset, sampler: Sampler[list[int]], *, num_workers: int) -> None:
        super().__init__(
            dataset,
            sampler=sampler,
            batch_size=None,
            num_workers=num_workers,
            persistent_workers=num_workers > 0,
            generator=torch.Generator(),
        )


class TrainingLoader(BatchLoader):
    """A loader that can go on in the midst of an epoch; Lightning keeps its state in checkpoints."""

    def __init__(self, dataset: PairDataset, sampler: BucketSampler, *, num_workers: int) -> None:
        super().__init__(dataset, sampler, num_workers=num_workers)
        self._bucket_sampler = sampler
        self._served = self._seen = 0

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]
        """Serve the rest of the epoch that a checkpoint broke off, or a whole one."""
        self._bucket_sampler.skipped = self._served = self._seen
        self._seen = 0
        for batch in super().__iter__():
            self._served += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Return how many batches of the epoch were served."""
        return {"served": self._served}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Let the next epoch begin after the batches that were served; after a whole epoch that is at its beginning."""
        self._seen = state_dict["served"] % len(self._bucket_sampler)
