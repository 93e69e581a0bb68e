"""The mean of the weights at the ends of several epochs."""

from collections.abc import Mapping
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.types import STEP_OUTPUT
from torch import Tensor
from typing_extensions import override

from attnlab.data.batches import Batch
from attnlab.errors import UserError
from attnlab.training.sharding import shares_parameters

Weights = dict[str, Tensor]

OWN_WEIGHTS = "weights_without_averaging"
"""Under which a checkpoint holds the weights that the training goes on with."""


class CheckpointAveraging(Callback):
    """Validates and tests with the mean of the weights at the ends of the last epochs (Vaswani et al. 2017, section 6.1).

    θ' = n⁻¹ Σ_{i=0}^{n-1} θ_{E-i} after epoch E, n being ``last`` or the number of epochs so far. The training goes on from
    θ_E. What is validated, kept in checkpoints and tested is θ', so that the best checkpoint holds the best mean; every
    checkpoint holds the n weights as well, and the last goes on to the same bits. Before the end of the first epoch nothing is
    averaged, and within an epoch the mean is that of the ends before.

    Lightning's own ``WeightAveraging`` averages from an epoch on instead of over the last ones, is an epoch late where it is
    validated, and copies the task with its data.

    Args:
        last: epochs that are averaged; the paper's is 5 checkpoints (20 of the large model), ten minutes apart.

    Raises:
        UserError: fewer than two epochs, or parameters that processes share out.
    """

    def __init__(self, *, last: int = 5) -> None:
        if last < 2:
            raise UserError(f"last must be 2 or more, not {last}: one epoch is its own mean")
        self.last = last
        self._ends: list[Weights] = []
        self._own: Weights | None = None
        self._is_fitting = False

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Note whether a checkpoint is one to go on from: the test reads one too, of which the mean is wanted."""
        if shares_parameters(trainer):
            raise UserError(
                "the mean of the last epochs' weights needs all of them, and with FSDP each process has a share: leave one out"
            )
        self._is_fitting = stage == "fit"

    @override
    def state_dict(self) -> dict[str, Any]:
        """Return the weights at the ends of the last epochs."""
        return {"ends": self._ends}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        if self._is_fitting:
            self._ends = state_dict["ends"]

    @override
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: STEP_OUTPUT, batch: Batch, batch_idx: int
    ) -> None:
        """Keep the weights at the end of an epoch, which is before its validation."""
        if trainer.is_last_batch:
            self._ends = [*self._ends, _copy(pl_module)][-self.last :]

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Put the mean in the place of the weights."""
        if self._is_fitting and self._ends:
            self._own = _copy(pl_module)
            pl_module.load_state_dict(self._mean(self._own))

    @override
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Put the weights back."""
        if self._own is not None:
            pl_module.load_state_dict(self._own)
            self._own = None

    @override
    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Leave the mean in the module, for a run without checkpoints."""
        if self._ends:
            pl_module.load_state_dict(self._mean(pl_module.state_dict()))

    @override
    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Write the mean where weights are looked for, and the weights beside it."""
        if self._ends:
            own = checkpoint["state_dict"] if self._own is None else self._own
            checkpoint.update({"state_dict": self._mean(own), OWN_WEIGHTS: own})

    @override
    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Train on with the weights, and not with the mean."""
        if self._is_fitting and OWN_WEIGHTS in checkpoint:
            pl_module.load_state_dict(checkpoint[OWN_WEIGHTS])

    def _mean(self, own: Mapping[str, Tensor]) -> Weights:
        """Return the mean; what is no floating-point number is as in ``own``."""
        return {name: self._mean_of(name, value) if value.is_floating_point() else value for name, value in own.items()}

    def _mean_of(self, name: str, own: Tensor) -> Tensor:
        return torch.stack([end[name].to(own.device) for end in self._ends]).mean(dim=0)


def _copy(module: LightningModule) -> Weights:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
