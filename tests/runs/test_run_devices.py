"""Runs on a GPU: going on after a crash, distributed by NCCL, and several at once. The CPU has the same tests."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from commands import TINY, Cli, alone, cli
from saboteur import SABOTEUR

__all__ = ["cli"]

pytestmark = pytest.mark.exhaustive


def settings(device: torch.device) -> list[str]:
    usual = [setting for setting in TINY if not setting.startswith("trainer.accelerator=")]
    return [
        *usual,
        f"trainer.accelerator={'gpu' if device.type == 'cuda' else 'cpu'}",
        "logger=none",
        "batches.size=16",
        "threads=1",
    ]


def results(folder: Path, study: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"runs/{study}/*/seed=*/result.json"))]


def same(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], device: torch.device) -> None:
    """To the last bit on a CPU; on a GPU the order of sums is not fixed."""
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        losses = [result["tests"]["test"]["metrics"]["loss"]["value"] for result in (one, other)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3 if device.type == "cuda" else 0)


def test_a_run_goes_on_after_a_crash(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: torch.device) -> None:
    command = ["train", *settings(device), SABOTEUR, "trainer.max_epochs=3", "model.dropout=0.3"]
    command += ["callbacks.last_checkpoint.minutes=0"]
    assert cli(*command, "name=undisturbed") == 0
    monkeypatch.setenv("SABOTAGE", "seed=1=crash@16")  # after two epochs of 6 steps
    assert cli(*command, "name=dead") == 1
    monkeypatch.delenv("SABOTAGE")
    assert cli(*command, "name=dead") == 0
    (found,) = results(tmp_path, "dead")
    assert found["restarts"] == 1
    same([found], results(tmp_path, "undisturbed"), device)


def train(folder: Path, *overrides: str) -> None:
    command = [sys.executable, "-m", "attnlab", "train", *overrides]
    done = subprocess.run(command, cwd=folder, env=alone(), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_distributed_run_on_one_device_is_the_run(tmp_path: Path, device: torch.device) -> None:
    """By NCCL on a GPU, and by Gloo on a CPU."""
    train(tmp_path, *settings(device), "name=one")
    train(tmp_path, *settings(device), "name=distributed", "trainer=ddp", "trainer.devices=1")
    ours, theirs = results(tmp_path, "distributed"), results(tmp_path, "one")
    for one, other in zip(ours, theirs, strict=True):
        losses = [result["tests"]["test"]["metrics"]["loss"]["value"] for result in (one, other)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-6 if device.type == "cpu" else 1e-3)


def test_several_runs_share_one_device(tmp_path: Path, device: torch.device) -> None:
    for seed in (1, 2, 3):
        train(tmp_path, *settings(device), "name=alone", f"seed={seed}")
    parallel = ["hydra/launcher=parallel", "hydra.launcher.n_jobs=3"]
    train(tmp_path, "-m", *settings(device), "name=together", "seed=1,2,3", *parallel)
    same(results(tmp_path, "together"), results(tmp_path, "alone"), device)


@pytest.mark.gpu
def test_each_run_of_a_sweep_has_a_gpu_of_its_own(tmp_path: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("fewer than two CUDA devices")
    gpu = torch.device("cuda")
    parallel = ["hydra/launcher=parallel", "hydra.launcher.n_jobs=2"]
    train(tmp_path, "-m", *settings(gpu), "name=sweep", "seed=1,2", "trainer.max_epochs=20", *parallel)
    assert len(results(tmp_path, "sweep")) == 2
    environments = [json.loads(path.read_text()) for path in tmp_path.glob("runs/sweep/*/*/environment.json")]
    assert [len(start["gpus"]) for starts in environments for start in starts] == [1, 1]
