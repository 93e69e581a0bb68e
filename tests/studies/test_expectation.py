"""The expected best of n trials, against all subsets of n."""

import itertools
import math
import random

import pytest

from attnlab.studies.tuning.expectation import expected_best


@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize("ties", [False, True])
def test_it_is_the_mean_of_the_best_over_all_subsets(higher_is_better: bool, ties: bool) -> None:
    chance = random.Random(3)
    scores = [float(chance.randint(0, 3)) if ties else chance.gauss(-2, 5) for _ in range(8)]
    best = max if higher_is_better else min
    found = expected_best(scores, higher_is_better=higher_is_better)
    for size in range(1, 9):
        subsets = [best(subset) for subset in itertools.combinations(scores, size)]
        assert found[size - 1] == pytest.approx(math.fsum(subsets) / len(subsets), rel=1e-12)
    assert found[-1] == best(scores)


def test_it_is_not_biased() -> None:
    """Of scores that are drawn from a die, the mean estimate for two trials is the expected larger of two throws."""
    samples = list(itertools.product(range(1, 7), repeat=4))
    estimates = [expected_best([float(score) for score in sample], higher_is_better=True)[1] for sample in samples]
    right = sum(max(pair) for pair in itertools.product(range(1, 7), repeat=2)) / 36
    assert math.fsum(estimates) / len(estimates) == pytest.approx(right, rel=1e-12)


def test_a_trial_that_failed_is_worse_than_all_others() -> None:
    for higher_is_better, best in [(True, 3.0), (False, 1.0)]:
        found = expected_best([3.0, math.nan, 1.0, math.inf], higher_is_better=higher_is_better)
        assert [math.isnan(value) for value in found] == [True, True, False, False]
        assert found[-1] == best
        assert found[2] == pytest.approx(2 * best / 4 + (1 / 4) * 3.0 + (1 / 4) * 1.0)
    assert all(math.isnan(value) for value in expected_best([math.nan], higher_is_better=True))


def test_many_trials_are_exact() -> None:
    found = expected_best([float(place) for place in range(500)], higher_is_better=True)
    for size in (1, 2, 250, 499, 500):  # the expected largest of n of the numbers 1 to N is n (N + 1) / (n + 1)
        assert found[size - 1] == pytest.approx(size * 501 / (size + 1) - 1, rel=1e-12)
