"""What of a study cannot be compared, and what its table says of that."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.errors import UserError
from attnlab.runs.files import write_lines
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.folder import StudyFolder
from attnlab.studies.page import page
from studies.folders import FACTS, SKILLS, write_run, write_study


def changed(run: RunFolder, **fields: object) -> None:
    """Write a run's result with other fields."""
    run.write_result(replace(run.read_result(), **fields))  # type: ignore[arg-type]
    run.digests_file.unlink()


def notes(folder: Path, word: str) -> list[str]:
    comparison = compare_variants(collect(folder))
    return [note for note in comparison.notes if word in note]


def test_data_that_go_by_the_seed_are_told_and_refused_where_a_variant_has_others(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "seeds", states={}, seeds=(1, 2))
    for run in map(RunFolder, sorted(folder.glob("*/seed=2"))):
        changed(run, data="0000000000000000")
        record = run.read_record()
        assert record is not None
        run.write_record(replace(record, recipe="that of other data"))
    assert len(notes(folder, "each seed has data of its own, the same for all variants")) == 1
    assert notes(folder, "not comparable") == []
    study = collect(folder)
    assert "they differ in" not in page(study, compare_variants(study))
    changed(RunFolder(folder / "attention=dot" / "seed=2"), data="1111111111111111")
    assert notes(folder, "each seed has data of its own") == []
    assert len(notes(folder, "not comparable: these runs differ in data")) == 1


def test_what_cannot_be_compared_is_told(tmp_path: Path) -> None:
    study = collect(write_study(tmp_path / "other", states={(variant, 1): "failed" for variant in SKILLS}, seeds=(1,)))
    with pytest.raises(UserError, match="no run below"):
        compare_variants(study)
    with pytest.raises(UserError, match="no run below"):
        collect(tmp_path)
    folder = write_study(tmp_path / "mixed", states={})
    with pytest.raises(UserError, match=f"it is one run itself: name {folder}$"):
        collect(folder / "attention=dot" / "seed=1")
    with pytest.raises(UserError, match=f"it is one variant: name {folder}$"):
        collect(folder / "attention=dot")
    assert notes(folder, "not comparable") == []
    run = RunFolder(folder / "attention=dot" / "seed=1")
    changed(run, data="0000000000000000", code="beef")
    assert notes(folder, "not comparable") == [
        "not comparable: these runs differ in data (0000000000000000, 3f1c9a0be4d27758)",
        "not comparable: these runs differ in code (beef, c0de)",
    ]
    record = run.read_record()
    assert record is not None
    run.write_record(replace(record, recipe="another"))
    assert any("the seeds of dot differ in more than their seed" in note for note in notes(folder, "not comparable"))
    plan = StudyFolder(folder).read_plan()
    assert plan is not None
    StudyFolder(folder).write_plan(replace(plan, metrics=["blue"]))
    with pytest.raises(UserError, match=r"study\.metrics has no 'blue': there is bleu, chrf,"):
        compare_variants(collect(folder))
    StudyFolder(folder).write_plan(replace(plan, baseline="nobody"))
    assert notes(folder, "no differences") == ["no differences: there is no variant nobody, which is to be the baseline"]


def test_values_that_do_not_mean_the_same_are_told_and_none_is_the_best(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "units", states={}, seeds=(1, 2))
    place = folder / "attention=dot" / "seed=2"
    write_run(place, ["attention=dot"], 2, skill=0.85, facts={**FACTS, "tokens": "characters"})
    assert notes(folder, "not comparable") == [
        "not comparable between runs that differ in tokens (characters, whitespace), and so not ranked or tested: perplexity"
    ]
    comparison = compare_variants(collect(folder))
    columns = dict(zip(comparison.header, zip(*comparison.rows, strict=True), strict=True))
    assert not any(cell.best for cell in columns["test perplexity"])
    assert any(cell.best for cell in columns["test BLEU"])
    claims = ["additive > none on test perplexity", "dot is best on test perplexity"]
    ranked = write_study(tmp_path / "ranked", states={}, seeds=(1, 2), columns=["perplexity"], claims=claims)
    assert any(name.endswith("cluster") for name in compare_variants(collect(ranked)).header)
    for seed in (1, 2):
        place = ranked / "attention=dot" / f"seed={seed}"
        write_run(place, ["attention=dot"], seed, skill=0.85, facts={**FACTS, "tokens": "characters"})
    apart = compare_variants(collect(ranked))
    assert not any(name.endswith("cluster") for name in apart.header), "all variants make no order, though some compare"
    assert not any(cell.best for row in apart.rows for cell in row)
    assert [row[0].text for row in apart.rows] == ["none", "dot", "additive"], "the order of the plan"
    delta = {row[0].text: row[apart.header.index("test Δperplexity")].text for row in apart.rows}
    assert delta["dot"] == "not comparable"
    assert delta["additive"].startswith("-")
    assert [verdict.verdict for verdict in apart.verdicts] == ["contradicted", "undecided"]


