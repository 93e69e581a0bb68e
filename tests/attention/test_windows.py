"""Every window against a loop written from its equation, gradients included."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.attention import Attention, Query
from attnlab.errors import UserError
from conftest import options
from parts import agree, attention, inputs, parameters, part

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


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


def local_p(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    for query, row in zip(queries, logits, strict=True):
        center = len(row) * sigmoid(p["window.v.weight"][0] @ torch.tanh(p["window.projection.weight"] @ query))
        inside = softmax_over(row, [j for j in range(len(row)) if center - 1 <= j <= center + 1])
        sigma = 1 / 2
        yield [a * torch.exp(-((j - center) ** 2) / (2 * sigma**2)) for j, a in enumerate(inside)]


def gaussian(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    for query, row in zip(queries, logits, strict=True):
        hidden = torch.tanh(p["window.projection.weight"] @ query)
        center = len(row) * sigmoid(p["window.center.weight"][0] @ hidden)
        sigma = len(row) * sigmoid(p["window.width.weight"][0] @ hidden) / 2
        biased = torch.stack([e - (j - center) ** 2 / (2 * sigma**2) for j, e in enumerate(row)])
        yield softmax_over(biased, list(range(len(row))))


def expected_monotonic(energies: Tensor, before: list[Tensor]) -> list[Tensor]:
    """Sum over where the attention was, and over every way to walk from there and stop."""
    p = [sigmoid(e) for e in energies]
    zero = torch.zeros_like(p[0])
    return [
        p[j] * sum((before[k] * math.prod((1 - p[i] for i in range(k, j)), start=zero + 1) for k in range(j + 1)), start=zero)
        for j in range(len(p))
    ]


def monotonic(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    selected = [torch.tensor(float(j == 0), dtype=torch.float64) for j in range(logits.shape[1])]
    for row in logits:
        selected = expected_monotonic(row + p["window.offset"], selected)
        yield [a.squeeze() for a in selected]


def mocha(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    v, w, u = (p[f"window.selection.{name}.weight"] for name in ("v", "query_projection", "key_projection"))
    v, b = p["window.selection.gain"] * v / (v[0] @ v[0]) ** 0.5, p["window.selection.key_projection.bias"]
    selected = [torch.tensor(float(j == 0), dtype=torch.float64) for j in range(logits.shape[1])]
    for query, row in zip(queries, logits, strict=True):
        energies = torch.stack([v[0] @ torch.tanh(w @ query + u @ h + b) for h in states]) + p["window.offset"]
        selected = expected_monotonic(energies, selected)
        weights = [torch.zeros_like(selected[0]) for _ in selected]
        for k, share in enumerate(selected):
            chunk = [j for j in range(k - 2, k + 1) if j >= 0]
            for j, inside in zip(chunk, softmax_over(row[chunk], list(range(len(chunk)))), strict=True):
                weights[j] = weights[j] + share * inside
        yield [a.squeeze() for a in weights]


LOOPS: dict[str, tuple[Loop, dict[str, Any]]] = {
    "global": (whole, {}),
    "local_m": (local_m, {"radius": 1}),
    "local_p": (local_p, {"radius": 1}),
    "gaussian": (gaussian, {}),
    "monotonic": (monotonic, {"noise": 0.0}),
    "mocha": (mocha, {"noise": 0.0}),
}


def made(name: str, **settings: Any) -> Attention:
    return attention(window=part("window", name, **settings))


@pytest.mark.parametrize("name", options("attention/window"))
def test_equation_and_gradients(name: str) -> None:
    loop, settings = LOOPS[name]
    ours = made(name, **settings).train()
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
    ours = made("local_m", radius=0)
    query, embedding, states = inputs(target=15)
    memory = ours.memory(states, MASK)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    assert weights[0].argmax(-1).tolist() == [0, 1, 2, 3] + [4] * 11
    assert weights[1].argmax(-1).tolist() == [0, 1] + [2] * 13
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 15).double())


def test_local_p_knows_the_true_length_and_does_not_normalise_again() -> None:
    ours = made("local_p", radius=2)
    query, embedding, states = inputs()
    memory = ours.memory(states, MASK)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    assert (weights.sum(-1) < 1).all()
    centers = LENGTHS[1] * torch.sigmoid(ours.window.v(torch.tanh(ours.window.projection(query[1]))))
    distances = (torch.arange(3) - centers).abs()
    assert ((weights[1, :, :3] > 0) == (distances <= 2)).all()
    assert (weights[1, :, 3:] == 0).all()


@pytest.mark.parametrize("name", ["monotonic", "mocha"])
def test_hard_monotonic_attention_walks_as_the_algorithm_says(name: str) -> None:
    """At test: from where it stands, stop at the first position that is more likely chosen than not; never go back."""
    torch.manual_seed(0)
    ours = made(name).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.mul_(3)
        ours.window.offset.fill_(0.0)
    query, embedding, states = inputs(batch=30, target=6, source=8)
    mask = torch.arange(8) < torch.randint(1, 9, (30, 1))
    memory = ours.memory(states, mask)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    energies = ours.window.selection(query, memory.window) if name == "mocha" else ours.score(query, memory.keys)

    stopped, lost = 0, 0
    for b in range(30):
        stand: int | None = 0
        for t in range(6):
            ahead = [] if stand is None else [j for j in range(stand, int(mask[b].sum())) if energies[b, t, j] > 0]
            stand = ahead[0] if ahead else None
            found = weights[b, t].nonzero().squeeze(1).tolist()
            width = 3 if name == "mocha" else 1
            assert found == ([] if stand is None else list(range(max(0, stand - width + 1), stand + 1)))
            assert weights[b, t].sum().item() == pytest.approx(0.0 if stand is None else 1.0)
            stopped, lost = stopped + (stand is not None), lost + (stand is None)
    assert stopped > 20
    assert lost > 20


def test_a_sure_monotonic_expectation_is_the_hard_walk() -> None:
    """With energies far from zero training and test compute the same."""
    ours = made("monotonic", noise=0.0)
    with torch.no_grad():
        ours.window.offset.fill_(0.0)
    query, embedding, states = inputs(batch=20, target=6)
    memory = ours.memory(states, torch.ones(20, 5, dtype=torch.bool))
    memory = memory._replace(keys=memory.keys * 1e5)
    soft = ours.train()(Query(query, embedding), memory, ours.start(memory)).weights
    hard = ours.eval()(Query(query, embedding), memory, ours.start(memory)).weights
    torch.testing.assert_close(soft, hard, rtol=0, atol=1e-6)


def test_monotonic_noise_is_drawn_in_training_alone() -> None:
    ours = made("monotonic")
    query, embedding, states = inputs()
    memory = ours.memory(states, MASK)
    look = lambda: ours(Query(query, embedding), memory, ours.start(memory)).weights  # noqa: E731
    assert torch.equal(look(), look())
    ours.train()
    assert not torch.equal(look(), look())


@pytest.mark.parametrize(
    ("name", "settings"),
    [("local_m", {"radius": -1}), ("local_p", {"radius": 0}), ("mocha", {"chunk_size": 0}), ("monotonic", {"noise": -1.0})],
)
def test_values_without_sense_are_refused(name: str, settings: dict[str, int]) -> None:
    with pytest.raises(UserError, match=r"attention\.window\."):
        made(name, **settings)
