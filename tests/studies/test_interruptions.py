"""Sweeps whose runs fail, are stopped or killed, and go on."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from commands import Cli, cli
from conftest import exhaustive_but
from saboteur import SABOTEUR
from studies.sweeps import PATIENCE, SMALL, outcome, started, wait_for

__all__ = ["cli"]

ENDLESS = ["trainer.max_epochs=10000", "callbacks.early_stopping.patience=100000"]


# An epoch has 6 steps, and after 9 the validation set is looked at.
@pytest.mark.parametrize(
    ("step", "attention"), exhaustive_but([(6, "additive")], [(6, "additive"), (8, "mocha"), (10, "hard")])
)
def test_a_run_that_is_stopped_anywhere_goes_on_as_if_it_had_not_been(
    step: int, attention: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", *SMALL, SABOTEUR, "trainer.max_epochs=3", "objective.teacher_forcing.ratio=0.5", "model.dropout=0.3"]
    command += [
        f"attention={attention}",
        "trainer.val_check_interval=0.5",
        "auxiliary=coverage",
        "auxiliary.coverage.start=0",
        "auxiliary.coverage.ramp=1",
    ]
    assert cli(*command, "name=undisturbed") == 0
    monkeypatch.setenv("SABOTAGE", f"seed=1=interrupt@{step}")
    assert cli(*command, "name=stopped") == 130
    assert "goes on from" in capsys.readouterr().err
    monkeypatch.delenv("SABOTAGE")
    assert cli(*command, "name=stopped") == 0
    (one,), (other,) = (list(tmp_path.glob(f"runs/{name}/*/*")) for name in ("undisturbed", "stopped"))
    assert json.loads((other / "result.json").read_text())["restarts"] == 1
    assert outcome(one) == outcome(other)
    assert (one / "hypotheses" / "test.txt").read_text() == (other / "hypotheses" / "test.txt").read_text()


@pytest.mark.exhaustive
def test_whatever_ends_a_run_the_others_run_on_and_a_second_start_does_what_is_missing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sweep = ["train", "-m", *SMALL, SABOTEUR, "trainer.max_epochs=2", "attention=none,dot,general,additive,concat"]
    sabotage = {"none": "kill@8", "dot": "nan@7", "general": "crash@2", "additive": "exhaust@9"}
    monkeypatch.setenv("SABOTAGE", " ".join(f"attention={name}={deed}" for name, deed in sabotage.items()))
    assert cli(*sweep, "name=disturbed") == 1
    folder = tmp_path / "runs" / "disturbed"
    told = {label: (runs[0].state, runs[0].error) for label, runs in collect(folder).variants.items()}
    assert told["concat"][0] == "done"
    assert "killed by SIGKILL" in told["none"][1]
    assert told["dot"][1].startswith("FloatingPointError: train/loss is nan")  # no traceback of what is no bug
    assert "RuntimeError: out of luck" in told["general"][1]
    assert "allocate" in told["additive"][1]
    report = (folder / "comparison.md").read_text()
    assert report.count("failed: ") == 4
    errors = capfd.readouterr().err
    assert "4 runs failed" in errors
    assert re.search(r"^attnlab: \S*dot\S*: train/loss is nan", errors, re.MULTILINE)

    finished = collect(folder).variants["concat"][0].folder.result_file.stat().st_mtime_ns
    monkeypatch.delenv("SABOTAGE")
    assert cli(*sweep, "name=disturbed") == 0
    assert collect(folder).variants["concat"][0].folder.result_file.stat().st_mtime_ns == finished
    assert cli(*sweep, "name=undisturbed") == 0
    one, other = collect(folder), collect(tmp_path / "runs" / "undisturbed")
    assert {label: outcome(runs[0].folder.path) for label, runs in one.variants.items()} == {
        label: outcome(runs[0].folder.path) for label, runs in other.variants.items()
    }
    assert "failed" not in (folder / "comparison.md").read_text()


@pytest.mark.exhaustive
def test_a_sweep_whose_process_is_killed_leaves_a_run_that_stops_and_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnlab", "train", "-m", *SMALL, "name=orphan", *ENDLESS, "seed=1"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: any(tmp_path.glob("runs/orphan/*/*/last.ckpt")))
        (folder,) = tmp_path.glob("runs/orphan/*/*")
        before = (folder / "last.ckpt").stat().st_mtime_ns
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_for(lambda: collect(tmp_path / "runs" / "orphan").runs[0].state == "interrupted")
    assert (folder / "last.ckpt").stat().st_mtime_ns > before


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_parallel_sweep_whose_process_dies_leaves_no_run_training(number: int, tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    command = [sys.executable, "-m", "attnlab", "train", "-m", *SMALL, "name=orphans", *ENDLESS]
    command += ["seed=1,2,3", "hydra/launcher=parallel", "hydra.launcher.n_jobs=2"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(list(tmp_path.glob("runs/orphans/*/*/last.ckpt"))) == 2)
        begun = [path.parent for path in tmp_path.glob("runs/orphans/*/*/last.ckpt")]
        before = [(folder / "last.ckpt").stat().st_mtime_ns for folder in begun]
    finally:
        process.send_signal(number)
        process.wait()
    wait_for(lambda: all(RunFolder(folder).state == "interrupted" for folder in begun))
    assert all((f / "last.ckpt").stat().st_mtime_ns > at for f, at in zip(begun, before, strict=True))
    time.sleep(3)
    assert len(list(tmp_path.glob("runs/orphans/*/*/run.json"))) == 2, "the third run began without its study"


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_run_with_a_logger_that_is_asked_to_stop_writes_a_checkpoint_and_one_line(number: int, tmp_path: Path) -> None:
    small = [override for override in SMALL if not override.startswith("logger")]
    command = [
        sys.executable,
        "-m",
        "attnlab",
        "train",
        *small,
        "name=stop",
        *ENDLESS,
    ]
    with started(command, tmp_path) as process:
        wait_for(lambda: any(tmp_path.glob("runs/stop/*/*/last.ckpt")))
        before = next(tmp_path.glob("runs/stop/*/*/last.ckpt")).stat().st_mtime_ns
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, out
    assert "goes on from" in out.splitlines()[-1]
    assert "Traceback" not in out
    assert next(tmp_path.glob("runs/stop/*/*/last.ckpt")).stat().st_mtime_ns > before


@pytest.mark.exhaustive
def test_ctrl_c_ends_a_sweep_with_a_checkpoint_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnlab", "train", "-m", *SMALL, "name=stop", "trainer.max_epochs=100", "seed=1,2"]
    with started(command, tmp_path) as process:
        wait_for(lambda: any(tmp_path.glob("runs/stop/*/*/last.ckpt")))
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, out
    assert "0 of 2 done, 1 interrupted" in out
    assert "Traceback" not in out
