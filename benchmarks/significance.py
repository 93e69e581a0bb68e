"""How often tests of a difference give a false star, simulated: what docs/statistics.md shows.

Two systems are equally good on average. A value is drawn for each seed s and example x of system a,

    Y_a,s,x = seed_a,s + taste_a,x + noise_a,s,x,

and the metric is the mean over 500 examples. In the metric's unit, seeds have a standard deviation of 1, the noise of one run's
examples makes 0.5, and taste, that some examples are easier for one system than for the other, adds to the difference a
deviation of 0 or 1. These are sizes that BLEU has in small models.

    python -m benchmarks.significance [TIMES]           # a minute or two of processor time for 500
    python -m benchmarks.significance --levels DRAWS    # how often small levels are really exceeded; ten minutes for 100000
    python -m benchmarks.significance --windows TIMES   # how often of windows that overlap; seconds for 1000
"""

import argparse
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import ndtr, stdtr

from attnlab.evaluation.metrics import Loss
from attnlab.evaluation.resampling import sum_blocks
from attnlab.evaluation.significance.difference import LEVEL, Difference
from attnlab.evaluation.significance.models import Contest, compare_models
from attnlab.evaluation.significance.sample import Sample, sample_models
from attnlab.evaluation.significance.seeds import compare_systems

EXAMPLES, SAMPLES = 500, 500
SEED_DEVIATION, NOISE = 1.0, 0.5
SCENES = {
    "equal": (0.0, 0.0, 1.0, 0.0),
    "equal, some examples easier for one": (1.0, 0.0, 1.0, 0.0),
    "equal, one spreads three times as far": (0.0, 0.0, 3.0, 0.0),
    "equal means, one fails in a fifth of trainings": (0.0, 0.0, 1.0, 0.2),
    "one better by 2": (0.0, 2.0, 1.0, 0.0),
}
"""By name: taste, difference, spread and share of failures, as :func:`rates` takes them."""
LEVELS, SPREADS = (LEVEL, 0.001, 0.0001), (1.0, 3.0, 5.0, 10.0)
"""What the table of levels shows."""
ROWS, LOOK_BACK, HORIZON = 2880, 96, 24
"""Of the test part of ETTh1 and its windows."""
Scores = NDArray[np.float64]


def pooled(scores: Scores, sample: Sample, draw: np.random.Generator) -> bool:
    """Paired approximate randomization over the joined examples of all seeds."""
    one, other = (np.stack([found.ravel(), np.ones(found.size)], axis=1) for found in scores)
    family = [Contest(Loss(), [other], {"": [one]})]
    return compare_models(family, samples=SAMPLES, most=0, seed=int(draw.integers(2**31)))[""].p < LEVEL


def bootstrap(scores: Scores, sample: Sample, draw: np.random.Generator) -> bool:
    """Two levels, seeds and then examples, drawn with replacement; percentiles of the difference."""
    seeds = scores.shape[1]
    counts = draw.multinomial(EXAMPLES, np.full(EXAMPLES, 1 / EXAMPLES), size=SAMPLES) / EXAMPLES
    weights = [draw.multinomial(seeds, np.full(seeds, 1 / seeds), size=SAMPLES) / seeds for _ in range(2)]
    means = [((weight @ found) * counts).sum(axis=1) for weight, found in zip(weights, scores, strict=True)]
    low, high = np.quantile(means[0] - means[1], [0.025, 0.975])
    return not low <= 0 <= high


def welch(scores: Scores, sample: Sample, draw: np.random.Generator) -> bool:
    """Welch's t between seeds: examples count as they are."""
    difference = _compare(sample)
    variance, freedom = difference.parts[0]
    return bool(2 * stdtr(freedom, -abs(difference.value) / math.sqrt(variance)) < LEVEL)


def satterthwaite(scores: Scores, sample: Sample, draw: np.random.Generator) -> bool:
    """Both variances, with Satterthwaite's degrees of freedom of their sum."""
    difference = _compare(sample)
    freedom = difference.variance**2 / sum(part.variance**2 / part.freedom for part in difference.parts)
    return bool(2 * stdtr(freedom, -abs(difference.value) / math.sqrt(difference.variance)) < LEVEL)


def ours(scores: Scores, sample: Sample, draw: np.random.Generator) -> bool:
    """Both variances, each with a critical value of its own."""
    return _compare(sample).p < LEVEL


def _compare(sample: Sample) -> Difference:
    seeds = len(sample.values) // 2
    return compare_systems(sample, range(seeds), range(seeds, 2 * seeds))


TESTS: list[Callable[[Scores, Sample, np.random.Generator], bool]] = [pooled, bootstrap, welch, satterthwaite, ours]


