"""The LightningDataModule."""

from collections.abc import Callable, Sequence

from lightning import LightningDataModule
from torch.utils.data import DataLoader
from typing_extensions import override

from attnlab.data.batches import Batch, BatchLoader, BatchOptions, BucketSampler, TrainingLoader, split_evaluation
from attnlab.data.examples import Examples
from attnlab.errors import UserError


class SequenceDataModule(LightningDataModule):
    """Serves the examples of a task in batches.

    Training batches hold examples of similar length and depend on (seed, epoch) and the data alone: every model of a comparison
    sees the same batches in the same order.

    Args:
        examples: returns the examples of "train", "val" or a test set.
        test_names: names of the test sets.
        options: how examples are put together.
        seed: of the batches.
    """

    def __init__(
        self, examples: Callable[[str], Examples], test_names: Sequence[str], options: BatchOptions, *, seed: int
    ) -> None:
        super().__init__()
        self.examples = examples
        self.test_names = tuple(test_names)
        self.options = options
        self.seed = seed

    @override
    def setup(self, stage: str) -> None:
        """Look whether every process has something to be evaluated on.

        Raises:
            UserError: fewer examples than processes, each of which Lightning wants to have one.
        """
        for name in self.test_names if stage == "test" else ("val", *self.test_names):
            if (count := int(self.examples(name).has_source.sum())) < self._world_size:
                raise UserError(
                    f"{'validation' if name == 'val' else name} has fewer examples ({count}) than there are processes "
                    f"({self._world_size}), each of which needs one: hold out more, or train in fewer processes"
                )

    @override
    def train_dataloader(self) -> DataLoader[Batch]:
        """Return the training batches of the epoch that Lightning tells the sampler."""
        examples = self.examples("train")
        sampler = BucketSampler(
            examples.source.lengths,
            examples.target.lengths,
            size=self.options.size,
            by=self.options.by,
            pool=self.options.pool,
            seed=self.seed,
            rank=self._rank,
            world_size=self._world_size,
        )
        return TrainingLoader(examples, sampler, num_workers=self.options.num_workers)

    @override
    def val_dataloader(self) -> DataLoader[Batch]:
        """Return the validation batches."""
        return self.evaluation_loader(self.examples("val"))

    @override
    def test_dataloader(self) -> list[DataLoader[Batch]]:
        """Return the batches of each test set, in the order of ``test_names``."""
        return [self.evaluation_loader(self.examples(name)) for name in self.test_names]

    def evaluation_loader(self, examples: Examples) -> DataLoader[Batch]:
        """Return batches of all examples whose source is not empty, in order of length, each once over all processes."""
        order = examples.sort_by_length()[self._rank :: self._world_size]
        batches = split_evaluation(order, examples.source.lengths, examples.target.lengths, self.options.eval_size)
        return BatchLoader(examples, batches, num_workers=self.options.num_workers)

    @property
    def _rank(self) -> int:
        return self.trainer.global_rank if self.trainer else 0

    @property
    def _world_size(self) -> int:
        return self.trainer.world_size if self.trainer else 1
