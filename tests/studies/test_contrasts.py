"""What a study's table says of differences: which test it made, of which runs, and of what it speaks."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attnlab.errors import UserError
from attnlab.evaluation.metrics import Loss
from attnlab.evaluation.resampling import sum_blocks
from attnlab.evaluation.significance import models, seeds
from attnlab.evaluation.significance.improvement import probability_of_improvement, stochastic_order
from attnlab.evaluation.significance.multiplicity import holm
from attnlab.evaluation.significance.sample import sample_models
from attnlab.runs.files import BESIDE, LENGTHS, write_lines, write_statistics
from attnlab.runs.folder import RunFolder, State
from attnlab.studies.calibration import compare_groups
from attnlab.studies.collection import Study, collect, find_variant
from attnlab.studies.comparison import compare_variants
from attnlab.studies.contrasts import Contrast, MeasuredVariants, Pair, Reading, Use, compare, shared_trainings
from attnlab.studies.folder import StudyFolder
from attnlab.studies.inference import infer
from attnlab.studies.page import page
from attnlab.studies.table import Cell, Comparison
from commands import Cli, cli
from studies.folders import group, write_run, write_study

__all__ = ["cli"]

SKILLS = {"attention=none": 0.55, "attention=dot": 0.85, "attention=additive": 0.87, "attention=cosine": 0.86}


def cells(comparison: Comparison, column: str) -> dict[str, Cell]:
    return {row[0].text: row[comparison.header.index(column)] for row in comparison.rows}


def told(comparison: Comparison, start: str) -> str:
    return " ".join(note for note in comparison.notes if note.startswith(start))


def contrast(study: Study, one: str, other: str) -> Contrast | str:
    return MeasuredVariants.of_study(study, "test", "bleu").over_seeds(one, other)


def move(run: RunFolder, test: str, order: list[int], numbers: list[int]) -> None:
    """Write a test set of a run in another order."""
    lines = {run.sources_file(test): run.read_sources(test), run.references_file(test): run.read_references(test)}
    for path, read in lines.items():
        write_lines(path, [read[place] for place in order])
    read = run.read_statistics(test)
    added = {name: rows[order] for name, rows in read.items() if name not in BESIDE}
    write_statistics(run.statistics_file(test), added, read[LENGTHS][order].astype(int).tolist(), numbers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("runs") / "seeds", skills=SKILLS, seeds=range(1, 6), states={})


@pytest.fixture(scope="module")
def comparison(folder: Path) -> Comparison:
    return compare_variants(collect(folder))


def test_differences_are_tested_over_seeds_and_corrected_over_all_test_sets(folder: Path, comparison: Comparison) -> None:
    study, raw, found = collect(folder), {}, {}
    _, metric = study.ranking
    for test in study.tests:
        for label in ("dot", "additive", "cosine"):
            runs = [run.statistics(test, "bleu") for name in (label, "none") for run in study.variants[name]]
            difference = seeds.compare_systems(
                sample_models(metric, [r for r in runs if r is not None]), range(5), range(5, 10)
            )
            raw[test, label], found[test, label] = difference.p, difference
    corrected = holm(raw)
    assert len(corrected) == 6
    for (test, label), p in corrected.items():
        cell = cells(comparison, f"{test} ΔBLEU")[label]
        low, high = found[test, label].interval()
        assert (cell.value, cell.more) == (
            pytest.approx(found[test, label].value),
            pytest.approx({"p": p, "low": low, "high": high}),
        )
        assert cell.text.startswith(f"{cell.value:+.2f}* [{low:+.2f}, {high:+.2f}] (p ")
        mean = cells(comparison, f"{test} BLEU")
        assert cell.value == pytest.approx(mean[label].value - mean["none"].value)
    assert "whatever seeds they are trained with (5 seeds a variant" in told(comparison, "ΔBLEU: difference to none")
    assert "all 6 comparisons with none, on every test set" in told(comparison, "ΔBLEU: [ ]")


def test_examples_of_one_block_vary_together(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "blocks", skills=SKILLS, seeds=range(1, 4), states={})
    alone = MeasuredVariants.of_study(collect(folder), "test", "bleu").of_models("dot", "none")
    for path in folder.glob("*/*/result.json"):
        run = RunFolder(path.parent)
        group(run, "test", [number // 5 for number in range(1, 25)])
        if run.digests_file.is_file():
            run.write_digests()
    study = collect(folder)
    together = MeasuredVariants.of_study(study, "test", "bleu").of_models("dot", "none")
    assert isinstance(alone, Contrast)
    assert isinstance(together, Contrast)
    runs = [run for label in ("dot", "none") for run in study.variants[label]]
    summed = [sum_blocks(run.statistics("test", "bleu"), run.blocks("test")) for run in runs]  # type: ignore[arg-type]
    expected = models.estimate_difference(sample_models(study.ranking[1], summed), range(3), range(3, 6))
    assert together.difference.value == pytest.approx(alone.difference.value)
    assert together.difference.variance == pytest.approx(expected.variance)
    assert together.difference.variance != pytest.approx(alone.difference.variance, rel=0.01)


def test_how_often_and_how_surely_a_variant_is_better(comparison: Comparison) -> None:
    better = cells(comparison, "test P(A > B)")
    assert better["dot"].value == 1.0
    assert 0.5 < better["dot"].more["low"] < 1.0
    assert cells(comparison, "test ε_min")["dot"].value == 0.0
    assert "Bouthillier" in told(comparison, "P(A > B)")
    assert "no test beside that of Δ" in told(comparison, "ε_min")


@pytest.mark.parametrize(("metric", "sign"), [("bleu", 1), ("perplexity", -1)])
def test_how_surely_one_is_better_goes_by_what_is_better_and_by_all_comparisons_together(
    metric: str, sign: int, tmp_path: Path
) -> None:
    skills = {"attention=none": 0.8, "attention=dot": 0.81, "attention=additive": 0.82}
    found = infer(collect(write_study(tmp_path / "near", skills=skills, columns=[metric], seeds=range(1, 6), states={})))
    made = {key: one for key, one in found.against.items() if isinstance(one, Contrast)}
    scores = {key: [sign * own for own in one.scores] for key, one in made.items()}
    examples = {key: one.difference.parts[1].variance for key, one in made.items()}
    assert len(made) == 4
    assert found.orders == {key: stochastic_order(*both, confidence=1 - 0.05 / 4) for key, both in scores.items()}
    assert found.improvements == {key: probability_of_improvement(*both, examples[key]) for key, both in scores.items()}


def test_the_same_trainings_alone_are_pairs() -> None:
    def uses(first: int, *trainings: str | None) -> list[Use]:
        return [Use(first + number, number, training) for number, training in enumerate(trainings)]

    assert shared_trainings(uses(0, "a", "b"), uses(2, "a", "b")) == [(0, 2), (1, 3)]
    assert shared_trainings(uses(0, "a", "b"), uses(2, "a", "c")) == []
    assert shared_trainings(uses(0, None, None), uses(2, None, None)) == [], "of which nothing is known"
    assert shared_trainings(uses(0, "a"), uses(1, "a")) == [], "one pair has no variance"


def test_variants_that_are_not_told_apart_are_one_cluster(comparison: Comparison) -> None:
    numbers = {label: cell.value for label, cell in cells(comparison, "test cluster").items()}
    assert numbers == {"dot": 1.0, "additive": 1.0, "cosine": 1.0, "none": 2.0}
    assert "over 12 pairs on all test sets" in told(comparison, "cluster")


@pytest.mark.exhaustive
def test_of_a_metric_that_is_better_lower_the_probability_is_of_lower_values(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "lower", skills=SKILLS, columns=["perplexity"], seeds=(1, 2, 3), states={})
    comparison = compare_variants(collect(folder))
    assert cells(comparison, "test Δperplexity")["dot"].value < 0
    assert cells(comparison, "test P(A > B)")["dot"].value == 1.0
    assert "test ε_min" not in comparison.header, "from five seeds on"
    few = {key: SKILLS[key] for key in ("attention=none", "attention=dot")}
    five = write_study(tmp_path / "five", skills=few, columns=["perplexity"], seeds=range(1, 6), states={})
    assert cells(compare_variants(collect(five)), "test ε_min")["dot"].value == 0.0


@pytest.mark.exhaustive
def test_these_trained_models_are_what_can_be_tested_with_one_seed_or_on_request(tmp_path: Path) -> None:
    study = collect(write_study(tmp_path / "one", skills=SKILLS, seeds=(1,), states={}))
    comparison = compare_variants(study)
    assert told(comparison, "no test over seeds: no two variants have several")
    assert "these trained models, and not of the variants" in told(comparison, "ΔBLEU: difference")
    assert "test P(A > B)" not in comparison.header
    assert "these trained models" in page(study, comparison)
    asked = collect(write_study(tmp_path / "asked", skills=SKILLS, seeds=(1, 2), states={}, significance="models"))
    comparison = compare_variants(asked)
    assert not told(comparison, "no test over seeds")
    assert "(2 seeds a variant; paired approximate randomization" in told(comparison, "ΔBLEU: difference")
    found = infer(asked)
    smallest = min(found.corrected.values())
    assert 0 < smallest <= 0.005
    assert len({*found.corrected}) == 6


def test_a_variant_with_one_seed_among_others_is_not_tested_and_named(tmp_path: Path) -> None:
    states = {("attention=dot", 2): "failed", ("attention=dot", 3): "missing"}
    comparison = compare_variants(collect(write_study(tmp_path / "some", skills=SKILLS, states=states)))  # type: ignore[arg-type]
    assert cells(comparison, "test ΔBLEU")["dot"].text == "one seed"
    assert told(comparison, "no test over seeds of variants with one seed").endswith("study.significance=models: dot")
    assert cells(comparison, "test cluster")["dot"].text == "-"
    assert "(p " in cells(comparison, "test ΔBLEU")["additive"].text


def test_where_one_variant_alone_has_several_seeds_trained_models_are_tested(tmp_path: Path) -> None:
    skills = {"attention=none": 0.55, "attention=dot": 0.85}
    states: dict[tuple[str, int], State] = {("attention=dot", 2): "missing", ("attention=dot", 3): "missing"}
    found = infer(collect(write_study(tmp_path / "lone", skills=skills, states=states)))
    assert (found.asked, found.significance) == ("seeds", "models")
    assert found.corrected.keys() == {("test", "dot"), ("test_long", "dot")}


def test_searches_of_the_same_trainings_are_pairs(tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    skills = {"search.width=1": 0.86, "search.width=5": 0.88}
    folder = write_study(tmp_path / "beam", skills=skills, states={}, baseline="search.width=1")
    alone = contrast(collect(folder), "5", "1")
    for run in folder.glob("*/seed=*"):
        own = RunFolder(run)
        record = own.read_record()
        assert record is not None
        record.training = f"training of seed {record.seed}"
        own.write_record(record)
    study = collect(folder)
    shared = contrast(study, "5", "1")
    assert isinstance(alone, Contrast)
    assert isinstance(shared, Contrast)
    assert (alone.pairs_share, shared.pairs_share) == (None, "training")
    assert shared.difference.value == pytest.approx(alone.difference.value)
    assert [part.freedom for part in shared.difference.parts] == [2, 23]
    assert told(compare_variants(study), "variants that differ in their search alone share their trainings")
    assert cli("compare", *(str(folder / f"search.width={width}") for width in (1, 5)), "--metric", "bleu") == 0
    shown = capsys.readouterr().out
    assert f"{shared.p:.4f}" in shown
    assert f"{alone.p:.4f}" not in shown

    shutil.rmtree(folder / "search.width=5" / "seed=3")
    fewer = contrast(collect(folder), "5", "1")
    assert isinstance(fewer, Contrast)
    assert (fewer.pairs_share, fewer.seeds) == ("training", (2, 2))
    assert told(compare_variants(collect(folder)), "compared with 1 over the seeds that both have")
    assert cli("compare", *(str(folder / f"search.width={width}") for width in (1, 5)), "--metric", "bleu") == 0
    assert "search.width=5 is compared over the 2 seeds that it has with " in capsys.readouterr().out


def test_a_copy_of_a_run_is_no_seed(tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_study(tmp_path / "copied", states={})
    before = collect(folder)
    for name in ("seed=1.bak", "seed=4", "copy"):
        shutil.copytree(folder / "attention=dot" / "seed=1", folder / "attention=dot" / name)
    study = collect(folder)
    assert (
        [run.seed for run in study.finished_variants["dot"]]
        == [run.seed for run in before.finished_variants["dot"]]
        == [1, 2, 3]
    )
    assert study.count("damaged") == 3
    shutil.rmtree(folder / "attention=dot" / "seed=1")
    assert [run.folder.path.name for run in collect(folder).finished_variants["dot"]] == ["seed=4", "seed=2", "seed=3"], (
        "the first of those left"
    )
    shutil.copytree(folder / "attention=dot" / "seed=4", folder / "attention=dot" / "seed=1")
    assert cli("compare", str(folder / "attention=none"), str(folder / "attention=dot"), "--metric", "bleu") == 2
    assert "seed=4 has the seed of" in capsys.readouterr().err


def test_one_seed_is_told_as_such_where_every_seed_has_data_of_its_own() -> None:
    def read(seed: int, examples: str) -> Reading:
        return Reading(seed, None, "", examples, np.arange(3), np.array([[seed, 1.0]] * 3), float(seed))

    many = [read(seed, f"data {seed}") for seed in (1, 2, 3)]
    tested = MeasuredVariants(Loss(), {"many": many, "one": many[:1], "other": [read(1, "elsewhere")]})
    assert tested.over_seeds("many", "one") == "one seed"
    assert tested.over_seeds("many", "other") == "not comparable"


def test_a_baseline_with_one_seed_changes_no_test(tmp_path: Path) -> None:
    """While a study runs, the others may have several: they are compared over seeds, and nothing with the baseline."""
    states = {("attention=none", 2): "missing", ("attention=none", 3): "missing"}
    claims = ["none < dot on test bleu", "dot > none on test bleu"]
    study = collect(write_study(tmp_path / "begun", skills=SKILLS, states=states, claims=claims))  # type: ignore[arg-type]
    comparison = compare_variants(study)
    assert infer(study).significance == "seeds"
    assert {cell.text for label, cell in cells(comparison, "test ΔBLEU").items() if label != "none"} == {"one seed"}
    assert told(comparison, "no test over seeds of variants with one seed").endswith("dot, additive, cosine")
    assert [verdict.verdict for verdict in comparison.verdicts] == ["undecided"] * 2


def test_seeds_that_trained_models_do_not_share_are_told(tmp_path: Path) -> None:
    skills = {"attention=none": 0.6, "attention=dot": 0.9}
    folder = write_study(tmp_path / "apart", skills=skills, seeds=(1, 2), states={}, significance="models")
    for seed in (1, 2):
        write_run(folder / "attention=dot" / f"seed={seed + 2}", ["attention=dot"], seed + 2, skill=0.9)
        shutil.rmtree(folder / "attention=dot" / f"seed={seed}")
    comparison = compare_variants(collect(folder))
    assert cells(comparison, "test ΔBLEU")["dot"].text == "no seed in common"
    assert told(comparison, "not tested against none, with which they have no seed in common").endswith(": dot")


def test_what_the_seeds_in_common_contradict_is_no_cluster(tmp_path: Path) -> None:
    """General failed where dot was bad: by its mean it is ahead, and on the seeds of both it is behind."""
    skills = {"attention=dot": 0.9, "attention=general": 0.82}
    states: dict[tuple[str, int], State] = {("attention=general", 3): "failed"}
    options: dict[str, Any] = {"baseline": "attention=general", "columns": ("bleu",), "significance": "models", "examples": 60}
    folder = write_study(tmp_path / "m", skills=skills, states=states, **options)
    shutil.rmtree(folder / "attention=dot" / "seed=3")
    write_run(folder / "attention=dot" / "seed=3", ["attention=dot"], 3, skill=0.05, examples=60)
    comparison = compare_variants(collect(folder))
    assert [row[0].text for row in comparison.rows] == ["general", "dot"]
    assert "*" in cells(comparison, "test ΔBLEU")["dot"].text
    assert cells(comparison, "test ΔBLEU")["dot"].value > 0  # type: ignore[operator]
    assert [cell.text for cell in cells(comparison, "test cluster").values()] == ["1", "1"]
    assert "dot on test (seeds: 2)" in told(comparison, "compared with general over the seeds that both have")


def test_values_on_other_examples_are_not_ranked(tmp_path: Path) -> None:
    skills = {f"data={data} attention={name}": 0.5 for data in ("copy", "reverse") for name in ("dot", "none")}
    folder = write_study(tmp_path / "two", skills=skills, states={}, baseline=None, columns=("bleu", "chrf"))
    for run in collect(folder).runs:
        if run.overrides[0] == "data=reverse":
            shutil.rmtree(run.folder.path)
            write_run(run.folder.path, run.overrides, run.seed, skill=0.9, examples=30)
    comparison = compare_variants(collect(folder))
    assert not any(
        cell.best for row in comparison.rows for cell, name in zip(row, comparison.header, strict=True) if "test" in name
    )
    assert "test cluster" not in comparison.header
    assert [row[0].text for row in comparison.rows] == [*collect(folder).variants]


def test_a_metric_of_one_form_on_each_test_set_is_comparable(folder: Path, tmp_path: Path) -> None:
    """As BLEU is in a study of several target languages, each with a tokenizer of its own."""
    shutil.copytree(folder, tmp_path / "languages")
    for result in (tmp_path / "languages").glob("*/*/result.json"):
        content = json.loads(result.read_text())
        content["tests"]["test_long"]["metrics"]["bleu"]["signature"] = "tok:zh"
        result.write_text(json.dumps(content))
    comparison = compare_variants(collect(tmp_path / "languages"))
    assert not told(comparison, "not comparable")
    assert "on test_long tok:zh" in told(comparison, "BLEU:")
    assert any(cell.best for cell in cells(comparison, "val BLEU at equal time").values())


def test_a_metric_that_has_no_value_in_a_run_is_told(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "holes", skills=SKILLS, states={})
    run = RunFolder(folder / "attention=dot" / "seed=2")
    result = run.read_result()
    result.tests["test"]["metrics"]["chrf"]["value"] = math.nan
    run.write_result(result)
    assert "chrF on test has a value in 2 of 3 runs of dot alone" in " ".join(compare_variants(collect(folder)).notes)


def test_a_metric_without_a_better_way_ranks_nobody(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "entropy", columns=["entropy"], states={}, baseline="attention=dot")
    comparison = compare_variants(collect(folder))
    assert "test Δentropy" in comparison.header
    assert not {"test P(A > B)", "test cluster"} & {*comparison.header}
    assert told(comparison, "no P(A > B)")


def test_examples_are_paired_by_what_they_are_wherever_they_stand(tmp_path: Path) -> None:
    copy = write_study(tmp_path / "seeds", skills=SKILLS, seeds=range(1, 6), states={})
    before = MeasuredVariants.of_study(collect(copy), "test", "bleu").of_models("dot", "none")
    for seed, renumber in ((1, False), (3, True)):
        order = np.random.default_rng(seed).permutation(24).tolist()
        run = RunFolder(copy / "attention=dot" / f"seed={seed}")
        move(run, "test", order, list(range(1, 25)) if renumber else [place + 1 for place in order])
    study = collect(copy)
    after = MeasuredVariants.of_study(study, "test", "bleu").of_models("dot", "none")
    assert isinstance(before, Contrast)
    assert isinstance(after, Contrast)
    assert after.difference.variance == pytest.approx(before.difference.variance)
    assert not told(compare_variants(study), "not comparable")


def test_seeds_with_examples_of_their_own_are_pairs_and_what_else_differs_is_refused(tmp_path: Path) -> None:
    study_folder = write_study(tmp_path / "drawn", skills=SKILLS, states={})
    for variant in SKILLS:
        for seed in (1, 2, 3):
            run = RunFolder(study_folder / variant / f"seed={seed}")
            for test in ("test", "test_long"):
                write_lines(run.sources_file(test), [f"{seed} {line}" for line in run.read_sources(test)])
    study = collect(study_folder)
    found = contrast(study, "dot", "none")
    assert isinstance(found, Contrast)
    values = [[run.value("test", "bleu") or 0.0 for run in study.variants[label]] for label in ("dot", "none")]
    assert found.p == pytest.approx(stats.ttest_rel(*values).pvalue)
    assert "the runs of a seed are pairs then" in told(compare_variants(study), "not comparable")
    assert any(cell.best for cell in cells(compare_variants(study), "test BLEU").values())
    lost = study_folder / "attention=none" / "seed=3"
    lost.rename(tmp_path / "lost")
    fewer = compare_variants(collect(study_folder))
    assert not any(cell.best for cell in cells(fewer, "test BLEU").values()), "means over other seeds are of other examples"
    assert "(p " in cells(fewer, "test ΔBLEU")["dot"].text
    (tmp_path / "lost").rename(lost)
    run = RunFolder(study_folder / "attention=dot" / "seed=2")
    for other in (3, 4):  # as another seed has, or no run at all
        write_lines(run.sources_file("test"), [f"{other} {line[2:]}" for line in run.read_sources("test")])
        comparison = compare_variants(collect(study_folder))
        assert cells(comparison, "test ΔBLEU")["dot"].text == "not comparable"
        assert "(p " in cells(comparison, "test ΔBLEU")["additive"].text
        assert told(comparison, "not tested against none").endswith(": dot")


def test_seeds_with_examples_of_their_own_and_with_metrics_of_several_forms_are_no_pairs(tmp_path: Path) -> None:
    skills = {"attention=none": 0.55, "attention=dot": 0.85}
    folder = write_study(tmp_path / "forms", skills=skills, states={})
    for path in folder.glob("*/seed=*"):
        run = RunFolder(path)
        write_lines(run.sources_file("test"), [f"{path.name} {line}" for line in run.read_sources("test")])
        if path.name == "seed=2":
            result = run.read_result()
            result.tests["test"]["metrics"]["bleu"]["signature"] = "tok:zh"
            run.write_result(result)
    tested = MeasuredVariants.of_study(collect(folder), "test", "bleu")
    assert tested.over_seeds("dot", "none") == tested.of_models("dot", "none") == "not comparable"


def test_a_table_is_corrected_for_all_that_it_shows(tmp_path: Path, comparison: Comparison) -> None:
    """One comparison of six has a smaller p than the same one of two."""
    few = {key: SKILLS[key] for key in ("attention=none", "attention=dot")}
    alone = compare_variants(collect(write_study(tmp_path / "few", skills=few, seeds=range(1, 6), states={})))
    one, many = (cells(table, "test ΔBLEU")["dot"] for table in (alone, comparison))
    assert one.value == pytest.approx(many.value)
    assert one.more["p"] < many.more["p"]


# calibration


def test_variants_are_told_from_the_baseline_by_some_of_their_seeds(folder: Path) -> None:
    study = collect(folder)
    rates = list(compare_groups(study, None, [3, 5], 20))
    assert [(rate.one, rate.other, rate.test, rate.seeds, rate.groups) for rate in rates] == [
        (label, "none", test, 3, 10) for test in ("test", "test_long") for label in ("dot", "additive", "cosine")
    ]
    for rate in rates:
        one, other = (np.mean([run.value(rate.test, "bleu") for run in study.variants[x]]) for x in (rate.one, rate.other))
        assert rate.difference == pytest.approx(one - other)


@pytest.mark.parametrize(("skill", "share"), [(0.3, 0.0), (0.9, 1.0)])
def test_power_is_the_share_of_groups_that_differ(skill: float, share: float, tmp_path: Path) -> None:
    skills = {"attention=none": 0.3, "attention=dot": skill}
    study = collect(write_study(tmp_path / "power", skills=skills, seeds=range(1, 6), states={}))
    assert [rate.rate for rate in compare_groups(study, None, [3], 20)] == [share, share]


def test_trained_models_with_examples_of_their_own_have_an_interval_and_mixed_ones_none(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "drawn", skills=SKILLS, states={}, significance="models")
    for variant in SKILLS:
        for seed in (1, 2, 3):
            run = RunFolder(folder / variant / f"seed={seed}")
            write_lines(run.sources_file("test"), [f"{seed} {line}" for line in run.read_sources("test")])
    tested = MeasuredVariants.of_study(collect(folder), "test", "bleu")
    found = tested.of_models("dot", "none")
    assert isinstance(found, Contrast)
    variance = 0.0
    for first, second in tested.same_seeds("dot", "none"):
        sample = sample_models(tested.metric, [first.statistics, second.statistics])
        variance += float(np.array([1, -1]) @ sample.covariance @ np.array([1, -1])) / 9
    assert found.difference.variance == pytest.approx(variance)
    assert [part.freedom for part in found.difference.parts] == [23, 23, 23]
    assert found.difference.value == pytest.approx(np.mean([a.value - b.value for a, b in tested.same_seeds("dot", "none")]))

    for variant in SKILLS:  # two seeds of three have the same examples
        run = RunFolder(folder / variant / "seed=3")
        write_lines(run.sources_file("test"), [f"2 {line[2:]}" for line in run.read_sources("test")])
    assert MeasuredVariants.of_study(collect(folder), "test", "bleu").of_models("dot", "none") == "not comparable"


def test_the_difference_that_is_shown_is_the_one_that_was_tested(
    tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two searches of the same trainings are pairs, and a seed that one of them lacks has no say."""
    folder = write_study(tmp_path / "beam", skills={"search.width=1": 0.8, "search.width=5": 0.9}, states={})
    for run in map(RunFolder, folder.glob("*/seed=*")):
        record = run.read_record()
        assert record is not None
        record.training = f"training of seed {record.seed}"
        run.write_record(record)
    shutil.rmtree(folder / "search.width=5" / "seed=3")
    shown = contrast(collect(folder), "5", "1")
    assert isinstance(shown, Contrast)
    assert cli("compare", *(str(folder / f"search.width={width}") for width in (1, 5)), "--metric", "bleu") == 0
    assert f"{shown.difference.value:+.2f}" in capsys.readouterr().out


