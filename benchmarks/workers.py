"""Other processes: commands that run once, and workers that are asked again and again, so that they can take turns."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.setting import ROOT, Setting


def run(command: Sequence[str | Path], *, folder: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """Run a command, and return what it prints.

    Args:
        command: with its arguments.
        folder: in which it runs.
        environment: variables that are added to this process' own.

    Raises:
        RuntimeError: it failed; the last line of its errors is told.
    """
    done = subprocess.run(command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(_last_line(done.stderr) or f"it ended with status {done.returncode} and without a word")
    return done.stdout


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.split("\n")) if line.strip()), "")


class Worker:
    """A process that writes a line of JSON when it is ready, and one for each line that it reads.

    Args:
        command: that starts it.
        log: file for everything else that it says.

    Raises:
        RuntimeError: it ended; the last line of its log is told.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
            )
        self.greeting = self.answer()

    def start(self, request: str) -> None:
        """Ask for something."""
        assert self._process.stdin
        self._process.stdin.write(f"{request}\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for what was asked for."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise RuntimeError(_last_line(self.log.read_text(errors="replace")) or "it ended without a word")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, request: str) -> dict[str, Any]:
        """Ask for something, and wait for it."""
        self.start(request)
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()


def training_worker(setting: Setting, threads: int | None, log: Path) -> Worker:
    """Start a process that trains on the setting's batches whenever it is asked to."""
    given = json.dumps({**asdict(setting), "threads": threads})
    return Worker([sys.executable, "-m", "benchmarks.training_worker", given], log)
