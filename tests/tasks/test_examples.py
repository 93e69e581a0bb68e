"""Examples of every task, found by listing conf/."""

import pickle
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from attnlab.errors import UserError
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


@pytest.mark.parametrize("name", options("task"))
def test_examples_go_to_processes_that_make_batches(name: str, tmp_path: Path) -> None:
    """By pickling, where these are not forked: in every run of a sweep, and outside Linux."""
    task = build_task(settled(f"task={name}", *few_examples(f"task={name}"), f"cache_dir={tmp_path}"))
    task.prepare()
    with suppress(UserError):
        task.serve_links()
    examples = task.examples("val")
    assert examples.sources[0] is not None
    assert examples.references[0] is not None
    same = pickle.loads(pickle.dumps(examples))
    indices = range(min(3, len(examples)))
    assert torch.equal(same[indices].source, examples[indices].source)
    assert [*same.sources] == [*examples.sources]
