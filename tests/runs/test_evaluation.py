"""Measuring a trained model: what an evaluation lacks is told, and loses no search."""

from pathlib import Path

import pytest
import torch

from attnlab.data import BatchOptions
from attnlab.errors import UserError
from attnlab.evaluation.evidence import ExampleResult, ForcedDecoding, Prediction
from attnlab.evaluation.metrics import AlignmentErrorRate
from attnlab.runs.evaluation import evaluate
from attnlab.tasks.pointing import Pointing, Sort
from sentences import MadeCorpus, prepared, translation


class GoneCorpus(MadeCorpus):
    """Its files are not there, as beside a model that was exported."""

    def fingerprint(self) -> str:
        raise UserError("no file corpus/train.en")


def test_an_evaluation_without_the_training_set_leaves_out_what_an_aligner_would_learn_from_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = translation(tmp_path, data=GoneCorpus(), silver_links=True)
    task.load_state(prepared(translation(tmp_path)).state())
    examples = task.parse(["The dog"], ["Der Hund"])
    source, target = examples.source_tokens(0), examples.target_tokens(0)
    weights = torch.full((3, 3), 1 / 3)
    prediction = Prediction(0, "Der Hund", target, source, weights, -1.0, -1.0)
    results = [ExampleResult(prediction, ForcedDecoding(target, [-1.0] * 3, [True] * 3, weights, source))]
    found = evaluate(task, examples, results, occasion="evaluation")
    assert (found.hypotheses, found.shift) == (["Der Hund"], None)
    assert "is not measured: no file corpus/train.en; mend that" in caplog.text
    with pytest.raises(UserError, match="no file"):
        evaluate(task, examples, results, occasion="test")


@pytest.mark.parametrize(("shift", "aer"), [(0, 100.0), (1, 0.0)])
def test_an_attention_is_read_by_the_shift_that_was_chosen(shift: int, aer: float) -> None:
    task = Pointing(Sort(), BatchOptions(), {"aer": AlignmentErrorRate()})
    examples = task.parse(["0.5 0.1"], ["1 0"])
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])  # row t looks where step t - 1 pointed
    source, target = examples.source_tokens(0), examples.target_tokens(0)
    forced = ForcedDecoding(target, [-1.0] * 3, [True] * 3, weights, source)
    results = [ExampleResult(Prediction(0, "1 0", target, source, weights, -1.0, -1.0), forced)]
    found = evaluate(task, examples, results, occasion="test", shift=shift)
    assert (found.measurements["aer"].value, found.shift) == (aer, shift)
