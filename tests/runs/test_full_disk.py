"""A disk that is full while a run writes: one line, a folder that can be gone on with, and the other runs of a sweep."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import attnlab.runs.evaluation
import attnlab.training.loggers
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.training.callbacks import MetricsRecorder, Samples
from attnlab.training.checkpoints import WholeCheckpointIO
from commands import TINY, Cli, cli
from conftest import exhaustive_but

__all__ = ["cli"]

WRITERS: dict[str, tuple[Any, str]] = {
    "config": (RunFolder, "write_config"),
    "task": (RunFolder, "write_task"),
    "environment": (RunFolder, "add_start"),
    "digests": (RunFolder, "write_digests"),
    "record": (RunFolder, "write_record"),
    "curve": (MetricsRecorder, "on_train_epoch_end"),
    "heatmaps": (Samples, "_draw"),
    "hypotheses": (attnlab.runs.evaluation, "write_lines"),
    "statistics": (attnlab.runs.evaluation, "write_statistics"),
    "attention": (RunFolder, "write_attention"),
    "result": (RunFolder, "write_result"),
    "logger": (attnlab.training.loggers, "CSVLogger"),
    "checkpoint": (WholeCheckpointIO, "save_checkpoint"),
}


def refuse(*arguments: object, **options: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("writer", exhaustive_but(("result",), WRITERS))
def test_a_full_disk_is_one_line_and_the_run_goes_on_afterwards(
    writer: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["train", *TINY, "logger=csv", "name=full"]
    with monkeypatch.context() as patch:
        patch.setattr(*WRITERS[writer], refuse)
        assert cli(*command) == 2
    captured = capfd.readouterr()
    assert "No space left on device" in captured.err.splitlines()[-1]
    assert "Traceback" not in captured.out + captured.err
    assert cli(*command) == 0
    assert collect(tmp_path / "runs" / "full").runs[0].state == "done"


@pytest.mark.exhaustive
def test_a_disk_too_small_for_a_checkpoint_ends_its_run_in_a_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnlab", "train", *TINY, "logger=none", "name=small"]
    environment = {**os.environ, "ATTNLAB_CACHE": str(tmp_path / "cache")}
    prepared = subprocess.run([*command, "trainer=debug"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert prepared.returncode == 0, prepared.stderr
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**15, 2**15)),
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "File too large" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.exhaustive
def test_a_report_that_cannot_be_written_is_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("attnlab.studies.report.write_atomically", refuse)
    assert cli("train", "-m", *TINY, "logger=none", "name=report", "seed=1") == 2
    captured = capfd.readouterr()
    assert "No space left on device" in captured.err.splitlines()[-1]
    assert "Traceback" not in captured.out + captured.err
