"""A study of several tasks: what it plans, and the matrix that its report shows."""

import csv
import io
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnlab.config import CONF
from attnlab.errors import UserError
from attnlab.runs.building import load_metrics
from attnlab.runs.folder import RunFolder
from attnlab.studies import collection, matrix
from attnlab.studies.archive import pack, unpack
from attnlab.studies.collection import collect
from attnlab.studies.folder import StudyFolder, StudyPlan
from attnlab.studies.matrix import _order, compare_columns, split_columns
from attnlab.studies.plan import Plan, plan
from attnlab.studies.preview import check_plan
from attnlab.studies.report import report
from attnlab.studies.verdicts import judge_claims
from attnlab.tasks.translation.metrics import BLEU
from studies.folders import write_study
from studies.test_inference import near

ROWS = {"weak": 0.5, "good": 0.9, "better": 0.91}
COLUMNS = {"first": {row: f"first-{row}" for row in ROWS}, "second": {row: f"second-{row}" for row in [*ROWS, "control"]}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two columns of three rows, the second by a metric of which less is better and with a control of its own."""
    skills = {f"variant={name}": ROWS.get(row, 0.7) for rows in COLUMNS.values() for row, name in rows.items()}
    made = write_study(tmp_path_factory.mktemp("runs") / "both", skills=skills, states={}, baseline="weak", columns=None)
    for run in made.glob("variant=second-*/seed=*"):
        own = RunFolder(run)
        own.write_config({**own.read_config(), "study": {"metrics": ["perplexity"]}})
    study = StudyFolder(made)
    before = study.read_plan()
    assert before is not None
    claims = ["second-good < second-weak on test perplexity", "first-weak > first-good on test bleu"]
    study.write_plan(StudyPlan(**{**vars(before), "columns": COLUMNS, "claims": claims}))
    return made


def test_a_column_is_a_study_with_the_metric_of_its_task(folder: Path) -> None:
    first, second = split_columns(collect(folder)).values()
    assert [*first.variants] == [*ROWS]
    assert [*second.variants] == [*ROWS, "control"]
    assert (first.ranking[0], second.ranking[0]) == ("bleu", "perplexity")
    assert (first.baseline, first.name) == ("weak", "both: first")


def test_what_differs_by_an_uncorrected_test_alone_cannot_be_told_from_the_best(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "compare", near)
    assert all(cell.best for row in compare_columns(collect(folder)).rows for cell in row[1:] if cell.value is not None)


def test_the_matrix_marks_what_cannot_be_told_from_the_best_of_each_column(folder: Path) -> None:
    study = collect(folder)
    matrix = compare_columns(study)
    assert matrix.header == ["variant", "first: BLEU", "second: perplexity"]
    rows = {str(row[0].value): row[1:] for row in matrix.rows}
    assert {*rows} == {*ROWS, "control"}
    assert [*rows][-2:] == ["weak", "control"]  # a control of one column comes last, whatever it reached
    for place, name in enumerate(COLUMNS):
        column = {row: cells[place] for row, cells in rows.items()}
        best = "better" if column["better"].shade == 1.0 else "good"
        assert column[best].shade == 1.0
        assert column[best].best
        assert (column["weak"].shade, column["weak"].best) == (0.0, False)
        runs = split_columns(study)[name].variants["weak"]
        metric = ("bleu", "perplexity")[place]
        values = [run.value("test", metric) for run in runs]
        assert column["weak"].value == pytest.approx(sum(value or 0 for value in values) / 3)
    assert rows["control"][0].text == "-"
    shade = rows["control"][1].shade
    assert shade is not None
    assert 0 < shade < 1
    assert [verdict.verdict for verdict in matrix.verdicts] == ["supported", "contradicted"]
    assert any("over all 5 comparisons with the best" in note for note in matrix.notes)


def test_the_best_is_the_best_of_its_column_and_its_metric_is_that_of_the_task(folder: Path, tmp_path: Path) -> None:
    claims = ["second-better is best on test perplexity", "first-weak is best on test bleu"]
    plan = StudyFolder(folder).read_plan()
    assert plan is not None
    shutil.copytree(folder, tmp_path / "both")
    StudyFolder(tmp_path / "both").write_plan(StudyPlan(**{**vars(plan), "claims": claims}))
    study = collect(tmp_path / "both")
    assert study.others(next(label for label in study.variants if "first-weak" in label)) == [
        label for label in study.variants if "first-" in label and "weak" not in label
    ]
    clear, wrong = compare_columns(study).verdicts
    assert (clear.verdict, wrong.verdict) == ("supported", "contradicted")
    assert "second-good" in clear.reason


def test_a_claim_is_judged_by_the_metric_of_its_own_column(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = StudyFolder(folder).read_plan()
    assert plan is not None
    shutil.copytree(folder, tmp_path / "both")
    claims = ["first-weak is best on test bleu", "second-weak is best on test bleu"]
    StudyFolder(tmp_path / "both").write_plan(StudyPlan(**{**vars(plan), "claims": claims}))
    for run in (tmp_path / "both").glob("variant=second-*/seed=*"):
        own = RunFolder(run)
        config = own.read_config()
        own.write_config({**config, "metrics": {**config["metrics"], "bleu": {"_target_": "lower is better"}}})

    def load(nodes: Any, place: Path) -> Any:
        return {
            name: type("Lower", (BLEU,), {"higher_is_better": False})()
            if node["_target_"] == "lower is better"
            else load_metrics({name: node}, place)[name]
            for name, node in nodes.items()
        }

    monkeypatch.setattr(collection, "load_metrics", load)
    assert [verdict.verdict for verdict in judge_claims(collect(tmp_path / "both"))] == ["contradicted", "supported"]


def test_rows_of_equal_values_share_the_mean_of_their_ranks() -> None:
    values = {"one": {"a": 1.0, "b": 1.0, "d": 1.0, "c": 0.0}, "two": {"c": 3.0, "b": 2.0, "d": 1.0, "a": 0.0}}
    columns: Any = {
        name: SimpleNamespace(means=means, has_ranks=True, study=SimpleNamespace(variants=values["one"]))
        for name, means in values.items()
    }
    assert _order(columns, {*"abcd"}) == ["b", "d", "c", "a"]
    columns["one"].means = {"e": 2.0, **values["one"]}
    columns["one"].study.variants = ["e", *values["one"]]
    assert _order(columns, {*"abcde"}) == ["b", "d", "c", "a", "e"], "the last has a value in one column alone"


def test_a_further_axis_makes_more_rows_that_the_best_must_beat(tmp_path: Path) -> None:
    skills = {f"variant=first-{row} model.dropout={rate}": skill - rate for row, skill in ROWS.items() for rate in (0, 0.2)}
    folder = write_study(tmp_path / "more", skills=skills, states={}, baseline=None, columns=None)
    study = StudyFolder(folder)
    before = study.read_plan()
    assert before is not None
    study.write_plan(StudyPlan(**{**vars(before), "columns": {"first": COLUMNS["first"]}}))
    found = collect(folder)
    assert len(found.variants) == 6
    for label in found.variants:
        assert found.others(label) == [other for other in found.variants if other != label]
    for run in [*folder.glob("*first-weak"), *folder.glob("*first-better")]:
        shutil.rmtree(run)
    study.plan_file.unlink()
    study.write_plan(StudyPlan(**{**vars(before), "columns": {"first": COLUMNS["first"]}, "runs": []}))
    assert [*split_columns(collect(folder))["first"].variants] == ["good model.dropout=0", "good model.dropout=0.2"]


def test_what_does_not_compare_has_no_best_no_shade_and_no_rank(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "both")
    for run in (tmp_path / "both").glob("variant=first-weak/seed=*"):
        own = RunFolder(run)
        result = own.read_result()
        for tested in result.tests.values():
            tested["metrics"]["bleu"]["signature"] = "other"
        own.write_result(result)
    matrix = compare_columns(collect(tmp_path / "both"))
    for row in matrix.rows:
        assert (row[1].best, row[1].shade) == (False, None)
    assert any("first: BLEU" in note and "not comparable, and so not ranked" in note for note in map(str, matrix.notes))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "claim", ["lags-additive > lags-none on test exact", "lags-additive is best on test exact"], ids=["above", "best"]
)
def test_a_claim_about_what_a_column_does_not_measure_is_refused(
    claim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    columns = "columns: {copying: [task=diagnostics], lags: [task=forecasting]}"
    variants = "variants: {none: [attention=none], additive: [attention=additive]}"
    with pytest.raises(UserError, match="no metric 'exact'"):
        check_plan(planned(tmp_path, f"{columns}, {variants}, claims: ['{claim}']"))


def test_what_keeps_a_column_from_comparing_is_told_beside_the_matrix(folder: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(folder, tmp_path / "doubtful"))
    shutil.rmtree(own / "variant=first-good" / "seed=2")
    run = RunFolder(own / "variant=second-good" / "seed=1")
    run.write_result(replace(run.read_result(), data="others", code="other"))
    notes = compare_columns(collect(own)).notes
    assert any(note.startswith("first: 1 of ") and "runs are to come" in note for note in notes)
    for kind in ("data", "code"):
        assert any(note.startswith(f"second: not comparable: these runs differ in {kind} (") for note in notes)


def test_a_row_that_was_not_tested_is_named(tmp_path: Path) -> None:
    skills = {f"variant=only-{row}": skill for row, skill in ROWS.items()}
    states = {("variant=only-weak", seed): "missing" for seed in (2, 3)}
    folder = write_study(tmp_path / "begun", skills=skills, states=states, baseline=None, columns=None)  # type: ignore[arg-type]
    study = StudyFolder(folder)
    before = study.read_plan()
    assert before is not None
    study.write_plan(StudyPlan(**{**vars(before), "columns": {"only": {row: f"only-{row}" for row in ROWS}}}))
    notes = compare_columns(collect(folder)).notes
    assert "neither bold nor found to be worse, since not tested: weak in only (one seed)" in notes


def test_the_report_has_a_page_and_tables_for_all_and_for_each_column(folder: Path) -> None:
    study, comparison = report(folder)
    assert comparison is not None
    page = study.folder.page_file.read_text(encoding="utf-8")
    assert page.count('class="shaded"') == 7
    for name in COLUMNS:
        assert f'href="report-{name}.html"' in page
        own = study.folder.column_page_file(name).read_text(encoding="utf-8")
        assert f"<h1>both: {name}</h1>" in own
        assert 'id="curves"' in own
        assert f"# both: {name}" in study.folder.table_file("md", name).read_text(encoding="utf-8")
    assert 'id="curves"' not in page
    header = next(csv.reader(io.StringIO(study.folder.table_file("csv").read_text(encoding="utf-8"))))
    assert header[:2] == ["variant", "first: BLEU"]


def test_a_column_that_is_no_more_leaves_no_report(folder: Path, tmp_path: Path) -> None:
    own = shutil.copytree(folder, tmp_path / "one")
    report(own)
    mine = own / "comparison-mine.md"
    mine.touch()
    copy = shutil.copyfile(own / "report.html", own / "report-snapshot.html")
    study = StudyFolder(own)
    before = study.read_plan()
    assert before is not None
    study.write_plan(StudyPlan(**{**vars(before), "columns": {"first": COLUMNS["first"]}, "claims": []}))
    report(own)
    left = {path.name for path in own.iterdir() if path.is_file()}
    assert {name for name in left if "second" in name} == set()
    assert {"report-first.html", "comparison-first.md", mine.name, copy.name} <= left


def test_a_matrix_survives_being_packed(folder: Path, tmp_path: Path) -> None:
    for run in StudyFolder(folder).runs:
        run.write_digests()
    pack(StudyFolder(folder), tmp_path / "both.tar.xz")
    unpacked = unpack(tmp_path / "both.tar.xz", tmp_path / "elsewhere")
    assert compare_columns(collect(unpacked.study.path)).markdown() == compare_columns(collect(folder)).markdown()


STUDY = """
defaults: [train, _self_]
name: mine
study: {%s}
hydra: {sweeper: {params: {seed: "1,2"}}}
"""
TASKS = "columns: {text: [task=translation], copy: [task=diagnostics, data=copy]}"


def planned(folder: Path, study: str, *overrides: str) -> Plan:
    (folder / "mine.yaml").write_text(STUDY % study)
    return plan(folder, "mine", overrides, [CONF], command=["attnlab", "study", "mine"])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("variant", "claim", "told"),
    [
        ("lags-none", "copying-additive > copying-none on test exact", ""),
        ("lags-none", "lags-additive < lags-none on test mse", ""),
        ("copying-none", "copying-additive < copying-none on test mse", "no metric 'mse'"),
        (
            "lags-none,copying-none decoder=luong,bahdanau",
            "variant=copying-additive decoder=luong > variant=copying-none decoder=luong on test exact",
            "",
        ),
    ],
    ids=["other column", "other variant", "not measured", "with a further axis"],
)
def test_a_part_of_a_study_keeps_claims_about_the_rest(
    variant: str, claim: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    columns = "columns: {copying: [task=diagnostics], lags: [task=forecasting]}"
    variants = "variants: {none: [attention=none], additive: [attention=additive]}"
    study = planned(tmp_path, f"{columns}, {variants}, claims: ['{claim}']", *f"variant={variant}".split())
    with pytest.raises(UserError, match=told) if told else nullcontext():
        check_plan(study)


def test_every_variant_is_planned_in_every_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    controls = "controls: {copy: {slow: [attention=dot, optimizer.lr=1e-4]}}"
    study = planned(
        tmp_path, f"{TASKS}, variants: {{none: [attention=none], dot: [attention=dot]}}, {controls}, baseline: none"
    )
    names = ["text-none", "text-dot", "copy-none", "copy-dot", "copy-slow"]
    assert [run.folder for run in study.runs] == [f"variant={name}/seed={seed}" for seed in (1, 2) for name in names]
    config = study.config(study.runs[4])
    assert config["task"]["_target_"].endswith(".Diagnostics")
    assert (config["study"]["metrics"][0], config["optimizer"]["lr"]) == ("exact", 1e-4)
    study.save()
    saved = study.folder.read_plan()
    assert saved is not None
    assert saved.columns == {
        "text": {"none": "text-none", "dot": "text-dot"},
        "copy": {"none": "copy-none", "dot": "copy-dot", "slow": "copy-slow"},
    }
    (kept,) = planned(tmp_path, f"{TASKS}, variants: {{none: [attention=none]}}", "variant=copy-none", "seed=1").runs
    assert kept.folder == "variant=copy-none/seed=1"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("study", "told"),
    [
        (TASKS, r"name these in study\.variants"),
        ("columns: [task=pointing], variants: {a: []}", r"study\.columns names each with a list"),
        (f"{TASKS}, variants: {{a: []}}, baseline: b", r"study\.baseline: no variant 'b': the variants are a"),
        (f"{TASKS}, variants: {{a: []}}, baseline: [b]", r"study\.baseline: no variant"),
        (f"{TASKS}, variants: {{a: []}}, controls: {{cop: {{b: []}}}}", r"study\.controls: .*'cop': did you mean 'copy'\?"),
        (
            f"{TASKS}, variants: {{a: []}}, match: {{parameters: 9, key: seed}}",
            r"study\.match .* study\.columns",
        ),
        (
            f"{TASKS}, variants: {{a: []}}, tune: {{metric: bleu, keys: {{optimizer.lr: [1e-3]}}}}",
            r"study\.tune\.metric is one task's, .* by the metric that its task monitors",
        ),
        (f"{TASKS}, variants: {{a: []}}, metrics: [loss]", r"study\.metrics .* study\.columns"),
        (f"{TASKS}, variants: {{a: []}}, claims: [copy-a < text-a on test mse]", "are two columns, which are not compared"),
        ("columns: {a: [], a-b: []}, variants: {b-c: [], c: []}", "two variants would have one name"),
        (f"{TASKS}, variants: {{a: []}}, controls: {{copy: {{a: [attention=none]}}}}", "copy: a is a variant of all columns"),
    ],
)
def test_columns_that_make_no_matrix_are_refused(
    study: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=told):
        planned(tmp_path, study)


@pytest.mark.exhaustive
def test_two_columns_are_not_compared_at_one_value_of_a_further_axis_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    claim = "variant=copy-a model.dropout=0 < variant=text-a model.dropout=0 on test loss"
    (tmp_path / "mine.yaml").write_text(
        f"defaults: [train, _self_]\nname: mine\nstudy: {{{TASKS}, variants: {{a: []}}, claims: ['{claim}']}}\n"
        "hydra: {sweeper: {params: {model.dropout: '0,0.1'}}}\n"
    )
    with pytest.raises(UserError, match="copy and text are two columns, which are not compared"):
        plan(tmp_path, "mine", [], [CONF], command=["attnlab", "study", "mine"])


def test_a_row_has_its_way_where_a_column_says_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    columns = "columns: {one: [decoder=bahdanau, model.dropout=0.1], two: [data.seed=7]}"
    rows = "variants: {x: [decoder=luong_feeding, model.dropout=0.3], y: [attention=dot]}"
    study = planned(tmp_path, f"{columns}, {rows}", "seed=1")
    made = {run.folder.partition("/")[0]: study.config(run) for run in study.runs}
    decoders = {name: config["decoder"]["_target_"].rpartition(".")[2] for name, config in made.items()}
    assert decoders["variant=one-x"] == decoders["variant=two-x"] != decoders["variant=one-y"]
    dropouts = [made[f"variant=one-{row}"]["model"]["dropout"] for row in "xy"]
    assert dropouts == [0.3, 0.1]
