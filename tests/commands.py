"""Run the command line inside the test process: importing torch anew for every command would take most of the time."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab import cli

TINY = [
    "data.train_size=96",
    "data.val_size=16",
    "data.test_size=16",
    "data.test_long_size=8",
    "model.embedding_size=16",
    "encoder.hidden_size=8",
    "decoder.hidden_size=16",
    "search.max_length_factor=0.5",
    "trainer.accelerator=cpu",
    "trainer.max_epochs=1",
    "trainer.enable_progress_bar=false",
]
"""A model and a corpus so small that a whole run takes a second or two."""

Attnlab = Callable[..., int]


@pytest.fixture
def attnlab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Attnlab:
    """``attnlab("train", ...)`` in a folder of its own; returns the exit status."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["attnlab", *arguments])
        try:
            return cli.main()
        except SystemExit as stop:  # as Hydra's own options end
            return int(stop.code or 0)

    return run
