"""Many comparisons at once: corrected p-values, and systems that are not told apart."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Correct p-values for having made several comparisons (Holm 1979): step-down Bonferroni, never decreasing.

    A comparison without a p-value, NaN, was not made.
    """
    corrected: dict[Key, float] = dict.fromkeys(p_values, math.nan)
    before = 0.0
    for name, factor in holm_factors(p_values).items():
        before = max(before, min(1.0, factor * p_values[name]))
        corrected[name] = before
    return corrected


def holm_factors(p_values: Mapping[Key, float]) -> dict[Key, int]:
    """Return what Holm's correction multiplies each p-value by, the smallest first."""
    made = sorted((name for name, p in p_values.items() if not math.isnan(p)), key=lambda name: p_values[name])
    return {name: len(made) - rank for rank, name in enumerate(made)}


def clusters(ranked: Sequence[Key], told_apart: Collection[tuple[Key, Key]]) -> dict[Key, int]:
    """Number the clusters of systems as WMT does: each system of a cluster is significantly better than all of later ones.

    Args:
        ranked: the systems, the best first.
        told_apart: pairs of which the first is significantly better than the second.
    """
    known, found, number = set(told_apart), {}, 1
    for place, system in enumerate(ranked):
        if place and all((above, below) in known for above in ranked[:place] for below in ranked[place:]):
            number += 1
        found[system] = number
    return found
