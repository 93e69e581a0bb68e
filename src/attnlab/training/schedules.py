"""Schedules of the learning rate, in the form that Lightning takes."""

import math
from typing import Annotated, Literal

from lightning.pytorch.utilities.types import LRSchedulerConfigType
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ConstantLR, ExponentialLR, LambdaLR, ReduceLROnPlateau

from attnlab.errors import UserError
from attnlab.hints import Range

Interval = Literal["epoch", "step"]


def constant(optimizer: Optimizer) -> LRSchedulerConfigType:
    """Leave the learning rate as it is."""
    return {"scheduler": ConstantLR(optimizer, factor=1.0, total_iters=0)}


def cosine(
    optimizer: Optimizer,
    *,
    duration: Annotated[int, Range(1)],
    eta_min: Annotated[float, Range(0)] = 0.0,
    interval: Interval = "epoch",
) -> LRSchedulerConfigType:
    """Go down half a cosine from the full rate to ``eta_min`` in ``duration`` intervals, and stay there.

    Raises:
        UserError: an ``eta_min`` above the full rate.
    """
    full = optimizer.defaults["lr"]
    if eta_min > full:
        raise UserError(f"eta_min is what the rate goes down to, but {eta_min:g} is more than the full rate, {full:g}")
    least = eta_min / full if full else 0.0

    def factor(done: int) -> float:
        return least + (1 - least) * (1 + math.cos(math.pi * min(done / duration, 1.0))) / 2

    return {"scheduler": LambdaLR(optimizer, factor), "interval": interval}


def exponential(
    optimizer: Optimizer, *, gamma: Annotated[float, Range(above=0)], interval: Interval = "epoch"
) -> LRSchedulerConfigType:
    """Multiply the rate by ``gamma`` after every interval."""
    return {"scheduler": ExponentialLR(optimizer, gamma=gamma), "interval": interval}


def inverse_sqrt(optimizer: Optimizer, *, warmup: int = 400) -> LRSchedulerConfigType:
    """Go up in a line to the full rate, then down by the inverse square root (Vaswani et al. 2017, section 5.3, equation 3).

    At step t, from 1, the rate is the full one times min(t / warmup, √(warmup / t)). The paper's full rate follows from the
    size of the model, (d · warmup)^-½; here it is the optimizer's, as in fairseq (Ott et al. 2019).

    Args:
        optimizer: whose rate it is.
        warmup: steps until the rate is full; the paper's is 4000.

    Raises:
        UserError: no step.
    """
    if warmup < 1:
        raise UserError(f"warmup is a number of steps, 1 or more, not {warmup}")

    def factor(done: int) -> float:
        return min((done + 1) / warmup, math.sqrt(warmup / (done + 1)))

    return {"scheduler": LambdaLR(optimizer, factor), "interval": "step"}


def plateau(
    optimizer: Optimizer,
    *,
    monitor: str,
    mode: Literal["min", "max"],
    factor: Annotated[float, Range(above=0, below=1)] = 0.5,
    patience: Annotated[int, Range(0)] = 1,
) -> LRSchedulerConfigType:
    """Multiply the rate by ``factor`` when a metric has not improved for more than ``patience`` epochs.

    Args:
        optimizer: whose rate it is.
        monitor: the metric, such as ``val/loss``.
        mode: "min" where lower is better, "max" where higher is.
        factor: of the rate.
        patience: epochs.
    """
    scheduler = ReduceLROnPlateau(optimizer, mode=mode, factor=factor, patience=patience)
    # Not strict: there may be an epoch without a validation.
    return {"scheduler": scheduler, "interval": "epoch", "monitor": monitor, "strict": False}
