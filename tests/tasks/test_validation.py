"""What a task promises is tried before the training: attnlab's own keep it, and a user's own that does not is refused."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from torch import nn

from attnlab.data.examples import Examples
from attnlab.data.symbols import PAD
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Prediction
from attnlab.layers.frontend import TokenFrontend
from attnlab.runs.assembly import build_task, prepare_task
from attnlab.tasks.validation import try_task
from composing import composed, few_examples, settled
from conftest import options
from pages import write_block


@pytest.mark.parametrize("name", options("task"))
def test_every_task_keeps_its_promises(name: str, tmp_path: Path) -> None:
    config = settled(f"task={name}", *few_examples(f"task={name}"), f"cache_dir={tmp_path}")
    task = build_task(config)
    task.prepare()
    try_task(task, lambda: build_task(config))


@pytest.fixture(scope="module")
def mytask(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The task of the documentation."""
    folder = tmp_path_factory.mktemp("own")
    write_block("mytask.py", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "mytask", raising=False)
        yield importlib.import_module("mytask")


def refuse(*error: Any) -> Any:
    raise KeyError("lost")


def prepare(monkeypatch: pytest.MonkeyPatch, mytask: Any, own: dict[str, Any], of_data: dict[str, Any]) -> None:
    """Prepare the task of the documentation with other attributes of its class, or of that of its data."""
    module = ModuleType("changed")
    module.Changed = type("Changed", (mytask.Addition,), own)  # type: ignore[attr-defined]
    module.Drawn = type("Drawn", (mytask.Sums,), of_data)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "changed", module)
    config = composed("task=diagnostics") | {
        "task": {"_target_": "changed.Changed", "_partial_": True},
        "data": {"_target_": "changed.Drawn", "train_size": 20, "size": 5},
    }
    task = build_task(config)
    prepare_task(config, task)
    assert task.fingerprint


def examples(change: Any) -> Any:
    """A method ``examples`` whose validation set is changed."""

    def examples(self: Any, split: str) -> Any:
        made = super(type(self), self).examples(split)
        return change(made) if split == "val" else made

    return examples


def changed(**attributes: Any) -> Any:
    """What gives examples other attributes."""

    def change(made: Examples) -> Examples:
        for name, value in attributes.items():
            setattr(made, name, value)
        return made

    return change


def bare(made: Examples) -> Examples:
    kind = type("Bare", (type(made),), {"__init__": lambda self: None})
    return kind()  # type: ignore[no-any-return]


def prediction(**changes: Any) -> Any:
    def read(self: Any, hypothesis: Any, examples: Any, index: int) -> Prediction:
        found = super(type(self), self).read(hypothesis, examples, index)
        return Prediction(**(vars(found) | changes))

    return read


TASK: list[tuple[dict[str, Any], str]] = [
    ({"test_names": "test"}, "Changed has test_names = 'test', which must be a list, each text"),
    ({"test_names": ("test", "val")}, "has the test set 'val', as another split is called"),
    (
        {"test_names": ("test", "more")},
        r"examples\('more'\) of Changed cannot be computed: KeyError: 'more' \(mytask.py, line \d+\)",
    ),
    ({"name": None}, "Changed has name = None, which must be text"),
    ({"prepare": refuse}, r"prepare\(\) of Changed cannot be computed: KeyError: 'lost' \(test_validation.py, line \d+\)"),
    (
        {"examples": lambda self, split: [1, 2]},
        r"examples\('train'\) of Changed gives list: it returns what inherits from Examples",
    ),
    ({"examples": examples(bare)}, r"Bare is not prepared: call super\(\).__init__\(source, target\)"),
    ({"examples": examples(changed(references=[]))}, "5 sources, 0 references, 5 lengths: it has one of each"),
    ({"examples": examples(changed(sources=[1] * 5))}, r"examples\('val'\) of Changed, example 1, has 1 for a source"),
    ({"examples": examples(changed(references=["a\nb"] * 5))}, r"has 'a\\nb' for a reference, which is a line of text"),
    ({"examples": examples(changed(source_tokens=lambda index: ["1"]))}, r"shows 1 source_tokens, where the model has \d+"),
    ({"examples": examples(changed(target_tokens=lambda index: "12"))}, "has '12' for target_tokens, which is a list of texts"),
    ({"examples": examples(lambda made: type(made)([]))}, "has no example: a split has one at least"),
    ({"targets": 14}, "targets of Changed is 14: it is a TargetSpace"),
    ({"source_frontend": lambda self, size: nn.Embedding(15, size)}, "Embedding is no source frontend: let its class inherit"),
    (
        {"source_frontend": lambda self, size: TokenFrontend(5, PAD, size)},
        r"train has the id 1\d, and source_frontend\(\) of Changed embeds 5, which count from 0",
    ),
    ({"state": lambda self: {"a": {1, 2}}}, r"state\(\) of Changed cannot be written to a file \(Object of type set"),
    ({"load_state": refuse}, r"load_state\(\) of Changed cannot be computed: KeyError: 'lost'"),
    ({"read": lambda self, *given: "12"}, r"read\(\) of Changed gives str: it returns a Prediction"),
    ({"read": refuse}, r"read\(\) of Changed cannot be computed: KeyError: 'lost'"),
    ({"read": prediction(index=7)}, "gives a prediction of index 7, which is 0, as it was asked for"),
    ({"read": prediction(text=12)}, "gives a prediction whose text is no text"),
    ({"read": prediction(text="1\n2")}, r"gives '1\\n2': a prediction is a line of a file"),
    ({"read": prediction(weights=np.ones((1, 2)))}, r"gives weights \(1, 2\) for \d+ tokens and \d+ source tokens"),
    ({"parse": lambda self, sources, targets=None: []}, r"parse\(\) of Changed makes \[\] of one line: it returns Examples"),
    ({"parse": refuse}, r"parse\(\) of Changed cannot be computed: KeyError: 'lost'"),
    ({"gold": lambda self, examples, indices: [1]}, r"gold\(\) of Changed gives 1 for \d+ examples: one for each"),
    ({"divisions": lambda self, split: {"first": range(2)}}, r"divisions\(\) of Changed cannot be computed: KeyError: 'first'"),
    ({"knows_links": True}, r"Changed says knows_links, and gold_links\(\) of SumExamples gives none"),
]
DATA: list[tuple[dict[str, Any], str]] = [
    ({"fingerprint": lambda self: None}, r"fingerprint\(\) of Drawn gives None: it returns a hash"),
    (
        {"draw": lambda self, split: [("1+1", "x")]},
        r"prepare\(\) of Changed cannot be computed: ValueError: .* \(mytask.py, line",
    ),
]


@pytest.mark.parametrize(("task", "told"), TASK)
def test_a_task_that_breaks_a_promise_is_refused(
    task: dict[str, Any], told: str, mytask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=told):
        prepare(monkeypatch, mytask, task, {})


@pytest.mark.parametrize(("data", "told"), DATA)
def test_data_that_break_a_promise_are_refused(
    data: dict[str, Any], told: str, mytask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=told):
        prepare(monkeypatch, mytask, {"content": "known" if "draw" in data else mytask.Addition.content}, data)


def test_a_right_target_that_is_read_as_no_reference_is_told(
    mytask: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prepare(monkeypatch, mytask, {}, {})
    assert not caplog.messages
    prepare(monkeypatch, mytask, {"read": prediction(text="12 ")}, {})
    assert "read() of Changed makes '12 ' of the right target of an example whose reference is '" in caplog.text
