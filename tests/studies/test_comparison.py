"""The table of a study, in every form."""

import csv
import io
import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
import wandb

from attnlab.config import trust
from attnlab.errors import UserError
from attnlab.evaluation.metric import PERCENT
from attnlab.runs.files import write_lines
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import Study, collect
from attnlab.studies.comparison import column, compare_variants, student_interval
from attnlab.studies.cost import COSTS
from attnlab.studies.folder import StudyFolder
from attnlab.studies.launch import describe_progress
from attnlab.studies.page import page
from attnlab.studies.page.charts import costs
from attnlab.studies.publish import publish
from attnlab.studies.report import report
from attnlab.studies.table import Cell, Comparison, Note
from attnlab.terminal import Terminal
from studies.folders import FACTS, METRICS, SKILLS, write_run, write_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("runs") / "demo_&_more")


@pytest.fixture(scope="module")
def comparison(folder: Path) -> Comparison:
    return compare_variants(collect(folder))


def numbers(folder: Path, variant: str, test: str) -> list[float]:
    paths = sorted(folder.glob(f"attention={variant}/*/result.json"))
    return [json.loads(path.read_text())["tests"][test]["metrics"]["bleu"]["value"] for path in paths]


def test_a_row_is_a_variant_over_its_seeds_the_best_first_and_holes_are_shown(comparison: Comparison, folder: Path) -> None:
    assert [row[0].text for row in comparison.rows] == ["additive", "dot", "none"]
    columns = dict(zip(comparison.header, zip(*comparison.rows, strict=True), strict=True))
    assert [cell.text for cell in columns["seeds"]] == ["2 of 3", "2 of 3", "3"]
    for test in ("test", "test_long"):
        for row, variant in enumerate(["additive", "dot", "none"]):
            values = numbers(folder, variant, test)
            cell = columns[f"{test} BLEU"][row]
            assert cell.value == pytest.approx(mean(values))
            assert cell.more["sd"] == pytest.approx(stdev(values))
            assert cell.best == (variant == "additive")
    assert [cell.best for cell in columns["test perplexity"]] == [True, False, False]
    assert [cell.value for cell in columns["test AER"]][2] is None
    assert sorted(comparison.pending) == ["failed: attention=dot/seed=2", "missing: attention=additive/seed=3"]


def test_an_interval_goes_no_further_than_the_metric() -> None:
    seeds: Any = {"a": [99.0, 100.0, 100.0]}

    def read(value: Any) -> float:
        return float(value)

    free = column("exact", seeds, read, form="{:.1f}", spread=True).cells["a"]
    cell = column("exact", seeds, read, form="{:.1f}", spread=True, limits=PERCENT).cells["a"]
    assert free.more["high"] > 101
    assert (cell.more["high"], cell.more["low"]) == (100.0, free.more["low"])
    assert cell.text == "99.7 ± 0.6 [98.2, 100.0]"


def test_the_interval_is_students() -> None:
    low, high = student_interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 4.302652729911275 / 3**0.5, 2 + 4.302652729911275 / 3**0.5))


def test_csv_holds_plain_numbers_to_the_last_digit(comparison: Comparison, folder: Path) -> None:
    rows = {row["attention"]: row for row in csv.DictReader(io.StringIO(comparison.csv()))}
    assert float(rows["dot"]["test BLEU"]) == mean(numbers(folder, "dot", "test"))
    assert float(rows["dot"]["test BLEU sd"]) == stdev(numbers(folder, "dot", "test"))
    assert rows["none"]["test AER"] == ""
    assert 0 < float(rows["dot"]["test ΔBLEU p"]) <= 1


