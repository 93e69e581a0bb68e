"""Numbers to be put in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from attnlab.data.splits import Size, Split, usual_splits
from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.tasks.pointing.problems import Problem, Problems

STEPS = 10_000
"""Numbers are drawn from 0, 1 / STEPS, …, so that no two of a problem are equal and text holds them exactly."""


@dataclass(frozen=True, kw_only=True)
class Sort(Problems):
    """Numbers from 0 to 1, drawn evenly; the answer is their order, as positions, the smallest first (Vinyals et al. 2016).

    Args:
        train_size: problems in the training set.
        val_size: in the validation set.
        test_size: in the test set.
        test_long_size: in a second test set, whose problems are longer than those of training.
        min_length: numbers in the shortest problem.
        max_length: in the longest.
        val_max_length: in the longest of validation; None: as in training. See :func:`attnlab.data.splits.usual_splits`.
        max_length_long: in the longest of the second test set.
        seed: of the numbers; not the run's.

    Raises:
        UserError: lengths that leave none to be drawn.
    """

    name: ClassVar[str] = "sort"
    element_size: ClassVar[int] = 1

    train_size: Size = 10_000
    val_size: Size = 500
    test_size: Size = 500
    test_long_size: Size = 300
    min_length: Size = 3
    max_length: Size = 8
    val_max_length: Annotated[int, Range(1, STEPS)] | None = None
    max_length_long: Annotated[int, Range(1, STEPS)] = 16
    seed: int = 1

    def __post_init__(self) -> None:
        if self.min_length < 2:
            raise UserError(
                "one number alone has no order, and is in the training set and in the test set: min_length is 2 or more"
            )
        if not self.min_length <= self.max_length < self.max_length_long:
            raise UserError(
                "min_length <= max_length < max_length_long must hold: they are "
                f"{self.min_length}, {self.max_length} and {self.max_length_long}"
            )
        _ = self.splits  # which refuses a validation set of shorter problems

    @property
    @override
    def splits(self) -> dict[str, Split]:
        sizes = self.train_size, self.val_size, self.test_size
        usual = usual_splits(*sizes, self.min_length, self.max_length, self.val_max_length)
        return {**usual, "test_long": Split(self.test_long_size, self.max_length + 1, self.max_length_long)}

    @override
    def draw(self, generator: np.random.Generator, lengths: Sequence[int]) -> list[Problem]:
        problems = []
        for length in lengths:
            numbers = generator.choice(STEPS, length, replace=False)
            problems.append(Problem((numbers / STEPS).astype(np.float32).reshape(-1, 1), np.argsort(numbers).tolist()))
        return problems
