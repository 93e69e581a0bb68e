"""What every task shares: examples, batches, gold links; ``datamodule``, which imports Lightning, serves them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.data.batches import Batch as Batch
    from attnlab.data.batches import BatchOptions as BatchOptions
    from attnlab.data.examples import Examples as Examples

__all__ = ["Batch", "BatchOptions", "Examples"]


def __getattr__(name: str) -> Any:
    """Import torch when something that needs it is asked for, and not in every process that reads what is stored."""
    if name in __all__:
        from attnlab.data import batches, examples

        return getattr(examples if name == "Examples" else batches, name)
    raise AttributeError(f"module 'attnlab.data' has no attribute {name!r}")
