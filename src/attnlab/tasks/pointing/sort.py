"""Numbers to be put in order."""

import hashlib

import numpy as np
from typing_extensions import override

from attnlab.errors import UserError
from attnlab.seeding import derive_seed
from attnlab.tasks.pointing.problems import Problem, Problems

STEPS = 10_000
"""Numbers are drawn from 0, 1 / STEPS, …, so that no two of a problem are equal and text holds them exactly."""


class Sort(Problems):
    """Numbers from 0 to 1, drawn evenly; the answer is their order, as positions, the smallest first (Vinyals et al. 2016).

    Args:
        train_size: problems in the training set.
        val_size: in the validation set.
        test_size: in the test set.
        test_long_size: in a second test set, whose problems are longer than those of training.
        min_length: numbers in the shortest problem.
        max_length: in the longest.
        max_length_long: in the longest of the second test set.
        seed: of the numbers; not the run's.

    Raises:
        UserError: a size that is not positive, or lengths that leave none to be drawn.
    """

    element_size = 1
    test_names = ("test", "test_long")

    def __init__(
        self,
        *,
        train_size: int = 10_000,
        val_size: int = 500,
        test_size: int = 500,
        test_long_size: int = 300,
        min_length: int = 3,
        max_length: int = 8,
        max_length_long: int = 16,
        seed: int = 1,
    ) -> None:
        if min(train_size, val_size, test_size, test_long_size) < 1:
            raise UserError("train_size, val_size, test_size and test_long_size must be 1 or more")
        if not 1 <= min_length <= max_length < max_length_long <= STEPS:
            raise UserError(
                f"1 <= min_length <= max_length < max_length_long <= {STEPS} must hold: they are "
                f"{min_length}, {max_length} and {max_length_long}"
            )
        self.sizes = {"train": train_size, "val": val_size, "test": test_size, "test_long": test_long_size}
        self.lengths = dict.fromkeys(self.sizes, (min_length, max_length))
        self.lengths["test_long"] = (max_length + 1, max_length_long)
        self.seed = seed

    @override
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(("sort", self.sizes, self.lengths, self.seed)).encode()).hexdigest()

    @override
    def load(self) -> dict[str, list[Problem]]:
        return {split: self._draw(split) for split in self.sizes}

    def _draw(self, split: str) -> list[Problem]:
        generator = np.random.Generator(np.random.PCG64(derive_seed(self.seed, f"sort, {split}")))
        low, high = self.lengths[split]
        problems = []
        for length in generator.integers(low, high + 1, self.sizes[split]).tolist():
            numbers = generator.choice(STEPS, length, replace=False)
            problems.append(Problem((numbers / STEPS).astype(np.float32).reshape(-1, 1), np.argsort(numbers).tolist()))
        return problems
