"""A long sweep, several runs at a time, in which one run in ten is killed.

``ATTNLAB_SOAK=500 python -m pytest -n 0 -m exhaustive tests/studies/test_soak.py`` carries out as many runs, and prints what
was measured.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from studies.sweeps import SMALL, outcome, wait_for

RUNS = int(os.environ.get("ATTNLAB_SOAK", "8"))
JOBS = 4
KILLS = max(1, RUNS // 10)
MEGABYTE = 2**20


@dataclass(frozen=True)
class Process:
    """A process as ``/proc`` shows it; empty once it is gone."""

    number: int

    def _read(self, name: str) -> str:
        try:
            return Path(f"/proc/{self.number}/{name}").read_bytes().decode(errors="replace")
        except OSError:
            return ""

    @property
    def parent(self) -> int:
        _, _, fields = self._read("stat").rpartition(")")
        return int(fields.split()[1]) if fields else 0

    @property
    def memory(self) -> int:
        """Resident bytes."""
        fields = self._read("statm").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0

    @property
    def files(self) -> int:
        """How many file descriptors are open."""
        try:
            return len(os.listdir(f"/proc/{self.number}/fd"))
        except OSError:
            return 0

    @property
    def is_run(self) -> bool:
        """Whether it is a run's, which a server forks for it."""
        return all("multiprocessing.forkserver" in Process(number)._read("cmdline") for number in (self.number, self.parent))

    def is_below(self, ancestor: int) -> bool:
        """Whether another one started it, or started one that did."""
        number = self.number
        while number > 1 and number != ancestor:
            number = Process(number).parent
        return number == ancestor

    def has_environment(self, text: str) -> bool:
        return text in self._read("environ").split("\0")


def processes() -> Iterator[Process]:
    return (Process(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdecimal())


@dataclass
class Killer:
    """Kills chosen runs of a sweep, each at a random moment of its life, and looks at the sweep's process meanwhile."""

    sweep: int
    chance: random.Random
    chosen: set[int]
    lives: dict[int, tuple[float, float]] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=dict)
    killed: int = 0
    samples: list[tuple[int, int]] = field(default_factory=list)

    def look(self) -> None:
        now = time.monotonic()
        runs = {process.number for process in processes() if process.is_run and process.is_below(self.sweep)}
        for number in runs:
            if number not in self.lives and len(self.lives) in self.chosen:
                ended = [end - begin for run, (begin, end) in self.lives.items() if run not in runs]
                self.due[number] = now + self.chance.uniform(0, 0.8 * min(ended, default=5.0))
            begin, _ = self.lives.get(number, (now, now))
            self.lives[number] = begin, now
        for number, moment in list(self.due.items()):
            if number not in runs:  # it has ended before: the next one takes its place
                del self.due[number]
                self.chosen.add(len(self.lives))
            elif moment <= now:
                del self.due[number]
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(number, signal.SIGKILL)
                    self.killed += 1
        if runs:  # before and after, the sweep's process plans and reports
            self.samples.append((Process(self.sweep).memory, Process(self.sweep).files))


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="processes are looked at in /proc, as on Linux")
def test_a_long_sweep_is_completed_whatever_kills_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    chance = random.Random(0)
    train = [sys.executable, "-m", "attnlab", "train", "-m", *SMALL, "trainer.max_epochs=2"]
    seeds = f"seed={','.join(map(str, range(1, RUNS + 1)))}"
    sweep = [*train, "name=soak", seeds, "hydra/launcher=parallel", f"hydra.launcher.n_jobs={JOBS}"]
    scratch = tempfile.mkdtemp(prefix="soak-")  # a socket in it has a name of 100 characters at most
    environment = {**os.environ, "TMPDIR": scratch, "ATTNLAB_CACHE": str(tmp_path / "cache")}
    began = time.monotonic()

    log = tmp_path / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen(sweep, cwd=tmp_path, env=environment, stdout=out, stderr=subprocess.STDOUT)
        killer = Killer(process.pid, chance, set(chance.sample(range(RUNS), KILLS)))
        try:
            while process.poll() is None:
                killer.look()
                time.sleep(0.2)
        finally:
            process.kill()
            process.wait()
    folder = tmp_path / "runs" / "soak"
    killed = [run.seed for run in collect(folder).runs if "killed by SIGKILL" in run.error]
    assert process.returncode == 1, log.read_text()
    assert len(killed) == killer.killed > 0
    assert collect(folder).count("done") == RUNS - len(killed)

    for _ in range(3):
        again = subprocess.run(sweep, cwd=tmp_path, env=environment, capture_output=True, text=True)
        if not again.returncode:
            break
    assert again.returncode == 0, again.stderr
    study = collect(folder)
    assert (study.count("done"), len(study.runs)) == (RUNS, RUNS)
    assert all(not run.folder.altered_files() and not run.error for run in study.runs)

    sample = sorted({*killed[:5], *chance.sample(range(1, RUNS + 1), 2)})
    calm = [*train, "name=calm", f"seed={','.join(map(str, sample))}"]
    subprocess.run(calm, cwd=tmp_path, env=environment, check=True, capture_output=True)
    runs = {run.seed: run.folder for run in study.runs}
    for run in collect(tmp_path / "runs" / "calm").runs:
        assert outcome(run.folder.path) == outcome(runs[run.seed].path)
        assert contents(run.folder) == contents(runs[run.seed])

    wait_for(lambda: not any(process.has_environment(f"TMPDIR={scratch}") for process in processes()), seconds=30)
    assert not list(Path(scratch).rglob("*"))
    assert not list(tmp_path.rglob("*.tmp"))
    Path(scratch).rmdir()

    half = len(killer.samples) // 2
    (early, early_files), (late, late_files) = (
        (max(memory for memory, _ in part), max(files for _, files in part))
        for part in (killer.samples[:half], killer.samples[half:])
    )
    with capsys.disabled():
        print(f"\n{RUNS} runs, {len(killed)} killed, {time.monotonic() - began:.0f} s; the sweep's process: ", end="")
        print(f"{early / MEGABYTE:.1f} MiB, {early_files} open files, then {late / MEGABYTE:.1f} MiB, {late_files}")
    assert late - early < 8 * MEGABYTE
    assert late_files - early_files <= 2


def contents(folder: RunFolder) -> dict[str, bytes]:
    """The files of a run that hold neither its name nor a time."""
    files = [folder.weights_file, *(folder.path / "hypotheses").iterdir(), folder.attention_file]
    return {path.name: path.read_bytes() for path in files}
