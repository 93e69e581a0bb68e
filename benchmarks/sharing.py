"""Several small trainings that share one GPU."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Figure, Part, Quantity, interleave
from benchmarks.processes import at_once, one_after_other
from benchmarks.setting import Setting
from benchmarks.workers import training_worker

COUNT = 8
SMALL = ("encoder.hidden_size=64", "model.embedding_size=128", "decoder.hidden_size=128", "batches.size=64")
"""The sizes of ``conf/``, which the quick studies have."""
SPEED = Quantity("small training", "a small training, alone", "trainings/s")
RATIO = Quantity("small trainings at once", f"speed of {COUNT} small trainings at once / of one alone")


def measure(setting: Setting, count: int = COUNT) -> Iterator[Figure]:
    """Let one training, and several at once, take turns, each in a process of its own with one thread."""
    small = replace(setting, overrides=(*SMALL, *setting.overrides))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workers = [stack.enter_context(training_worker(small, 1, folder / f"{number}.log")) for number in range(count)]
        ways = {"alone": lambda: one_after_other(workers[:1]), "at once": lambda: at_once(workers)}
        rounds = interleave(ways, setting.rounds)
    counted = f"{count} processes, {setting.batches} batches of {small.config['batches']['size']} sentences each"
    yield rounds.figure(SPEED, "alone", note=counted)
    yield rounds.ratio(RATIO, "at once", "alone", note=counted)


PART = Part([SPEED, RATIO], measure, devices=("cuda",))
