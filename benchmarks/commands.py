"""Whole commands: the second start of a run, and the targets of the Makefile that take minutes."""

import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.figures import Figure, Part, Quantity, interleave
from benchmarks.setting import ROOT, Setting
from benchmarks.workers import run

RUN = Quantity("second start", "a whole run of one batch, the corpus in the cache", "s")
BARE = Quantity("bare start", "the same without W&B, pictures, test sets and beam search", "s")
IMPORTS = Quantity("imports", "importing torch, lightning and spaCy", "s")
RATIO = Quantity("second start / imports", "a whole run of one batch / importing torch, lightning and spaCy")
BARE_RATIO = Quantity("bare start / imports", "the same without these / importing torch, lightning and spaCy")
ONE_BATCH = [f"trainer.limit_{stage}_batches=1" for stage in ("train", "val", "test")]
WITHOUT = ["logger=none", "callbacks.samples.examples=0", "test=false"]
TARGETS = {target: Quantity(f"make {target}", f"`make {target}`", "s") for target in ("test", "demo")}


def _seconds(command: list[str], folder: Path = ROOT) -> float:
    """Run a command, and return how long it took.

    Raises:
        RuntimeError: it failed.
    """
    started = time.perf_counter()
    run(command, folder=folder, environment={"WANDB_MODE": "offline"})
    return time.perf_counter() - started


def measure_start(setting: Setting) -> Iterator[Figure]:
    """Let whole runs and imports take turns; the first run fills the cache, and is not counted."""
    batch = [sys.executable, "-m", "attnlab", "train", *setting.config_overrides, *ONE_BATCH]
    batch += ["trainer.max_epochs=1", "resume=false"]
    imports = [sys.executable, "-c", "import torch, lightning, spacy"]
    commands = {"run": batch, "bare": [*batch, *WITHOUT], "imports": imports}
    with tempfile.TemporaryDirectory() as folder:
        ways = {name: partial(_seconds, command, Path(folder)) for name, command in commands.items()}
        rounds = interleave(ways, setting.rounds)
    yield rounds.figure(RUN, "run")
    yield rounds.figure(BARE, "bare")
    yield rounds.figure(IMPORTS, "imports")
    yield rounds.ratio(RATIO, "run", "imports")
    yield rounds.ratio(BARE_RATIO, "bare", "imports")


def measure_targets(setting: Setting) -> Iterator[Figure]:
    """Run each target once; one that fails is not measured, nor the demo where its runs are there already."""
    for target, quantity in TARGETS.items():
        if target == "demo" and (ROOT / "runs" / "demo").exists():
            yield Figure.missing(quantity, "runs/demo is there, and what is done is not done again: move it away")
            continue
        try:
            yield Figure.of(quantity, [_seconds(["make", target])])
        except RuntimeError as error:
            yield Figure.missing(quantity, str(error))


START = Part([RUN, BARE, IMPORTS, RATIO, BARE_RATIO], measure_start)
LONG = Part(list(TARGETS.values()), measure_targets, devices=("cpu",), is_long=True, data="the embedded corpus")
