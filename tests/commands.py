"""Run the command line inside the test process: importing torch anew for every command would take most of the time."""

import functools
import io
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from filelock import FileLock
from omegaconf import OmegaConf

from attnlab.commands import main

TINY = [
    "data.train_size=96",
    "data.val_size=16",
    "data.test_size=16",
    "data.test_long_size=8",
    "data.test_deep_size=4",
    "data.test_long_deep_size=4",
    "model.embedding_size=16",
    "encoder.hidden_size=8",
    "decoder.hidden_size=16",
    "search.max_length_factor=0.5",
    "trainer.accelerator=cpu",
    "trainer.max_epochs=1",
    "trainer.enable_progress_bar=false",
    "callbacks.samples.heatmaps=1",  # drawing three takes a third of such a run
]
"""A model and a corpus so small that a whole run takes a second or two."""
FEW_PAIRS = [override for override in TINY if override.startswith("data.")]
OF_ANY_TASK = [override for override in TINY if "deep" not in override and "search" not in override]
"""What of these another task's generated data have too; a forecast searches nothing."""


def settings(overrides: Sequence[str]) -> str:
    """Overrides of keys as a study's file has them, where they are no part of a run's path."""
    return OmegaConf.to_yaml(OmegaConf.from_dotlist([*overrides]))


def alone() -> dict[str, str]:
    """The environment, without the port that Lightning leaves there of one distributed run, and the next one finds taken."""
    return {name: value for name, value in os.environ.items() if name not in {"MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"}}


Cli = Callable[..., int]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """``cli("train", ...)`` in a folder of its own; returns the exit status."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["attnlab", *arguments])
        try:
            return main()
        except SystemExit as stop:  # as Hydra's own options end
            return int(stop.code or 0)

    return run


KINDS: dict[str, list[str]] = {
    "plain": [],
    "copying": ["head=pointer_generator"],
    "none": ["attention=none"],
    "location": ["attention/score=location", "attention.score.max_length=80"],
    "unknown": ["task.replace_unknown=true", "vocabulary.max_size=5"],
}
"""Models that copy, do not attend, read no long source, or know no word."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Finished runs, trained briefly: one of each kind, and two seeds of the first, as ``KIND-SEED``."""
    return _Runs.of_worker(tmp_path_factory.getbasetemp())


class _Runs(dict[str, Path]):
    """Runs that are trained when a test asks for them, once for all workers; each has a copy, which its tests may add to."""

    def __init__(self, own: Path) -> None:
        super().__init__()
        self._copies = own / "copied" / "runs"
        self._shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "trained"
        self._shared.mkdir(exist_ok=True)

    @classmethod
    @functools.cache  # for a fixture that is imported is one of its own in every module
    def of_worker(cls, own: Path) -> "_Runs":
        return cls(own)

    def __missing__(self, name: str) -> Path:
        kind = name.rpartition("-")[0]
        with FileLock(self._shared / f"{kind}.lock"):
            for seed in (1, 2) if kind == "plain" else (1,):
                _train_one(self._shared, *KINDS[kind], f"name={kind}", f"seed={seed}")
        copied = Path(shutil.copytree(self._shared / "runs" / kind, self._copies / kind))
        self.update({f"{kind}-{path.name[-1]}": path for path in copied.glob("*/*")})
        return self[name]


def _train_one(folder: Path, *chosen: str) -> None:
    """Train a run, unless another worker did; of its words none is among those of the test that asks for it."""
    budget = ["data.train_size=600", "trainer.max_epochs=2", "optimizer.lr=0.01", "logger=none", "data.open_names=0.2"]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        patch.chdir(folder)
        patch.setenv("ATTNLAB_CACHE", str(folder / "cache"))
        patch.setattr(sys, "argv", ["attnlab", "train", *TINY, *budget, *chosen])
        assert main() == 0
