"""What every task shares: examples, batches, gold links, the LightningDataModule."""

from attnlab.data.batches import Batch, BatchOptions
from attnlab.data.datamodule import SequenceDataModule
from attnlab.data.examples import Examples

__all__ = ["Batch", "BatchOptions", "Examples", "SequenceDataModule"]
