"""Every window against a loop written from its equation, gradients included."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.attention import Attention, Query
from attnlab.attention.windows import Gaussian
from attnlab.errors import UserError
from conftest import options
from parts import agree, attention, inputs, parameters, part, sigmoid

LENGTHS = [5, 3]
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
Rows = Iterator[list[Tensor]]
Loop = Callable[[dict[str, Tensor], Tensor, Tensor, Tensor], Rows]


def softmax_over(logits: Tensor, positions: list[int]) -> list[Tensor]:
    total = sum(torch.exp(logits[j]) for j in positions)
    return [torch.exp(logits[j]) / total if j in positions else torch.zeros_like(logits[j]) for j in range(len(logits))]


def whole(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    for row in logits:
        yield softmax_over(row, list(range(len(row))))


def local_m(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    for t, row in enumerate(logits):
        center = min(t, len(row) - 1)
        yield softmax_over(row, [j for j in range(len(row)) if center - 1 <= j <= center + 1])


def local_p(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    for query, row in zip(queries, logits, strict=True):
        center = len(row) * sigmoid(p["window.v.weight"][0] @ torch.tanh(p["window.projection.weight"] @ query))
        inside = softmax_over(row, [j for j in range(len(row)) if center - 2 <= j <= center + 2])
        sigma = 2 / 2
        yield [a * torch.exp(-((j - center) ** 2) / (2 * sigma**2)) for j, a in enumerate(inside)]


def gaussian(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    for query, row in zip(queries, logits, strict=True):
        hidden = torch.tanh(p["window.projection.weight"] @ query)
        center = len(row) * sigmoid(p["window.center.weight"][0] @ hidden)
        sigma = len(row) * sigmoid(p["window.width.weight"][0] @ hidden) / 2
        biased = torch.stack([e - (j - center) ** 2 / (2 * sigma**2) for j, e in enumerate(row)])
        yield softmax_over(biased, list(range(len(row))))


LOOPS: dict[str, tuple[Loop, dict[str, Any]]] = {
    "global": (whole, {}),
    "local_m": (local_m, {"radius": 1}),
    "local_p": (local_p, {"radius": 2}),
    "gaussian": (gaussian, {}),
}


def make(name: str, **settings: Any) -> Attention:
    return attention(window=part("window", name, **settings))


@pytest.mark.parametrize("name", options("attention/window"))
def test_equation_and_gradients(name: str) -> None:
    loop, settings = LOOPS[name]
    ours = make(name, **settings).train()
    query, embedding, states = inputs(target=7)
    memory = ours.memory(states, MASK)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights

    p = parameters(ours)
    expected = torch.zeros(2, 7, 5, dtype=torch.float64)
    for b, length in enumerate(LENGTHS):
        source = states[b, :length]
        logits = query[b] @ (source @ p["score.projection.weight"].T).T
        for t, row in enumerate(loop(p, query[b], logits, source)):
            expected[b, t, :length] = torch.stack(row)
    agree(weights, expected, [query, states, *ours.parameters()])


def test_local_m_past_the_sources_end_looks_at_its_end() -> None:
    """A target three times as long as the source still has a window, which ends with the last token."""
    ours = make("local_m", radius=0)
    query, embedding, states = inputs(target=15)
    memory = ours.memory(states, MASK)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    assert weights[0].argmax(-1).tolist() == [0, 1, 2, 3] + [4] * 11
    assert weights[1].argmax(-1).tolist() == [0, 1] + [2] * 13
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 15).double())


def test_local_p_knows_the_true_length_and_does_not_normalise_again() -> None:
    ours = make("local_p", radius=2)
    query, embedding, states = inputs()
    memory = ours.memory(states, MASK)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    assert (weights.sum(-1) < 1).all()
    centers = LENGTHS[1] * torch.sigmoid(ours.window.v(torch.tanh(ours.window.projection(query[1]))))
    distances = (torch.arange(3) - centers).abs()
    assert ((weights[1, :, :3] > 0) == (distances <= 2)).all()
    assert (weights[1, :, 3:] == 0).all()


def test_a_gaussian_is_as_narrow_as_its_query_asks_for() -> None:
    window = Gaussian(4, 6)
    with torch.no_grad():
        window.projection.weight.fill_(1.0)
        window.width.weight.fill_(-1.0)
    _, width = window.place(torch.ones(1, 1, 4), torch.ones(1, 5, dtype=torch.bool), torch.zeros(1, dtype=torch.long))
    assert width.item() == pytest.approx(5 / (1 + math.exp(4 * math.tanh(4.0))), rel=1e-4)
    assert width.item() < 0.1


def test_a_gaussian_of_no_width_has_finite_gradients() -> None:
    window = make("gaussian").window
    with torch.no_grad():
        window.width.weight.fill_(-1e4)
        window.projection.weight.fill_(1.0)
    region = window(torch.ones(2, 1, 4, dtype=torch.float64), MASK, torch.zeros(2, dtype=torch.long))
    region.bias.softmax(-1).pow(2).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in window.parameters())


def test_a_gaussian_in_half_precision_tells_all_positions_apart_and_adds_what_is_finite() -> None:
    """A long source has positions that half precision does not tell apart, and squares that it cannot hold."""
    window, query = Gaussian(4, 6).half(), torch.ones(1, 1, 4, dtype=torch.float16)
    mask, step = torch.ones(1, 3000, dtype=torch.bool), torch.zeros(1, dtype=torch.long)
    for parameter, value in zip(window.parameters(), (1.0, 1e3, 0.0), strict=True):
        torch.nn.init.constant_(parameter, value)  # the centre is the end of the source, and the prior half as wide as it
    assert (window(query, mask, step).bias.diff() > 0).all()
    torch.nn.init.constant_(window.width.weight, -1e4)
    assert window(query, mask, step).bias.half().isfinite().all()


@pytest.mark.parametrize(
    ("name", "settings"),
    [("local_m", {"radius": -1}), ("local_p", {"radius": 0})],
)
def test_values_without_sense_are_refused(name: str, settings: dict[str, int]) -> None:
    with pytest.raises(UserError, match=r"radius must be [01] or more, not"):
        make(name, **settings)


@pytest.mark.parametrize("name", options("attention/window"))
def test_a_region_depends_on_query_mask_and_step_alone(name: str) -> None:
    """One query after another has the rows of all at once: a window keeps nothing from one call to the next."""
    window = make(name).window
    query, step = inputs(target=7)[0], torch.tensor([2, 0])
    together = window(query, MASK, step)
    shape = (2, 7, 5)
    assert (together.allowed & ~MASK.unsqueeze(1)).sum() == 0
    for t in range(7):
        alone = window(query[:, t : t + 1], MASK, step + t)
        for one, other in zip(together, alone, strict=True):
            if one is None:
                assert other is None
            else:
                torch.testing.assert_close(one.expand(shape)[:, t : t + 1], other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", options("attention/window"))
def test_weights_lose_mass_where_the_region_has_a_prior(name: str) -> None:
    ours = make(name)
    region = ours.window(inputs()[0], MASK, torch.zeros(2, dtype=torch.long))
    assert (region.prior is None) is ours.sums_to_one
