"""Processes that are asked to do something once, again and again, so that they can take turns."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.setting import ROOT, Setting


class Worker:
    """A process that writes a line of JSON when it is ready, and one for each line that it reads.

    Args:
        command: that starts it.
        log: file for everything else that it says.
        environment: variables; None for those of this process.

    Raises:
        RuntimeError: it ended; the last line of its log is told.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=environment
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
            said = self.log.read_text(errors="replace").split("\n")
            raise RuntimeError(next((text for text in reversed(said) if text.strip()), "it ended without a word"))
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
    given = json.dumps({**setting.plain(), "threads": threads})
    return Worker([sys.executable, "-m", "benchmarks.training_worker", given], log)
