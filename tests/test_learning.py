"""What learns to align, and what cannot: every score on the grammar corpus, whose word alignments are known."""

from itertools import islice
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from attnlab.data.datamodule import ParallelDataModule
from attnlab.model import Seq2Seq
from attnlab.studies.run import build_data, build_model
from attnlab.tasks.translation.vocabulary import PAD
from composing import composed
from conftest import options

STEPS = 400
SMALL = ["data.train_size=1500", "data.val_size=60", "data.test_size=10", "data.test_long_size=10", "model.dropout=0"]
SMALL += ["model.embedding_size=48", "encoder.hidden_size=24", "decoder.hidden_size=48"]

CONTROLS = {
    "attention/score=linear": "the softmax cancels the query",
    "attention/normalizer=uniform": "everywhere alike",
}
"""What cannot learn to look anywhere, and why."""

SCORES = [f"attention/score={name}" for name in options("attention/score")]


def batches(data: ParallelDataModule):
    epoch = 0
    while True:
        loader = data.train_dataloader()
        loader.sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def train(model: Seq2Seq, data: ParallelDataModule) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    for batch in islice(batches(data), STEPS):
        memory, state = model.encode(batch.source, batch.source_lengths)
        decoded = model.decode(batch.target[:, :-1], memory, state)
        real = batch.target[:, 1:] != PAD
        loss = cross_entropy(model.scores(decoded, memory, real), batch.target[:, 1:][real])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def agreement(model: Seq2Seq, data: ParallelDataModule) -> tuple[float, float]:
    """How often a linked target token looks most at a source token that it is linked to, and how often chance would."""
    batch = data.batch("val", range(60))
    memory, state = model.encode(batch.source, batch.source_lengths)
    weights = model.decode(batch.target[:, :-1], memory, state).weights
    words = torch.arange(weights.shape[2]) < (batch.source_lengths - 1).unsqueeze(1)  # the end symbol is linked to nothing
    assert batch.links is not None
    linked = batch.links.sum(-1) > 0
    best = weights.masked_fill(~words.unsqueeze(1), -1).argmax(-1, keepdim=True)
    hits = batch.links.gather(2, best).squeeze(-1) > 0
    chance = (batch.links > 0).sum(-1) / words.sum(1, keepdim=True)
    return hits[linked].float().mean().item(), chance[linked].mean().item()


@pytest.mark.parametrize("override", sorted({*SCORES, *CONTROLS}))
def test_scores_learn_to_align_and_controls_do_not(
    override: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("ATTNLAB_CACHE", str(folder))
    config = composed(*SMALL, override)
    data = build_data(config)
    data.serve_links = True
    model = build_model(config, data).train()
    train(model, data)
    share, chance = agreement(model.eval(), data)
    if override in CONTROLS:
        assert share < 1.5 * chance
    else:
        assert share > 3 * chance
