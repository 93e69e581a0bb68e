from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from attnlab.data.batches import (
    Batch,
    BatchOptions,
    BucketSampler,
    TrainingLoader,
    memory_errors,
    split_evaluation,
    split_order,
)
from attnlab.data.datamodule import SequenceDataModule
from attnlab.data.examples import Examples
from attnlab.data.ragged import Ragged
from attnlab.errors import UserError
from attnlab.seeding import derive_seed

LENGTHS = np.random.default_rng(5).integers(2, 40, size=(2, 503))
LONGER = LENGTHS.max(axis=0)


class Plain(Examples):
    sources = references = ()

    def source_tokens(self, index: int) -> list[str]:
        return list(map(str, self.source[index]))

    def target_tokens(self, index: int) -> list[str]:
        return list(map(str, self.target[index]))


def made(sources: Sequence[int], targets: Sequence[int]) -> Plain:
    """Examples of these lengths."""
    return Plain(*(Ragged.of_ids([[7] * length for length in lengths]) for lengths in (sources, targets)))


def cut(order: NDArray[np.int64], lengths: NDArray[np.int64], size: int, by: Literal["examples", "tokens"]) -> list[list[int]]:
    return [order[start:end].tolist() for start, end in pairwise(split_order(order, lengths, size, by))]


def sampler(**changes: object) -> BucketSampler:
    settings = {"size": 32, "by": "examples", "seed": 3, "pool": 4, **changes}
    return BucketSampler(*LENGTHS, **settings)  # type: ignore[arg-type]


def epoch(of: BucketSampler, number: int) -> list[list[int]]:
    of.set_epoch(number)
    batches = list(of)
    assert len(batches) == len(of)
    return batches


BY = pytest.mark.parametrize("by", [{"by": "examples", "size": 32}, {"by": "tokens", "size": 600}])


