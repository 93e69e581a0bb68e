"""The difference of two systems that were trained with several seeds each: it speaks of the systems, not of these models."""

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.significance.difference import ROUNDING, Difference, Part
from attnlab.evaluation.significance.sample import Indices, Sample, exact_mean


def compare_systems(sample: Sample, one: Indices, other: Indices) -> Difference:
    """Compare two systems by models of each that were trained with seeds of their own, two at least.

    The model is Y_a,s,x = μ_a + seed_a,s + example_a,x + both_a,s,x: a seed s is drawn for one model, and an example x for
    all of them. The difference of the means over seeds has then the variance

        V = S²_a / n_a + S²_b / n_b + E,

    where S² is the variance of the values between seeds on these examples, and E what the choice of examples adds that other
    seeds would not show: that examples are easier for one system than for the other. With the jackknife's covariance C of the
    values, m the weights 1/n_a, -1/n_b, and R_a the variance that examples make in one model of a alone and not in its other
    seeds,

        E = max(0, mᵀ C m - R_a / n_a - R_b / n_b),    R_a = (Σ_s C_ss - Σ_s,t C_st / n_a) / (n_a - 1).

    Seeds have Welch's degrees of freedom, E has N - 1. Seeds are no pairs, although two systems of one seed share the order
    of the batches and the initial weights of the parts that both have: with three seeds pairs would cost half the degrees of
    freedom, and where a seed is good for both, the test without pairs finds too few differences and never too many.

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
    weights = np.concatenate([np.full(first, 1 / first), np.full(len(other), -1 / len(other))])
    alone = sum(_alone(covariance[group, group]) for group in groups)
    examples = float(weights @ covariance @ weights) - alone
    # Where no example is easier for one of both, this is a difference of equal numbers.
    least = ROUNDING * float(np.trace(covariance))
    return Difference(
        means[0] - means[1],
        (_welch(*(values[group] for group in groups)), Part(0.0 if examples < least else examples, sample.examples - 1.0)),
    )


def _alone(covariance: NDArray[np.float64]) -> float:
    """Return what examples make in single models, in the mean over models: R / n."""
    count = len(covariance)
    return float((np.trace(covariance) - covariance.sum() / count) / (count - 1) / count)


def _welch(one: NDArray[np.float64], other: NDArray[np.float64]) -> Part:
    """Return the variance of a difference of means, and its degrees of freedom by Welch (1947)."""
    variances = [float((values - values[0]).var(ddof=1)) / len(values) for values in (one, other)]
    terms = sum(variance**2 / (len(values) - 1) for variance, values in zip(variances, (one, other), strict=True))
    return Part(sum(variances), sum(variances) ** 2 / terms if terms else float(len(one) + len(other) - 2))


def compare_pairs(one: NDArray[np.float64], other: NDArray[np.float64]) -> Difference:
    """Compare two systems whose seeds were tested on other examples each, by Student's paired t over seeds.

    Two models of one seed share the examples, and so are a pair; as every pair has examples of its own, the variance between
    pairs holds that of the examples.

    Args:
        one: values of the first system, (seeds,).
        other: of the second, of the same seeds.
    """
    apart = one - other
    return Difference(exact_mean(apart), (Part(float((apart - apart[0]).var(ddof=1)) / len(apart), len(apart) - 1.0),))
