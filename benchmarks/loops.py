"""Training loops: Lightning's, a plain one of any model, and that of the tutorials, a sentence and a token at a time."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice, pairwise
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from attnlab.config import build
from attnlab.data.batches import Batch
from attnlab.model import Seq2Seq
from attnlab.precision import widen
from attnlab.training import SequenceModule
from attnlab.training.callbacks import LossGuard, Throughput
from benchmarks.figures import Contestant, rate
from benchmarks.setting import Setting, count_targets

Loss = Callable[[nn.Module, Batch], Tensor]


class Clock(Callback):
    """Measures the training of some batches, the serving of them included."""

    def __init__(self, setting: Setting) -> None:
        self.synchronize = setting.synchronize
        self.tokens = 0
        self.started = self.seconds = 0.0

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start."""
        self.synchronize()
        self.started = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        """Count a batch."""
        self.tokens += count_targets([batch])

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop."""
        self.synchronize()
        self.seconds = time.perf_counter() - self.started


def lightning_loop(setting: Setting, precision: str) -> Contestant:
    """Return what trains through Lightning's Trainer, with what a run has beside each batch."""
    module = setting.module()

    def train() -> float:
        clock = Clock(setting)
        fit(module, setting, [clock, Throughput(), LossGuard()], precision=precision, limit_train_batches=setting.batches)
        return clock.tokens / clock.seconds

    return train


def fit(
    module: SequenceModule, setting: Setting, callbacks: Sequence[Callback] = (), *, max_epochs: int = 1, **own: Any
) -> None:
    """Train by Lightning's Trainer, without validation, logger and checkpoints."""
    off = {"limit_val_batches": 0, "enable_checkpointing": False, "enable_progress_bar": False, "logger": False}
    trainer = build(setting.config["trainer"], "trainer")(**off, **own, max_epochs=max_epochs, callbacks=list(callbacks))
    trainer.fit(module, datamodule=module.data)


def plain_loop(setting: Setting, model: nn.Module, loss: Loss, precision: str) -> Contestant:
    """Return what trains any model without Lightning: loss, gradients, clipping, a step of the optimizer."""
    model.to(setting.device, torch.bfloat16 if precision == "bf16-true" else torch.float32).train()
    optimizer = setting.optimizer(list(model.parameters()))
    loader = setting.module().data.train_dataloader()

    def train() -> float:
        return rate(lambda: run(loader), setting.synchronize)

    def run(loader: DataLoader[Batch]) -> float:
        tokens = 0
        for batch in islice(loader, setting.batches):
            tokens += count_targets([batch])
            with mixed_precision(precision, setting.device):
                value = loss(model, batch.to(torch.device(setting.device)))
            update(value, model, optimizer, setting)
        return tokens

    return train


def tutorial_loop(setting: Setting) -> Contestant:
    """Return what trains the same model as the tutorials do: a sentence after another, each a token after another."""
    model = setting.model().train()
    optimizer = setting.optimizer(list(model.parameters()))
    batch = setting.training_batches()[0]
    examples = [one_sentence(batch, row).to(torch.device(setting.device)) for row in range(min(8, len(batch.source)))]

    def run() -> float:
        for example in examples:
            update(stepwise_loss(model, example), model, optimizer, setting)
        return count_targets(examples)

    return lambda: rate(run, setting.synchronize)


def update(loss: Tensor, model: nn.Module, optimizer: torch.optim.Optimizer, setting: Setting) -> None:
    """Change a model's parameters by the gradient of a loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), setting.config["trainer"]["gradient_clip_val"])
    optimizer.step()


def mixed_precision(precision: str, device: str) -> AbstractContextManager[Any]:
    """Return what computes in the precision that Lightning names so."""
    return torch.autocast(device, torch.bfloat16) if precision == "bf16-mixed" else nullcontext()


def batch_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Return our model's loss of a batch, as the LightningModule computes it."""
    assert isinstance(model, Seq2Seq)
    memory, state = model.encode(batch.source, batch.source_lengths)
    scores = model.scores(model.decode(batch.target[:, :-1], memory, state), memory, batch.positions)
    return cross_entropy(widen(scores), batch.real_labels)


def stepwise_loss(model: Seq2Seq, example: Batch) -> Tensor:
    """Return our model's loss of one sentence, a token after another."""
    memory, state = model.encode(example.source, example.source_lengths)
    losses: list[Tensor] = []
    for token, label in pairwise(example.target[0]):
        log_probabilities, _, state = model.step(token.unsqueeze(0), memory, state)
        losses.append(-log_probabilities[0].gather(0, label.reshape(1))[0])
    return torch.stack(losses).mean()


def one_sentence(batch: Batch, row: int) -> Batch:
    """Return a batch of one of a batch's sentences, without padding."""
    rows = slice(row, row + 1)
    source, target = int(batch.source_lengths[row]), int(batch.target_lengths[row])
    return Batch(
        batch.source[rows, :source],
        batch.source_lengths[rows],
        batch.target[rows, :target],
        batch.target_lengths[rows],
        batch.labels[rows, : target - 1],
        batch.indices[rows],
    )
