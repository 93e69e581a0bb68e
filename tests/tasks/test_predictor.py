"""Prediction with trained models, whatever the task."""

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
import torch

from attnlab.errors import UserError
from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.metrics import LargestWeight
from attnlab.runs.assembly import build_model, build_task
from attnlab.search import GreedySearch, Hypothesis
from attnlab.tasks.predictor import Predictor
from commands import OF_ANY_TASK
from composing import settled


def test_only_the_best_hypothesis_of_a_batch_is_read() -> None:
    found = [[Hypothesis([5], -1.0, -1.0, torch.zeros(1, 2)), Hypothesis([6], -2.0, -2.0, torch.zeros(1, 2))], []]
    read: list[int] = []
    task = SimpleNamespace(read=lambda hypothesis, examples, index: read.append(index) or hypothesis.tokens)
    search = Mock(return_value=found, reads_weights=False)
    predictor = Predictor(cast(Any, task), [cast(Any, torch.nn.Identity())], search)
    target = torch.tensor([[2, 3], [2, 3]])
    batch: Any = SimpleNamespace(indices=torch.tensor([7, 3]), source=None, source_lengths=None, copy_ids=None, target=target)
    best: list[Any] = predictor.search_batch(batch, cast(Any, None))
    assert best[0] == [5]
    assert (best[1].index, best[1].tokens) == (3, []), "nothing was found"
    assert read == [7]


@pytest.mark.parametrize(("lines", "told"), [("text", "not one text"), ([1], "each of them text"), (None, "each of them text")])
def test_what_is_no_list_of_lines_is_told(lines: Any, told: str) -> None:
    predictor = Predictor(cast(Any, None), [cast(Any, torch.nn.Identity())], Mock(reads_weights=False))
    with pytest.raises(UserError, match=told):
        predictor.predict(lines)
    with pytest.raises(UserError, match=told):
        predictor.force(["a"], lines)


def test_an_ensemble_is_what_its_unlike_models_are_together() -> None:
    def made(*models: tuple[int, bool, int | None]) -> Predictor:
        every: Any = []
        for size, sums, limit in models:
            attention = SimpleNamespace(context_size=size, sums_to_one=sums)
            same = {"source_frontend": SimpleNamespace(input_size=1), "targets": None, "head": None}
            every.append(SimpleNamespace(decoder=SimpleNamespace(attention=attention), max_source_length=limit, **same))
        return Predictor(cast(Any, None), every, GreedySearch())

    both = made((4, True, 9), (0, False, None), (4, False, 5))
    assert (both.attends, both.sums_to_one, both.max_source_length) == (True, False, 5)
    alike = made((0, True, None), (0, True, None))
    assert (alike.attends, alike.sums_to_one, alike.max_source_length) == (False, True, None)


@pytest.mark.parametrize(("attention", "expected"), [("none", False), ("monotonic", True), ("dot", True)])
def test_the_model_says_whether_there_is_an_attention(attention: str, expected: bool) -> None:
    """The weights of a monotonic attention may all be zero, in a batch or in a whole set."""
    config = settled(*OF_ANY_TASK, "task=diagnostics", "data=copy", f"attention={attention}", "logger=none")
    task = build_task(config)
    task.prepare()
    model = build_model(config, task).eval()
    for part in model.decoder.attention.modules():
        if isinstance(getattr(part, "offset", None), torch.Tensor):
            part.offset.data.fill_(-1e4)
    predictor = Predictor(task, [model], GreedySearch())
    found = predictor.force_examples(task.examples("val"))
    assert [one.attends for one in found if one is not None] == [expected] * len(found)
    assert attention != "monotonic" or not any(bool(one.weights.any()) for one in found if one is not None)
    largest = LargestWeight().statistics(Evidence([], [], found))
    assert (largest is not None) is expected
