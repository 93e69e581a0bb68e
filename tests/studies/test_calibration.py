"""How often a study's own stars are false."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from attnlab.studies.calibration import calibrate_study, tell_published, write_rates
from attnlab.studies.collection import collect
from attnlab.studies.folder import StudyFolder
from commands import Cli, cli
from studies.folders import write_run, write_study

__all__ = ["cli"]


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one variant with twelve seeds, and too few of another."""
    folder = write_study(
        tmp_path_factory.mktemp("runs") / "alike", skills={"attention=dot": 0.85}, seeds=range(1, 13), states={}, baseline=None
    )
    write_run(folder / "attention=few" / "seed=1", ["attention=few"], 1)
    return folder


def test_a_study_calibrates_its_own_stars(alike: Path) -> None:
    rates = list(calibrate_study(collect(alike), None, [3, 5, 10], 300))
    assert [(rate.variant, rate.test, rate.found.seeds) for rate in rates] == [
        ("dot", test, size) for test in ("test", "test_long") for size in (3, 5)
    ]
    assert all(rate.found.rate <= 0.1 for rate in rates)
    three, five = rates[:2]
    assert three.found.smallest > five.found.smallest > three.deviation / 2
    (pooled,) = [r for r in calibrate_study(collect(alike), "exact", [3], 20, "models") if r.test == "test"]
    assert 0 <= pooled.found.rate <= 1
    with pytest.raises(UserError, match="two groups of 7 runs need 14 seeds of a variant: there are 12 at most"):
        list(calibrate_study(collect(alike), None, [7], 10))


def test_a_study_without_tests_has_nothing_to_calibrate(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "untested", states={}, seeds=range(1, 7))
    for path in folder.glob("*/seed=*"):
        run = RunFolder(path)
        run.write_result(replace(run.read_result(), tests={}))
    with pytest.raises(UserError, match="is finished and tested"):
        list(calibrate_study(collect(folder), None, [3], 10))


def test_what_was_calibrated_is_written_down_and_told(alike: Path, tmp_path: Path) -> None:
    assert tell_published("seeds", tmp_path) == ""
    rates = list(calibrate_study(collect(alike), None, [3, 5], 100))
    write_rates(tmp_path / "rates-seeds.json", "alike", "seeds", "BLEU", rates)
    three = 100 * np.mean([rate.found.rate for rate in rates if rate.found.seeds == 3])
    told = tell_published("seeds", tmp_path)
    assert f", {three:.1f} % with 3 seeds, " in told
    assert told.endswith("(study alike: BLEU on 2 test sets, 12 runs of dot)")
    assert tell_published("models", tmp_path) == ""
    with pytest.raises(UserError, match="cannot write"):
        write_rates(tmp_path / "nowhere" / "rates.json", "alike", "seeds", "BLEU", rates)


def test_calibrate_is_a_command(
    alike: Path, cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert cli("calibrate", str(alike), "--splits", "50", "--seeds", "3,5") == 0
    shown = capsys.readouterr().out
    assert "alike, BLEU: two groups of one variant, significance=seeds" in shown
    assert len([line for line in shown.splitlines() if " dot " in line]) == 4
    for arguments, message in (
        (["nowhere"], "no folder runs/nowhere"),
        ([str(alike), "--seeds", "3,x"], "--seeds is a list of whole numbers"),
        ([str(alike), "--metric", "blue"], "no metric 'blue'"),
    ):
        assert cli("calibrate", *arguments) == 2
        assert message in capsys.readouterr().err


def test_each_column_is_calibrated_by_itself(
    tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    columns = {name: {row: f"{name}-{row}" for row in ("weak", "good")} for name in ("first", "second", "third")}
    skills = {f"variant={name}-{row}": 0.8 for name in ("first", "second") for row in ("weak", "good")}
    folder = write_study(
        tmp_path / "both", skills=skills, seeds=range(1, 5), states={}, baseline="weak", columns=None, examples=3
    )
    write_run(folder / "variant=third-weak" / "seed=1", ["variant=third-weak"], 1)
    for path in folder.glob("variant=second-*/seed=*"):
        run = RunFolder(path)
        run.write_config({**run.read_config(), "study": {"metrics": ["perplexity"]}})
    plan = StudyFolder(folder).read_plan()
    assert plan is not None
    StudyFolder(folder).write_plan(replace(plan, columns=columns))
    assert cli("calibrate", str(folder), "--splits", "3", "--seeds", "2", "--output", "rates.json") == 0
    told = capsys.readouterr()
    assert "both: first, BLEU: two groups of one variant" in told.out
    assert "both: second, perplexity: two variants" in told.out
    assert told.out.count(" good - weak ") == 4, "two columns of two test sets"
    assert "-weak" not in told.out
    assert "attnlab: both: third is left out: two groups of 2 runs need 4 seeds of a variant" in told.err
    written = {path.name: json.loads(path.read_text())["metric"] for path in Path().glob("rates*.json")}
    assert written == {"rates-first.json": "BLEU", "rates-second.json": "perplexity"}