def test_markdown_keeps_its_columns_whatever_a_variant_is_called(tmp_path: Path) -> None:
    study = collect(
        write_study(tmp_path / "pipes", skills={"attention=a|b": 0.5, "attention=c\\d": 0.6}, states={}, baseline=None)
    )
    lines = [line for line in compare_variants(study).markdown().splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert any("**" in line for line in lines)
    assert "ΔBLEU" not in lines[0]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed (texlive-latex-recommended)")
def test_latex_compiles(tmp_path: Path) -> None:
    nasty = {"attention=none": 0.5, "attention=a_b,c={d}&50%#$~^\\x<y>": 0.8}
    table = compare_variants(collect(write_study(tmp_path / "x_&_y", skills=nasty, states={}))).latex()
    document = "\\documentclass{article}\\usepackage{booktabs}\\usepackage[T1]{fontenc}\\begin{document}\n" + table
    (tmp_path / "table.tex").write_text(document + "\\end{document}\n")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "\\textbf{" in table


def test_whatever_a_variant_is_called_does_nothing_where_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FORCE_COLOR", "1")
    names = ["=1+1", "@sum", "+a", "-b", "\tc", "<img src=x>", "&lt;", "[/b]", "\x1b]0;owned\x07\x9b", "two\nlines"]
    cells = [[Cell(name, name, best=name == "[/b]")] for name in names]
    table = Comparison("a\nb\x1b[2J", ["=key[/i]"], cells, [Note("note\nmore")], ["<b>[/u]"], [0])
    written = [row[0] for row in csv.reader(io.StringIO(table.csv()))]
    assert written == ["'=key[/i]", "'=1+1", "'@sum", "'+a", "'-b", "'\tc", *names[5:]]
    assert "\n| \\<img src=x> |\n| \\&lt; |\n" in table.markdown()
    assert "- \\<b>[/u]" in table.markdown()
    assert table.latex().splitlines()[1] == "\\begin{tabular}{l}"
    assert "% note more\n" in table.latex()
    assert "two lines" in table.latex()
    Terminal().print(table.rich(200))
    shown = capsys.readouterr().out
    for text in ("[/b]", "=key[/i]", "<b>[/u]", "\\x1b]0;owned\\x07\\x9b", "\\x1b[2J"):
        assert text in shown
    assert not set("\x07\x9b") & set(shown)
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize("width", [50, 64, 80, 120, 200])
def test_a_terminal_shows_the_columns_that_fit_and_cuts_no_figure(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    skills = {f"attention={name}": skill for name, skill in (("additive_normalized", 0.9), ("none", 0.4), ("dot", 0.8))}
    comparison = compare_variants(collect(write_study(tmp_path / "wide", skills=skills, seeds=(1, 2, 3))))
    Terminal().print(comparison.rich(width))
    table, _, notes = capsys.readouterr().out.partition("BLEU: ")
    lines = table.splitlines()
    assert "…" not in table
    assert max(len(line.rstrip()) for line in lines) <= width
    for row in comparison.rows:
        (found,) = (line.split() for line in lines if line.split()[:1] == [row[0].text])
        assert {row[i].brief.split()[0] for i in comparison.brief[:3]} <= {*found}
    assert "ΔBLEU: difference to" in notes
    assert "P(A > B): probability" not in notes  # a column that a terminal never shows
    assert "P(A > B): probability" in comparison.markdown()
    assert ("wider terminal" in table) is (width < 120)


def test_a_long_name_leaves_room_for_figures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    overrides = [f"data.test_{size}_size={size}" for size in range(10)]
    name = " ".join(overrides)
    table = Comparison("long", ["variant", "BLEU"], [[Cell(name, name), Cell("31.4", 31.4)]], [], [], [0, 1])
    Terminal().print(table.rich(80))
    shown = capsys.readouterr().out.split()
    assert {*overrides, "31.4"} <= {*shown}


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


def test_costs_that_older_runs_do_not_know_are_holes(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "older", states={}, seeds=(1,))
    for number, run in enumerate(map(RunFolder, sorted(folder.glob("*/seed=1")))):
        content = json.loads(run.result_file.read_text())
        for name in ("peak_gpu_memory", "multiply_adds", "peak_memory") if number == 0 else ("peak_gpu_memory",):
            del content[name]
        run.result_file.write_text(json.dumps(content))
    table = compare_variants(collect(folder))
    assert "GPU MiB" not in table.header
    assert not any("GPU" in note for note in table.notes)
    column = {row[0].text: row[table.header.index("MiB")].text for row in table.rows}
    assert column == {"additive": "-", "dot": "500", "none": "500"}
    charts = {chart.name: chart.series for chart in costs(collect(folder))}
    assert [series.variant for series in charts["peak memory (MiB)"]] == ["none", "dot"]


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


def test_tables_go_when_there_is_nothing_to_compare_any_more(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "gone", states={}, seeds=(1,))
    report(folder)
    tables = [folder / name for name in ("comparison.md", "comparison.csv", "comparison.tex", "runs.csv")]
    assert all(path.is_file() for path in tables)
    for run in folder.glob("*/seed=1"):
        RunFolder(run).result_file.unlink()
    assert report(folder)[1] is None
    assert not any(path.exists() for path in tables)
    assert (folder / "report.html").is_file()


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


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.yaml", "a: [1"),
        ("config.yaml", ""),
        ("metrics.jsonl", '{"epoch": 0}\n{"step'),
        ("attention.json", "[1]"),
        ("environment.json", "{"),
        ("statistics/test.npz", "no archive"),
        ("result.json", "{"),
        ("hypotheses/test.txt", "\udcff"),
    ],
)
def test_a_run_with_a_damaged_file_is_a_row_that_says_so(name: str, content: str, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "damaged", seeds=(1, 2), states={})
    path = folder / "attention=dot" / "seed=1" / name
    path.write_text(content, errors="surrogateescape")
    study, comparison = report(folder)
    assert comparison is not None
    (told,) = comparison.pending
    assert told.startswith("damaged: attention=dot/seed=1 (")
    assert path.name in told
    assert "\n" not in told
    rows = {row[0].text: row[1].text for row in comparison.rows}
    assert rows == {"additive": "2", "none": "2", "dot": "1 of 2"}
    assert path.name in study.folder.page_file.read_text(encoding="utf-8")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["weights.safetensors", "result.json", "metrics.jsonl", "texts/test.target.txt"])