@pytest.mark.exhaustive
def test_runs_that_the_study_no_longer_has_are_told(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "less", skills=SKILLS, states={})
    plan = StudyFolder(folder).read_plan()
    assert plan is not None
    assert not told(compare_variants(collect(folder)), "compared though")
    kept = [run for run in plan.runs if run["overrides"] != ["attention=cosine"]]
    StudyFolder(folder).write_plan(replace(plan, runs=kept))
    assert told(compare_variants(collect(folder)), "compared though the study").endswith("does not have them: cosine")


def test_a_baseline_without_a_value_is_told(tmp_path: Path) -> None:
    states: dict[tuple[str, int], State] = {("attention=none", seed): "failed" for seed in (1, 2, 3)}
    comparison = compare_variants(collect(write_study(tmp_path / "no", skills=SKILLS, states=states)))
    assert told(comparison, "no differences on test: no finished run of none, the baseline, has BLEU")


def test_values_choose_a_variant_if_one_alone_has_them() -> None:
    names = {("a=1", "b=2"): "a=1 b=2", ("a=2", "b=1"): "a=2 b=1", ("a=3", "b=1"): "a=3 b=1", ("variant=x",): "x"}
    assert find_variant("3 1", names) == find_variant("b=1 a=3", names) == "a=3 b=1"
    assert (find_variant("x", names), find_variant("y", names), find_variant(None, names)) == ("x", None, None)
    with pytest.raises(UserError, match="'1 2' may be a=1 b=2 or a=2 b=1: write out which"):
        find_variant("1 2", names)