@BY
class TestBucketSampler:
    def test_every_pair_once_in_batches_of_the_size_asked_for(self, by: dict[str, object]) -> None:
        batches = epoch(sampler(**by), 0)
        assert sorted(index for batch in batches for index in batch) == list(range(503))
        if by["by"] == "tokens":
            assert all(len(batch) * LONGER[batch].max() <= 600 for batch in batches)
        else:
            assert sorted(map(len, batches), reverse=True) == [32] * 15 + [23]

    def test_seed_and_epoch_alone_decide(self, by: dict[str, object]) -> None:
        one, other = sampler(**by), sampler(**by)
        epochs = [epoch(one, number) for number in range(4)]
        torch.manual_seed(0)
        np.random.seed(0)
        assert [epoch(other, number) for number in (3, 1)] == [epochs[3], epochs[1]]
        assert all(a != b for a, b in pairwise(epochs))
        assert epoch(sampler(**by, seed=4), 0) != epochs[0]
        assert len({len(batches) for batches in epochs}) == 1

    def test_little_padding_and_no_order(self, by: dict[str, object]) -> None:
        batches = epoch(sampler(**by), 0)
        padded = sum(len(batch) * LENGTHS[1][batch].max() for batch in batches)
        shuffled = cut(np.arange(503), LENGTHS[1], 32, "examples")
        assert padded < 0.8 * sum(len(batch) * LENGTHS[1][batch].max() for batch in shuffled)
        means = [LONGER[batch].mean() for batch in batches]
        assert means != sorted(means)
        assert means != sorted(means, reverse=True)

    @pytest.mark.parametrize("world_size", [2, 3])
    def test_ranks_share_the_batches_of_one_process(self, by: dict[str, object], world_size: int) -> None:
        whole = epoch(sampler(**by), 2)
        shares = [epoch(sampler(**by, rank=rank, world_size=world_size), 2) for rank in range(world_size)]
        for batch, *parts in zip(whole, *shares, strict=True):
            assert sorted(index for part in parts for index in part) == sorted(batch)
            assert all(parts)

    def test_a_batch_too_small_for_all_ranks_is_left_out(self, by: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", "attnlab")
        ranks = [sampler(**by, rank=rank, world_size=24) for rank in range(24)]
        shares = [epoch(rank, 0) for rank in ranks]
        assert len({len(share) for share in shares}) == 1
        assert all(batch for share in shares for batch in share)
        left_out = 503 - sum(len(batch) for share in shares for batch in share)
        assert left_out > 0
        assert f"left out {left_out} of 503 training examples in each epoch" in caplog.text
        epoch(ranks[0], 1)
        assert caplog.text.count("left out") == 1
        with pytest.raises(UserError, match=r"no training batch has an example for each of 600 processes: make batches larger"):
            epoch(sampler(**by, world_size=600), 0)


def test_a_batch_with_an_example_for_each_rank_is_kept() -> None:
    three = BucketSampler(np.full(9, 3), np.full(9, 3), size=3, by="examples", seed=1, pool=20, world_size=3)
    assert [len(batch) for batch in three] == [1, 1, 1]


def drawn_by_lists(by: dict[str, object], number: int) -> list[list[int]]:
    """The batches of an epoch, as lists all through."""
    generator = np.random.Generator(np.random.PCG64(derive_seed(3, f"batches of epoch {number}")))
    order = generator.permutation(503)
    size = int(str(by["size"]))
    batches: list[list[int]] = []
    if by["by"] == "tokens":
        for index in sorted(order.tolist(), key=lambda i: LONGER[i]):
            longest = max([LONGER[index], *(LONGER[i] for i in batches[-1])]) if batches else 0
            if not batches or longest * (len(batches[-1]) + 1) > size:
                batches.append([])
            batches[-1].append(index)
    else:
        pools = [order[start : start + 4 * size].tolist() for start in range(0, 503, 4 * size)]
        ordered = [i for pool in pools for i in sorted(pool, key=lambda i: (LENGTHS[1][i], LENGTHS[0][i]))]
        batches = [ordered[start : start + size] for start in range(0, 503, size)]
    return [batches[index] for index in generator.permutation(len(batches))]


@BY
def test_batches_are_what_lists_give(by: dict[str, object]) -> None:
    for number in range(3):
        assert epoch(sampler(**by), number) == drawn_by_lists(by, number)


def test_an_example_longer_than_a_batch_stands_alone() -> None:
    lengths = np.array([5, 300, 5, 5, 40])
    assert cut(np.arange(5), lengths, 20, "tokens") == [[0], [1], [2, 3], [4]]
    assert cut(np.arange(0), lengths, 20, "tokens") == cut(np.arange(0), lengths, 20, "examples") == []


@pytest.mark.parametrize("world_size", [1, 3])
def test_evaluation_takes_every_example_once_over_all_ranks(world_size: int) -> None:
    taken = []
    for rank in range(world_size):
        module = SequenceDataModule(lambda _: made(*LENGTHS), ["test"], BatchOptions(eval_size=10), seed=1)
        module.trainer = SimpleNamespace(global_rank=rank, world_size=world_size)  # type: ignore[assignment]
        (loader,) = module.test_dataloader()
        taken += [index for batch in loader for index in batch.indices.tolist()]
    assert sorted(taken) == list(range(503))


def test_evaluation_is_in_order_of_length_and_leaves_out_empty_sources() -> None:
    examples = made([3, 1, 2, 1, 2], [4, 2, 3, 5, 2])
    assert examples.sort_by_length().tolist() == [4, 2, 0], "of equal sources the one with the shorter target comes first"
    assert examples.sort_by_length([0, 1, 4]).tolist() == [4, 0]


def test_batches_of_tokens() -> None:
    lengths = np.array([3, 3, 9, 50, 2, 2])
    assert cut(np.arange(6), lengths, 20, "tokens") == [[0, 1], [2], [3], [4, 5]]


def test_a_line_of_thousands_stands_alone_in_evaluation_and_leaves_the_other_batches_as_they_were() -> None:
    source, target = np.full(40, 20), np.full(40, 20)
    usual = split_evaluation(np.arange(40), source, target, 16)
    assert usual == cut(np.arange(40), source, 16, "examples")
    source[5], target[20] = 5000, 5000
    found = split_evaluation(np.arange(40), source, target, 16)
    bounds = (0, 5, 6, 16, 20, 21, 32, 40)
    assert found == [list(range(*bound)) for bound in pairwise(bounds)]
    assert found[-1] == usual[-1]


def test_evaluation_holds_no_more_cells_than_usual_batches() -> None:
    lengths = np.full(4, 1000)
    assert split_evaluation(np.arange(4), lengths, lengths, 16) == [[0], [1], [2], [3]], "a million cells each"
    assert split_evaluation(np.arange(4), lengths, np.full(4, 100), 16) == [[0, 1], [2, 3]]


def test_memory_that_is_not_enough_is_told_in_a_line() -> None:
    told = r"out of memory with 8 by 9 \(.*DefaultCPUAllocator.*\): lower it"
    with pytest.raises(UserError, match=told), memory_errors(lambda: "8 by 9", "lower it"):
        torch.zeros(2**50)
    with pytest.raises(UserError, match=r"\(.*not enough memory.*\)"), memory_errors(lambda: "", ""):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] . not enough memory: you tried to allocate 8 bytes")
    with pytest.raises(RuntimeError, match="another"), memory_errors(lambda: "", ""):
        raise RuntimeError("another")


