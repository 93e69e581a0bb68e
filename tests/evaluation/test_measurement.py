"""Measuring: what is measured when, intervals, and quality by the length of the source."""

import math

import numpy as np
import pytest
import sacrebleu

from attnlab.data.pharaoh import Gold
from attnlab.evaluation.measurement import Bucket, LengthBuckets, Measurement, bootstrap_interval, measure
from attnlab.evaluation.metric import Metric
from attnlab.evaluation.metrics import AlignmentErrorRate, AlignmentPrecision, ExactMatch, Loss, Perplexity
from attnlab.evaluation.resampling import sum_blocks
from attnlab.tasks.translation.metrics import BLEU, TER, ChrF
from evaluation.made import evidence, forced

METRICS: dict[str, Metric] = {"bleu": BLEU(), "chrf": ChrF(), "ter": TER(), "loss": Loss(), "aer": AlignmentErrorRate()}


def test_an_occasion_decides_what_is_measured_and_the_evidence_what_can_be() -> None:
    found = evidence(["ein Mann", "qq"], ["ein Mann", "ooo"], forced=[forced("ein Mann", [0.0] * 3, [True] * 3), None])
    expected = {"epoch": {"bleu", "loss"}, "test": {"bleu", "loss", "chrf"}, "evaluation": {"bleu", "loss", "chrf", "ter"}}
    for occasion, names in expected.items():
        measured, statistics = measure(METRICS, found, occasion)  # type: ignore[arg-type]
        assert set(measured) == set(statistics) == names
        assert all(len(added) == 2 for added in statistics.values())
        assert measured["loss"] == Measurement(0.0)
    assert {name for name, metric in METRICS.items() if measured.get(name, Measurement(0)).signature} == {"bleu", "chrf", "ter"}


def test_intervals_are_as_wide_as_sacrebleus() -> None:
    texts = [f"{a} {b} {c} {d} e" for a in "ab" for b in "ab" for c in "ab" for d in "abcd"]
    hypotheses = [line.replace("a", "x" if index % 3 else "a") for index, line in enumerate(texts)]
    score = sacrebleu.BLEU().corpus_score(hypotheses, [texts], n_bootstrap=300)
    measured = measure({"bleu": BLEU()}, evidence(hypotheses, texts), "test", samples=300)[0]["bleu"]
    assert measured.value == score.score
    assert measured.low is not None
    assert measured.high is not None
    assert measured.high - measured.low == pytest.approx(2 * score._ci, abs=1e-4)
    assert (measured.low + measured.high) / 2 == pytest.approx(score._mean, abs=0.25 * score._ci)
    assert measure({"bleu": BLEU()}, evidence(hypotheses, texts), "test")[0]["bleu"] == Measurement(
        score.score, BLEU().signature({})
    )


def test_intervals_of_scores_of_which_some_are_nothing() -> None:
    """Samples without any match, or without any reference, are what sacreBLEU's own mean stumbles over."""
    hypotheses = ["ein Mann", "ein xyz", "qq"]
    for references in (["ein Mann", "ooo", "ppp"], ["", "x", "q"]):
        for measured in measure(METRICS, evidence(hypotheses, references), "evaluation", samples=200)[0].values():
            assert {type(measured.value), type(measured.low), type(measured.high)} == {float}
            assert measured.low <= measured.high  # type: ignore[operator]


def test_intervals_stay_within_what_a_metric_can_be() -> None:
    statistics = np.stack([np.arange(20) != 7, np.ones(20)], axis=1).astype(float)
    assert bootstrap_interval(ExactMatch(), statistics, 1000) == (85.0, 100.0)


def test_examples_of_one_block_are_drawn_together() -> None:
    draw = np.random.default_rng(1)
    losses = np.stack([draw.exponential(size=40), np.ones(40)], axis=1)
    shuffled = draw.permutation(400)
    every, blocks = losses.repeat(10, axis=0)[shuffled], np.arange(40).repeat(10)[shuffled]
    assert np.allclose(sum_blocks(every, blocks), 10 * losses)
    assert sum_blocks(every, None) is every
    assert sum_blocks(every, np.arange(400)[::-1]) is every
    alone, together, right = (bootstrap_interval(Loss(), r, 1000) for r in (every, sum_blocks(every, blocks), losses))
    assert together == pytest.approx(right)
    assert (together[1] - together[0]) / (alone[1] - alone[0]) == pytest.approx(math.sqrt(10), rel=0.2)  # type: ignore[operator]


