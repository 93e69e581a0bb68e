"""Tests over seeds: they hold their level, and are what a plain computation says."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import quad

from attnlab.evaluation.metric import Metric, Statistics
from attnlab.evaluation.metrics import ExactMatch, Loss, Perplexity
from attnlab.evaluation.significance.calibration import calibrate, calibrate_p, split_runs
from attnlab.evaluation.significance.difference import Difference, Part
from attnlab.evaluation.significance.improvement import (
    probability_by_pairs,
    probability_of_improvement,
    stochastic_order,
)
from attnlab.evaluation.significance.models import estimate_difference
from attnlab.evaluation.significance.multiplicity import clusters
from attnlab.evaluation.significance.sample import Sample, sample_models
from attnlab.evaluation.significance.seeds import compare_pairs, compare_systems, compare_uses
from attnlab.tasks.translation.metrics import BLEU

Maker = Callable[[np.random.Generator, int, NDArray[np.float64]], list[Statistics]]
EXAMPLES = 150


def losses(draw: np.random.Generator, models: int, hardness: NDArray[np.float64]) -> list[Statistics]:
    """Losses of models whose seeds, examples and both together make a difference, in nats of ten tokens each."""
    count = len(hardness)
    rows = (20 + 3 * hardness + 0.5 * draw.standard_normal() + 5 * draw.standard_normal(count) for _ in range(models))
    return [np.stack([row, np.full(count, 10.0)], axis=1) for row in rows]


def translations(draw: np.random.Generator, models: int, hardness: NDArray[np.float64]) -> list[Statistics]:
    """What lines add to BLEU: n-grams that are right with a probability of seed, line and both together."""
    count = len(hardness)
    lengths = 5 + (np.arange(count) * 7) % 15
    counted = np.stack([lengths - order for order in range(4)], axis=1)
    found = []
    for _ in range(models):
        words = np.clip(0.85 + 0.1 * hardness + 0.01 * draw.standard_normal() + 0.05 * draw.standard_normal(count), 0.05, 0.99)
        right = draw.binomial(counted, words[:, None] ** np.arange(1, 5))
        written = lengths + draw.integers(-1, 2, count)
        found.append(np.concatenate([written[:, None], lengths[:, None], right, counted], axis=1).astype(float))
    return found


def rate_of_stars(metric: Metric, make: Maker, seeds: int, times: int, taste: float, draw: np.random.Generator) -> float:
    """Share of comparisons with p < 0.05 where both systems are equally good, each being better on examples of its own kind."""
    stars = 0
    for _ in range(times):
        shared = draw.standard_normal(EXAMPLES)
        both = [run for _ in range(2) for run in make(draw, seeds, shared + taste * draw.standard_normal(EXAMPLES))]
        stars += compare_systems(sample_models(metric, both), range(seeds), range(seeds, 2 * seeds)).p < 0.05
    return stars / times


def most(times: int) -> float:
    """6 %, and what chance may add to a rate of 5 %: three standard errors, of which one star in a hundred is there already."""
    return 0.06 + max(0.0, 3 * math.sqrt(0.05 * 0.95 / times) - 0.01)


@pytest.mark.few(4)
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize(("metric", "make"), [(Loss(), losses), (BLEU(), translations)], ids=["mean", "ratio"])
@pytest.mark.parametrize("taste", [0.0, 0.5], ids=["one variant", "two variants"])
def test_false_stars_are_rare(metric: Metric, make: Maker, seeds: int, taste: float) -> None:
    assert rate_of_stars(metric, make, seeds, 250, taste, np.random.default_rng([seeds, 7])) <= most(250)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize(("metric", "make"), [(Loss(), losses), (BLEU(), translations)], ids=["mean", "ratio"])
@pytest.mark.parametrize("taste", [0.0, 0.3, 1.0])
def test_false_stars_are_rare_in_many_comparisons(metric: Metric, make: Maker, seeds: int, taste: float) -> None:
    assert rate_of_stars(metric, make, seeds, 2000, taste, np.random.default_rng([seeds, 8])) <= most(2000)


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("between", [1.0, 3.0], ids=["alike", "apart"])
@pytest.mark.parametrize("examples", [0.0, 0.3, 1.0, 3.0])
def test_the_level_holds_whichever_varies_more_seeds_or_examples(seeds: int, between: float, examples: float) -> None:
    """With the variance of examples known, as a thousand of them nearly tell it."""
    draw, times = np.random.default_rng([seeds, int(between), int(10 * examples)]), 2000
    one, other = draw.standard_normal((times, seeds)), between * draw.standard_normal((times, seeds))
    part = examples**2 * (1 + between**2) / seeds
    apart = one.mean(axis=1) - other.mean(axis=1) + math.sqrt(part) * draw.standard_normal(times)
    stars = 0
    for value, first, second in zip(apart, one, other, strict=True):
        variances = first.var(ddof=1) / seeds, second.var(ddof=1) / seeds
        freedom = sum(variances) ** 2 * (seeds - 1) / (variances[0] ** 2 + variances[1] ** 2)
        low, high = Difference(value, (Part(sum(variances), freedom), Part(part, 999.0))).interval()
        stars += not low <= 0 <= high
    assert stars / times <= most(times)


@pytest.mark.parametrize("freedom", [2, 4, 8])
@pytest.mark.parametrize("level", [0.05, 0.01, 0.001, 0.0002])
@pytest.mark.parametrize("examples", [0.0, 0.05, 0.25, 1.0, 4.0])
def test_the_level_holds_where_holms_correction_asks_for_a_small_one(freedom: int, level: float, examples: float) -> None:
    """With a variance of one between seeds, which they estimate, and one of examples that is known, by an integral."""

    def rate(exponent: float) -> float:
        chance = math.exp(-exponent)  # of an estimate as small
        estimate = float(stats.chi2.ppf(chance, freedom)) / freedom
        half = Difference(0.0, (Part(estimate, freedom), Part(examples, 1e6))).half_width(1 - level)
        return chance * 2 * float(stats.norm.sf(half / math.sqrt(1 + examples)))

    assert quad(rate, 0, 40, limit=200)[0] <= 1.005 * level


@pytest.mark.parametrize("confidence", [0.95, 0.999, 0.9999])
def test_more_variance_makes_no_interval_narrower(confidence: float) -> None:
    for freedom in (1, 2, 4, 8):
        differences = [Difference(0.0, (Part(1.0, freedom), Part(examples, 149))) for examples in np.arange(0, 3, 0.1)]
        widths = [difference.half_width(confidence) for difference in differences]
        assert widths == sorted(widths)


@pytest.mark.parametrize("freedom", [1.0, 2.0, 2.0041, 2.3, 2.6, 4.0, 999.0])
@pytest.mark.parametrize("ratio", [0.0, 0.01, 0.53, 2.0, 9.0, 30.0])
def test_of_one_part_p_is_students(freedom: float, ratio: float) -> None:
    assert Difference(3 * ratio, (Part(9.0, freedom),)).p == pytest.approx(
        max(2 * stats.t.sf(ratio, freedom), 2e-100), rel=1e-6
    )


@pytest.mark.few(4)
@pytest.mark.parametrize(("fewer", "more"), [(2, 5), (2, 10), (3, 10), (5, 10)])
@pytest.mark.parametrize("apart", [1 / 3, 1.0, 3.0])
def test_a_few_seeds_beside_many_are_not_trusted_too_much(fewer: int, more: int, apart: float) -> None:
    """Where two seeds spread three times as far as ten others, Welch's own degrees of freedom give 11 % and not 8."""
    draw, times, count = np.random.default_rng([fewer, more]), 2000, fewer + more
    nothing = np.zeros((count, count))
    stars = 0
    for _ in range(times):
        values = np.concatenate([apart * draw.standard_normal(fewer), draw.standard_normal(more)])
        stars += compare_systems(Sample(values, nothing, 500), range(fewer), range(fewer, count)).p < 0.05
    assert stars / times <= most(times) + (0.03 if apart > 1 else 0.0)


