"""Every normalizer with a state against a loop written from its equation, gradients included."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.attention import Attention, Query
from attnlab.attention.mechanism import Memory
from attnlab.attention.monotonic import Monotonic
from attnlab.attention.noise import NOISE, draw_normal
from attnlab.errors import UserError
from parts import (
    agree,
    attention,
    inputs,
    parameters,
    part,
    sequential_normalizers,
    sigmoid,
    softmax,
    stateless_normalizers,
)

LENGTHS = [5, 3]
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
Rows = Iterator[list[Tensor]]
Loop = Callable[[dict[str, Tensor], Tensor, Tensor, Tensor], Rows]


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
        selected = expected_monotonic(row + p["normalizer.offset"], selected)
        yield [a.squeeze() for a in selected]


def mocha(p: dict[str, Tensor], queries: Tensor, logits: Tensor, states: Tensor) -> Rows:
    v, w, u = (p[f"normalizer.selection.{name}.weight"] for name in ("v", "query_projection", "key_projection"))
    v, b = p["normalizer.selection.gain"] * v / (v[0] @ v[0]) ** 0.5, p["normalizer.selection.key_projection.bias"]
    selected = [torch.tensor(float(j == 0), dtype=torch.float64) for j in range(logits.shape[1])]
    for query, row in zip(queries, logits, strict=True):
        energies = torch.stack([v[0] @ torch.tanh(w @ query + u @ h + b) for h in states]) + p["normalizer.offset"]
        selected = expected_monotonic(energies, selected)
        weights = [torch.zeros_like(selected[0]) for _ in selected]
        for k, share in enumerate(selected):
            chunk = [j for j in range(k - 2, k + 1) if j >= 0]
            for j, inside in zip(chunk, softmax(row[chunk]), strict=True):
                weights[j] = weights[j] + share * inside
        yield [a.squeeze() for a in weights]


LOOPS: dict[str, Loop] = {"monotonic": monotonic, "mocha": mocha}


def make(name: str, **settings: Any) -> Attention:
    return attention(normalizer=part("normalizer", name, **settings))


@pytest.mark.parametrize("name", sequential_normalizers())
def test_equation_and_gradients(name: str) -> None:
    ours = make(name, noise=0.0).train()
    query, embedding, states = inputs(target=7)
    memory = ours.memory(states, MASK)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights

    p = parameters(ours)
    expected = torch.zeros(2, 7, 5, dtype=torch.float64)
    for b, length in enumerate(LENGTHS):
        source = states[b, :length]
        logits = query[b] @ (source @ p["score.projection.weight"].T).T
        for t, row in enumerate(LOOPS[name](p, query[b], logits, source)):
            expected[b, t, :length] = torch.stack(row)
    agree(weights, expected, [query, states, *ours.parameters()])


@pytest.mark.parametrize("name", ["monotonic", "mocha"])
def test_hard_monotonic_attention_walks_as_the_algorithm_says(name: str) -> None:
    """At test: from where it stands, stop at the first position that is more likely chosen than not; never go back."""
    torch.manual_seed(0)
    ours = make(name).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.mul_(3)
        ours.normalizer.offset.fill_(0.0)
    query, embedding, states = inputs(batch=30, target=6, source=8)
    mask = torch.arange(8) < torch.randint(1, 9, (30, 1))
    memory = ours.memory(states, mask)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    energies = ours.normalizer.selection(query, memory.normalizer) if name == "mocha" else ours.score(query, memory.keys)

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
    ours = make("monotonic", noise=0.0)
    with torch.no_grad():
        ours.normalizer.offset.fill_(0.0)
    query, embedding, states = inputs(batch=20, target=6)
    memory = ours.memory(states, torch.ones(20, 5, dtype=torch.bool))
    memory = memory._replace(keys=memory.keys * 1e5)
    soft = ours.train()(Query(query, embedding), memory, ours.start(memory)).weights
    hard = ours.eval()(Query(query, embedding), memory, ours.start(memory)).weights
    torch.testing.assert_close(soft, hard, rtol=0, atol=1e-6)


def test_expected_weights_sum_to_one_at_most_in_mixed_precision_too() -> None:
    ours = make("monotonic", noise=0.0).float().train()
    query, embedding, states = (numbers.float() for numbers in inputs(batch=20, target=30))
    memory = ours.memory(states, torch.ones(20, 5, dtype=torch.bool))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    assert weights.sum(-1).max() < 1 + 1e-6


@pytest.mark.parametrize("energy", [1e2, 1e4, 1e6, 1e8])
def test_a_very_large_energy_costs_no_digits_of_the_weights_behind_it(energy: float) -> None:
    module = Monotonic(4, 4, noise=0.0, initial_offset=0.0)
    logits = torch.tensor([[[energy, 0, 0, 0, 0, 0]]])
    mask, before = torch.ones(1, 1, 6, dtype=torch.bool), torch.tensor([[0.0, 1, 0, 0, 0, 0]])
    memory = Memory(torch.empty(1, 6, 4), torch.empty(1, 6, 4), mask.squeeze(1))
    weights, _ = module.advance(logits, mask, torch.empty(1, 1, 4), memory, before)
    torch.testing.assert_close(weights.squeeze(), torch.tensor([0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]))


def test_monotonic_noise_is_drawn_in_training_alone() -> None:
    ours = make("monotonic")
    query, embedding, states = inputs()
    memory = ours.memory(states, MASK)
    look = lambda: ours(Query(query, embedding), memory, ours.start(memory)).weights  # noqa: E731
    assert torch.equal(look(), look())
    ours.train()
    assert not torch.equal(look(), look())


def test_monotonic_noise_has_the_deviation_that_is_asked_for() -> None:
    ours = make("monotonic", noise=2.0).train()
    query, embedding, states = inputs(target=1)
    memory = ours.memory(states, MASK)
    NOISE.seed(3)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    energies = ours.score(query, memory.keys)[:, 0] + ours.normalizer.offset
    NOISE.seed(3)
    noisy = energies + 2 * draw_normal(energies)
    for b, length in enumerate(LENGTHS):
        start = [torch.tensor(float(j == 0), dtype=torch.float64) for j in range(length)]
        torch.testing.assert_close(weights[b, 0, :length], torch.stack(expected_monotonic(noisy[b, :length], start)))


def test_a_monotonic_expectation_stays_inside_its_window() -> None:
    """A position outside the window is passed by, as one that is surely not chosen."""
    ours = attention(window=part("window", "local_m", radius=1), normalizer=part("normalizer", "monotonic", noise=0.0)).train()
    query, embedding, states = inputs()
    memory = ours.memory(states, MASK)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    energies = ours.score(query, memory.keys) + ours.normalizer.offset
    expected = torch.zeros(2, 4, 5, dtype=torch.float64)
    for b, length in enumerate(LENGTHS):
        selected = [torch.tensor(float(j == 0), dtype=torch.float64) for j in range(length)]
        for t in range(4):
            center = min(t, length - 1)
            row = [e if abs(j - center) <= 1 else e - torch.inf for j, e in enumerate(energies[b, t, :length])]
            selected = expected_monotonic(torch.stack(row), selected)
            expected[b, t, :length] = torch.stack(selected)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)
    hard = ours.eval()(Query(query, embedding), memory, ours.start(memory)).weights
    assert (hard[expected == 0] == 0).all()


@pytest.mark.parametrize("name", stateless_normalizers())
def test_any_stateless_normalizer_sits_in_a_chunk(name: str) -> None:
    """A chunk of the whole source, of which the last position is chosen, is the normalizer over the source."""
    whole = part("normalizer", "mocha", chunk=part("normalizer", name), chunk_size=5, noise=0.0)
    ours, plain = attention(normalizer=whole), attention(normalizer=name)
    if plain.score is not None:
        plain.score.load_state_dict(ours.score.state_dict())
    query, embedding, states = inputs(target=1)
    memory, mask = ours.memory(states, MASK), torch.ones(2, 5, dtype=torch.bool)
    state = ours.start(memory)._replace(normalizer=torch.eye(5, dtype=torch.float64)[[4, 4]])
    with torch.no_grad():
        ours.normalizer.offset.fill_(100.0)  # wherever it stands it stops
    weights = ours(Query(query, embedding), memory._replace(mask=mask), state).weights
    expected = plain(Query(query, embedding), plain.memory(states, mask), plain.start(memory)).weights
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)


def test_a_chunk_is_no_longer_than_a_source() -> None:
    query, embedding, states = inputs()
    looks = []
    for size in (5, 10**9):
        ours = attention(normalizer=part("normalizer", "mocha", chunk_size=size, noise=0.0))
        memory = ours.memory(states, MASK)
        looks.append(ours(Query(query, embedding), memory, ours.start(memory)).weights)
    torch.testing.assert_close(*looks, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("mocha", {"chunk_size": 1}, "chunk_size must be 2 or more, not 1"),
        ("monotonic", {"noise": -1.0}, "noise is a standard deviation and must not be negative"),
    ],
)
def test_values_without_sense_are_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make(name, **settings)


@pytest.mark.parametrize("name", ["monotonic", "mocha"])
def test_the_gradients_of_an_expectation_over_a_long_source_are_finite(name: str) -> None:
    """To pass a hundred positions by that are probably chosen is less probable than any float32."""
    ours = make(name, noise=0.0).float().train()
    with torch.no_grad():
        ours.normalizer.offset.fill_(3.0)
    query, embedding, states = (tensor.detach().float() for tensor in inputs(target=3, source=200))
    memory = ours.memory(states, torch.ones(2, 200, dtype=torch.bool))
    ours(Query(query, embedding), memory, ours.start(memory)).weights.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in ours.parameters())  # type: ignore[union-attr]