@pytest.mark.parametrize("own_examples", [False, True])
def test_trained_models_are_exchanged_with_those_of_their_own_seeds(own_examples: bool, tmp_path: Path) -> None:
    """Two variants that have other seeds each with the baseline, whose examples may vary with the seed."""
    skills = {"attention=none": 0.8, "attention=dot": 0.82, "attention=additive": 0.84}
    folder = write_study(tmp_path / "seeds", skills=skills, states={}, significance="models")
    for path in folder.glob("*/seed=*") if own_examples else ():
        run = RunFolder(path)
        write_lines(run.sources_file("test"), [f"{path.name} {line}" for line in run.read_sources("test")])
    shutil.rmtree(folder / "attention=dot" / "seed=1")
    shutil.rmtree(folder / "attention=additive" / "seed=3")
    tested = MeasuredVariants.of_study(collect(folder), "test", "bleu")
    for pair, found in compare(
        "models", {"test": tested}, [Pair("test", label, "none") for label in ("dot", "additive")]
    ).items():
        ours, theirs = ([run.statistics for run in side] for side in zip(*tested.same_seeds(pair.one, "none"), strict=True))
        alone = models.Contest(tested.metric, theirs, {pair: ours}, not own_examples)
        assert isinstance(found, Contrast)
        assert found.p == pytest.approx(models.compare_models([alone])[pair].p, abs=0.01)
