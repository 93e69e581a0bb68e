"""Heads that write numbers, and what they are learned by, against plain loops."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnlab.errors import UserError
from attnlab.heads import Absolute, Criterion, Quantiles, Squared, ValueHead
from composing import model

LEVELS = (0.1, 0.5, 0.9)


def by_loop(criterion: Criterion, written: torch.Tensor, labels: torch.Tensor) -> float:
    total = 0.0
    for row, right in zip(written.tolist(), labels.tolist(), strict=True):
        for numbers, y in zip(row, right, strict=True):
            if isinstance(criterion, Squared):
                total += (y - numbers[0]) ** 2
            elif isinstance(criterion, Absolute):
                total += abs(y - numbers[0])
            else:
                total += (
                    sum(2 * (q * (y - n) if y > n else (1 - q) * (n - y)) for q, n in zip(LEVELS, numbers, strict=True)) / 3
                )
    return total / labels.numel()


@pytest.mark.parametrize("criterion", [Squared(), Absolute(), Quantiles(LEVELS)], ids=lambda one: type(one).__name__)
def test_a_loss_is_that_of_a_plain_loop(criterion: Criterion) -> None:
    torch.manual_seed(0)
    written, labels = torch.randn(5, 3, len(criterion.levels)).double(), torch.randn(5, 3).double()
    assert criterion(written, labels).mean().item() == pytest.approx(by_loop(criterion, written, labels), abs=1e-12)


def test_the_quantile_next_to_one_half_alone_is_the_absolute_error() -> None:
    torch.manual_seed(0)
    written, labels = torch.randn(7, 2, 1), torch.randn(7, 2)
    torch.testing.assert_close(Quantiles([0.5])(written, labels), Absolute()(written, labels))
    three = torch.randn(7, 2, 3)
    assert torch.equal(Quantiles(LEVELS).point(three), three[..., 1])


def test_the_best_constants_are_mean_median_and_quantiles() -> None:
    """What a loss makes least is what its name says, on numbers that are not symmetric."""
    numbers = torch.randn(4001, generator=torch.Generator().manual_seed(0)).double().exp()
    grid = torch.linspace(0, 6, 1201).double()
    every = [(Squared(), 0, numbers.mean()), (Absolute(), 0, numbers.median())]
    every += [(Quantiles([q]), 0, numbers.quantile(q)) for q in LEVELS]
    for criterion, _, expected in every:
        losses = torch.stack([criterion(constant.expand(len(numbers), 1), numbers).mean() for constant in grid])
        assert grid[losses.argmin()].item() == pytest.approx(expected.item(), abs=0.01), criterion


def test_a_model_is_fed_the_numbers_that_it_wrote_and_what_else_is_known() -> None:
    head = model("head=values").head
    assert isinstance(head, ValueHead)
    given = torch.arange(26.0).view(2, 13)  # eleven numbers to be written, two that are known
    read = head.best(torch.full((2, 11), 7.0), given)
    assert (read[:, :11] == 7).all()
    assert torch.equal(read[:, 11:], given[:, 11:])


def test_dropout_is_on_what_the_numbers_are_read_from() -> None:
    head = model("head=values").head
    decoded: Any = SimpleNamespace(readouts=torch.randn(2, 3, 8).double())
    assert torch.equal(head(decoded, None, torch.zeros_like), head.projection.bias.expand(2, 3, -1))


def test_quantiles_that_cross_are_forecast_in_rising_order() -> None:
    """And are so never further from the right ones."""
    head = model("head=values", "head/criterion=quantiles").head
    assert isinstance(head, ValueHead)
    torch.manual_seed(0)
    levels = len(head.criterion.levels)
    written = torch.randn(40, 11 * levels)
    found = head.predict(written)
    assert found.tolist() == [[sorted(numbers) for numbers in row] for row in head.split(written).tolist()]
    assert torch.equal(head.best(written, torch.zeros(40, 11)), found[..., levels // 2])
    right = torch.randn(40, 11, levels).sort(dim=-1).values
    assert ((found - right).abs().sum(-1) <= (head.split(written) - right).abs().sum(-1) + 1e-5).all()
    labels = torch.randn(40, 11)
    torch.testing.assert_close(head.loss(written, labels), head.criterion(head.split(written), labels).mean())


@pytest.mark.parametrize("levels", [[], [0.5, 0.1], [0.1, 0.1], [0.0, 0.5], [0.5, 1.0]])
def test_levels_that_are_none_are_refused(levels: list[float]) -> None:
    with pytest.raises(UserError, match="levels are numbers above 0 and below 1 that rise"):
        Quantiles(levels)
