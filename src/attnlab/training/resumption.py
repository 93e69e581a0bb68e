"""Stopping a training and going on with it."""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities.exceptions import SIGTERMException
from lightning.pytorch.utilities.types import STEP_OUTPUT

from attnlab.attention.noise import NOISE
from attnlab.data.batches import Batch
from attnlab.seeding import derive_seed
from attnlab.training.process import is_time_to_ask

GRADIENTS = "gradients"
"""Of a step of the optimizer that is not complete, in a checkpoint."""


def _average(
    gradients: Mapping[str, torch.Tensor | None], module: LightningModule, strategy: DDPStrategy
) -> dict[str, torch.Tensor | None]:
    """Return the mean over processes of the gradients that each has by itself, all of which come here at once."""
    found: dict[str, torch.Tensor | None] = {}
    for name, parameter in module.named_parameters():
        own = gradients[name]
        known = strategy.reduce(torch.tensor(float(own is not None), device=parameter.device), reduce_op="sum")
        if float(known):  # some process has one; what a process has not been asked for counts as zero
            whole = torch.zeros_like(parameter) if own is None else own.detach().clone()  # reduced in its place
            found[name] = strategy.reduce(whole, reduce_op="mean")
    return found


class Resumption(Callback):
    """Lets a run that was stopped go on as if it had not been, to the last bit on a CPU.

    Random numbers of an epoch, those of attentions in a stream of their own, start from (seed, epoch, process); a checkpoint in
    the midst of an epoch holds where they were.
    Ctrl-C, SIGTERM, or SIGHUP unless it is ignored as under nohup, lets the current batch end, of several processes a few more,
    and a validation that has begun, writes a checkpoint and stops; asked twice, the run stops at once. Between two steps of the
    optimizer a checkpoint holds the gradients of the batches since the last one; of several processes that each have the whole
    model their mean, which the next step would have come to.

    Args:
        checkpoint: the file to be written when the run is asked to stop.
        seed: the run's.

    Attributes:
        asked: whether this process was asked to stop; Python may lose the exception that says so.
    """

    def __init__(self, checkpoint: Path, seed: int) -> None:
        self.checkpoint = checkpoint
        self.seed = seed
        self._states: dict[str, Any] = {}
        self._handlers: dict[int, Any] = {}
        self.asked = False
        self._is_late = False
        self._max_steps = -1
        self._gradients: dict[str, torch.Tensor] = {}

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the random number generators."""
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
        return {"cpu": torch.get_rng_state(), "cuda": cuda, "noise": NOISE.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Remember the states until the training begins."""
        self._states = state_dict

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let signals stop the run between two batches, where they are this thread's to handle."""
        # Lightning takes every epoch for an unfinished one where it counts steps, also one that a checkpoint has the end of.
        self._max_steps, trainer.fit_loop.epoch_loop.max_steps = trainer.max_steps, -1
        if threading.current_thread() is not threading.main_thread():
            return
        asking = [signal.SIGINT, *([signal.SIGHUP] if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else [])]
        stop = self._note if trainer.world_size > 1 else self._stop
        self._handlers = {number: signal.signal(number, stop) for number in asking}

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the signals back."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Go on in the midst of an epoch with the random numbers that would have come next; of several processes, the first.

        The checkpoint is the first one's, and the others would draw the same numbers.
        """
        trainer.fit_loop.epoch_loop.max_steps = self._max_steps
        self._handle_sigterm(trainer, self._note)
        if self._states and trainer.global_rank:
            self._seed(f"step {trainer.global_step}, rank {trainer.global_rank}")
        elif self._states:
            torch.set_rng_state(self._states["cpu"].cpu())
            for number, state in zip(range(torch.cuda.device_count()), self._states["cuda"], strict=False):
                torch.cuda.set_rng_state(state.cpu(), number)
            NOISE.load_state_dict(self._states["noise"])
        for name, parameter in pl_module.named_parameters() if self._gradients else ():
            parameter.grad = self._gradients[name].to(parameter.device) if name in self._gradients else None
        self._gradients = {}

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Keep the gradients of a step of which not all batches were seen."""
        if trainer.fit_loop.epoch_loop._should_accumulate():
            gradients = {name: parameter.grad for name, parameter in pl_module.named_parameters()}
            if trainer.world_size > 1 and isinstance(trainer.strategy, DDPStrategy):
                gradients = _average(gradients, pl_module, trainer.strategy)
            checkpoint[GRADIENTS] = {name: gradient for name, gradient in gradients.items() if gradient is not None}

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Remember them until the training begins."""
        self._gradients = checkpoint.get(GRADIENTS, {})

    def on_validation_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Let a validation end before the run stops: Lightning goes on behind one that was cut, as if it had been whole."""
        signals = trainer._signal_connector
        self._is_late |= signals.received_sigterm
        signals.received_sigterm = False

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop then."""
        if self._is_late:
            self._is_late, trainer._signal_connector.received_sigterm = False, True

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let SIGTERM stop a test at once, of which there is nothing to be written."""
        self._handle_sigterm(trainer, signal.default_int_handler)

    @staticmethod
    def _handle_sigterm(trainer: Trainer, handler: Callable[[int, FrameType | None], Any]) -> None:
        """Replace Lightning's handler, which it has set by now and takes away itself: from within, it would speak to the other
        processes, which may wait for something else, and so for ever.
        """
        if trainer.world_size > 1 and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start an epoch's random numbers."""
        self._seed(f"epoch {trainer.current_epoch}, rank {trainer.global_rank}")

    def _seed(self, place: str) -> None:
        torch.manual_seed(derive_seed(self.seed, place))
        NOISE.seed(derive_seed(self.seed, f"noise, {place}"))

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        """Let loggers have the steps that they would have had: Lightning counts one twice that was stopped at a validation."""
        trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int
    ) -> None:
        """Stop where all processes stand at the same place, if any of them was asked to."""
        if trainer.world_size > 1 and is_time_to_ask(trainer, batch_idx):
            asked = torch.tensor(float(self.asked), device=pl_module.device)
            if float(trainer.strategy.reduce(asked, reduce_op="sum")):
                # Lightning stops all alike then, behind a validation and the end of an epoch, which it would not make up for.
                trainer._signal_connector.received_sigterm = True

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Write a checkpoint when the run was asked to stop; of a test there is none, and the model is the best one."""
        if isinstance(exception, SIGTERMException) and trainer.state.fn == TrainerFn.FITTING:
            trainer.save_checkpoint(self.checkpoint)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        signal.signal(signum, signal.SIG_IGN if signum == signal.SIGHUP else signal.SIG_DFL)
        self.asked = True

    def _stop(self, signum: int, frame: FrameType | None) -> None:
        # A terminal that is closed may say so several times.
        signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_IGN)
        self.asked = True
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # no batch is to come
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGTERM)  # which Lightning waits for, to stop between two batches
