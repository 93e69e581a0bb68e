"""What a variant's best score on the validation set is expected to be, given how many trials its tuning may have."""

import math
from collections.abc import Sequence


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