def test_differences_are_between_the_same_metric_on_the_same_examples(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "apart", states={}, seeds=(1,))
    facts = {"attention=dot": {**FACTS, "tokens": "characters"}, "attention=additive": {**FACTS, "lowercase": True}}
    for override, own in facts.items():
        write_run(folder / override / "seed=1", [override], 1, facts=own)

    def differences() -> dict[str, str]:
        comparison = compare_variants(collect(folder))
        place = comparison.header.index("test ΔBLEU")
        return {row[0].text: row[place].text for row in comparison.rows}

    found = differences()
    assert "(p " in found["dot"], "BLEU is of text, whatever the tokens"
    assert (found["none"], found["additive"]) == ("baseline", "not comparable")
    assert notes(folder, "not comparable") == [
        "not comparable between runs that differ in case (lc, mixed), and so not ranked or tested: BLEU, chrF",
        "not comparable between runs that differ in tokens (characters, whitespace), and so not ranked or tested: perplexity",
    ]
    dot = RunFolder(folder / "attention=dot" / "seed=1")
    write_lines(dot.sources_file("test"), dot.read_sources("test")[::-1])
    assert differences()["dot"] == "not comparable"
    assert any(
        note.startswith("not comparable: not all runs were tested on") for note in notes(folder, "same examples of test;")
    )


def test_a_class_of_the_users_own_makes_no_other_code_of_the_rest(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "own", states={}, seeds=(1, 2))
    for seed in (1, 2):
        run = RunFolder(folder / "attention=dot" / f"seed={seed}")
        run.write_config(run.read_config() | {"attention": {"_target_": "mymodule.Mine"}})
        changed(run, code="c0de+mine")
    assert notes(folder, "not comparable") == []
    study = collect(folder)
    assert "they differ in" not in page(study, compare_variants(study))
    changed(run, code="c0de+later")
    study = collect(folder)
    assert "they differ in code" in page(study, compare_variants(study))
    assert notes(folder, "code") == ["not comparable: these runs differ in code (c0de+later, c0de+mine)"]
    for seed in (1, 2):
        changed(RunFolder(folder / "attention=dot" / f"seed={seed}"), code="new+mine")
    (told,) = notes(folder, "code")
    assert told.startswith("not comparable: these runs differ in code (c0de, new+mine")


def test_results_that_were_kept_although_the_code_changed_are_told(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "kept", states={})
    assert notes(folder, "kept") == []
    for seed in (1, 3):
        run = RunFolder(folder / "attention=dot" / f"seed={seed}")
        record = run.read_record()
        assert record is not None
        run.write_record(replace(record, accepted_code=["older", "newer"]))
    told = ["kept on request (--keep-results) although the code changed since: dot, seed 1, 3"]
    assert notes(folder, "kept") == told


def test_a_metric_that_ranks_and_has_no_value_is_told(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "holes", states={}, seeds=(1, 2))
    for path in folder.glob("*/seed=*"):
        run = RunFolder(path)
        result = run.read_result()
        for test in result.tests.values():
            test["metrics"]["bleu"]["value"] = math.nan
        run.write_result(result)
    assert "no finished run has a value of BLEU on test" in notes(folder, "no finished run")
    assert notes(folder, "no test over seeds") == []
