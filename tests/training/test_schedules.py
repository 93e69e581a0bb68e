"""Schedules against their equations."""

import math

import pytest
import torch
from lightning.pytorch.utilities.types import LRSchedulerConfigType

from attnlab.errors import UserError
from attnlab.training.schedules import cosine, exponential, inverse_sqrt, plateau


def rates(optimizer: torch.optim.Optimizer, schedule: LRSchedulerConfigType, count: int) -> list[float]:
    """The rates of so many intervals."""
    found = []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule["scheduler"].step()
    return found


def test_cosine_goes_down_half_a_cosine_and_stays_there() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    found = rates(optimizer, cosine(optimizer, duration=4, eta_min=0.1), 8)
    assert found == pytest.approx([0.1 + 0.3 * (1 + math.cos(math.pi * min(t, 4) / 4)) / 2 for t in range(8)])
    assert [cosine(optimizer, duration=4, interval=each)["interval"] for each in ("epoch", "step")] == ["epoch", "step"]  # type: ignore[typeddict-item]


def test_exponential_multiplies_after_every_interval() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    schedule = exponential(optimizer, gamma=0.7, interval="step")
    assert schedule["interval"] == "step"
    assert rates(optimizer, schedule, 5) == pytest.approx([0.4 * 0.7**t for t in range(5)])


def test_plateau_multiplies_once_a_metric_has_not_improved_for_long_enough() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = plateau(optimizer, monitor="val/bleu", mode="max", factor=0.3, patience=1)
    rates = []
    for value in (1.0, 2.0, 2.0, 1.5, 3.0):
        schedule["scheduler"].step(value)  # type: ignore[call-arg]
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([1.0, 1.0, 1.0, 0.3, 0.3])
    assert (schedule["monitor"], schedule["strict"]) == ("val/bleu", False), "an epoch may have no validation"


def test_inverse_sqrt_warms_up_and_then_goes_down_by_the_root() -> None:
    """Vaswani et al. 2017, equation 3: d^-½ min(t^-½, t · warmup^-1.5), the full rate being (d · warmup)^-½."""
    size, warmup = 64, 8
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=(size * warmup) ** -0.5)
    schedule = inverse_sqrt(optimizer, warmup=warmup)
    assert schedule["interval"] == "step"
    found = rates(optimizer, schedule, 30)
    assert found == pytest.approx([size**-0.5 * min(t**-0.5, t * warmup**-1.5) for t in range(1, 31)])
    assert max(found) == found[warmup - 1] == pytest.approx(1 / math.sqrt(size * warmup))


def test_a_rate_that_would_go_up_to_its_least_is_refused() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    with pytest.raises(UserError, match=r"goes down to, but 0\.2 is more than the full rate, 0\.1"):
        cosine(optimizer, duration=3, eta_min=0.2)


def test_a_warm_up_without_steps_is_refused() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    with pytest.raises(UserError, match="warmup is a number of steps, 1 or more, not 0"):
        inverse_sqrt(optimizer, warmup=0)
