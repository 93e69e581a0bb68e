"""What a metric would have been on other test sets: sums over resampled or exchanged examples."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.metric import Statistics

SEED = 12345
"""sacreBLEU's."""
ROOM = 2**20
"""Numbers that may be held at once, 8 bytes each."""
WORD = 32
"""Samples are drawn in portions of a multiple of so many: then they are the same as if all were drawn at once."""


def sum_blocks(statistics: Statistics, blocks: Sequence[int] | NDArray[Any] | None) -> Statistics:
    """Sum what the examples of each block add, which are drawn and exchanged as one (Carlstein 1986).

    Args:
        statistics: what each example adds, (examples, k).
        blocks: (examples,), a number for each; None where every example is a block of its own.

    Returns:
        (blocks, k).
    """
    if blocks is None:
        return statistics
    numbers, places = np.unique(np.asarray(blocks), return_inverse=True)
    if len(numbers) == len(statistics):
        return statistics
    sums = np.zeros((len(numbers), statistics.shape[1]))
    np.add.at(sums, places, statistics)
    return sums


def number_blocks(blocks: NDArray[Any]) -> NDArray[np.intp]:
    """Number the blocks of examples by where they first appear, so that the same blocks have the same numbers."""
    _, firsts, own = np.unique(blocks, return_index=True, return_inverse=True)
    ranks: NDArray[np.intp] = np.argsort(np.argsort(firsts))
    return ranks[own]


def common_blocks(systems: Sequence[NDArray[np.intp]]) -> NDArray[np.intp] | None:
    """Return blocks of the same examples that are large enough for all systems; None where there are none.

    Windows of another length are drawn in longer or shorter blocks: the longest do for all. They are those of one system, such
    that every block of another is no larger, and lies in one of them or in two that are neighbours.

    Args:
        systems: the block of each example (examples,) in each of them, by :func:`number_blocks`.
    """
    largest = [np.bincount(own).max(initial=0) for own in systems]
    chosen = systems[int(np.argmax(largest))]
    for own in systems:
        within = np.unique(np.stack([own, chosen]), axis=1)[0]
        if np.bincount(within).max(initial=0) > 2:
            return None
    return chosen


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


def exchange(
    one: Statistics, others: Sequence[Statistics], samples: int, seed: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Sum what examples add in two systems, after every example changed the system with probability 1/2.

    The examples that change are the same for all of several other systems, and are drawn once.

    Args:
        one: (examples, k) of a system.
        others: (examples, k) of each other system.
        samples: how often.
        seed: of the draws.

    Yields:
        (samples, k) of the one and of the other system, for each other.
    """
    examples, size = one.shape
    draw = np.random.default_rng(seed)
    differences = np.concatenate([one - other for other in others], axis=1)
    kept = np.concatenate(
        [
            draw.integers(2, size=(rows, examples), dtype=bool).astype(np.float64) @ differences
            for rows in _portions(samples, examples)
        ]
    )
    for place, other in enumerate(others):
        own = kept[:, place * size : (place + 1) * size]
        yield other.sum(axis=0) + own, one.sum(axis=0) - own


def _portions(samples: int, examples: int) -> Iterator[int]:
    """Cut samples into portions that fit into the room."""
    portion = max(1, ROOM // max(1, examples))
    portion -= portion % WORD if portion > WORD else 0
    for start in range(0, samples, portion):
        yield min(portion, samples - start)
