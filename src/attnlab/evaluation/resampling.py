"""What a metric would have been on other test sets: sums over resampled or exchanged examples."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.metric import Metric, Statistics

SEED = 12345
"""sacreBLEU's."""
ROOM = 2**20
"""Numbers that may be held at once, 8 bytes each."""
WORD = 32
"""A multiple of it, as the number of samples that are drawn at once, leaves the draws those of drawing all at once."""


def bootstrap(statistics: Statistics, samples: int, seed: int) -> NDArray[np.float64]:
    """Sum what as many examples add, drawn with replacement (Koehn 2004).

    Args:
        statistics: (examples, k).
        samples: how often.
        seed: of the draws.

    Returns:
        (samples, k).
    """
    examples = len(statistics)
    draw = np.random.default_rng(seed)
    totals = []
    for rows in _portions(samples, examples):
        chosen = draw.integers(examples, size=(rows, examples)) + examples * np.arange(rows)[:, None]
        counts = np.bincount(chosen.ravel(), minlength=rows * examples).reshape(rows, examples)
        totals.append(counts @ statistics)
    return np.concatenate(totals)


def exchange(one: Statistics, other: Statistics, samples: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum what examples add in two systems, after every example changed the system with probability 1/2.

    Args:
        one: (examples, k) of a system.
        other: (examples, k) of another system.
        samples: how often.
        seed: of the draws.

    Returns:
        (samples, k) of each.
    """
    examples = len(one)
    draw = np.random.default_rng(seed)
    kept = np.concatenate(
        [draw.integers(2, size=(rows, examples), dtype=bool) @ (one - other) for rows in _portions(samples, examples)]
    )
    return other.sum(axis=0) + kept, one.sum(axis=0) - kept


def values(metric: Metric, totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the metric of each of several sums, (samples,) of (samples, k)."""
    return np.fromiter((metric.value(total) for total in totals), dtype=np.float64, count=len(totals))


def _portions(samples: int, examples: int) -> Iterator[int]:
    """Cut samples into portions that fit into the room."""
    portion = max(1, ROOM // max(1, examples))
    portion -= portion % WORD if portion > WORD else 0
    for start in range(0, samples, portion):
        yield min(portion, samples - start)
