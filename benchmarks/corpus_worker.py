"""Prepares a large corpus, or starts a training on it, in a process of its own, and prints what it took.

The processes that tokenize import this module too, as those of ``attnlab train`` import that of the command: so torch is
imported by the functions that need it.
"""

import json
import os
import sys
import threading
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

BATCHES = 1000


def overrides(folder: Path) -> list[str]:
    """Return the overrides for words at white space and a model that is small beside the corpus."""
    data = [f"data.train={folder}/train", f"data.val={folder}/val", f"data.tests={{test: {folder}/test}}"]
    small = ["encoder.hidden_size=8", "decoder.hidden_size=8", "model.embedding_size=8", "vocabulary.max_size=10000"]
    return ["data=text", "data.source=en", "data.target=de", *data, "tokenizer=whitespace", *small, f"cache_dir={folder}/cache"]


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
    from attnlab.training.memory import read_peak_memory

    return read_peak_memory()


def _pss(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def _children() -> list[int]:
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that has ended
            found += map(int, (task / "children").read_text().split())
    return found


def main() -> None:
    """Prepare the corpus of a folder, or start a training on it."""
    from attnlab.config import CONF, compose, settle
    from attnlab.data.processes import count_processes
    from attnlab.runs.assembly import build_model, build_module, build_task

    what, name, called = sys.argv[1:]
    folder, imports = Path(name), time.time() - float(called)
    config = settle(compose("train", overrides(folder), [CONF]).config)
    memory, started = Memory(), time.perf_counter()
    task = build_task(config)
    task.prepare()
    answer: dict[str, Any] = {"seconds": time.perf_counter() - started, "imports": imports}
    if what == "prepare":
        answer["processes"] = count_processes()
    else:
        batches = iter(build_module(config, task, build_model(config, task)).data.train_dataloader())
        next(batches)
        answer["seconds"] = time.time() - float(called)
        for _ in islice(batches, BATCHES):
            pass
    answer["memory"] = memory.read()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
