"""Serving the examples of a task to processes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from attnlab.errors import UserError
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
