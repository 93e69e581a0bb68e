"""Significance: the same question as sacreBLEU's tests, of any metric, corrected for how often it is asked."""

import math
import os
import random

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest
from scipy import stats

from attnlab.errors import UserError
from attnlab.evaluation import resampling
from attnlab.evaluation.metric import Metric, Statistics
from attnlab.evaluation.metrics import AlignmentErrorRate, ExactMatch, Loss, Perplexity
from attnlab.evaluation.significance import models
from attnlab.evaluation.significance.models import Contest, ModelsDifference, compare_models, estimate_difference
from attnlab.evaluation.significance.multiplicity import holm
from attnlab.evaluation.significance.sample import sample_models
from attnlab.tasks.translation.metrics import BLEU
from evaluation.made import evidence

REFERENCES = [f"the {a} {b} sees a {c} house on the hill today" for a in ("old", "new") for b in "abcdefgh" for c in "xyzw"]


def worse(every: int) -> list[str]:
    return [r if i % every else r.replace("house on the", "tree in a") for i, r in enumerate(REFERENCES)]


def noisy(share: float, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join("tree" if draw.random() < share else word for word in line.split()) for line in REFERENCES]


def bleu(hypotheses: list[str]) -> Statistics:
    statistics = BLEU().statistics(evidence(hypotheses, REFERENCES))
    assert statistics is not None
    return statistics


def compare(
    metric: Metric, baseline: Statistics, systems: dict[str, Statistics], samples: int = 1000
) -> dict[str, ModelsDifference]:
    return compare_models(
        [Contest(metric, [baseline], {name: [rows] for name, rows in systems.items()})], samples=samples, most=0
    )