def rates(seeds: int, taste: float, added: float, times: int, spread: float = 1.0, failing: float = 0.0) -> list[float]:
    """Return the share of stars of each test.

    Args:
        seeds: of each system.
        taste: deviation that it makes in the difference.
        added: to the first system: the true difference.
        times: of the simulation.
        spread: of the second system's seeds, in deviations of the first's.
        failing: share of the second system's trainings that fail, and are 7 lower; the mean stays the same.
    """
    draw, stars = np.random.default_rng([seeds, int(10 * taste), int(spread)]), np.zeros(len(TESTS))
    scale = math.sqrt(EXAMPLES)
    deviations = np.array([1.0, spread])[:, None, None] * SEED_DEVIATION
    for _ in range(times):
        tastes = scale * taste / math.sqrt(2) * draw.standard_normal((2, 1, EXAMPLES))
        noise = scale * NOISE * draw.standard_normal((2, seeds, EXAMPLES))
        scores = deviations * draw.standard_normal((2, seeds, 1)) + tastes + noise + np.array([added, 0.0])[:, None, None]
        scores[1] += 7 * failing - 7 * (draw.random((seeds, 1)) < failing)
        rows = [np.stack([row, np.ones(EXAMPLES)], axis=1) for found in scores for row in found]
        sample = sample_models(Loss(), rows)
        stars += [test(scores, sample, draw) for test in TESTS]
    return [*(stars / times)]


def true_levels(seeds: tuple[int, int], spread: float, draws: int) -> list[float]:
    """Return how often equal systems are told apart at each of the nominal levels, without a choice of examples.

    A system's mean does not depend on how far its seeds lie apart: given that, the rate is a normal tail.

    Args:
        seeds: of each system.
        spread: of the second system's seeds, in deviations of the first's.
        draws: of how far the seeds lie apart.
    """
    one, count = seeds[0], sum(seeds)
    draw, nothing = np.random.default_rng([*seeds, int(spread)]), np.zeros((count, count))
    deviations, error = np.repeat([1.0, spread], seeds), math.sqrt(1 / seeds[0] + spread**2 / seeds[1])
    rates = np.zeros(len(LEVELS))
    for _ in range(draws):
        sample = Sample(deviations * draw.standard_normal(count), nothing, EXAMPLES)
        found = compare_systems(sample, range(one), range(one, count))
        rates += [2 * ndtr(-found.half_width(1 - level) / error) for level in LEVELS]
    return [*(rates / draws)]


def windows(persistence: float, seeds: int, times: int) -> tuple[float, float]:
    """Return how often two equal forecasters get a star: with windows that count each by itself, and drawn by blocks.

    The losses of the rows are an autoregressive series of each forecaster, the same for all of its seeds, which differ by a
    tenth of its deviation; a window's loss is the mean over its rows.

    Args:
        persistence: correlation of the losses of a row and the next.
        seeds: of each forecaster.
        times: of the simulation.
    """
    draw, stars = np.random.default_rng([seeds, int(100 * persistence)]), np.zeros(2)
    starts = np.arange(ROWS - HORIZON + 1)
    blocks = starts // (LOOK_BACK + HORIZON)
    for _ in range(times):
        shocks = draw.standard_normal((ROWS, 2)) * math.sqrt(1 - persistence**2)
        losses = lfilter([1.0], [1.0, -persistence], shocks, axis=0)
        sums = np.concatenate([np.zeros((1, 2)), losses.cumsum(axis=0)])
        means = (sums[HORIZON:] - sums[:-HORIZON]).repeat(seeds, axis=1) / HORIZON + draw.normal(0, 0.1, 2 * seeds)
        rows = [np.stack([column, np.ones(len(starts))], axis=1) for column in means.T]
        for place, shared in enumerate((None, blocks)):
            stars[place] += _compare(sample_models(Loss(), [sum_blocks(one, shared) for one in rows])).p < LEVEL
    alone, together = stars / times
    return float(alone), float(together)


def main() -> None:
    """Print a table of rates."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.significance", description=__doc__)
    parser.add_argument("times", type=int, nargs="?", default=500, help="that each setting is drawn")
    parser.add_argument(
        "--levels", type=int, metavar="DRAWS", help="show how often small levels are exceeded, of so many draws"
    )
    parser.add_argument("--windows", type=int, metavar="TIMES", help="show the rates of windows of a series that overlap")
    arguments = parser.parse_args()
    times = arguments.times
    if arguments.levels:
        for one, other in ((3, 3), (5, 5), (10, 10), (10, 3)):
            for spread in SPREADS:
                shown = " | ".join(f"{rate:.2g}" for rate in true_levels((one, other), spread, arguments.levels))
                print(f"| {one} and {other} | {spread:g} times | {shown} |", flush=True)
        return
    if arguments.windows:
        for persistence in (0.0, 0.5, 0.9, 0.98):
            for seeds in (3, 10):
                shown = " | ".join(f"{100 * rate:.0f}" for rate in windows(persistence, seeds, arguments.windows))
                print(f"| {persistence:g} | {seeds} | {shown} |", flush=True)
        return
    print(f"{times} times\n| | seeds | " + " | ".join(test.__name__ for test in TESTS) + " |")
    for name, (taste, added, spread, failing) in SCENES.items():
        for seeds in (3, 5, 10):
            shown = " | ".join(f"{100 * rate:.0f}" for rate in rates(seeds, taste, added, times, spread, failing))
            print(f"| {name} | {seeds} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
