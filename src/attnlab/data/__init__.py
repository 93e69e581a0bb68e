"""What every task shares: examples, batches, gold links; ``datamodule``, which imports Lightning, serves them."""

from attnlab.data.batches import Batch, BatchOptions
from attnlab.data.examples import Examples

__all__ = ["Batch", "BatchOptions", "Examples"]
