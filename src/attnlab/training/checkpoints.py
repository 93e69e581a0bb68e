"""Checkpoints: which one is the best, when the last one is written, and files that are whole or not there."""

import math
import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
from lightning import LightningModule, Trainer
from lightning.fabric.utilities.types import _PATH
from lightning.pytorch.callbacks import Checkpoint, EarlyStopping, ModelCheckpoint
from lightning.pytorch.plugins import TorchCheckpointIO
from lightning.pytorch.utilities.types import STEP_OUTPUT
from torch import Tensor
from typing_extensions import override

from attnlab.data.batches import Batch
from attnlab.data.replacement import replacement
from attnlab.errors import UserError
from attnlab.evaluation.metric import VALIDATION_LOSS
from attnlab.hints import Range
from attnlab.training.callbacks import RunContext
from attnlab.training.process import is_time_to_ask


class BestCheckpoint(ModelCheckpoint):
    """Keeps the checkpoint with the best value of what is monitored; of equal ones that with the lowest loss.

    A metric may be exactly 0 in every weak epoch, the first of which would be kept for ever. What a checkpoint holds
    of this does not depend on where the run's folder is.
    """

    def __init__(self, context: RunContext) -> None:
        super().__init__(
            context.checkpoint.parent,
            filename=context.checkpoint.stem,
            monitor=context.monitor,
            mode=context.mode,
            save_top_k=1,
            enable_version_counter=False,
        )
        self.best_loss = float("inf")

    @override
    def check_monitor_top_k(self, trainer: Trainer, current: Tensor | None = None) -> bool:
        loss = _loss(trainer.callback_metrics)
        is_better: bool = super().check_monitor_top_k(trainer, current)
        if not is_better and current is not None and self.best_model_score is not None:
            is_better = bool(current == self.best_model_score) and loss < self.best_loss
            is_better = trainer.strategy.reduce_boolean_decision(is_better)
        if is_better:
            self.best_loss = loss
        return is_better

    @override
    def state_dict(self) -> dict[str, Any]:
        name = Path(self.best_model_path).name
        return {"name": name, "score": self.best_model_score, "loss": self.best_loss}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if not state_dict["name"]:
            return
        assert self.dirpath is not None
        self.best_model_path = self.kth_best_model_path = str(Path(self.dirpath) / state_dict["name"])
        self.best_model_score = self.kth_value = state_dict["score"]
        self.best_k_models = {self.best_model_path: state_dict["score"]}
        self.best_loss = state_dict["loss"]


class PatientStopping(EarlyStopping):
    """Stops when what is monitored has not improved for so many validations; an equal value with a lower loss has."""

    def __init__(
        self, context: RunContext, *, patience: Annotated[int, Range(1)] = 10, min_delta: Annotated[float, Range(0)] = 0.0
    ) -> None:
        super().__init__(context.monitor, mode=context.mode, patience=patience, min_delta=min_delta)
        self.best_loss = float("inf")

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop a training that goes on from a checkpoint by which it was to stop."""
        if self.wait_count >= self.patience:
            trainer.should_stop = True

    @override
    def _run_early_stopping_check(self, trainer: Trainer) -> None:  # private: what is public does not see the other metrics
        loss, current = _loss(trainer.callback_metrics), trainer.callback_metrics.get(self.monitor)
        is_equal = current is not None and bool(current == self.best_score.to(current.device))
        if is_equal and loss < self.best_loss:
            self.wait_count = -1  # to which is added 1
        best = self.best_score
        super()._run_early_stopping_check(trainer)
        if (is_equal and loss < self.best_loss) or bool(self.best_score != best):
            self.best_loss = loss

    @override
    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "best_loss": self.best_loss}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.best_loss = state_dict["best_loss"]


class LastCheckpoint(Checkpoint):
    """Writes the last checkpoint after every epoch, and within one every so many minutes.

    Lightning's own is written only when what is monitored improves, so that a kill loses all epochs since then.

    Args:
        context: of the run.
        minutes: from one to the next within an epoch.
    """

    def __init__(self, context: RunContext, *, minutes: Annotated[float, Range(0)] = 10.0) -> None:
        self.path = context.last_checkpoint
        self.seconds = 60.0 * minutes
        self._written = time.monotonic()

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock."""
        self._written = time.monotonic()

    @override
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int
    ) -> None:
        """Write it, if it is time, but before no validation: one who goes on from there would not make it up."""
        done, every = (batch_idx + 1, trainer.fit_loop.total_batch_idx + 1), trainer.val_check_batch or math.inf
        is_due = trainer.is_last_batch or any(number % every == 0 for number in done)
        is_old = time.monotonic() - self._written >= self.seconds
        if is_time_to_ask(trainer, batch_idx) and trainer.strategy.broadcast(is_old and not is_due):
            self._write(trainer)

    @override
    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write it."""
        self._write(trainer)

    def _write(self, trainer: Trainer) -> None:
        trainer.save_checkpoint(self.path)
        self._written = time.monotonic()


class WholeCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint beside its file and renames it, so that a file with its name is whole.

    Args:
        last: the checkpoint that a training goes on from: the one that it takes the place of stays, under another name; see
            :func:`earlier_checkpoint`.
    """

    def __init__(self, last: Path) -> None:
        super().__init__()
        self.last = last

    @override
    def save_checkpoint(self, checkpoint: dict[str, Any], path: _PATH, storage_options: Any | None = None) -> None:
        """Write a checkpoint.

        Raises:
            UserError: it cannot be written, as on a full disk.
        """
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with replacement(target) as temporary:
                with temporary.open("wb") as file:
                    torch.save(checkpoint, file)
                    file.flush()
                    os.fsync(file.fileno())
                if target == self.last and target.exists():
                    _keep_earlier(target)
        except (OSError, RuntimeError) as error:  # torch reports a failed write as RuntimeError
            cause = error if isinstance(error, OSError) else error.__context__
            if not isinstance(cause, OSError):
                raise
            raise UserError(f"cannot write {target}: {cause.strerror}") from error


def _keep_earlier(path: Path) -> None:
    earlier = earlier_checkpoint(path)
    try:
        earlier.unlink(missing_ok=True)
        earlier.hardlink_to(path)  # so that there is a checkpoint of this name at any time
    except OSError:  # a file system without links
        path.replace(earlier)


def earlier_checkpoint(path: Path) -> Path:
    """Return the name of the checkpoint that one took the place of."""
    return path.with_name(f"{path.stem}.earlier{path.suffix}")


def is_whole(path: Path) -> bool:
    """Tell whether a checkpoint is there, can be opened, and every byte of its tensors is as it was written."""
    try:
        with zipfile.ZipFile(path) as archive:  # which torch writes with checksums, and reads without looking at them
            if archive.testzip() is not None:
                return False
        torch.load(path, map_location="cpu", mmap=True, weights_only=True)  # what torch refuses and zipfile does not
    except Exception:  # of damaged bytes zipfile raises almost anything
        return False
    return True


def _loss(metrics: Mapping[str, Tensor]) -> float:
    return float(metrics.get(VALIDATION_LOSS, float("inf")))