def test_a_run_with_a_file_that_it_did_not_write_is_damaged(name: str, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "altered", seeds=(1,), states={})
    run = RunFolder(folder / "attention=dot" / "seed=1")
    run.weights_file.write_bytes(b"weights")
    run.write_digests()
    assert report(folder)[0].count("done") == 3
    path = run.path / name
    path.write_bytes(path.read_bytes().replace(b"w", b"v").replace(b"1", b"2"))
    _, comparison = report(folder)
    assert comparison is not None
    assert comparison.pending == [f"damaged: attention=dot/seed=1 ({path} is not what the run wrote: start the run again)"]


def test_a_run_whose_own_files_are_damaged_is_one_that_the_study_makes_again(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "damaged", seeds=(1, 2), states={})
    run = folder / "attention=dot" / "seed=1"
    (run / "result.json").write_text("{")
    assert collect(folder).count("interrupted") == 1
    (run / "run.json").write_text("{")
    assert collect(folder).count("interrupted") == 1, "the plan knows what it is"
    (folder / "study.json").unlink()
    study, comparison = report(folder)
    assert comparison is not None
    assert "run.json is damaged, or another version wrote it" in comparison.pending[0]
    assert [run.state for run in study.variants["dot"]] == ["damaged", "done"]
    (run / "run.json").unlink()
    _, comparison = report(folder)
    assert comparison is not None
    assert "run.json is gone" in comparison.pending[0]
    assert describe_progress(folder).startswith("5 of 6 done, 1 damaged")
    (folder / "study.json").write_text("{")
    assert "study.json is damaged" in describe_progress(folder)


@pytest.mark.parametrize("content", ["{", "[]", '{"question": 3}', '{"runs": [{"folder": "x"}]}'])
def test_a_damaged_plan_is_told_in_one_line(content: str, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "damaged", seeds=(1,), states={})
    plan = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**plan, **json.loads(content)}) if "runs" in content else content)
    with pytest.raises(UserError, match=r"study.json is damaged \(.*\): delete it, and start the study again"):
        collect(folder)


def test_columns_are_what_the_study_asks_for_or_else_the_task(tmp_path: Path) -> None:
    asked = compare_variants(collect(write_study(tmp_path / "asked", columns=["aer", "entropy"], seeds=(1,), states={})))
    costs = [cost.label for cost in COSTS]
    aer = [f"{test} {name}" for test in ("test", "test_long") for name in ("AER", "cluster")]
    entropy = ["test entropy", "test_long entropy"]
    assert asked.header == ["attention", "seeds", *aer, *entropy, *costs]
    assert [row[0].text for row in asked.rows] == ["additive", "dot", "none"], "the lowest first"
    best = {name: [row[0].text for row in asked.rows if row[place].best] for place, name in enumerate(asked.header)}
    assert best["test AER"] == ["additive"]
    assert best["test entropy"] == [], "neither way is better"
    assert "AER: %, lower is better" in asked.notes
    task = compare_variants(collect(write_study(tmp_path / "task", columns=None, seeds=(1,), states={}, baseline=None)))
    assert [name for name in task.header[2:8] if "cluster" not in name] == [
        "test BLEU",
        "test_long BLEU",
        "test AER",
        "test_long AER",
    ]


