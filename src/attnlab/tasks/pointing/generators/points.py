"""Points in a square."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.splits import Size, Split, usual_splits
from attnlab.errors import UserError
from attnlab.hints import Range
from attnlab.tasks.pointing.problems import Problem, Problems

Length = Annotated[int, Range(3, 1000)]


@dataclass(frozen=True, kw_only=True)
class PointProblems(Problems):
    """Points drawn evenly from [0, 1] × [0, 1], in no order (Vinyals et al. 2015, section 3).

    Args:
        train_size: problems in the training set.
        val_size: in the validation set.
        test_size: in the test set.
        test_long_size: in each further test set.
        min_length: points in the smallest problem of training, validation and "test".
        max_length: in the largest.
        val_max_length: in the largest of validation; None: as in training. See :func:`attnlab.data.splits.usual_splits`.
        test_lengths: numbers of points that have a further test set each: "test_20" has problems of 20 points alone.
        seed: of the points; not the run's.

    Raises:
        UserError: numbers of points that leave none to be drawn.
    """

    element_size: ClassVar[int] = 2
    least: ClassVar[int] = 3

    train_size: Size = 10_000
    val_size: Size = 500
    test_size: Size = 500
    test_long_size: Size = 300
    min_length: Length = 5
    max_length: Length = 10
    val_max_length: Length | None = None
    test_lengths: Sequence[Length] = (5, 10, 20, 50)
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.least <= self.min_length <= self.max_length:
            raise UserError(
                f"{self.least} <= min_length <= max_length must hold: they are {self.min_length} and {self.max_length}"
            )
        wrong = next((length for length in self.test_lengths if length < self.least), None)
        if wrong is not None:
            raise UserError(f"test_lengths must be {self.least} points or more, not {wrong}")
        if len(set(self.test_lengths)) < len(self.test_lengths):
            raise UserError("test_lengths has a number of points twice: each has one test set")
        _ = self.splits  # which refuses a validation set of smaller problems

    @property
    @override
    def splits(self) -> dict[str, Split]:
        sizes = self.train_size, self.val_size, self.test_size
        usual = usual_splits(*sizes, self.min_length, self.max_length, self.val_max_length)
        return usual | {f"test_{length}": Split(self.test_long_size, length, length) for length in self.test_lengths}

    @override
    def draw(self, generator: np.random.Generator, lengths: Sequence[int]) -> list[Problem]:
        drawn = generator.random((sum(lengths), 2), dtype=np.float32)
        points = np.split(drawn, np.cumsum(lengths)[:-1])
        answers = self.solve([own.astype(np.float64) for own in points])
        return [Problem(own, answer) for own, answer in zip(points, answers, strict=True)]

    @abstractmethod
    def solve(self, problems: Sequence[NDArray[np.float64]]) -> list[list[int]]:
        """Return the exact answers to problems, each its points (length, 2)."""
