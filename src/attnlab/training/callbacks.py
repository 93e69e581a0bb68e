"""What happens beside the training: speed, a record of every epoch, samples and pictures."""

import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.loggers import TensorBoardLogger, WandbLogger
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.types import STEP_OUTPUT
from rich.table import Table
from typing_extensions import override

from attnlab.attention.trial import preserve_state
from attnlab.data.batches import Batch
from attnlab.data.replacement import write_atomically
from attnlab.evaluation.evidence import EXAMPLE, Prediction
from attnlab.evaluation.metric import VALIDATION_LOSS
from attnlab.evaluation.plots import plot_side_by_side, save
from attnlab.hints import Range
from attnlab.terminal import Terminal
from attnlab.training.finite import describe_origin
from attnlab.training.module import SequenceModule
from attnlab.training.process import BATCHES_BETWEEN
from attnlab.training.sharding import whole_parameters

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunContext:
    """What a callback may need to know of the run; one whose config says ``_partial_`` is given it.

    Attributes:
        folder: of the run.
        heatmaps: folder for pictures.
        checkpoint: file of the best checkpoint.
        last_checkpoint: file of the last one.
        monitor: the metric that chooses the best checkpoint, such as ``val/loss``.
        mode: "min" where a lower value of it is better, else "max".
    """

    folder: Path
    heatmaps: Path
    checkpoint: Path
    last_checkpoint: Path
    monitor: str
    mode: Literal["min", "max"]