def test_a_narrow_table_shows_the_ranking_metric_and_one_of_each_kind(comparison: Comparison) -> None:
    shown = [comparison.header[place] for place in comparison.brief]
    assert shown == [
        "attention",
        "seeds",
        "test BLEU",
        "test ΔBLEU",
        "test cluster",
        "test_long BLEU",
        "test AER",
        "test perplexity",
        "seconds",
    ]


def test_costs_are_declared_once_for_table_and_page(folder: Path, comparison: Comparison) -> None:
    study = collect(folder)
    assert comparison.header[-len(COSTS) :] == [cost.label for cost in COSTS]
    text = page(study, comparison)
    for cost in COSTS:
        assert json.dumps(cost.title) in text
        assert not cost.note or any(cost.note in note for note in comparison.notes)
        cells = {row[0].text: row[comparison.header.index(cost.label)].value for row in comparison.rows}
        assert cells["dot"] == pytest.approx(mean(cost.read(run.result) for run in study.done()["dot"]))


MINE = """\
from attnlab.evaluation.metric import Ratio
from attnlab.evaluation.metrics import statistics_of


class Brevity(Ratio):
    label = "words"
    unit = "words an example"
    higher_is_better = False
    digits = 1

    def statistics(self, evidence):
        return statistics_of(evidence.predictions, lambda found: (len(found.text.split()), 1))

    def signature(self, facts):
        return "split:space"
"""


@pytest.fixture
def own_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    """A study that ranks by a metric from outside the package."""
    (tmp_path / "brevity.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    declared = {**METRICS, "words": {"_target_": "brevity.Brevity"}}
    logger = {"_target_": "attnlab.training.loggers.wandb_logger", "project": "p", "entity": None, "mode": "offline"}
    study = write_study(tmp_path / "own", columns=["words", "bleu"], seeds=(1, 2), states={}, metrics=declared, logger=logger)
    with trust(["brevity.Brevity"]):
        yield collect(study)


def test_a_metric_from_outside_the_package_is_in_table_page_csv_and_at_wandb(
    own_metric: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compare_variants(own_metric)
    assert {"test words", "test Δwords", "test_long words"} <= set(comparison.header)
    assert "words: words an example, lower is better, split:space" in comparison.notes
    row = next(csv.DictReader(io.StringIO(comparison.csv())))
    assert float(row["test words"]) == mean(
        run.result.tests["test"]["metrics"]["words"]["value"] for run in own_metric.variants[row["attention"]]
    )
    assert "test words" in comparison.markdown()
    html = page(own_metric, comparison)
    assert '<button type="button">test words</button>' in html
    assert '"name":"test words","x":"source words","y":"words (words an example)"' in html
    assert '"y":"test words (words an example)"' in html, "against costs"
    logged: dict[str, object] = {}

    class Logged:
        def finish(self, exit_code: int) -> None:
            assert exit_code == 0

        def log(self, content: dict[str, object]) -> None:
            logged.update(content)

    monkeypatch.setattr(wandb, "init", lambda **_: Logged())
    assert publish(own_metric, comparison)
    table = logged["comparison"]
    assert isinstance(table, wandb.Table)
    assert table.columns == comparison.header
    assert {"curves", "test by length", "test_long by length"} <= set(logged)


def test_a_metric_whose_module_is_gone_is_told(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "own", states={}, seeds=(1,))
    run = RunFolder(folder / "attention=dot" / "seed=1")
    run.write_config(run.read_config() | {"metrics": {**METRICS, "gone": {"_target_": "nowhere.Gone"}}})
    result = run.read_result()
    result.tests["test"]["metrics"]["gone"] = {"value": 1.0}
    run.write_result(result)
    with pytest.raises(UserError, match=r"own builds nowhere\.Gone, which is no component of attnlab"):
        report(folder)
    with trust(None), pytest.raises(UserError, match=r"own cannot be opened .*nowhere\.Gone.*PYTHONPATH=FOLDER"):
        report(folder)


def test_a_study_is_what_its_plan_says(folder: Path) -> None:
    study = collect(folder)
    assert (study.axis, study.baseline, study.count("done"), study.count("failed")) == ("attention", "none", 7, 1)
    assert study.plan.question.startswith("What does <attention>")