def test_a_better_system_is_told_from_an_equal_one() -> None:
    systems = {"equal": bleu(worse(4)), "better": bleu(REFERENCES)}
    found = compare(BLEU(), bleu(worse(4)), systems, samples=500)
    assert found["equal"].p == 1.0
    assert found["better"].p < 0.02
    assert found["better"].corrected == pytest.approx(2 * found["better"].p)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_sacrebleus_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it draws what sacreBLEU draws, it agrees far closer than within sampling error."""
    monkeypatch.setenv("SACREBLEU_SEED", os.environ.get("SACREBLEU_SEED", "12345"))
    texts = {"baseline": noisy(0.2, 10 + seed), "near": noisy(0.19, 20 + seed), "far": noisy(0.16, 30 + seed)}
    _, results = PairedTest([*texts.items()], {"BLEU": sacrebleu.BLEU()}, [REFERENCES], "ar", 1000)()
    theirs = {name: result.p_value for name, result in zip(texts, results["BLEU"], strict=True)}  # type: ignore[union-attr]
    monkeypatch.setattr(resampling, "ROOM", 40 * len(REFERENCES))  # in many portions
    baseline, *_ = statistics = [bleu(text) for text in texts.values()]
    found = compare(BLEU(), baseline, dict(zip(["near", "far"], statistics[1:], strict=True)), samples=1000)
    for name, result in found.items():
        assert result.p == pytest.approx(theirs[name], abs=0.002)


def test_differences_that_differ_by_rounding_alone_are_one() -> None:
    """Where one example alone differs, every exchange makes the same difference, which is rounded in two ways."""
    baseline = np.stack([np.full(10, 0.1), np.ones(10)], axis=1)
    system = baseline + np.array([[0.7, 0.0], *[[0.0, 0.0]] * 9])
    assert compare(Loss(), baseline, {"other": system}, samples=200)["other"].p == 1.0


def test_stars_are_as_rare_as_they_claim() -> None:
    """Equal systems, a metric with many ties: of 300 comparisons at 5 %, 15 are expected to be significant."""
    draw = np.random.default_rng(1)
    stars = 0
    for _ in range(300):
        one, other = (np.stack([draw.random(60) < 0.8, np.ones(60)], axis=1).astype(float) for _ in range(2))
        stars += compare(ExactMatch(), one, {"other": other}, samples=200)["other"].p < 0.05
    assert 2 <= stars <= 25


def test_differences_of_any_metric_are_tested_and_what_has_no_value_is_not() -> None:
    draw = np.random.default_rng(2)
    losses = np.stack([draw.gamma(2.0, size=80), np.ones(80)], axis=1)
    lower = losses - [0.5, 0.0]
    found = compare(Loss(), losses, {"lower": lower, "same": losses[::-1][::-1]}, samples=400)
    assert found["lower"].p == pytest.approx(1 / 401)
    assert found["same"].p == 1.0
    nothing = compare(AlignmentErrorRate(), np.zeros((5, 4)), {"other": np.zeros((5, 4))}, samples=100)["other"]
    assert math.isnan(nothing.p)
    assert math.isnan(nothing.corrected)
    with pytest.raises(UserError, match="short was tested on 79 examples and the baseline on 80"):
        compare(Loss(), losses, {"short": lower[1:]}, samples=10)
    with pytest.raises(UserError, match="other was not measured by the same metric"):
        compare(Loss(), losses, {"other": lower[:, :1]}, samples=10)


def test_resampling_needs_little_memory_whatever_it_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = np.random.default_rng(3).random((50, 3))

    def exchange(samples: int) -> tuple[Statistics, Statistics]:
        ((one, other),) = resampling.exchange(statistics, [statistics[::-1]], samples, 1)
        return one, other

    whole = resampling.bootstrap(statistics, 200, 1), *exchange(200)
    monkeypatch.setattr(resampling, "ROOM", 50 * 70)
    parts = resampling.bootstrap(statistics, 200, 1), *exchange(200)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    both = exchange(10)
    np.testing.assert_allclose(sum(both), np.broadcast_to(2 * statistics.sum(axis=0), (10, 3)))


def test_holm_is_step_down_and_never_decreases() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.5, "b": 0.9}) == pytest.approx({"a": 1.0, "b": 1.0})
    assert holm({"alone": 0.04}) == pytest.approx({"alone": 0.04})
    assert holm({"a": 0.04, "none": math.nan}) == pytest.approx({"a": 0.04, "none": math.nan}, nan_ok=True)


def test_exchanges_go_on_until_a_corrected_p_is_known() -> None:
    draw = np.random.default_rng(4)

    def system(better: float) -> Statistics:
        return np.stack([draw.normal(2 - better, 1, 100), np.ones(100)], axis=1)

    systems = {"equal": system(0.0), "near": system(0.42), "far": system(2.0), "other": system(0.0)}
    family = [Contest(Loss(), [system(0.0)], {name: [rows]}) for name, rows in systems.items()]
    found = compare_models(family, samples=1000)
    assert found["far"].corrected <= 0.005, "known to that, and no smaller than the samples show"
    assert found["far"].p == pytest.approx(1 / (found["far"].samples + 1))
    p = found["near"].p
    assert 0.001 < p < 0.05
    assert found["near"].samples > 1000
    for result in found.values():
        factor = result.corrected / result.p
        error = factor * math.sqrt(result.p * (1 - result.p) / result.samples)
        assert error <= max(0.005, 0.05 * result.corrected) + 1e-9 or result.corrected == 1.0
    assert {name: result.corrected for name, result in found.items()} == holm({name: one.p for name, one in found.items()})
    assert not models._is_known(0.45, 2, 100), "0.9 by a hundred exchanges may be less than one"


def test_every_round_of_exchanges_is_another_one() -> None:
    draw = np.random.default_rng(4)
    one, other = (np.stack([draw.normal(2 - better, 1, 100), np.ones(100)], axis=1) for better in (0.0, 0.42))
    contest = Contest(Loss(), [one], {"near": [other]})
    found = compare_models([contest], samples=1000)["near"]
    rounds = found.samples // 1000
    assert rounds > 1
    counts = [contest.count_as_large(["near"], 1000, resampling.SEED + number)["near"] for number in range(rounds)]
    assert found.p == (sum(counts) + 1) / (found.samples + 1)


def test_the_interval_of_trained_models_counts_examples_alone() -> None:
    draw = np.random.default_rng(6)
    rows = [np.stack([draw.normal(2, 1, 80), np.ones(80)], axis=1) for _ in range(2)]
    found = estimate_difference(sample_models(Loss(), rows), [0], [1])
    told = stats.ttest_rel(rows[0][:, 0], rows[1][:, 0]).confidence_interval(0.95)
    assert found.interval() == pytest.approx((told.low, told.high))


def test_an_example_is_one_draw_however_many_seeds_were_tested_on_it() -> None:
    """Seeds that make the same of every example tell nothing more than one of them."""
    places = np.arange(300)
    one, other = (
        np.stack([right, np.ones(300)], axis=1).astype(float) for right in (places < 240, (places > 7) & (places < 260))
    )
    found = [
        compare_models([Contest(ExactMatch(), [one] * seeds, {"": [other] * seeds})], samples=2000, most=0)[""]
        for seeds in (1, 3)
    ]
    assert found[0] == found[1]
    assert found[0].p > 0.01
    own = Contest(ExactMatch(), [one] * 3, {"": [other] * 3}, are_crossed=False)
    assert compare_models([own], samples=2000, most=0)[""].p < found[0].p / 4, "examples of its own for each seed"


def test_several_seeds_are_compared_by_the_mean_of_their_values() -> None:
    """The perplexity of joined examples is not the mean of perplexities: here it is on the other side."""
    rows = {loss: np.stack([np.full(50, loss), np.ones(50)], axis=1) for loss in (1.0, 6.0, 3.9)}
    contest = Contest(Perplexity(), [rows[3.9]] * 2, {"": [rows[1.0], rows[6.0]]})
    assert contest.values[""] - contest.value == pytest.approx((math.e + math.exp(6.0)) / 2 - math.exp(3.9))
    assert contest.values[""] - contest.value > 150
