"""Studies from Python: what a notebook is given."""

import builtins
import csv
import io
import json
import logging
import multiprocessing
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import attnlab
from attnlab.errors import UserError
from attnlab.studies import sweep
from commands import TINY, Cli, cli
from conftest import ROOT
from saboteur import SABOTEUR
from studies.folders import write_study

__all__ = ["cli"]

SMALL = [*TINY, "logger=none", "threads=1"]


def test_the_table_is_that_of_the_csv(tmp_path: Path) -> None:
    results = attnlab.report(write_study(tmp_path / "study"))
    (header, *rows) = csv.reader(io.StringIO((tmp_path / "study" / "comparison.csv").read_text()))
    assert [results.table.index.name, *results.table.columns] == header
    assert list(results.table.index) == [row[0] for row in rows]
    for row, (_, values) in zip(rows, results.table.iterrows(), strict=True):
        np.testing.assert_allclose(pd.to_numeric(values), [float(value or "nan") for value in row[1:]])
    assert {"test BLEU", "test BLEU sd", "test BLEU low", "test ΔBLEU", "test ΔBLEU p"} <= {*header}


def test_every_finished_run_and_test_set_is_a_row_with_what_its_folder_says(tmp_path: Path) -> None:
    """Of nine runs one failed and one is missing."""
    results = attnlab.report(write_study(tmp_path / "study"))
    frame = results.runs
    assert len(frame) == 7 * 2
    written = pd.read_csv(tmp_path / "study" / "runs.csv")
    written["folder"] = [str(tmp_path / "study" / place) for place in written["folder"]]
    pd.testing.assert_frame_equal(written, frame, check_dtype=False)
    for row in frame.to_dict("records"):
        (run,) = [run for run in results.study.finished_variants[row["variant"]] if run.seed == row["seed"]]
        assert Path(row["folder"]) == run.folder.path
        assert row["bleu"] == run.result.tests[row["test"]]["metrics"]["bleu"]["value"]
        assert row["parameters"] == run.result.parameters
        assert row["seconds"] == run.result.seconds
    means = frame.query("test == 'test_long'").groupby("variant").bleu.mean()
    np.testing.assert_allclose(means.sort_index(), results.table["test_long BLEU"].sort_index())


def test_what_is_missing_is_told_and_shown(tmp_path: Path) -> None:
    results = attnlab.report(write_study(tmp_path / "study"))
    assert results.unfinished == {
        "attention=dot/seed=2": "failed: FloatingPointError: <i>train/loss</i> is nan in epoch 2",
        "attention=additive/seed=3": "missing",
    }
    assert results.page == tmp_path / "study" / "report.html"
    assert results.page.is_file()
    shown = results._repr_html_()
    assert "&lt;i&gt;train/loss&lt;/i&gt; is nan" in shown
    assert re.search(r"<tr><td>dot</td><td>2 of 3</td>", shown)
    assert repr(results).endswith("7 done, 1 failed, 1 missing>")


def test_a_study_of_which_no_run_is_finished_has_no_table(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "study", skills={"attention=dot": 0.5}, seeds=[2], states={("attention=dot", 2): "failed"})
    results = attnlab.report(folder)
    assert results.runs.empty
    assert "no run in" in results._repr_html_()
    with pytest.raises(UserError, match="is finished and tested: 1 failed; attention=dot/seed=2 failed: FloatingPointError"):
        _ = results.table


def test_runs_that_were_not_tested_have_a_report_and_no_table(tmp_path: Path) -> None:
    """As with ``test=false``, which leaves the test sets alone while something is tuned."""
    folder = write_study(tmp_path / "study", skills={"attention=dot": 0.5}, seeds=[1], states={})
    (path,) = folder.glob("*/*/result.json")
    result = json.loads(path.read_text())
    path.write_text(json.dumps({**result, "tests": {}}))
    results = attnlab.report(folder)
    (run,) = results.asked
    assert run.result.best == result["best"]
    assert "No run is finished and tested yet" in results.page.read_text()
    with pytest.raises(UserError, match="is finished and tested: 1 done"):
        _ = results.table


def test_without_pandas_a_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, imported = attnlab.report(write_study(tmp_path / "study")), builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        return imported(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install 'attnlab\[notebook\]'"):
        _ = results.runs
    assert "<table>" in results._repr_html_()


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ([], {}, "name a study"),
        (["nothing"], {}, "no study 'nothing'"),
        ([["attention=dot"]], {}, r"\['attention=dot'\] is no text: name a study and each override by itself"),
        (["attention=nothing"], {}, "no option 'nothing' of attention"),
        (["model.embeding_size=2"], {}, "no key .embeding_size. in .model."),
        (["attention=dot"], {"config_dir": "nowhere"}, "config_dir: there is no folder nowhere"),
    ],
)
def test_a_mistake_is_one_line_without_what_hydra_raised(
    words: list[Any], options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message) as caught:
        attnlab.study(*words, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert caught.value._render_traceback_() == [f"attnlab: {caught.value}"]
    assert not (tmp_path / "runs").exists()


def test_a_study_that_is_not_there_cannot_be_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no runs of a study 'mine'"):
        attnlab.report("mine")


def test_a_script_that_does_not_ask_whether_it_is_imported_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = type(sweep)("__mp_main__")  # what a run's process calls the script while it imports it
    monkeypatch.setitem(sys.modules, "__mp_main__", imported)
    with pytest.raises(UserError, match="below \"if __name__ == '__main__':\""):
        attnlab.study("name=mine", "attention=none,dot")


@pytest.mark.exhaustive
def test_a_sweep_is_that_of_the_command_and_a_failed_run_is_a_hole(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SABOTAGE", "attention=dot=crash@1")
    sweep_ = ["name=mine", "attention=none,dot", *SMALL, SABOTEUR]
    logger = logging.getLogger()
    before = list(logger.handlers), logger.level, multiprocessing.get_start_method(allow_none=True)
    results = attnlab.study(*sweep_)
    assert (list(logger.handlers), logger.level, multiprocessing.get_start_method(allow_none=True)) == before
    assert list(results.runs.variant.unique()) == ["none"]
    assert [*results.unfinished.values()] == ["failed: RuntimeError: out of luck"]
    assert "1 run failed" in capfd.readouterr().err
    monkeypatch.delenv("SABOTAGE")
    (before,) = tmp_path.glob("runs/mine/*none*/seed=1/result.json")
    written = before.stat().st_mtime_ns
    assert cli("train", "-m", *sweep_) == 0
    assert before.stat().st_mtime_ns == written
    assert {*attnlab.report("mine").runs.variant} == {"none", "dot"}
    assert "attnlab train --multirun name=mine" in (tmp_path / "runs" / "mine" / "study.json").read_text()


@pytest.mark.exhaustive
def test_the_page_about_python_is_right(cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(), re.S | re.M)
    run = attnlab.study
    monkeypatch.setattr(attnlab, "study", lambda *words: run(*words, *SMALL))
    exec(block, {"__name__": "__main__"})
    shown = capsys.readouterr().out
    assert "test ΔBLEU p" in shown
    assert re.search(r"additive +test +\d", shown)
