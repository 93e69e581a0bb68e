"""A large corpus: memory and time of preparing it, and of the start of a training once it is in the cache."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus_worker import BATCHES
from benchmarks.figures import Figure, Part, Quantity
from benchmarks.setting import Setting
from benchmarks.workers import run

TYPES = 10**6
LENGTHS = (5, 35)
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


def measure(setting: Setting) -> Iterator[Figure]:
    """Write a corpus, prepare it once, and start from the cache in every round."""
    note = f"{setting.pairs:,} pairs"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield Figure.of(TEXT, [float(write_text(folder, setting.pairs))], note)
        _settle()
        prepared = _ask("prepare", folder)
        yield Figure.of(PREPARING, [prepared["seconds"]], f"{note}, {prepared['processes']} processes at most")
        yield Figure.of(PREPARING_MEMORY, [prepared["memory"]], note)
        started = [_ask("start", folder) for _ in range(setting.rounds)]
        yield Figure.of(START, [one["seconds"] for one in started], note)
        yield Figure.of(IMPORTS, [one["imports"] for one in started], note)
        yield Figure.of(START_MEMORY, [one["memory"] for one in started], note)


def _settle() -> None:
    """Wait until a file that was just written is one whose hash is remembered."""
    time.sleep(3)


def _ask(what: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.corpus_worker", what, str(folder), str(time.time())]
    answer: dict[str, Any] = json.loads(run(command, environment={"ATTNLAB_CACHE": str(folder / "cache")}))
    return answer


PART = Part([TEXT, PREPARING, PREPARING_MEMORY, START, IMPORTS, START_MEMORY], measure, devices=("cpu",), data="generated text")
