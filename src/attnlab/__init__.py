"""attnlab: which attention, and why? A framework to compare attention mechanisms in sequence-to-sequence models."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.runs.loading import load as load

__version__ = version("attnlab")
__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """Import what is heavy when it is asked for."""
    if name == "load":
        from attnlab.runs.loading import load

        return load
    raise AttributeError(f"module 'attnlab' has no attribute {name!r}")
