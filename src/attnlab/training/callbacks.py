"""What happens beside the training: speed, a record of every epoch, samples and pictures."""

import json
import time
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.types import STEP_OUTPUT
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from attnlab.data.batching import Batch
from attnlab.evaluation.heatmaps import heatmap
from attnlab.training.module import TranslationModule
from attnlab.training.outputs import Translation


class Throughput(Callback):
    """Logs ``train/tokens_per_second``: target tokens, end symbols included and padding not, a second of training.

    The clock runs while batches are served and trained on, and stands still during validation. Under several processes
    the tokens of all are counted.

    Attributes:
        tokens: target tokens trained on by this process since the start.
        seconds: of training since the start.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self.seconds = 0.0
        self._started: float | None = None

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock."""
        self._start()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int
    ) -> None:
        """Count a batch's tokens."""
        self.tokens += int((batch.target_lengths - 1).sum())

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop the clock."""
        self._stop()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop the clock and log the rate so far."""
        self._stop()
        pl_module.log("train/tokens_per_second", self.rate * trainer.world_size)

    @property
    def rate(self) -> float:
        """Target tokens a second of this process, from the start until now."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def _start(self) -> None:
        self._started = time.perf_counter()

    def _stop(self) -> None:
        if self._started is None:
            return
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # the steps are only queued until then
        self.seconds += time.perf_counter() - self._started
        self._started = None


class Record(Callback):
    """Writes ``metrics.jsonl`` in the run's folder: one line an epoch, every metric to the last bit.

    Args:
        folder: the run's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = Path(folder) / "metrics.jsonl"

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin a new file, unless a checkpoint is being resumed."""
        if trainer.ckpt_path is None:
            self.path.unlink(missing_ok=True)

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Add a line."""
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        line = {"epoch": trainer.current_epoch, "step": trainer.global_step, **metrics}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class Samples(Callback):
    """Translates a few validation sentences: a table an epoch, and at the end the attention on them as pictures.

    Tables go to Weights & Biases as ``samples``; pictures there as ``attention`` and into the run's folder, under
    ``heatmaps/``. At the end of the training the translations are also printed.

    Args:
        folder: the run's folder.
        sentences: how many, the first of the validation set.
        heatmaps: of how many of them the attention is drawn, at the end of training.
    """

    def __init__(self, folder: Path, *, sentences: int = 5, heatmaps: int = 3) -> None:
        self.folder = Path(folder) / "heatmaps"
        self.sentences = sentences
        self.heatmaps = heatmaps
        self.last: list[Translation] = []

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Translate, and log the table."""
        if trainer.sanity_checking or not trainer.is_global_zero:
            return
        assert isinstance(pl_module, TranslationModule)
        batch = pl_module.data.batch("val", range(min(self.sentences, len(pl_module.data.text("val").source))))
        self.last = pl_module.translate(batch.to(pl_module.device), pl_module.search)
        rows = [[trainer.current_epoch, *row] for row in self._rows(pl_module)]
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                logger.log_table("samples", columns=["epoch", "source", "reference", "hypothesis"], data=rows)

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Draw the attention, and print the translations."""
        assert isinstance(pl_module, TranslationModule)
        if pl_module.model.decoder.attention.context_size:
            self._draw(trainer)
        table = Table("source", "reference", "hypothesis", title="validation sentences, after the last epoch")
        for row in self._rows(pl_module):
            table.add_row(*row)
        Console().print(table)

    def _draw(self, trainer: Trainer) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        figures: list[Figure] = []
        for translation in self.last[: self.heatmaps]:
            figure = heatmap(translation.weights, translation.source, translation.tokens)
            figure.savefig(self.folder / f"val-{translation.index}.png", dpi=120)
            figures.append(figure)
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                logger.log_image("attention", images=list[Any](figures))

    def _rows(self, module: TranslationModule) -> list[list[str]]:
        text = module.data.text("val")
        return [[text.source[t.index], text.target[t.index], t.text] for t in self.last]