def test_batch_is_padded() -> None:
    ids = Ragged.of_ids([[5, 6, 3], [7, 3], [3]])
    batch = Plain(ids, ids)[[2, 0]]
    assert batch.source.tolist() == [[3, 0, 0], [5, 6, 3]]
    assert batch.labels.tolist() == [[0, 0], [6, 3]]
    assert batch.source.dtype == torch.int64
    assert batch.source_lengths.tolist() == [1, 3]
    assert batch.indices.tolist() == [2, 0]
    moved = batch.to(torch.device("meta"))
    assert (moved.target.device.type, moved.target_lengths.device.type, moved.indices.device.type) == ("meta", "cpu", "cpu")


@pytest.mark.parametrize(("served", "skipped"), [(0, 0), (1, 1), (4, 0)])
def test_a_loader_goes_on_after_what_was_served_and_after_a_whole_epoch_anew(served: int, skipped: int) -> None:
    ids = Ragged.of_ids([[5, 6, 3]] * 10)
    batches = BucketSampler(np.full(10, 3), np.full(10, 3), size=3, by="examples", seed=1, pool=20)
    whole = list(batches)
    loader = TrainingLoader(Plain(ids, ids), batches, num_workers=0)
    loader.load_state_dict({"served": served})
    assert [batch.indices.tolist() for batch in loader] == whole[skipped:]
    assert loader.state_dict() == {"served": 4}
    assert [batch.indices.tolist() for batch in loader] == whole, "the next one is whole"


def test_numbers_are_real_up_to_the_length_of_their_target() -> None:
    values, lengths = torch.zeros(2, 4, 1), torch.tensor([4, 2])
    batch = Batch(values, torch.tensor([4, 4]), values, lengths, values[:, 1:], torch.arange(2))
    assert batch.real.tolist() == [[True] * 3, [True, False, False]]
    assert batch.positions.tolist() == [0, 1, 2, 3]


def test_vectors_are_padded_with_zeros() -> None:
    vectors = Ragged.of_vectors([np.ones((2, 3), np.float32), np.full((1, 3), 2, np.float32)])
    padded, lengths = vectors.padded([1, 0])
    assert padded.tolist() == [[[2.0] * 3, [0.0] * 3], [[1.0] * 3] * 2]
    assert (padded.dtype, lengths.tolist()) == (torch.float32, [1, 2])
