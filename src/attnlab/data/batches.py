"""Batches: which examples stand together, and in which order."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from attnlab.data.symbols import PAD
from attnlab.errors import UserError, brief
from attnlab.seeding import make_generator
from attnlab.trees import move

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatchOptions:
    """How examples are put together.

    Attributes:
        size: of training batches, in examples or in tokens.
        by: what ``size`` counts: "examples", or "tokens" (padded, of a batch's longer side).
        pool: training batches whose examples are sorted together, by examples; see :class:`BucketSampler`.
        eval_size: examples in a batch of validation and test, fewer where they are very long.
        max_length: leave out training examples with a side of more tokens; None keeps all.
        num_workers: processes that load batches.

    Raises:
        UserError: a size that is not positive, fewer than no processes, an unknown ``by``, or a ``pool`` by tokens.
    """

    size: int = 64
    by: Literal["examples", "tokens"] = "examples"
    pool: int = 20
    eval_size: int = 128
    max_length: int | None = None
    num_workers: int = 0

    def __post_init__(self) -> None:
        for name in ("size", "pool", "eval_size", "max_length"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be 1 or more, not {value}")
        if self.num_workers < 0:
            raise UserError(f"num_workers must be 0 or more, not {self.num_workers}")
        if self.by not in ("examples", "tokens"):
            raise UserError(f"by is examples or tokens, not {self.by!r}")
        if self.by == "tokens" and self.pool != type(self).pool:
            raise UserError("pool goes with by=examples: by tokens, all examples are sorted together")


def no_examples(limit: int, kind: str) -> UserError:
    """Tell of a ``max_length`` by which nothing is left to train on.

    Args:
        limit: what it is.
        kind: what an example is called.
    """
    return UserError(f"max_length={limit} leaves no training {kind}: raise it")


@dataclass  # not frozen: Lightning writes into a copy of it where it changes the precision
class Batch:
    """A batch of examples.

    Attributes:
        source: ids (batch, source_len), or of an element several ids or a vector (batch, source_len, size), each source ending
            with its end element, padded.
        source_lengths: (batch,), end elements included; stays on the CPU, where packing wants it.
        target: ids (batch, target_len), from the start symbol to the end symbol, padded; or vectors (batch, target_len, size),
            from what stands for a start symbol on.
        target_lengths: (batch,), both symbols included; stays on the CPU.
        labels: ids to be predicted (batch, target_len - 1), padded; where tokens are copied, ids may lie past the vocabulary;
            or numbers (batch, target_len - 1, numbers).
        indices: (batch,), positions of the examples in their split; stays on the CPU.
        links: (batch, target_len - 1, source_len), gold links of the tokens to be predicted; see :meth:`GoldLinks.batch`.
        copy_ids: (batch, source_len), ids under which source tokens are copied.
        positions: (positions,), where there is something to be predicted, counted row by row through the labels. They are
            found before the batch is brought to a GPU, which would have to be waited for.
    """

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor
    labels: Tensor
    indices: Tensor
    links: Tensor | None = None
    copy_ids: Tensor | None = None
    positions: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.positions = self.real.flatten().nonzero()[:, 0]

    @property
    def real(self) -> Tensor:
        """Where there is something to be predicted, boolean (batch, target_len - 1), on the device of the labels."""
        if self.labels.ndim == 2:
            return self.labels != PAD
        places = torch.arange(self.labels.shape[1])
        real: Tensor = move(places < self.target_lengths.unsqueeze(1) - 1, self.labels.device)
        return real

    @property
    def real_labels(self) -> Tensor:
        """The labels at the positions, (positions,) or (positions, numbers)."""
        return self.labels.flatten(0, 1).index_select(0, self.positions)

    @property
    def shape(self) -> str:
        """How large it is, in words."""
        rows, source, target = len(self.source), self.source.shape[1], self.target.shape[1]
        examples = "example" if rows == 1 else "examples"
        return f"a batch of {rows} {examples}, {source:,} source by {target:,} target tokens with padding"

    def to(self, device: torch.device) -> "Batch":
        """Return the batch with all but lengths and indices on a device."""
        moved = copy(self)
        for name in ("source", "target", "labels", "links", "copy_ids", "positions"):
            setattr(moved, name, move(getattr(self, name), device))
        return moved


def split_order(
    order: NDArray[np.integer], lengths: NDArray[np.integer], size: int, by: Literal["examples", "tokens"]
) -> NDArray[np.int64]:
    """Cut an order of examples into batches.

    Args:
        order: positions of examples.
        lengths: by position, tokens of an example's longer side.
        size: at most so many examples, or tokens with padding, in a batch; an example longer than that stands alone.
        by: what ``size`` counts.

    Returns:
        Where each batch starts in the order, and at last the end.
    """
    if by == "examples":
        return np.append(np.arange(0, len(order), size), len(order))
    bounds = [0]
    while bounds[-1] < len(order):
        start = bounds[-1]
        most = max(1, size // max(1, int(lengths[order[start]])))
        longest = np.maximum.accumulate(lengths[order[start : start + most]].astype(np.int64))
        fitting = int((longest * np.arange(1, len(longest) + 1) <= size).sum())  # a batch only grows: these are the first
        bounds.append(start + max(1, fitting))
    return np.array(bounds)


TOKENS = 128
"""An evaluation batch of at most n examples holds at most n times as many tokens of a side, and n times the square as many
cells of source by target, with padding: a line of thousands, such as a text without line ends, stands alone and does not make
all others as long as itself."""


def split_evaluation(
    order: NDArray[np.int64], source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64], size: int
) -> list[list[int]]:
    """Cut an order of examples into batches of a size, and these where they would hold too much padding; see :data:`TOKENS`.

    Args:
        order: positions of examples.
        source_lengths: by position, tokens of an example's source.
        target_lengths: by position, tokens of its target.
        size: examples in a batch at most.
    """
    batches: list[list[int]] = []
    for start in range(0, len(order), size):
        together = order[start : start + size].tolist()
        longest = (0, 0)
        for place, index in enumerate(together):
            source, target = max(longest[0], int(source_lengths[index])), max(longest[1], int(target_lengths[index]))
            count = len(batches[-1]) + 1 if place else 1
            fits = count * max(source, target) <= size * TOKENS and count * source * target <= size * TOKENS**2
            if not place or not fits:
                batches.append([])
                source, target = int(source_lengths[index]), int(target_lengths[index])
            longest = source, target
            batches[-1].append(index)
    return batches


@contextmanager
def memory_errors(shape: Callable[[], str], remedy: str) -> Iterator[None]:
    """Tell in one line of memory that is not enough.

    Args:
        shape: says what it was not enough for.
        remedy: what to lower.

    Raises:
        UserError: instead of what a library raises.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is one of these
        told = str(error)
        is_ours = isinstance(error, torch.OutOfMemoryError | MemoryError)
        if not is_ours and "DefaultCPUAllocator" not in told and "not enough memory" not in told:
            raise
        raise UserError(f"out of memory with {shape()} ({brief(error)}): {remedy}") from error


class BucketSampler(Sampler[list[int]]):
    """Training batches of examples of similar length, drawn from (seed, epoch) alone.

    By examples, all of them are shuffled, cut into pools, sorted by length within a pool and cut into batches. By tokens, all
    examples are sorted by the length of their longer side, equals in random order, and cut. The batches are shuffled at last.
    Either way every epoch has the same number of batches, which Lightning takes for granted.

    Process ``rank`` of ``world_size`` takes every ``world_size``-th example of each batch, so that the batch that all
    processes share is that of a single one; a batch of fewer examples than processes is left out there, which the log tells.

    Args:
        source_lengths: tokens in each source.
        target_lengths: tokens in each target.
        size: of a batch; see :func:`split_order`.
        by: what ``size`` counts.
        seed: of the run.
        pool: batches in a pool, by examples: more is less padding, fewer is more random; an epoch's batches at most.
        rank: of this process.
        world_size: processes.

    Attributes:
        epoch: whose batches come next.
        skipped: batches at the beginning of the epoch that are left out, as a run that is resumed has seen them.

    Raises:
        UserError: once batches are drawn, if none has an example for each process.
    """

    def __init__(
        self,
        source_lengths: NDArray[np.int64],
        target_lengths: NDArray[np.int64],
        *,
        size: int,
        by: Literal["examples", "tokens"],
        seed: int,
        pool: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.source_lengths, self.target_lengths = source_lengths.astype(np.int32), target_lengths.astype(np.int32)
        self.longer = np.maximum(self.source_lengths, self.target_lengths)
        self.size = size
        self.by = by
        self.seed = seed
        self.pool = pool
        self.rank = rank
        self.world_size = world_size
        self.epoch = 0
        self.skipped = 0
        self._drawn: tuple[int, _Batches] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose batches come next; Lightning calls it."""
        self.epoch = epoch

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return len(self._batches().starts)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the positions of each batch's examples."""
        order, starts, ends = self._batches()
        for start, end in zip(starts[self.skipped :].tolist(), ends[self.skipped :].tolist(), strict=True):
            yield order[start:end][self.rank :: self.world_size].tolist()

    def _batches(self) -> "_Batches":
        if self._drawn is None or self._drawn[0] != self.epoch:
            self._drawn = (self.epoch, self._draw())
        return self._drawn[1]

    def _draw(self) -> "_Batches":
        generator = make_generator(self.seed, f"batches of epoch {self.epoch}")
        order = generator.permutation(len(self.longer)).astype(np.int32)
        if self.by == "tokens":
            order = order[np.argsort(self.longer[order], kind="stable")]
        else:
            examples_in_pool = self.pool * self.size
            for start in range(0, len(order), examples_in_pool):
                pool = order[start : start + examples_in_pool]
                pool[:] = pool[np.lexsort((self.source_lengths[pool], self.target_lengths[pool]))]
        bounds = split_order(order, self.longer, self.size, self.by)
        starts, ends = bounds[:-1], bounds[1:]
        is_kept = ends - starts >= self.world_size
        if not is_kept.any():
            raise UserError(f"no training batch has an example for each of {self.world_size} processes: make batches larger")
        if not is_kept.all() and self._drawn is None and self.rank == 0:
            left_out = int((ends - starts)[~is_kept].sum())
            told = "their batches have fewer than there are processes"
            log.info("left out %d of %d training examples in each epoch: %s", left_out, len(order), told)
        shuffled = np.flatnonzero(is_kept)[generator.permutation(int(is_kept.sum()))]
        return _Batches(order, starts[shuffled], ends[shuffled])


class _Batches(NamedTuple):
    """The batches of an epoch: of an order of examples, where each starts and ends."""

    order: NDArray[np.int32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class BatchLoader(DataLoader[Batch]):
    """Loads the batches of a sampler; draws nothing from the global random numbers, as torch's own does.

    Args:
        dataset: the examples.
        sampler: the positions of each batch's examples.
        num_workers: processes that load.
    """

    def __init__(self, dataset: Dataset[Batch], sampler: Iterable[list[int]], *, num_workers: int) -> None:
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

    def __init__(self, dataset: Dataset[Batch], sampler: BucketSampler, *, num_workers: int) -> None:
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
