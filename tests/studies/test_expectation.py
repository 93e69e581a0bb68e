"""The expected best of n trials, against all subsets of n, and what a choice by some seeds is worth with another."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from attnlab.studies.tuning.expectation import Outcome, choose, expected_best, expected_choice


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


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_choice_of_some_seeds_is_judged_by_each_of_the_others(higher_is_better: bool) -> None:
    chance = random.Random(5)
    scores = [[float(chance.randint(0, 6)) for _ in range(5)] for _ in range(4)]  # ties among them
    trials = [outcomes(row) for row in scores]
    best = max if higher_is_better else min
    for count in range(1, 5):
        judged = []
        for order in itertools.permutations(range(5), count + 1):
            sums = [sum(row[seed] for seed in order[:-1]) for row in scores]
            judged.append(scores[sums.index(best(sums))][order[-1]])
        found = expected_choice(trials, count, higher_is_better=higher_is_better)
        assert found == pytest.approx(sum(judged) / len(judged), rel=1e-12)


def test_the_score_of_a_choice_is_not_too_good() -> None:
    """Where all trials are equally good, what seeds choose scores what any trial does, however good their own best is."""
    samples = itertools.product((0.0, 1.0), repeat=6)  # two trials with three seeds each
    tables = [[outcomes(sample[:3]), outcomes(sample[3:])] for sample in samples]
    for count in (1, 2):
        found = [expected_choice(trials, count, higher_is_better=True) for trials in tables]
        assert sum(found) / len(found) == pytest.approx(0.5, rel=1e-12)


def test_a_trial_that_failed_with_one_seed_is_not_chosen_by_it_and_fails_as_a_choice_of_others() -> None:
    assert choose([*outcomes([math.nan, 2.0, 3.0, 3.0]).values()], higher_is_better=True) == 2
    assert choose([*outcomes([math.nan, -math.inf]).values()], higher_is_better=True) is None
    safe = outcomes([0.5, 0.6])
    assert expected_choice([outcomes([0.1, math.nan]), safe], 1, higher_is_better=True) == pytest.approx(0.55)
    assert math.isnan(expected_choice([outcomes([0.9, math.nan]), safe], 1, higher_is_better=True))


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_lower_loss_decides_between_equal_scores(higher_is_better: bool) -> None:
    found = [Outcome(100.0, 0.4), Outcome(100.0, 0.1), Outcome(100.0, 0.2)]
    assert choose(found, higher_is_better=higher_is_better) == 1
    assert choose([Outcome(100.0), *found[::2]], higher_is_better=higher_is_better) == 2, (
        "one that was not measured is the last"
    )


def outcomes(scores: Sequence[float]) -> dict[int, Outcome]:
    return {seed: Outcome(score) for seed, score in enumerate(scores)}
