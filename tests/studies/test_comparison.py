"""The table of a study, in every form."""

import csv
import io
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import wandb

from attnlab.config import trust
from attnlab.errors import UserError
from attnlab.evaluation.metric import PERCENT
from attnlab.evaluation.significance.difference import Difference, Part
from attnlab.runs.folder import RunFolder, State
from attnlab.studies.collection import Study, collect
from attnlab.studies.comparison import _difference, column, compare_variants
from attnlab.studies.contrasts import Contrast
from attnlab.studies.cost import COSTS
from attnlab.studies.inference import TOLD
from attnlab.studies.names import Significance
from attnlab.studies.notes import _of_spreads
from attnlab.studies.page import page
from attnlab.studies.page.charts import costs
from attnlab.studies.publish import publish
from attnlab.studies.report import report
from attnlab.studies.results import Results
from attnlab.studies.table import Cell, Comparison, Note
from attnlab.terminal import Terminal
from studies.folders import METRICS, write_study


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


def test_of_many_runs_to_come_a_few_are_named(tmp_path: Path) -> None:
    skills = {"attention=none": 0.5, "attention=dot": 0.8}
    to_come: dict[tuple[str, int], State] = {(asked, seed): "missing" for asked in skills for seed in range(2, 8)}
    study = collect(write_study(tmp_path / "study", skills=skills, seeds=range(1, 8), states=to_come))
    assert study.pending == [*(f"missing: attention=none/seed={seed}" for seed in range(2, 7)), "missing: 7 more"]
    comparison = compare_variants(study)
    assert "missing: 7 more" in comparison.markdown()
    html = page(study, None)
    assert "<code>7 more</code>" in html
    assert "seed=6</code>" in html
    assert "<li>missing: 7 more</li>" in Results(study, comparison, [])._repr_html_()


def test_an_interval_goes_no_further_than_the_metric() -> None:
    seeds: Any = {"a": [99.0, 100.0, 100.0]}

    def read(value: Any) -> float:
        return float(value)

    free = column("exact", seeds, read, form="{:.1f}", spread=True).cells["a"]
    cell = column("exact", seeds, read, form="{:.1f}", spread=True, limits=PERCENT).cells["a"]
    assert free.more["high"] > 101
    assert (cell.more["high"], cell.more["low"]) == (100.0, free.more["low"])
    assert cell.text == "99.7 ± 0.6 [98.2, 100.0]"
    least = column("exact", {"a": [0.0, 0.0, 1.0]}, read, form="{:.1f}", spread=True, limits=PERCENT).cells["a"]  # type: ignore[dict-item]
    assert least.more["low"] == 0.0


def test_the_interval_is_students() -> None:
    seeds: Any = {"a": [1.0, 2.0, 3.0]}
    found = column("loss", seeds, lambda value: float(value), form="{:.1f}", spread=True).cells["a"].more  # type: ignore[arg-type]
    half = 4.302652729911275 / 3**0.5
    assert (found["low"], found["high"]) == pytest.approx((2 - half, 2 + half))


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


@pytest.mark.few(2)
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


def test_notes_take_the_width_of_the_terminal_and_not_of_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    note = "a note that is longer than the table which it stands below, by far"
    Terminal().print(Comparison("t", ["variant"], [[Cell("a", "a")]], [Note(note)], [], [0]).rich(80))
    assert note in capsys.readouterr().out.splitlines()


def test_a_long_name_leaves_room_for_figures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    overrides = [f"data.test_{size}_size={size}" for size in range(10)]
    name = " ".join(overrides)
    table = Comparison("long", ["variant", "BLEU"], [[Cell(name, name), Cell("31.4", 31.4)]], [], [], [0, 1])
    Terminal().print(table.rich(80))
    shown = capsys.readouterr().out.split()
    assert {*overrides, "31.4"} <= {*shown}


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


