"""Serving the examples of a task to processes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from attnlab.data.batches import BatchOptions
from attnlab.data.datamodule import SequenceDataModule
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import EOS
from attnlab.errors import UserError
from data.test_batches import Plain
from sentences import served, translation


def test_every_process_needs_something_to_validate_and_to_test(tmp_path: Path) -> None:
    data = served(translation(tmp_path))
    counts = {name: len(data.examples(name)) for name in ("val", *data.test_names)}
    fewest = min(counts, key=lambda name: counts[name])
    count = counts[fewest]
    data.trainer = SimpleNamespace(global_rank=count - 1, world_size=count)  # type: ignore[assignment]
    data.setup("fit")
    assert len(data.val_dataloader()) >= 1
    assert all(len(loader) >= 1 for loader in data.test_dataloader())
    for stage, name, processes in [("fit", fewest, count + 1), ("test", data.test_names[0], 1 + counts[data.test_names[0]])]:
        data.trainer = SimpleNamespace(global_rank=0, world_size=processes)  # type: ignore[assignment]
        told = "validation" if name == "val" else name
        with pytest.raises(UserError, match=rf"^{told} has fewer examples \(\d+\) than there are processes \({processes}\)"):
            data.setup(stage)


def test_a_process_needs_more_than_an_empty_source() -> None:
    """Which stands in no batch."""
    ids = Ragged.of_ids([[5, EOS], [EOS], [6, EOS]])
    data = SequenceDataModule(lambda _: Plain(ids, ids), ["test"], BatchOptions(), seed=1)
    data.trainer = SimpleNamespace(global_rank=0, world_size=2)  # type: ignore[assignment]
    data.setup("fit")
    data.trainer = SimpleNamespace(global_rank=0, world_size=3)  # type: ignore[assignment]
    with pytest.raises(UserError, match=r"^validation has fewer examples \(2\) than there are processes \(3\)"):
        data.setup("fit")
