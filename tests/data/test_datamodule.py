"""Serving the examples of a task to processes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from attnlab.errors import UserError
from sentences import served, translation


def test_every_process_needs_something_to_validate(tmp_path: Path) -> None:
    data = served(translation(tmp_path))
    count = len(data.examples("val"))
    data.trainer = SimpleNamespace(global_rank=count - 1, world_size=count)  # type: ignore[assignment]
    assert len(data.val_dataloader()) == 1
    data.trainer = SimpleNamespace(global_rank=0, world_size=count + 1)  # type: ignore[assignment]
    with pytest.raises(UserError, match=rf"fewer examples \({count}\) than there are processes \({count + 1}\)"):
        data.val_dataloader()
