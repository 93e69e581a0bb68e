"""The table of a study, in every form."""

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path
from statistics import mean, stdev

import pytest

from attnlab.errors import UserError
from attnlab.evaluation import significance
from attnlab.studies.collection import collect
from attnlab.studies.comparison import Comparison, compare, interval
from studies.folders import SKILLS, write_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("runs") / "demo_&_more")


@pytest.fixture(scope="module")
def comparison(folder: Path) -> Comparison:
    return compare(collect(folder), samples=200)


def numbers(folder: Path, variant: str, test: str) -> list[float]:
    paths = sorted(folder.glob(f"attention={variant}/*/result.json"))
    return [json.loads(path.read_text())["tests"][test]["bleu"]["value"] for path in paths]


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


def test_the_interval_is_students() -> None:
    low, high = interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 4.302652729911275 / 3**0.5, 2 + 4.302652729911275 / 3**0.5))


def test_differences_are_over_the_seeds_in_common_and_corrected_for_all_variants(comparison: Comparison, folder: Path) -> None:
    cells = {row[0].text: row[comparison.header.index("test ΔBLEU")] for row in comparison.rows}
    assert cells["none"].text == "baseline"
    seeds = {"additive": (1, 2), "dot": (1, 3)}
    raw = {}
    for variant, common in seeds.items():
        read = [(folder / f"attention={v}" / f"seed={s}") for v in ("none", variant) for s in common]
        lines = [(run / "hypotheses" / "test.txt").read_text().splitlines() for run in read]
        references = (read[0] / "texts" / "test.target.txt").read_text().splitlines() * 2
        (found,) = significance.compare(lines[0] + lines[1], {"x": lines[2] + lines[3]}, references, samples=200).values()
        raw[variant] = found.p
        values = [numbers(folder, v, "test") for v in ("none", variant)]
        baseline = mean(values[0][seed - 1] for seed in common)
        assert cells[variant].value == pytest.approx(mean(values[1]) - baseline)
    assert {variant: cells[variant].more["p"] for variant in seeds} == significance.holm(raw)


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
    lines = [line for line in compare(study).markdown().splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert any("**" in line for line in lines)
    assert "ΔBLEU" not in lines[0]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed (texlive-latex-recommended)")
def test_latex_compiles(tmp_path: Path) -> None:
    nasty = {"attention=none": 0.5, "attention=a_b,c={d}&50%#$~^\\x<y>": 0.8}
    table = compare(collect(write_study(tmp_path / "x_&_y", skills=nasty, states={}))).latex()
    document = "\\documentclass{article}\\usepackage{booktabs}\\usepackage[T1]{fontenc}\\begin{document}\n" + table
    (tmp_path / "table.tex").write_text(document + "\\end{document}\n")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "\\textbf{" in table


def test_what_cannot_be_compared_is_told(tmp_path: Path) -> None:
    study = collect(write_study(tmp_path / "other", states={(variant, 1): "failed" for variant in SKILLS}, seeds=(1,)))
    with pytest.raises(UserError, match="no run below"):
        compare(study)
    with pytest.raises(UserError, match="no run below"):
        collect(tmp_path)
    folder = write_study(tmp_path / "mixed", states={})
    path = next(folder.glob("attention=dot/seed=1/result.json"))
    path.write_text(path.read_text().replace("3f1c9a0be4d27758", "0000000000000000"))
    assert any("not comparable" in note and "data" in note for note in compare(collect(folder), samples=100).notes)
    plan = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**plan, "metrics": ["blue"]}))
    with pytest.raises(UserError, match="'blue'"):
        compare(collect(folder))


def test_several_runs_in_one_variant_are_told_from_one_plan_to_the_next(folder: Path) -> None:
    study = collect(folder)
    assert (study.axis, study.baseline, study.count("done"), study.count("failed")) == ("attention", "none", 7, 1)
    assert study.question.startswith("What does <attention>")