@pytest.mark.parametrize(("times", "errors"), [(300, 3.0), pytest.param(2000, 1.2, marks=pytest.mark.exhaustive)])
def test_who_looks_after_each_new_seed_finds_too_many_differences(times: int, errors: float) -> None:
    """As often as the documentation says, within so many standard errors."""
    draw, found = np.random.default_rng(0), []
    for _ in range(times):
        one, other = draw.normal(size=(2, 10))
        found.append([])
        for seeds in range(2, 11):
            sample = Sample(np.concatenate([one[:seeds], other[:seeds]]), np.zeros((2 * seeds, 2 * seeds)), 1000)
            difference = compare_systems(sample, range(seeds), range(seeds, 2 * seeds))
            found[-1].append(abs(difference.value) > difference.half_width())
    for rate, stars in ((0.047, [looks[-1] for looks in found]), (0.158, [any(looks) for looks in found])):
        assert np.mean(stars) == pytest.approx(rate, abs=errors * math.sqrt(rate * (1 - rate) / times))


def test_a_difference_is_what_the_variance_components_say() -> None:
    """Of a mean, the jackknife's covariance is that of the examples' values over their number."""
    draw = np.random.default_rng(0)
    hardness = draw.standard_normal(40)
    both = [*losses(draw, 3, hardness), *losses(draw, 4, hardness + draw.standard_normal(40))]
    sample = sample_models(Loss(), both)
    scores = np.array([rows[:, 0] / 10 for rows in both])
    np.testing.assert_allclose(sample.values, scores.mean(axis=1))
    np.testing.assert_allclose(sample.covariance, np.cov(scores) / 40)
    one, other = scores[:3], scores[3:]
    apart = one.mean(axis=0) - other.mean(axis=0)
    examples = apart.var(ddof=1) / 40
    for group in (one, other):
        alone = sum((row - group.mean(axis=0)).var(ddof=1) for row in group) / (len(group) - 1) / 40
        examples -= min(alone, group.mean(axis=1).var(ddof=1)) / len(group)
    variances = [group.mean(axis=1).var(ddof=1) / len(group) for group in (one, other)]
    freedom = min(sum(variances) ** 2 / (variances[0] ** 2 / 2 + variances[1] ** 2 / 3), 4)
    found = compare_systems(sample, range(3), range(3, 7))
    assert found.value == pytest.approx(apart.mean())
    assert found.parts[0] == pytest.approx((sum(variances), freedom))
    assert found.parts[1] == pytest.approx((examples, 39))
    assert examples > 0
    half = math.sqrt(sum(variances) * stats.t.ppf(0.975, freedom) ** 2 + examples * stats.t.ppf(0.975, 39) ** 2)
    assert found.interval() == pytest.approx((apart.mean() - half, apart.mean() + half))
    assert min(map(abs, found.interval(1 - found.p))) == pytest.approx(0, abs=1e-6)


