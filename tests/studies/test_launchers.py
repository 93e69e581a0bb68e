"""Every launcher that a config exists for, for real: a study of four runs, one of which is killed midway."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from attnlab.config import HydraJob
from attnlab.runs.folder import RunFolder
from attnlab.studies import launch
from attnlab.studies.collection import collect
from commands import TINY
from conftest import ROOT

LAUNCHERS = sorted(path.stem for path in (ROOT / "conf" / "hydra" / "launcher").glob("*.yaml"))
PLUGINS = {"parallel": "hydra_joblib_launcher", "slurm": "hydra_submitit_launcher", "ray_local": "hydra_ray_launcher"}
FOUR = "defaults: [train, _self_]\nname: four\nthreads: 1\nhydra: {sweeper: {params: {seed: '1,2,3,4'}}}\n"
SETTINGS = {
    "parallel": ["hydra.launcher.n_jobs=2"],
    "slurm": ["hydra.launcher.timeout_min=10"],
    "ray_local": ["hydra.launcher.ray.init.num_cpus=2"],
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_study_survives_a_killed_run_and_completes(launcher: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(f"hydra_plugins.{PLUGINS[launcher]}") is None:
        pytest.skip(f"the extra of {launcher} is not installed")
    if launcher == "slurm" and (not shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin") or os.geteuid()):
        pytest.skip("SLURM is not installed (slurm-wlm, munge), or this is not root, as whom alone it can be started")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "four.yaml").write_text(FOUR)
    start = [str(ROOT / "launchers" / "slurm.sh")] if launcher == "slurm" else []
    command = [*start, sys.executable, "-m", "attnlab", "study", "four", f"hydra/launcher={launcher}", *SETTINGS[launcher]]
    command += [*TINY, "logger=none", "trainer.max_epochs=40", "callbacks.early_stopping.patience=40"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT)
        victim = midway(tmp_path / "runs" / "four", process)
        told = json.loads((victim / "run.json").read_text())
        os.kill(int(told["process"].rpartition(":")[2]), signal.SIGKILL)
        status = process.wait(timeout=300)
    output = (tmp_path / "log").read_text()
    study = collect(tmp_path / "runs" / "four")
    assert (status, sorted(run.state for run in study.runs)) == (1, ["done", "done", "done", "failed"]), output
    assert "killed by SIGKILL" in next(run.error for run in study.runs if run.folder.path == victim)

    again = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    study = collect(tmp_path / "runs" / "four")
    assert (again.returncode, {run.state for run in study.runs}) == (0, {"done"}), again.stdout + again.stderr
    assert [run.result.restarts for run in study.runs] == [int(run.folder.path == victim) for run in study.runs]
    assert "4 | " in study.folder.table_file("md").read_text()


def midway(folder: Path, process: subprocess.Popen[bytes]) -> Path:
    """Wait for a run that has written a checkpoint and is not done."""
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        for path in folder.glob("*/*/last.ckpt"):
            if not (path.parent / "result.json").exists():
                return path.parent
        time.sleep(0.05)
    raise AssertionError(f"no run got midway; the sweep ended with {process.poll()}")


def test_what_killed_a_run_is_told_even_if_the_signal_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(tmp_path / "four" / "x" / "seed=1")
    folder.path.mkdir(parents=True)
    for status, told in ((-signal.SIGKILL, "killed by SIGKILL: out of memory"), (-40, "killed by signal 40")):
        monkeypatch.setattr(launch, "_run_in_process", lambda *_, status=status: status)
        launch.run_in_study(HydraJob(OmegaConf.create({}), folder.path, [], {}, 0), launch.Owner("here", os.getpid()), {}, 9)
        assert told in capsys.readouterr().err
        assert folder.read_error().startswith(told)


def test_progress_is_told_after_each_hundredth_of_many_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "_run_in_process", lambda *_: launch.BUSY)
    told = []
    for number in range(6):
        job = HydraJob(OmegaConf.create({}), tmp_path / "four" / "x" / f"seed={number}", [], {}, number)
        launch.run_in_study(job, launch.Owner("here", os.getpid()), {}, progress=3)
        busy, *progress = capsys.readouterr().out.splitlines()
        assert "another process works on it" in busy
        told += [number] * len(progress)
    assert told == [2, 5]