def test_a_narrow_table_shows_all_of_few_metrics(tmp_path: Path) -> None:
    study = collect(write_study(tmp_path / "few", columns=["bleu", "exact"], states={}))
    comparison = compare_variants(study)
    assert "test exact match" in [comparison.header[place] for place in comparison.brief]


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
        assert cells["dot"] == pytest.approx(mean(cost.read(run.result) for run in study.finished_variants["dot"]))


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
    result.tests["test"]["metrics"]["gone"] = {"value": 1.0, "signature": ""}
    run.write_result(result)
    with pytest.raises(UserError, match=r"own builds nowhere\.Gone, which is no component of attnlab"):
        report(folder)
    told = r"own cannot be opened .*nowhere\.Gone.*PYTHONPATH=FOLDER"
    with trust(None), pytest.raises(UserError, match=told):
        report(folder)
    with trust(None), pytest.raises(UserError, match=told):
        collect(folder).find_metric("gone")  # as a tuning that is judged by it does, before the report


@pytest.mark.parametrize("significance", ["seeds", "models"])
def test_without_a_baseline_it_is_told_which_test_the_clusters_are_of(significance: Significance, tmp_path: Path) -> None:
    folder = write_study(tmp_path / "clusters", states={}, baseline=None, significance=significance)
    notes = [str(note) for note in compare_variants(collect(folder)).notes]
    assert any(note.startswith(f"cluster: {TOLD[significance].partition('{')[0]}3 seeds a variant") for note in notes)


@pytest.mark.parametrize(("p", "shown"), [(0.0504, "0.0504"), (0.04996, "0.04996"), (0.0312, "0.031"), (1e-5, "< 0.001")])
def test_p_is_printed_so_that_its_side_of_the_level_shows(p: float, shown: str) -> None:
    contrast = Contrast(Difference(1.0, (Part(1.0, 4.0),)), p, (3, 3), (np.zeros(3), np.ones(3)))
    assert _difference(contrast, p, 1).text.endswith(f"(p {shown})")


def test_a_study_is_what_its_plan_says(folder: Path) -> None:
    study = collect(folder)
    assert (study.axis, study.baseline, study.count("done"), study.count("failed")) == ("attention", "none", 7, 1)
    assert study.plan.question.startswith("What does <attention>")


@pytest.mark.parametrize(("scores", "count"), [([1.0, 1.0, 1.0], 0), ([1.0, 1.1, 1.2], 1)])
def test_variants_that_do_not_vary_at_all_are_not_said_to_spread_unlike(scores: list[float], count: int) -> None:
    contrast = Contrast(Difference(1.0, (Part(0.0, 4.0),)), 0.001, (3, 3), (np.zeros(3), np.array(scores)))
    place = ("test", "dot")
    inference: Any = SimpleNamespace(significance="seeds", corrected={place: 0.001}, against={place: contrast})
    assert len([*_of_spreads(inference)]) == count


@pytest.mark.few(1)
@pytest.mark.parametrize(("seeds", "perfect", "told"), [(3, 3, True), (10, 3, True), (10, 10, False)])
def test_stars_of_few_seeds_that_spread_unlike_are_named(seeds: int, perfect: int, told: bool, tmp_path: Path) -> None:
    """Of one variant every seed has all words right, whose mean therefore has no interval."""
    skills = {"attention=none": 0.4, "attention=additive": 0.8, "attention=dot": 1.0}
    states: dict[tuple[str, int], State] = {("attention=dot", seed): "missing" for seed in range(perfect + 1, seeds + 1)}
    folder = write_study(tmp_path / "unlike", skills=skills, seeds=range(1, seeds + 1), states=states)
    comparison = compare_variants(collect(folder))
    place = comparison.header.index("test BLEU")
    texts = {row[0].text: row[place].text for row in comparison.rows}
    assert texts["dot"] == "100.00 ± 0.00"
    assert texts["additive"].endswith("]")
    notes = [str(note) for note in comparison.notes]
    found = [note for note in notes if "5 times as far apart" in note]
    assert len(found) == told
    assert all("dot on test" in note and "additive" not in note for note in found)