def test_where_nothing_varies_nothing_tells_how_far_others_would_lie_apart() -> None:
    """Two seeds each, all examples right in one system and wrong in the other, are no proof of anything."""
    right, wrong = np.ones((200, 2)), np.stack([np.zeros(200), np.ones(200)], axis=1)
    apart = compare_systems(sample_models(ExactMatch(), [right, right, wrong, wrong]), range(2), range(2, 4))
    assert (apart.value, math.isnan(apart.p), math.isnan(apart.interval()[0])) == (100.0, True, True)
    equal = compare_systems(sample_models(ExactMatch(), [right] * 4), range(2), range(2, 4))
    assert (equal.p, equal.interval()) == (1.0, (0.0, 0.0))


@pytest.mark.parametrize("loss", [200.0, 450.0, 690.0], ids=["fourth power", "square", "nearly infinite"])
def test_values_whose_powers_are_too_large_give_no_p(loss: float) -> None:
    """The perplexity of a training that failed may be huge."""
    draw = np.random.default_rng(3)
    some = [np.stack([draw.normal(mean, 0.1, 30), np.ones(30)], axis=1) for mean in (1.0, 1.1, 1.2, loss)]
    sample = sample_models(Perplexity(), some)
    with np.errstate(all="raise"):
        over_seeds = (
            compare_systems(sample, [0, 1], [2, 3]),
            compare_uses(sample, [0, 1], [2, 3]),
            compare_pairs(sample.values[:2], sample.values[2:]),
        )
        of_models, of_others = estimate_difference(sample, [0, 1], [2, 3]), estimate_difference(sample, [0], [1])
    if loss < 300:
        assert all(0.05 < found.p <= 1 for found in over_seeds)
    else:
        assert all(math.isnan(found.p) and math.isnan(found.interval()[0]) for found in (*over_seeds, of_models))
    assert 0 < of_others.p < 1, "what varies in one model alone is nothing to others"


