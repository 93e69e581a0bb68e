"""A large corpus: memory and time of preparing it, and of the start of a training once it is in the cache.

Run as a program, it does one of these in a process of its own, and prints what it took.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.config import CONF, compose, settle
from attnlab.runs.assembly import build_model, build_module, build_task
from attnlab.training.memory import read_peak_memory
from benchmarks.figures import Figure, Part, Quantity
from benchmarks.setting import ROOT, Setting

TYPES = 10**6
LENGTHS = (5, 35)
BATCHES = 1000
TEXT = Quantity("text", "text of the corpus", "bytes")
PREPARING = Quantity("preparing", "preparing it", "s")
PREPARING_MEMORY = Quantity("preparing memory", "memory while preparing, all processes, beyond what is imported", "bytes")
START = Quantity("cached start", "from the command to the first batch, the corpus in the cache", "s")
IMPORTS = Quantity("imports before it", "of which until everything is imported", "s")
START_MEMORY = Quantity("training memory", f"memory of this start and {BATCHES} batches, beyond what is imported", "bytes")


def write_text(folder: Path, pairs: int) -> int:
    """Write words drawn by Zipf's law as training text, with a few pairs for validation and test; return its bytes."""
    draw = np.random.default_rng(1)
    for side in ("en", "de"):
        words = np.array([f"{side}{number:x}" for number in range(TYPES)], dtype=object)
        for split, count in (("train", pairs), ("val", 100), ("test", 100)):
            with (folder / f"{split}.{side}").open("w") as file:
                for start in range(0, count, 10_000):
                    lengths = draw.integers(*LENGTHS, min(10_000, count - start))
                    drawn = words[draw.zipf(1.2, int(lengths.sum())) % TYPES].tolist()
                    ends = np.cumsum(lengths).tolist()
                    file.writelines(f"{' '.join(drawn[a:b])}\n" for a, b in zip([0, *ends], ends, strict=False))
    return sum((folder / f"train.{side}").stat().st_size for side in ("en", "de"))


def overrides(folder: Path) -> list[str]:
    """Return the overrides for words at white space and a model that is small beside the corpus."""
    data = [f"data.train={folder}/train", f"data.val={folder}/val", f"data.tests={{test: {folder}/test}}"]
    small = ["encoder.hidden_size=8", "decoder.hidden_size=8", "model.embedding_size=8", "vocabulary.max_size=10000"]
    return ["data=text", "data.source=en", "data.target=de", *data, "tokenizer=whitespace", *small, f"cache_dir={folder}/cache"]


def measure(setting: Setting) -> Iterator[Figure]:
    """Write a corpus, prepare it once, and start from the cache in every round."""
    note = f"{setting.pairs:,} pairs"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield Figure.of(TEXT, [float(write_text(folder, setting.pairs))], note)
        _settle()
        prepared = _run("prepare", folder)
        yield Figure.of(PREPARING, [prepared["seconds"]], f"{note}, {prepared['processes']} processes at most")
        yield Figure.of(PREPARING_MEMORY, [prepared["memory"]], note)
        started = [_run("start", folder) for _ in range(setting.rounds)]
        yield Figure.of(START, [one["seconds"] for one in started], note)
        yield Figure.of(IMPORTS, [one["imports"] for one in started], note)
        yield Figure.of(START_MEMORY, [one["memory"] for one in started], note)


def _settle() -> None:
    """Wait until a file that was just written is one whose hash is remembered."""
    time.sleep(3)


def _run(what: str, folder: Path) -> dict[str, Any]:
    environment = {**os.environ, "ATTNLAB_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "benchmarks.corpus", what, str(folder), str(time.time())]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


class Memory:
    """The greatest memory of this process and those that it started, of what they share each its part."""

    def __init__(self) -> None:
        self._own = _peak()
        self._before = self._most = _pss(os.getpid())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            self._most = max(self._most, sum(map(_pss, [os.getpid(), *_children()])))

    def read(self) -> float:
        """Return the bytes beyond those at the beginning."""
        self._ended.set()
        self._thread.join()
        return float(max(self._most - self._before, _peak() - self._own))


def _peak() -> int:
    return read_peak_memory()


def _pss(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def _children() -> list[int]:
    return [int(child) for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()]


def main() -> None:
    """Prepare the corpus of a folder, or start a training on it."""
    what, name, called = sys.argv[1:]
    folder, imports = Path(name), time.time() - float(called)
    config = settle(compose("train", overrides(folder), [CONF]).config)
    memory, started = Memory(), time.perf_counter()
    task = build_task(config)
    task.prepare()
    answer: dict[str, Any] = {"seconds": time.perf_counter() - started, "imports": imports}
    if what == "prepare":
        from attnlab.data.processes import count_processes

        answer["processes"] = count_processes()
    else:
        batches = iter(build_module(config, task, build_model(config, task)).data.train_dataloader())
        next(batches)
        answer["seconds"] = time.time() - float(called)
        for _ in islice(batches, BATCHES):
            pass
    answer["memory"] = memory.read()
    print(json.dumps(answer))


PART = Part([TEXT, PREPARING, PREPARING_MEMORY, START, IMPORTS, START_MEMORY], measure, devices=("cpu",))

if __name__ == "__main__":
    main()
