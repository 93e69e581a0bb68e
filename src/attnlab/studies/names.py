"""What the tests of differences are called. Nothing is imported that takes time."""

from typing import Literal

Significance = Literal["seeds", "models"]
"""What a test of a difference speaks of: variants whatever their seeds, or these trained models alone."""
