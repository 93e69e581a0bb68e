"""Two processes on one machine: the same training as one process, and every example counted once."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import TINY

SETTINGS = [*TINY, "logger=csv", "threads=1", "model.dropout=0", "trainer.max_epochs=2", "trainer.log_every_n_steps=1"]
SETTINGS += ["data.val_size=15", "data.test_size=17", "batches.size=16", "attention=dot"]
SETTINGS += ["auxiliary=[coverage,supervised]", "auxiliary.coverage.start=0", "auxiliary.coverage.ramp=0"]

# Lightning leaves the port of one distributed run in the environment, where the next one finds it taken.
ALONE = {name: value for name, value in os.environ.items() if name not in {"MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"}}


def losses(folder: Path, name: str) -> list[float]:
    lines = (folder / "csv" / "metrics.csv").read_text().splitlines()
    column = lines[0].split(",").index(name)
    return [float(cells[column]) for line in lines[1:] if (cells := line.split(","))[column]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A run by one process and one by two, with the same batches over all processes."""
    folder = tmp_path_factory.mktemp("distributed")
    found = {}
    for devices in (1, 2):
        trainer = ["trainer=ddp", f"trainer.devices={devices}", "trainer.accelerator=cpu"]
        command = [sys.executable, "-m", "attnlab", "train", *trainer, *SETTINGS, f"name=by{devices}"]
        done = subprocess.run(command, cwd=folder, env=ALONE, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        (found[devices],) = folder.glob(f"runs/by{devices}/*/*")
    return found


@pytest.mark.exhaustive
def test_two_processes_learn_what_one_learns(runs: dict[int, Path]) -> None:
    for name in ("train/loss", "train/coverage", "train/supervised"):
        one, two = losses(runs[1], name), losses(runs[2], name)
        assert len(one) == 12
        assert two == pytest.approx(one, rel=1e-4)


@pytest.mark.exhaustive
def test_metrics_are_over_all_examples_each_counted_once(runs: dict[int, Path]) -> None:
    def result(devices: int) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((runs[devices] / "result.json").read_text())
        return content

    one, two = result(1), result(2)
    assert (one["tests"]["test"]["examples"], two["tests"]["test"]["examples"]) == (17, 17)
    assert two["best"] == pytest.approx(one["best"], rel=1e-3)
    for name in ("test", "test_long"):
        for metric in ("loss", "perplexity", "accuracy"):
            both = [run["tests"][name]["metrics"][metric]["value"] for run in (one, two)]
            assert both[1] == pytest.approx(both[0], rel=1e-3)
        texts = [(runs[devices] / "hypotheses" / f"{name}.txt").read_text() for devices in (1, 2)]
        assert texts[0] == texts[1]