def test_a_measured_interval_is_one_of_blocks() -> None:
    """Ten copies of each example tell no more than one, where they are one block."""
    some = [forced("a", [-loss, 0.0], [True, True]) for loss in np.random.default_rng(1).exponential(size=20)]
    copies, blocks = [one for one in some for _ in range(10)], np.arange(20).repeat(10).tolist()
    alone, together = (
        measure({"loss": Loss()}, evidence(forced=every), "test", samples=200, blocks=own)[0]["loss"]
        for every, own in ((some, None), (copies, blocks))
    )
    assert (together.value, together.low, together.high) == pytest.approx((alone.value, alone.low, alone.high))


def test_one_example_has_a_value_and_no_interval() -> None:
    assert measure(METRICS, evidence(["a b"], ["a b"]), "test", samples=50)[0]["chrf"] == Measurement(
        100.0, ChrF().signature({}), None, None
    )


def test_one_example_that_adds_anything_has_no_interval() -> None:
    statistics = np.zeros((100, 2))
    statistics[3] = 5, 7
    assert bootstrap_interval(ExactMatch(), statistics, 50) == (None, None)
    statistics[4] = 1, 7
    low, high = bootstrap_interval(ExactMatch(), statistics, 50)  # of some samples neither is a part
    assert 100 / 7 <= low <= high <= 500 / 7  # type: ignore[operator]


def test_what_has_no_value_has_no_interval() -> None:
    found = evidence(alignments=[({(0, 0)}, Gold(set(), set()))] * 3)
    measured = measure(METRICS, found, "test", samples=10)[0]["aer"]
    assert math.isnan(measured.value)
    assert (measured.low, measured.high) == (None, None)


def test_an_interval_with_an_infinite_end_is_none() -> None:
    """Some samples hold the one example of a huge loss so often that their perplexity is no number any more."""
    losses = np.array([[5.0, 1.0]] * 19 + [[14_000.0, 1.0]])
    draws = Perplexity().values(np.array([[95 + 14_000 * count, 20] for count in (0, 1, 2)]))
    assert np.isfinite(draws).tolist() == [True, True, False]
    assert bootstrap_interval(Perplexity(), losses, 1000) == (None, None)
    assert bootstrap_interval(Perplexity(), losses[:19], 1000) == pytest.approx((math.exp(5), math.exp(5)))


def test_examples_without_a_link_have_no_precision() -> None:
    """An attention that looks evenly makes no link: it is neither precise nor wrong there, as in a whole set."""
    gold = Gold({(0, 0)}, {(0, 0)})
    found = evidence(alignments=[({(1, 0)}, gold)] * 4 + [(set(), gold)] * 4)
    for metric, wrong in ((AlignmentErrorRate(), 100.0), (AlignmentPrecision(), 0.0)):
        statistics = metric.statistics(found)
        assert statistics is not None
        short, long = LengthBuckets([3] * 4 + [9] * 4).measure(metric, statistics)
        assert short.value == wrong
        assert math.isnan(long.value)
        assert bootstrap_interval(metric, statistics, 200) == (wrong, wrong)


def test_quality_by_length_is_that_of_the_examples_in_each_bucket() -> None:
    statistics = np.array([[1, 1], [0, 1], [1, 1], [1, 1], [0, 1]], dtype=float)
    found = LengthBuckets([3, 5, 6, 70, 0]).measure(ExactMatch(), statistics)
    assert found == [Bucket(1, 5, 2, 50.0), Bucket(6, 10, 1, 100.0), Bucket(61, 70, 1, 100.0)]
    assert LengthBuckets([0]).measure(ExactMatch(), statistics[:1]) == []
    assert math.isnan(LengthBuckets([1]).measure(ExactMatch(), np.zeros((1, 2)))[0].value)


def test_an_infinite_example_spoils_its_own_bucket_alone() -> None:
    short, middle, long = LengthBuckets([2, 8, 20]).measure(Loss(), np.array([[1.0, 1.0], [math.inf, 1.0], [2.0, 1.0]]))
    assert (short.value, long.value) == (1.0, 2.0)
    assert not math.isfinite(middle.value)
