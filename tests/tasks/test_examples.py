"""Examples of every task, found by listing conf/."""

from pathlib import Path

import pytest

from attnlab.runs.assembly import build_task
from composing import few_examples, settled
from conftest import options


@pytest.mark.few(3)
@pytest.mark.parametrize("name", options("task"))
def test_lines_of_text_are_made_once(name: str, tmp_path: Path) -> None:
    """They are asked for an example at a time, in a loop over all examples."""
    task = build_task(settled(f"task={name}", *few_examples(f"task={name}"), f"cache_dir={tmp_path}"))
    task.prepare()
    examples = task.examples("val")
    assert examples.sources is examples.sources
    assert examples.references is examples.references
    assert len(examples.sources) == len(examples.references) == len(examples) > 0