def test_what_varies_by_rounding_alone_does_not_vary() -> None:
    """A third in each of 97 examples, summed in another order for each model, is no difference; nor is it a spread."""
    some = [
        np.stack([np.full(97, value), np.full(97, 3.0)], axis=1) for value in (0.1, 0.1 * (1 + 1e-14), 0.3, 0.3 * (1 + 1e-14))
    ]
    sample = sample_models(Loss(), some)
    for apart in (
        compare_systems(sample, [0, 1], [2, 3]),
        compare_uses(sample, [0, 1], [2, 3]),
        compare_pairs(*sample.values.reshape(2, 2)),
    ):
        assert math.isnan(apart.p)
        assert math.isnan(apart.interval()[0])
    for equal in (compare_systems(sample, [0, 1], [1, 0]), compare_uses(sample, [0, 1], [1, 0])):
        assert (equal.value, equal.p) == (0.0, 1.0)
    rounded = compare_systems(sample, [0, 0], [1, 1])
    assert (rounded.value, rounded.p) == (0.0, 1.0)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("seeds", "spread", "factors"), [(3, 1, (1, 1)), (3, 10, (1.3, 5)), (5, 5, (1.2, 3)), (10, 3, (1.1, 2))]
)
def test_small_levels_are_exceeded_where_one_spreads_further(seeds: int, spread: int, factors: tuple[float, float]) -> None:
    """As docs/statistics.md tells; by chi-square in the place of values."""
    draw = np.random.default_rng([seeds, spread])
    deviations = np.sqrt(draw.chisquare(seeds - 1, (4000, 2)) / (seeds - 1)) * [1, spread]
    error, nothing = math.sqrt((1 + spread**2) / seeds), np.zeros((2 * seeds, 2 * seeds))
    shape = draw.standard_normal(seeds)
    shape = (shape - shape.mean()) / shape.std(ddof=1)
    found = [
        compare_systems(Sample(np.outer(row, shape).ravel(), nothing, 500), range(seeds), range(seeds, 2 * seeds))
        for row in deviations
    ]
    for level, factor in zip((0.05, 0.001), factors, strict=True):
        rate = np.mean([2 * stats.norm.sf(one.half_width(1 - level) / error) for one in found])
        assert factor / 3 < rate / level < factor


