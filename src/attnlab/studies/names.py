"""What tests of differences are called, and variants that there are not. Nothing is imported that takes time."""

from collections.abc import Iterable
from typing import Literal

from attnlab.errors import nearest

Significance = Literal["seeds", "models"]
"""What a test of a difference speaks of: variants whatever their seeds, or these trained models alone."""


def nearest_variant(label: str, labels: Iterable[str]) -> str:
    """Return a hint at which variant was meant by a label that none has."""
    return nearest(label, labels, "the variants are")
