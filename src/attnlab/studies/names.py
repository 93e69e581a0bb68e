"""What tests of differences are called, and variants that there are not. Nothing is imported that takes time."""

import re
from collections.abc import Iterable
from typing import Literal

from attnlab.errors import UserError, nearest

Significance = Literal["seeds", "models"]
"""What a test of a difference speaks of: variants whatever their seeds, or these trained models alone."""
VARIANT_NAME = re.compile(r"(?!(?:true|false|null|nan|inf)$)[A-Za-z][\w.+-]{0,99}", re.ASCII | re.IGNORECASE)
"""What Hydra takes for the name of an option, and every file system for that of a folder; columns have such names too."""


def plural(count: int | str, noun: str) -> str:
    """Return a number of things in words: ``1 run``, ``2 runs``."""
    return f"{count} {noun}{'' if str(count) == '1' else 's'}"


def nearest_variant(label: str, labels: Iterable[str]) -> str:
    """Return a hint at which variant was meant by a label that none has."""
    return nearest(label, labels, "the variants are")


def no_baseline(label: str, labels: Iterable[str]) -> UserError:
    """Tell of a baseline that is none of the variants."""
    return UserError(f"study.baseline: no variant {label!r}: {nearest_variant(label, labels)}")