def test_without_a_choice_of_examples_it_is_welchs_test_and_of_pairs_students() -> None:
    draw = np.random.default_rng(1)
    values = np.concatenate([draw.normal(30, 1, 4), draw.normal(32, 2, 4)])
    found = compare_systems(Sample(values, np.zeros((8, 8)), 500), range(4), range(4, 8))
    assert found.p == pytest.approx(stats.ttest_ind(values[:4], values[4:], equal_var=False).pvalue)
    assert compare_pairs(values[:3], values[3:6]).p == pytest.approx(stats.ttest_rel(values[:3], values[3:6]).pvalue)
    same = Sample(np.full(6, 99.9), np.zeros((6, 6)), 500)
    assert (compare_systems(same, range(3), range(3, 6)).value, compare_systems(same, range(3), range(3, 6)).p) == (0.0, 1.0)
    assert math.isnan(compare_systems(Sample(values, np.full((8, 8), np.nan), 1), range(3), range(3, 8)).p)


def test_two_uses_of_the_same_models_are_pairs() -> None:
    """Of a mean, as a plain computation has it; without a choice of examples it is Student's paired test."""
    draw = np.random.default_rng(11)
    hardness = draw.standard_normal(40)
    models = losses(draw, 4, hardness)
    taste = draw.standard_normal(40)
    uses = [rows - np.stack([1 + taste + 0.3 * draw.standard_normal(40), np.zeros(40)], axis=1) for rows in models]
    sample = sample_models(Loss(), [*models, *uses])
    apart = np.array([(rows[:, 0] - use[:, 0]) / 10 for rows, use in zip(models, uses, strict=True)])
    found = compare_uses(sample, range(4), range(4, 8))
    spread = apart.mean(axis=1).var(ddof=1)
    alone = sum((row - apart.mean(axis=0)).var(ddof=1) for row in apart) / 3 / 40
    examples = apart.mean(axis=0).var(ddof=1) / 40 - min(alone, spread) / 4
    assert found.value == pytest.approx(apart.mean())
    assert found.parts[0] == pytest.approx((spread / 4, 3))
    assert found.parts[1] == pytest.approx((examples, 39))
    values = draw.normal(30, 5, 4)
    both = Sample(np.concatenate([values, values - draw.normal(1, 0.1, 4)]), np.zeros((8, 8)), 500)
    assert compare_uses(both, range(4), range(4, 8)).p == pytest.approx(
        stats.ttest_rel(both.values[:4], both.values[4:]).pvalue
    )


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("taste", [0.0, 1.0])
def test_false_stars_of_two_uses_are_rare(seeds: int, taste: float) -> None:
    draw, stars, times = np.random.default_rng([seeds, int(taste), 9]), 0, 400
    for _ in range(times):
        models = losses(draw, seeds, draw.standard_normal(EXAMPLES))
        suits = taste * draw.standard_normal(EXAMPLES)
        moved = [0.1 * draw.standard_normal() + suits + 0.5 * draw.standard_normal(EXAMPLES) for _ in range(seeds)]
        uses = [rows + np.stack([own, np.zeros(EXAMPLES)], axis=1) for rows, own in zip(models, moved, strict=True)]
        stars += compare_uses(sample_models(Loss(), [*models, *uses]), range(seeds), range(seeds, 2 * seeds)).p < 0.05
    assert stars / times <= most(times)


def test_seeds_of_equal_value_are_no_more_certain_than_these_models() -> None:
    """Each model of one system is wrong on an example of its own, and none of the other's ever is."""
    right = np.stack([np.ones(300), np.ones(300)], axis=1)
    models = [right.copy() for _ in range(3)]
    for place, model in enumerate(models):
        model[place, 0] = 0
    sample = sample_models(ExactMatch(), [right] * 3 + models)
    found = compare_systems(sample, range(3), range(3, 6))
    assert found.variance == pytest.approx(estimate_difference(sample, range(3), range(3, 6)).variance)
    assert 0.05 < found.p < 0.2
    alike = compare_pairs(np.array([100.0, 100.0]), np.array([98.0, 98.0]))
    assert alike.value == 2.0
    assert math.isnan(alike.p)
    assert compare_pairs(np.array([98.0, 99.0]), np.array([98.0, 99.0])).p == 1.0


