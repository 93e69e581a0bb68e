"""Splits of generated problems: how many there are in each, and how long they are."""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

from numpy.random import Generator

from attnlab.errors import UserError
from attnlab.hints import Range

Size = Annotated[int, Range(1)]
"""How many problems a split has."""


class Split(NamedTuple):
    """The problems of a training, validation or test set, whose lengths are drawn evenly."""

    size: int
    """How many there are."""
    shortest: int
    """Length of the shortest."""
    longest: int
    """Length of the longest."""

    def draw_lengths(self, generator: Generator) -> list[int]:
        """Return the length of each problem."""
        lengths: list[int] = generator.integers(self.shortest, self.longest + 1, self.size).tolist()
        return lengths


LONGER_TESTS = {"test_2x": 2, "test_4x": 4}
"""Test sets of longer problems than those of training, and how many times as long the longest is."""


def usual_splits(
    train_size: int, val_size: int, test_size: int, min_length: int, max_length: int, val_max_length: int | None
) -> dict[str, Split]:
    """Return a training, a validation and a test set of one distribution; or with longer problems in validation.

    A validation set of the lengths of training cannot tell which checkpoint or learning rate reaches beyond them (Csordás et
    al. 2021): ``val_max_length`` gives it longer problems.

    Args:
        train_size: problems in the training set.
        val_size: in the validation set.
        test_size: in the test set.
        min_length: of the shortest problem.
        max_length: of the longest one in training.
        val_max_length: of the longest one in validation; None: as in training.

    Raises:
        UserError: a ``val_max_length`` below ``max_length``.
    """
    if val_max_length is not None and val_max_length < max_length:
        raise UserError(f"val_max_length is {val_max_length}, less than max_length, {max_length}: raise it")
    return {
        "train": Split(train_size, min_length, max_length),
        "val": Split(val_size, min_length, max_length if val_max_length is None else val_max_length),
        "test": Split(test_size, min_length, max_length),
    }


def lengthened_splits(usual: dict[str, Split], test_long_size: int) -> dict[str, Split]:
    """Return splits with test sets of longer problems: up to twice the greatest length, and from there up to four times.

    Args:
        usual: those of :func:`usual_splits`.
        test_long_size: problems in each of the further test sets.

    Raises:
        UserError: lengths that leave none to be drawn.
    """
    _, shortest, greatest = usual["train"]
    if shortest > greatest:
        raise UserError(f"min_length is {shortest}, but max_length {greatest}: lower the one or raise the other")
    splits, longest = dict(usual), greatest
    for name, times in LONGER_TESTS.items():
        splits[name] = Split(test_long_size, longest + 1, times * greatest)
        longest = times * greatest
    return splits


def list_tests(splits: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the splits that are test sets."""
    return tuple(name for name in splits if name not in ("train", "val"))
