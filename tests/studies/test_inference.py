"""What comes of the tests of a study, and what a report says of tests that could not be made."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnlab.evaluation.significance.difference import Difference, Part
from attnlab.runs.files import BESIDE, LENGTHS, write_statistics
from attnlab.runs.folder import RunFolder, State
from attnlab.studies import inference
from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.contrasts import Contrast, MeasuredVariants, Pair, find_improvement
from attnlab.studies.names import Significance
from attnlab.studies.report import report
from attnlab.tasks.translation.metrics import BLEU
from studies.folders import write_study

THREE = {"attention=none": 0.55, "attention=dot": 0.85, "attention=additive": 0.87}


def near(significance: Significance, sets: Mapping[str, MeasuredVariants], asked: Collection[Pair]) -> dict[Pair, Contrast]:
    """Find every first variant better, with a p of .04 that no correction for several tests leaves significant."""
    difference = Difference(1.0, (Part(0.1, 4.0),))
    return {pair: Contrast(difference, 0.04, (3, 3), (np.zeros(3), np.ones(3))) for pair in asked}


def test_clusters_are_made_of_corrected_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = collect(write_study(tmp_path / "near", skills=THREE, seeds=(1, 2), states={}, examples=4))
    monkeypatch.setattr(inference, "compare", near)
    found = inference.infer(study)
    assert found.clusters.keys() == {"test", "test_long"}
    assert {number for numbers in found.clusters.values() for number in numbers.values()} == {1}
    assert found.apart == {"test": [], "test_long": []}


def test_pairs_of_one_cluster_that_differ_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = collect(write_study(tmp_path / "apart", skills=THREE, seeds=(1, 2), states={}, examples=4))

    def first_from_last(
        significance: Significance, sets: Mapping[str, MeasuredVariants], asked: Collection[Pair]
    ) -> dict[Pair, Contrast]:
        surely = ("additive", "none")
        made = near(significance, sets, asked)
        return {pair: replace(one, p=1e-6 if (pair.one, pair.other) == surely else 0.9) for pair, one in made.items()}

    monkeypatch.setattr(inference, "compare", first_from_last)
    found = inference.infer(study)
    assert found.clusters["test"] == dict.fromkeys(("additive", "dot", "none"), 1)
    assert found.apart["test"] == [("additive", "none")]


@pytest.mark.parametrize("metric", ["bleu", "perplexity"])
def test_clusters_go_by_what_is_better(metric: str, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "better", skills=THREE, columns=[metric], seeds=range(1, 6), states={})
    numbers = inference.infer(collect(folder)).clusters["test"]
    assert numbers["additive"] == 1
    assert numbers["none"] == max(numbers.values()) > 1


def test_runs_that_are_pairs_win_as_pairs() -> None:
    scores = np.array([1.0, 2.0, 3.0]), np.array([0.9, 1.9, 2.9])
    alone = Contrast(Difference(0.1, (Part(1e-4, 2.0), Part(0.0, 99.0))), 0.01, (3, 3), scores)
    shares = [find_improvement(replace(alone, pairs_share=shared), BLEU()) for shared in (None, "training", "examples")]
    assert [share and share.value for share in shares] == [pytest.approx(6 / 9), 1.0, 1.0]


def test_a_stochastic_order_asks_for_enough_seeds_of_both(tmp_path: Path) -> None:
    states: dict[tuple[str, int], State] = {("attention=dot", seed): "missing" for seed in (4, 5, 6)}
    skills = {"attention=none": 0.5, "attention=dot": 0.8}
    found = inference.infer(collect(write_study(tmp_path / "uneven", skills=skills, seeds=range(1, 7), states=states)))
    assert {one.seeds for one in found.against.values() if isinstance(one, Contrast)} == {(3, 6)}
    assert found.orders == {}


def test_where_nothing_varies_nothing_is_told_of_a_test(tmp_path: Path) -> None:
    """Every seed of one variant has all right, and none of the other anything."""
    skills = {"attention=none": 0.0, "attention=dot": 1.0}
    folder = write_study(tmp_path / "sure", skills=skills, seeds=range(1, 6), states={}, examples=3, columns=["exact"])
    comparison = compare_variants(collect(folder))
    assert not any("ε_min" in name or "P(A > B)" in name for name in comparison.header)
    told = " ".join(comparison.notes)
    assert "difference to none, which nothing could be tested by" in told
    assert "no p, since too little varies" in told
    assert "tested over" not in told


def test_a_perplexity_that_is_huge_leaves_a_report(tmp_path: Path) -> None:
    skills = {"attention=none": 0.5, "attention=dot": 0.8, "attention=additive": 0.9}
    folder = write_study(tmp_path / "huge", skills=skills, seeds=(1, 2), states={}, examples=5, columns=["perplexity"])
    run = RunFolder(folder / "attention=dot" / "seed=2")
    result = run.read_result()
    for test, found in result.tests.items():
        read = run.read_statistics(test)
        rows = read["perplexity"]
        rows[:, 0] = 450 * rows[:, 1] + rows[:, 0]
        added = {name: rows for name, rows in read.items() if name not in BESIDE}
        write_statistics(run.statistics_file(test), added, read[LENGTHS].astype(int).tolist(), range(1, 6))
        found["metrics"]["perplexity"] |= {"value": 1e195}
    run.write_result(result)
    _, comparison = report(folder)
    assert comparison is not None
    cells = {row[0].text: row[comparison.header.index("test Δperplexity")] for row in comparison.rows}
    assert "p" not in cells["dot"].more
    assert 0 < cells["additive"].more["p"] < 1
    assert any("values are too large for a variance: dot on test, dot on test_long" in note for note in comparison.notes)
