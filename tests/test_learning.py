"""What learns to align, and what cannot: every score on the grammar corpus, whose word alignments are known."""

from collections.abc import Iterator
from itertools import islice

import pytest
import torch
from torch.nn.functional import cross_entropy

from attnlab.data import Batch
from attnlab.data.datamodule import SequenceDataModule
from attnlab.data.symbols import PAD
from attnlab.model import Seq2Seq
from attnlab.runs.assembly import build_model, build_task
from attnlab.tasks.task import Task
from composing import settled
from conftest import exhaustive_but, options

STEPS = 400
SMALL = ["data.train_size=1500", "data.val_size=60", "model.dropout=0"]
SMALL += [f"data.{name}_size=10" for name in ("test", "test_long", "test_deep", "test_long_deep")]
SMALL += ["model.embedding_size=48", "encoder.hidden_size=24", "decoder.hidden_size=48"]

CONTROLS = {
    "attention/score=linear": "the softmax cancels the query",
    "attention/normalizer=uniform": "everywhere alike",
}
"""What cannot learn to look anywhere, and why."""

SCORES = [f"attention/score={name}" for name in options("attention/score")]


def batches(task: Task) -> Iterator[Batch]:
    data, epoch = SequenceDataModule(task.examples, task.test_names, task.batches, seed=1), 0
    while True:
        loader = data.train_dataloader()
        loader.sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def train(model: Seq2Seq, task: Task) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    for batch in islice(batches(task), STEPS):
        memory, state = model.encode(batch.source, batch.source_lengths)
        decoded = model.decode(batch.target[:, :-1], memory, state)
        labels = batch.target[:, 1:].flatten()
        positions = (labels != PAD).nonzero()[:, 0]
        loss = cross_entropy(model.scores(decoded, memory, positions), labels[positions])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def agreement(model: Seq2Seq, task: Task) -> tuple[float, float]:
    """How often a linked target token looks most at a source token that it is linked to, and how often chance would."""
    batch = task.examples("val")[range(60)]
    memory, state = model.encode(batch.source, batch.source_lengths)
    weights = model.decode(batch.target[:, :-1], memory, state).weights
    words = torch.arange(weights.shape[2]) < (batch.source_lengths - 1).unsqueeze(1)  # the end symbol is linked to nothing
    assert batch.links is not None
    linked = batch.links.sum(-1) > 0
    best = weights.masked_fill(~words.unsqueeze(1), -1).argmax(-1, keepdim=True)
    hits = batch.links.gather(2, best).squeeze(-1) > 0
    chance = (batch.links > 0).sum(-1) / words.sum(1, keepdim=True)
    return hits[linked].float().mean().item(), chance[linked].mean().item()


@pytest.mark.parametrize("override", exhaustive_but(["attention/score=additive"], sorted({*SCORES, *CONTROLS})))
def test_scores_learn_to_align_and_controls_do_not(override: str) -> None:
    config = settled(*SMALL, override)
    task = build_task(config)
    task.prepare()
    task.serve_links()
    model = build_model(config, task).train()
    train(model, task)
    share, chance = agreement(model.eval(), task)
    if override in CONTROLS:
        assert share < 1.5 * chance
    else:
        assert share > 2 * chance