class Throughput(Callback):
    """Logs ``train/tokens_per_second``: target tokens, end symbols included and padding not, a second of training.

    The clock runs while batches are served and trained on, and stands still during validation. Under several processes
    each is taken to train on as many tokens as the first.

    Attributes:
        tokens: target tokens trained on by this process since the start.
        seconds: of training since the start.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self.seconds = 0.0
        self._before = 0.0
        self._begun = time.perf_counter()
        self._started: float | None = None
        self._is_fitting = False

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Note whether a checkpoint is one to go on from: the test reads one too, when the clock has run further."""
        self._is_fitting = stage == "fit"

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock."""
        self._start()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int
    ) -> None:
        """Count a batch's tokens."""
        self.tokens += len(batch.positions)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop the clock."""
        self._stop()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock again, for what is left of the epoch."""
        if trainer.state.fn == TrainerFn.FITTING:
            self._start()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop the clock and log the rate so far."""
        self._stop()
        pl_module.log("train/tokens_per_second", self.rate * trainer.world_size)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps, so that a resumed run counts on."""
        running = time.perf_counter() - self._started if self._started is not None else 0.0
        return {"tokens": self.tokens, "seconds": self.seconds + running, "wall": self.wall}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Count on from a checkpoint."""
        if self._is_fitting:
            self.tokens, self.seconds, self._before = (state_dict[name] for name in ("tokens", "seconds", "wall"))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock; an epoch that goes on in its midst does not start anew."""
        self._start()

    @property
    def rate(self) -> float:
        """Target tokens a second of this process, from the start until now."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def wall(self) -> float:
        """Seconds of everything so far, validation included, and of what was done before the last checkpoint."""
        return self._before + time.perf_counter() - self._begun

    def _start(self) -> None:
        self._started = time.perf_counter()

    def _stop(self) -> None:
        if self._started is None:
            return
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()  # the steps are only queued until then
        self.seconds += time.perf_counter() - self._started
        self._started = None


class MetricsRecorder(Callback):
    """Writes every metric of every epoch into a file, a line an epoch, to the last bit.

    ``seconds`` in it are those of training until the end of the epoch.

    Args:
        path: of the file.
        throughput: counts the seconds; it comes before this callback.
    """

    def __init__(self, path: Path, throughput: Throughput) -> None:
        self.path = path
        self.throughput = throughput

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin a new file; of a run that is resumed, keep the epochs before the one that it goes on with."""
        goes_on = trainer.ckpt_path and self.path.is_file()
        # A line may be cut, of a process that was killed while it wrote, or damaged: that is no reason to be stuck.
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines() if goes_on else []
        kept = [line for line in lines if 0 <= _epoch(line) < trainer.current_epoch]
        if goes_on and [_epoch(line) for line in kept] != list(range(trainer.current_epoch)):
            log.warning("%s is damaged: epochs before the %dth are missing in it", self.path, trainer.current_epoch + 1)
        write_atomically(self.path, "".join(f"{line}\n" for line in kept))

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Add a line; of an epoch that ended without a validation, none of its metrics."""
        assert isinstance(pl_module, SequenceModule)
        logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
        metrics = {name: value for name, value in logged.items() if name.rpartition("/")[0] not in pl_module.measured}
        metrics |= pl_module.validation
        seconds = self.throughput.seconds
        line = {"epoch": trainer.current_epoch, "step": trainer.global_step, "seconds": seconds, **metrics}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _epoch(line: str) -> int:
    """Return the epoch that a line is of; -1 where it cannot be read."""
    try:
        return int(json.loads(line)["epoch"])
    except (ValueError, LookupError, TypeError):
        return -1


class LossGuard(Callback):
    """Ends a training whose loss is no number any more, or a metric infinite, instead of letting it go on in vain.

    A look waits for the device, and so comes every :data:`BATCHES_BETWEEN` steps.

    Raises:
        FloatingPointError: it is; the message says which parameters, or which module, are not finite.
    """

    def __init__(self) -> None:
        self._loss = torch.zeros(())
        self._batch: Batch | None = None

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int
    ) -> None:
        """Look at the loss."""
        assert isinstance(outputs, Mapping)
        self._loss, self._batch = outputs["loss"], batch
        if batch_idx % BATCHES_BETWEEN == 0:
            self._refuse("train/loss", self._loss, trainer, pl_module)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look at the loss, before it is asked for predictions."""
        self._refuse("train/loss", self._loss, trainer, pl_module)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look at the metrics of the validation set and of its divisions."""
        assert isinstance(pl_module, SequenceModule)
        for name, value in trainer.callback_metrics.items():
            is_measured = name.rpartition("/")[0] in pl_module.measured
            if name == VALIDATION_LOSS or (is_measured and bool(value.isinf())):
                self._refuse(name, value, trainer, pl_module)

    def _refuse(self, name: str, value: torch.Tensor, trainer: Trainer, module: LightningModule) -> None:
        is_finite = bool(torch.isfinite(value))
        if trainer.strategy.reduce_boolean_decision(is_finite):  # of all processes, none of which must go on alone
            return
        assert isinstance(module, SequenceModule)
        with whole_parameters(trainer):
            where = f" ({describe_origin(module.model, self._batch)})" if self._batch is not None and not is_finite else ""
        told = f"{name} is {float(value)}" if not is_finite else f"{name} of another process is not finite"
        at = f"{told} at step {trainer.global_step}{where}"
        raise FloatingPointError(f"{at}: a lower learning rate or stronger clipping of gradients may help")


class ProgressBar(RichProgressBar):
    """Shows the steps and the loss of a training, a few times a second: to read the loss is to wait for the device."""

    SECONDS: ClassVar[float] = 0.5
    """Between two looks."""

    def __init__(self) -> None:
        super().__init__(leave=False)
        self._looked = -math.inf

    @override
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int
    ) -> None:
        now = time.monotonic()
        if now - self._looked >= self.SECONDS or trainer.is_last_batch:
            self._looked = now
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)


COLUMNS = (EXAMPLE, "source", "reference", "prediction")
"""Of the tables of samples."""


class Samples(Callback):
    """Predicts a few validation examples: a table an epoch, and at the end the attention on them as pictures.

    Tables go to Weights & Biases as ``samples``; pictures there and to TensorBoard as ``attention``, and into a folder. At the
    end of the training the predictions are also printed.

    Args:
        context: of the run.
        examples: how many, the first of the validation set, or of each of its divisions in turn.
        heatmaps: of how many of them the attention is drawn, at the end of training.
    """

    def __init__(
        self, context: RunContext, *, examples: Annotated[int, Range(0)] = 5, heatmaps: Annotated[int, Range(0)] = 3
    ) -> None:
        self.folder = context.heatmaps
        self.examples = examples
        self.heatmaps = heatmaps
        self.last: list[Prediction] = []
        self.is_stale = examples > 0  # for all processes, of which one alone predicts

    @override
    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Predict, and log the table."""
        if trainer.sanity_checking or not self.examples:
            return
        self._predict(trainer, pl_module)

    def _predict(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, SequenceModule)
        self.is_stale = False
        with whole_parameters(trainer):
            if not trainer.is_global_zero:
                return
            examples = pl_module.data.examples("val")
            divisions = list(pl_module.task.divisions("val").values()) or [range(len(examples))]
            is_known = examples.has_source
            in_turn = (index for row in zip_longest(*divisions) for index in row if index is not None and is_known[index])
            batch = examples[list(islice(in_turn, self.examples))].to(pl_module.device)
            self.last = pl_module.predictor.search_batch(batch, examples)
        rows = [[trainer.current_epoch, *row] for row in self._rows(pl_module)]
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                logger.log_table("samples", columns=["epoch", *COLUMNS], data=rows)

    @override
    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Draw the attention, and print the predictions."""
        if self.is_stale:  # a training that was stopped between its last validation and here
            with preserve_state(pl_module):
                self._predict(trainer, pl_module)
        self._show(trainer, pl_module)

    @rank_zero_only  # type: ignore[untyped-decorator, unused-ignore]
    def _show(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, SequenceModule)
        if not self.last:
            return
        if pl_module.model.decoder.attention.context_size:
            self._draw(trainer, pl_module)
        table = Table(*COLUMNS, title="validation examples, after the last epoch")
        for row in self._rows(pl_module):
            table.add_row(*map(str, row))
        Terminal().print(table)

    def _draw(self, trainer: Trainer, module: SequenceModule) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        boards = [logger.experiment for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]
        for prediction, (number, source, *_) in zip(self.last[: self.heatmaps], self._rows(module), strict=False):
            figure = plot_side_by_side({f"val {number}": (prediction.weights, prediction.source, prediction.tokens)})
            path = self.folder / f"val-{number}.png"
            save(figure, path)
            name = f"heatmap, val {number}"  # each by itself: W&B warns of a list of pictures of several sizes
            for board in boards:
                board.add_figure(name, figure, trainer.global_step)
            for logger in trainer.loggers:
                if isinstance(logger, WandbLogger):
                    logger.log_image(name, images=[str(path)], caption=[source])

    def _rows(self, module: SequenceModule) -> list[list[Any]]:
        """Return what each example has in :data:`COLUMNS`."""
        examples = module.data.examples("val")
        return [[p.number, examples.sources[p.index], examples.references[p.index], p.text] for p in self.last]
