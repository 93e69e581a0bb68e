"""What is logged is what was meant, and two variants see the same."""

import json
import math
from itertools import chain
from pathlib import Path

import pytest
import torch
from lightning import Callback, LightningModule, Trainer

from attnlab.data.batching import Batch
from attnlab.studies.run import build_data, build_model
from attnlab.training import TeacherForcing
from commands import TINY, Attnlab, attnlab
from composing import composed

__all__ = ["attnlab"]


class Witness(Callback):
    """Writes down which sentences each step saw."""

    seen: list[list[int]]

    def __init__(self) -> None:
        Witness.seen = []

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        Witness.seen.append(batch.indices.tolist())


def test_two_attentions_see_the_same_batches_in_the_same_order(attnlab: Attnlab) -> None:
    watch = ["+callbacks.witness._target_=training.test_module.Witness", "trainer.max_epochs=2", "datamodule.batch_size=16"]
    orders = {}
    for run in ("attention=none", "attention=additive", "seed=2"):
        assert attnlab("train", *TINY, "logger=none", *watch, run) == 0
        orders[run] = Witness.seen
    assert len(orders["attention=none"]) == 12
    assert orders["attention=none"] == orders["attention=additive"] != orders["seed=2"]
    first, second = orders["attention=none"][:6], orders["attention=none"][6:]
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(96))
    assert first != second


def test_validation_metrics_are_those_of_a_plain_loop(attnlab: Attnlab, tmp_path: Path) -> None:
    overrides = [*TINY, "logger=none", "training.label_smoothing=0.1", "datamodule.eval_batch_size=5"]
    assert attnlab("train", *overrides) == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1")
    logged = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])

    config = composed(*overrides)
    data = build_data(config)
    model = build_model(config, data).eval()
    state = torch.load(folder / "last.ckpt", weights_only=True)["state_dict"]
    model.load_state_dict({name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")})
    total, right, tokens = 0.0, 0, 0
    for index in range(16):
        batch = data.batch("val", [index])
        memory, state = model.encode(batch.source, batch.source_lengths)
        log_probabilities = torch.log_softmax(model.scores(model.decode(batch.target[:, :-1], memory, state), memory), -1)[0]
        for step, label in enumerate(batch.target[0, 1:].tolist()):
            total -= log_probabilities[step, label].item()
            right += int(log_probabilities[step].argmax()) == label
            tokens += 1
    assert logged["val/loss"] == pytest.approx(total / tokens, rel=1e-5)
    assert logged["val/perplexity"] == pytest.approx(math.exp(total / tokens), rel=1e-5)
    assert logged["val/accuracy"] == pytest.approx(right / tokens, rel=1e-5)


def test_teacher_forcing_tosses_a_coin_for_each_sentence_or_token() -> None:
    generator = torch.Generator().manual_seed(0)
    by_sentence = TeacherForcing(0.25, "sentence").draw(4000, 5, generator)
    assert (by_sentence == by_sentence[:, :1]).all()
    assert by_sentence[:, 0].float().mean().item() == pytest.approx(0.25, abs=0.03)
    by_token = TeacherForcing(0.25, "token").draw(4000, 5, generator)
    assert by_token.float().mean(0).tolist() == pytest.approx([0.25] * 5, abs=0.03)
    assert not (by_token == by_token[:, :1]).all()
