"""Weights & Biases, offline: one run for each job, told apart, and a crash recorded. Read with W&B's own inspection."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import TINY, Cli, cli
from saboteur import SABOTEUR

__all__ = ["cli"]


def inspected(folder: Path) -> list[dict[str, Any]]:
    """Every offline run below a folder, as W&B reads it."""
    inspect = [sys.executable, "-m", "wandb", "leet", "inspect", "--json"]
    found = []
    for run in sorted(folder.glob("**/offline-run-*")):
        summary = subprocess.run([*inspect, "--summary", str(run)], capture_output=True, text=True, check=True).stdout
        records = subprocess.run([*inspect, str(run)], capture_output=True, text=True, check=True).stdout.splitlines()
        (begun,) = [record["run"] for record in map(json.loads, records) if record["type"] == "run"]
        found.append(json.loads(summary) | {"group": begun["run_group"]})
    return found


@pytest.mark.exhaustive
def test_a_sweep_logs_one_run_for_each_job(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", "-m", *TINY, "name=tracked", "attention=none,dot", "seed=1,2", "trainer.log_every_n_steps=1") == 0
    runs = inspected(tmp_path)
    runs = [run for run in runs if "comparison" not in run["name"]]
    assert len(runs) == 4
    assert len({run["run_id"] for run in runs}) == 4
    assert {run["group"] for run in runs} == {"tracked"}
    assert len({run["name"] for run in runs}) == 4
    for run in runs:
        assert (run["state"], run["exit_code"]) == ("finished", 0)
        assert {"test/bleu", "test_long/bleu", "val/bleu", "val/loss", "train/loss", "samples"} <= set(run["summary"])
    with_attention = [run for run in runs if "attention=dot" in run["name"]]
    assert len(with_attention) == 2
    assert all("heatmap, val 1" in run["summary"] for run in with_attention)


@pytest.mark.exhaustive
def test_a_crash_is_recorded_as_failed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from attnlab.training import SequenceModule

    def crash(*arguments: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(SequenceModule, "on_validation_epoch_end", crash)
    assert cli("train", *TINY) == 1
    (run,) = inspected(tmp_path)
    assert (run["state"], run["exit_code"]) == ("failed", 1)
    assert capfd.readouterr().err.count("Traceback") == 1


@pytest.mark.exhaustive
def test_a_study_logs_its_comparison_beside_its_runs(tmp_path: Path) -> None:
    # In a process that has imported nothing else, as a user's has not.
    command = [sys.executable, "-m", "attnlab", "train", "-m", *TINY, "name=tracked", "attention=none,dot"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = {run["name"]: run for run in inspected(tmp_path)}
    assert len(runs) == 3
    table = runs["tracked: comparison"]
    assert table["group"] == "tracked"
    assert {"comparison", "curves", "test by length"} <= set(table["summary"])
    scores = [set(run["summary"]) for name, run in runs.items() if name != "tracked: comparison"]
    assert all({"test/bleu", "test/chrf", "test/perplexity"} <= summary for summary in scores)


@pytest.mark.exhaustive
def test_a_run_that_goes_on_is_the_same_run_there_and_one_trained_anew_another(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["train", *TINY, SABOTEUR, "trainer.max_epochs=2", "batches.size=16"]
    monkeypatch.setenv("SABOTAGE", "seed=1=interrupt@8")
    assert cli(*command) == 130
    monkeypatch.delenv("SABOTAGE")
    assert cli(*command) == 0
    first, second = inspected(tmp_path)
    assert first["run_id"] == second["run_id"]
    assert "test/bleu" in second["summary"]
    assert cli(*command, "resume=false") == 0
    assert len({run["run_id"] for run in inspected(tmp_path)}) == 2


@pytest.mark.few(1)
@pytest.mark.parametrize("listens", [False, True])
def test_a_server_that_does_not_answer_is_told_in_a_line_before_the_training(
    listens: bool, cli: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("attnlab.training.loggers.PATIENCE", 0.5)
    monkeypatch.setenv("WANDB_API_KEY", 40 * "0")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        monkeypatch.setattr("attnlab.training.loggers._address", lambda: f"http://127.0.0.1:{server.getsockname()[1]}")
        assert cli("train", *TINY, "logger.mode=online", f"name=listens-{listens}") == 2
    captured = capfd.readouterr()
    assert "does not answer at http" in captured.err
    assert "Traceback" not in captured.out + captured.err


def test_a_key_that_is_missing_is_told_in_a_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("attnlab.training.loggers._check_server", lambda address: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli("train", *TINY, "logger.mode=online") == 2
    captured = capfd.readouterr()
    assert "run wandb login" in captured.err
    assert "Traceback" not in captured.out + captured.err
