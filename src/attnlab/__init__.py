"""attnlab: which attention, and why? A framework to compare attention mechanisms in sequence-to-sequence models."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.runs.loading import load as load
    from attnlab.studies.sweep import report as report
    from attnlab.studies.sweep import study as study

__version__ = version("attnlab")
__all__ = ["load", "report", "study"]

HOMES = {"load": "attnlab.runs.loading", "report": "attnlab.studies.sweep", "study": "attnlab.studies.sweep"}
"""Modules of what is imported when it is asked for, since it is heavy."""


def __getattr__(name: str) -> Any:
    """Import what is heavy when it is asked for."""
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    raise AttributeError(f"module 'attnlab' has no attribute {name!r}")
