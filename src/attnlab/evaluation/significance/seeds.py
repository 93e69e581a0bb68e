"""The difference of two systems that were trained with several seeds each: it speaks of the systems, not of these models."""

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.significance.difference import (
    Difference,
    Part,
    drop_rounding,
    find_resolution,
    ignore_overflow,
    mean_variance,
    welch_part,
)
from attnlab.evaluation.significance.sample import Indices, Sample, exact_mean


@ignore_overflow
def compare_systems(sample: Sample, one: Indices, other: Indices) -> Difference:
    """Compare two systems by models of each that were trained with seeds of their own, two at least.

    The model is Y_a,s,x = μ_a + seed_a,s + example_a,x + both_a,s,x: a seed s is drawn for one model, and an example x for
    all of them. The difference of the means over seeds has then the variance

        V = S²_a / n_a + S²_b / n_b + E,

    where S² is the variance of the values between seeds on these examples, and E what the choice of examples adds that other
    seeds would not show: that examples are easier for one system than for the other. With the jackknife's covariance C of the
    values, m the weights 1/n_a, -1/n_b, and R_a the variance that examples make in one model of a alone and not in its other
    seeds,

        E = max(0, mᵀ C m - min(R_a, S²_a) / n_a - min(R_b, S²_b) / n_b),    R_a = (Σ_s C_ss - Σ_s,t C_st / n_a) / (n_a - 1).

    R_a is taken out because S²_a holds it, as far as it does: a few seeds may happen to lie closer than that. So V is never
    below mᵀ C m, the variance for these trained models. Seeds have Welch's degrees of freedom, but at most those that the
    smaller number of seeds would have on both sides, 2 (min(n_a, n_b) - 1): Welch's are estimated from the same few seeds, and
    two beside ten would be found to differ too often. E has N - 1. Seeds are no
    pairs, although two systems of one seed share the order of the batches and the initial weights of the parts that both
    have: with three seeds pairs would cost half the degrees of freedom, and where a seed is good for both, the test without
    pairs finds too few differences and never too many.

    Args:
        sample: models on the same examples.
        one: which of them are of the first system.
        other: which are of the second.
    """
    rows = np.concatenate([one, other]).astype(np.intp)
    first = len(one)
    values, covariance = sample.values[rows], sample.covariance[np.ix_(rows, rows)]
    groups = (slice(None, first), slice(first, None))
    means = [exact_mean(values[group]) for group in groups]
    resolution = find_resolution(values)
    spreads = [mean_variance(values[group], resolution) for group in groups]
    counted = sum(min(spread, _within_models(covariance[group, group])) for spread, group in zip(spreads, groups, strict=True))
    # Where no example is easier for one of both, this is a difference of equal numbers.
    examples = sample.part(sample.variance(one, other) - counted, one, other)
    difference = drop_rounding(means[0] - means[1], resolution)
    return Difference(difference, (welch_part(spreads, [first, len(other)]), examples))


@ignore_overflow
def compare_uses(sample: Sample, one: Indices, other: Indices) -> Difference:
    """Compare two uses of the same trained models, such as two searches: models of one seed are one model, and so a pair.

    Seeds are drawn for pairs, D_s = Y_a,s - Y_b,s, and examples for all of them. As in :func:`compare_systems`, with S² the
    variance of D_s between seeds, and C and R those of the differences,

        V = S² / n + max(0, Σ_s,t C_st / n² - min(R, S²) / n),

    of n - 1 and N - 1 degrees of freedom.

    Args:
        sample: models on the same examples.
        one: the models in the first use.
        other: the same models, in the same order, in the second.
    """
    first, second = np.asarray(one), np.asarray(other)
    apart = sample.values[first] - sample.values[second]
    rows = np.concatenate([first, second])
    signs = np.hstack([np.eye(len(first)), -np.eye(len(first))])
    covariance = signs @ sample.covariance[np.ix_(rows, rows)] @ signs.T
    resolution = find_resolution(sample.values[rows])
    spread = mean_variance(apart, resolution)
    examples = sample.part(float(covariance.mean()) - min(spread, _within_models(covariance)), one, other)
    return Difference(drop_rounding(exact_mean(apart), resolution), (Part(spread, len(first) - 1.0), examples))


def _within_models(covariance: NDArray[np.float64]) -> float:
    """Return what examples make in single models alone, in the variance of the mean over models: R / n."""
    count = len(covariance)
    return float((np.trace(covariance) - covariance.sum() / count) / (count - 1) / count)


@ignore_overflow
def compare_pairs(one: NDArray[np.float64], other: NDArray[np.float64]) -> Difference:
    """Compare two systems whose seeds were tested on other examples each, by Student's paired t over seeds.

    Two models of one seed share the examples, and so are a pair; as every pair has examples of its own, the variance between
    pairs holds that of the examples.

    Args:
        one: values of the first system, (seeds,).
        other: of the second, of the same seeds.
    """
    apart, resolution = one - other, find_resolution(np.concatenate([one, other]))
    part = Part(mean_variance(apart, resolution), len(apart) - 1.0)
    return Difference(drop_rounding(exact_mean(apart), resolution), (part,))