def test_what_one_example_alone_decides_is_no_difference_of_systems() -> None:
    """All seeds of one system get a certain example right, and those of the other get it wrong: they do not vary otherwise."""
    wrong = np.stack([np.ones(500), np.ones(500)], axis=1)
    right = wrong.copy()
    right[0, 0] = 0
    found = compare_systems(sample_models(Loss(), [right] * 3 + [wrong] * 3), range(3), range(3, 6))
    assert found.value == pytest.approx(-1 / 500)
    assert 0.3 < found.p < 0.35


@pytest.mark.few(18)
@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
@pytest.mark.parametrize("better", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("examples", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("spread", [1.0, 0.2, 0.0])
def test_the_interval_of_the_probability_of_improvement_covers_it(
    seeds: int, better: float, examples: float, spread: float
) -> None:
    """Whatever the spread of the other system's models; one that is fixed, as a forecast without parameters, has none."""
    draw, times = np.random.default_rng(seeds), 500
    truth, covered = stats.norm.cdf(better / math.sqrt(1 + spread**2 + examples)), np.zeros(2)
    for _ in range(times):
        moved = better + math.sqrt(examples) * draw.standard_normal()
        one, other = moved + draw.standard_normal(seeds), spread * draw.standard_normal(seeds)
        found = [probability_of_improvement(one, other, examples), probability_by_pairs(one, other, examples)]
        covered += [interval.low <= truth <= interval.high for interval in found]
    # Close to 1 the share of few models is so coarse that Wilson's interval, too, holds less.
    assert (covered / times >= (0.92 if truth < 0.95 else 0.89)).all()


def test_the_probability_of_improvement_counts_pairs_and_three_seeds_say_little() -> None:
    one, other = np.array([3.0, 1.0, 2.0]), np.array([2.0, 0.0])
    assert probability_of_improvement(one, other).value == pytest.approx((4 + 0.5) / 6)
    assert probability_of_improvement(one, one - 10)[0] == 1.0
    assert probability_of_improvement(one, one - 10).low < 0.5, "as no permutation of three and three has p < 0.1"
    many = np.arange(10.0)
    assert 0.75 < probability_of_improvement(many, many - 10).low < 0.95
    assert probability_of_improvement(many, many - 10, 25.0).low < probability_of_improvement(many, many - 10).low
    won, nothing = np.array([0.7, 0.8, 0.6, 0.7, 0.7]), np.zeros(5)
    assert probability_by_pairs(won, nothing, 1.0).low < probability_by_pairs(won, nothing).low - 0.1, "three examples did it"
    low, high = probability_by_pairs(np.array([1.0, 2.0, 3.0, -1.0]), np.zeros(4))[1:]
    critical = stats.t.ppf(0.975, 3)
    for end in (low, high):
        assert abs(end - 0.75) == pytest.approx(critical * math.sqrt(end * (1 - end) / 4), abs=4e-3)


@pytest.mark.parametrize("examples", [0.0, 0.1, 2.0])
def test_the_interval_of_the_probability_of_improvement_ends_where_its_equation_says(examples: float) -> None:
    one, other = np.array([2.2, 1.0, 2.0, 3.0, 1.7]), np.array([2.1, 0.0, 2.5, 1.5])
    share, low, high = probability_of_improvement(one, other, examples)
    assert share == sum(a > b for a in one for b in other) / 20 == 0.6
    spreads = sum((a - 1.98) ** 2 for a in one) / 4, sum((b - 1.525) ** 2 for b in other) / 3
    between, means = sum(spreads), (spreads[0] / 5, spreads[1] / 4)
    freedom = sum(means) ** 2 / (means[0] ** 2 / 4 + means[1] ** 2 / 3)
    assert freedom < 6
    points = np.linspace(-5, 5, 201)

    def both_below(z: float, correlation: float) -> float:
        return float(stats.multivariate_normal.cdf([z, z], cov=[[1, correlation], [correlation, 1]]))

    for end, tail in ((low, 0.025), (high, 0.975)):
        # by a plain sum over the shifts that other examples may give to all differences
        true, found = stats.norm.ppf(end) * math.sqrt(between + examples), 0.0
        for point in points:
            won = stats.norm.cdf((true + math.sqrt(examples) * point) / math.sqrt(between))
            z = stats.norm.ppf(won)
            one_beats_two, two_beat_one = (both_below(z, part / between) for part in spreads)
            spread = (won * (1 - won) + 3 * (one_beats_two - won**2) + 4 * (two_beat_one - won**2)) / 20
            found += stats.norm.pdf(point) * (points[1] - points[0]) * stats.t.cdf((won - share) / math.sqrt(spread), freedom)
        assert found == pytest.approx(tail, abs=2e-3)


@pytest.mark.few(2)
@pytest.mark.parametrize("shift", [0.0, 1.0, 1.5, 2.0])
def test_stochastic_order_is_what_integrals_over_steps_and_a_bootstrap_of_its_own_say(shift: float) -> None:
    chance = np.random.default_rng(5)
    one, other = chance.normal(shift, 1.5, 6), chance.normal(0, 1, 5)

    def ratio(first: list[float], second: list[float]) -> float:
        above = below = 0.0
        for point in (np.arange(30) + 0.5) / 30:  # between any two steps, of fifths or of sixths
            apart = sorted(first)[math.ceil(point * len(first)) - 1] - sorted(second)[math.ceil(point * len(second)) - 1]
            above, below = above + max(apart, 0) ** 2, below + min(apart, 0) ** 2
        return below / (above + below)

    drawn = [ratio([*chance.choice(one, 6)], [*chance.choice(other, 5)]) for _ in range(10_000)]
    scale = math.sqrt(6 * 5 / 11)
    deviation = float(np.std([scale * (value - ratio([*one], [*other])) for value in drawn]))
    expected = min(1.0, ratio([*one], [*other]) + deviation / scale * stats.norm.ppf(0.95))
    assert stochastic_order(one, other, samples=10_000) == pytest.approx(expected, abs=0.015)
    assert stochastic_order(one, other, confidence=0.5) == pytest.approx(ratio([*one], [*other]), abs=1e-9)


def test_stochastic_order_of_what_never_overlaps_and_of_equals() -> None:
    values = np.arange(5.0)
    assert (stochastic_order(values + 10, values), stochastic_order(values, values + 10)) == (0.0, 1.0)
    assert stochastic_order(values, values, confidence=0.5) == 0.5


def test_models_that_rounding_alone_holds_apart_are_ties() -> None:
    one = np.array([0.31, 0.27, 0.29])
    other = one + np.array([1e-14, 1e-14, 2e-14])
    assert probability_of_improvement(one, other).value == probability_of_improvement(one, one).value == 0.5
    assert probability_by_pairs(one, other)[0] == 0.5
    assert stochastic_order(one, other, confidence=0.5) == 0.5


def test_clusters_are_cut_where_all_above_are_better_than_all_below() -> None:
    ranked = ["a", "b", "c", "d"]
    apart = {(first, second) for first in "ab" for second in "cd"}
    assert clusters(ranked, apart) == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert set(clusters(ranked, apart - {("b", "c")}).values()) == {1}
    assert set(clusters(ranked, apart - {("a", "d")}).values()) == {1}, "the best is not told from the last"
    assert clusters(ranked, {*apart, ("a", "b"), ("c", "d")}) == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_splits_of_runs_are_each_there_once_or_drawn() -> None:
    every = list(split_runs(6, 2, 1000))
    starred = calibrate_p(6, 2, lambda one, other: 0.01 if 0 in one else 0.5, 1000)
    assert starred.rate == sum(0 in one for one, _ in every) / len(every)
    assert len(every) == len({frozenset([frozenset(one), frozenset(other)]) for one, other in every}) == 45
    assert all(not {*one} & {*other} for one, other in every)
    drawn = list(split_runs(24, 10, 50))
    assert len(drawn) == 50
    assert all(len({*one, *other}) == 20 for one, other in drawn)


def test_the_smallest_difference_is_one_that_gets_its_stars() -> None:
    """For normal seeds without examples, it is what the noncentral t distribution says."""
    draw = np.random.default_rng(3)
    sample = Sample(draw.normal(30, 1, 400), np.zeros((400, 400)), 500)
    found = calibrate(400, 5, lambda one, other: compare_systems(sample, one, other), 1000)
    assert found.rate <= most(1000)
    noncentral = found.smallest / math.sqrt(2 / 5)
    assert stats.nct.sf(stats.t.ppf(0.975, 8), 8, noncentral) == pytest.approx(0.8, abs=0.05)


def test_the_smallest_difference_gets_its_stars_whichever_group_is_called_the_first() -> None:
    """Where all splits differ by one, half of the differences are one less for whoever calls the groups the other way round."""
    found = calibrate(4, 2, lambda one, other: Difference(1.0, (Part(4.0, 1e9),)), 10)
    assert found.splits == 3
    assert found.smallest == pytest.approx(1 + 2 * stats.norm.ppf(0.975), rel=1e-6)


def test_no_difference_gets_stars_where_nothing_varies() -> None:
    sample = Sample(np.repeat(50.0, 12), np.zeros((12, 12)), 100)
    found = calibrate(12, 5, lambda one, other: compare_systems(sample, one, other), 100)
    assert (found.rate, math.isnan(found.smallest)) == (0.0, True)
    one_apart = Sample(np.array([50.0] * 11 + [51.0]), np.zeros((12, 12)), 100)
    found = calibrate(12, 3, lambda one, other: compare_systems(one_apart, one, other), 500)
    assert math.isnan(found.smallest), "half of the groups have no interval"


def test_examples_that_add_nothing_are_none() -> None:
    """A phenomenon of six sentences in a hundred is known as well as from these six alone."""
    draw = np.random.default_rng(5)
    few = [np.stack([draw.integers(0, 2, 6), np.ones(6)], axis=1).astype(float) for _ in range(4)]
    many = [np.concatenate([np.zeros((60, 2)), rows, np.zeros((34, 2))]) for rows in few]
    alone, among = (sample_models(ExactMatch(), models) for models in (few, many))
    assert alone.examples == among.examples == 6
    np.testing.assert_allclose(among.covariance, alone.covariance)
    shares = np.stack([rows[:, 0] for rows in few])
    np.testing.assert_allclose(alone.covariance, 100**2 * np.cov(shares) / 6)  # of means
    assert compare_systems(alone, [0, 1], [2, 3]).parts[1].freedom == 5


def test_an_example_counts_where_it_adds_to_one_model_alone() -> None:
    """As one for which another model wrote nothing: leaving it out changes the value of the one and not of the other."""
    draw = np.random.default_rng(6)
    models = [np.stack([draw.integers(0, 3, 8), np.full(8, 3.0)], axis=1) for _ in range(2)]
    models[0][2] = models[1][5] = 0.0
    sample = sample_models(ExactMatch(), models)
    assert sample.examples == 8
    without = [[100 * n / d for n, d in (np.delete(rows, i, axis=0).sum(axis=0) for i in range(8))] for rows in models]
    np.testing.assert_allclose(sample.covariance, np.cov(without) * 7 * 7 / 8)


@pytest.mark.parametrize("metric", [BLEU(), ExactMatch()], ids=["smooth at nothing", "not"])
def test_one_example_tells_nothing(metric: Metric) -> None:
    rows = [np.ones((1, 10 if isinstance(metric, BLEU) else 2)) * (n + 1) for n in range(4)]
    found = sample_models(metric, rows)
    assert np.isnan(found.covariance).all()
    assert math.isnan(compare_systems(found, [0, 1], [2, 3]).p)
