"""What a tuning is expected to find, given how many trials it may have, and by how many seeds it chooses."""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple


def expected_best(scores: Sequence[float], *, higher_is_better: bool) -> list[float]:
    """Return the expected best score of 1, 2, ..., N trials, given the scores of N.

    Expected validation performance, Dodge et al. 2019 (*Show your work: improved reporting of experimental results*),
    section 3.1: E[V*_n] = Σ_v v P(V*_n = v), V*_n being the best of n trials that are drawn independently. Their estimate of
    P(V*_n ≤ v) is P(V ≤ v)^n in the N scores: it draws trials with replacement, is too low for n > 1, and at n = N is not what
    was found. Here it is the mean of the best over all subsets of n trials, which is unbiased (Tang et al. 2020, *Showing your
    work doesn't always work*): with v_1 ≤ ... ≤ v_N from the worst to the best, v_i is the best of C(i - 1, n - 1) of the
    C(N, n) subsets,

        E[V*_n] = Σ_{i=n}^{N} C(i - 1, n - 1) / C(N, n) v_i

    Args:
        scores: of the trials, one at least; one that is no finite number is worse than all others.
        higher_is_better: whether it is.

    Returns:
        N numbers; NaN where there are subsets of failed trials alone.
    """
    sign = 1.0 if higher_is_better else -1.0
    goodness = sorted(sign * score if math.isfinite(score) else -math.inf for score in scores)
    count = len(goodness)
    expected = []
    for size in range(1, count + 1):
        ranked = [(math.comb(place, size - 1), value) for place, value in enumerate(goodness) if place >= size - 1]
        if any(not math.isfinite(value) for _, value in ranked):
            expected.append(math.nan)
        else:  # integers, which are exact, as long as possible
            expected.append(sign * math.fsum(weight / math.comb(count, size) * value for weight, value in ranked))
    return expected


class Outcome(NamedTuple):
    """What a training came to on the validation set, or several on their mean."""

    score: float
    """By the metric that decides; NaN of a training that diverged."""
    loss: float = math.inf
    """The lower one decides between equal scores, as it does between checkpoints; infinite where it was not measured."""


def mean(outcomes: Collection[Outcome]) -> Outcome:
    """Return the mean of each."""
    return Outcome(*(sum(numbers) / len(outcomes) for numbers in zip(*outcomes, strict=True)))


def choose(outcomes: Sequence[Outcome], *, higher_is_better: bool) -> int | None:
    """Return the number of the best outcome, the first of equal ones; None if no score is a finite number."""
    sign = -1.0 if higher_is_better else 1.0
    finite = [number for number, outcome in enumerate(outcomes) if math.isfinite(outcome.score)]
    return min(finite, key=lambda number: (sign * outcomes[number].score, outcomes[number].loss), default=None)


def expected_choice(trials: Sequence[Mapping[int, Outcome]], seeds: int, *, higher_is_better: bool) -> float:
    """Return the expected score, with one more seed, of the trial that so many seeds choose by their mean.

    The seed that judges has no part in the choice, so that its score is not that of lucky seeds, as the best mean is. With
    v_{t,s} for trial t and seed s of S seeds, it is the mean over all choices K of k seeds and each of the others:

        E_k = 1 / (C(S, k) (S - k)) Σ_K Σ_{s ∉ K} v_{c(K),s},    c(K) = argmax_t Σ_{s ∈ K} v_{t,s}

    Args:
        trials: outcomes by seed, the same seeds in each trial; one whose score is no finite number is worse than all others.
        seeds: k, less than S.
        higher_is_better: whether it is.

    Returns:
        NaN where seeds choose a trial that fails with another one, or find none.
    """
    judged: list[float] = []
    every = trials[0].keys()
    for some in combinations(every, seeds):
        chosen = choose([mean([trial[seed] for seed in some]) for trial in trials], higher_is_better=higher_is_better)
        judged += [math.nan if chosen is None else trials[chosen][seed].score for seed in every if seed not in some]
    return sum(judged) / len(judged)
