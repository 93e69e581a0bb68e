"""Threads that wait sleep where others need the processors, and only there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.runs import waiting
from attnlab.runs.waiting import POLICY, VARIABLES, busy_processors, choose_wait_policy


def times(**idle: int) -> str:
    """A file as ``/proc/stat``: of a hundred ticks, each processor was idle for so many, half of them waiting for a disk."""
    lines = [f"{name} {100 - ticks} 0 0 {ticks - ticks // 2} {ticks // 2} 0 0 0 7 0" for name, ticks in idle.items()]
    return "\n".join(["cpu 1 2 3 4 5 6 7 8 9 10", *lines, "intr 1 2", ""])


@pytest.mark.parametrize(("idle", "busy"), [((100, 100), 0.0), ((50, 100), 0.5), ((0, 0), 2.0), ((90, 80), 0.3)])
def test_busy_processors_are_counted(
    idle: tuple[int, int], busy: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2}, raising=False)
    file = tmp_path / "stat"
    file.write_text(times(cpu0=0, cpu1=0, cpu2=0).replace("100 0", "0 0"))

    def later(_: float) -> None:
        file.write_text(times(cpu0=idle[0], cpu1=0, cpu2=idle[1]))

    monkeypatch.setattr(waiting.time, "sleep", later)
    assert busy_processors(file) == pytest.approx(busy)


@pytest.mark.parametrize("content", [None, "", "cpu0 1 2\ncpu1 x\n"])
def test_nothing_that_tells_is_nobody_busy(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "stat"
    if content is not None:
        file.write_text(content)
    assert busy_processors(file, seconds=0.0) == 0


def test_threads_sleep_beside_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where torch is loaded already, as in the process of a sweep: what is decided is for those that it starts."""
    assert "torch" in sys.modules
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(waiting, "busy_processors", lambda: 0.1)
    choose_wait_policy()
    assert POLICY not in os.environ
    monkeypatch.setattr(waiting, "busy_processors", lambda: 1.0)
    choose_wait_policy()
    assert os.environ.pop(POLICY) == "PASSIVE"
    monkeypatch.setattr(waiting, "busy_processors", lambda: 0.0)
    choose_wait_policy(beside_others=True)
    assert os.environ.pop(POLICY) == "PASSIVE"
    for name in VARIABLES:
        monkeypatch.setenv(name, "ACTIVE")
        choose_wait_policy(beside_others=True)
        assert os.environ.get(POLICY) == ("ACTIVE" if name == POLICY else None)
        monkeypatch.delenv(name)


@pytest.mark.skipif(not waiting.STATISTICS.is_file(), reason="there is no /proc/stat, as on Linux")
def test_a_process_that_counts_is_seen() -> None:
    count = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(count) as busy:
        try:
            assert busy_processors(seconds=1.0) > 0.5
        finally:
            busy.kill()


def test_it_is_decided_before_torch_is_loaded() -> None:
    """By what decides, and by a run's launch."""
    names = "attnlab.runs.waiting, attnlab.studies.launch, attnlab.config"
    subprocess.run([sys.executable, "-c", f"import sys, {names}; sys.exit('torch' in sys.modules)"], check=True)
