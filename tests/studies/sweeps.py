"""Sweeps of small runs: how they are started, waited for and read."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attnlab.runs.reproduction import MEASURES_OF_MACHINE
from attnlab.studies.plan import RunPlan, plan
from commands import TINY, cli
from conftest import ROOT

__all__ = ["cli"]


SMALL = [*TINY, "logger=none", "threads=1", "batches.size=16", "scheduler=cosine"]


PATIENCE = 600.0
"""Seconds for a command to start or to stop: it takes more than 120 on two cores with much other work."""


STUDY = """\
defaults: [train, _self_]
name: {name}
study: {{question: 'Which?', {study}}}
hydra: {{sweeper: {{params: {{{params}}}}}}}
"""


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that a run measured, but for time."""
    result = json.loads((folder / "result.json").read_text())
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for part in (result, *lines):
        for name in (*MEASURES_OF_MACHINE, "id", "name", "training", "recipe"):
            part.pop(name, None)
    return {"result": result, "curve": lines}


def plan_of(sweep: list[str]) -> list[RunPlan]:
    return plan(ROOT / "conf", "train", sweep[2:], [], command=[]).runs


@contextmanager
def started(command: list[str], folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A command that can be stopped also where the tests themselves are not to be, as under nohup; ended at last."""

    def listen() -> None:
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)

    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=listen,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Any, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
