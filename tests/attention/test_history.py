"""Every history against a loop written from its equation, gradients included."""

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from attnlab.attention import Query
from attnlab.attention.histories import HistorySizes
from attnlab.errors import UserError
from conftest import options
from parts import agree, attention, inputs, parameters, part, softmax

Loop = Callable[[dict[str, Tensor], Tensor, Tensor], Iterator[Tensor]]


def additive(p: dict[str, Tensor], query: Tensor, states: Tensor, coverage: list[Tensor]) -> Tensor:
    v, w, u = (p[f"score.{name}.weight"] for name in ("v", "query_projection", "key_projection"))
    shift = p.get("history.projection.weight")
    terms = [w @ query + u @ h + (0 if shift is None else shift @ c) for h, c in zip(states, coverage, strict=True)]
    return torch.stack([v[0] @ torch.tanh(term) for term in terms])


def none(p: dict[str, Tensor], queries: Tensor, states: Tensor) -> Iterator[Tensor]:
    for query in queries:
        yield softmax(additive(p, query, states, [torch.zeros(1).double()] * len(states)))


def coverage_sum(p: dict[str, Tensor], queries: Tensor, states: Tensor) -> Iterator[Tensor]:
    covered = [torch.zeros(1).double()] * len(states)
    for query in queries:
        weights = softmax(additive(p, query, states, covered))
        yield weights
        covered = [c + a for c, a in zip(covered, weights, strict=True)]


def coverage_linguistic(p: dict[str, Tensor], queries: Tensor, states: Tensor) -> Iterator[Tensor]:
    fertility = [2 / (1 + torch.exp(-(p["history.fertility.weight"][0] @ h))) for h in states]
    covered = [torch.zeros(1).double()] * len(states)
    for query in queries:
        weights = softmax(additive(p, query, states, covered))
        yield weights
        covered = [c + a / phi for c, a, phi in zip(covered, weights, fertility, strict=True)]


def coverage_neural(p: dict[str, Tensor], queries: Tensor, states: Tensor) -> Iterator[Tensor]:
    w, u, b, c = (p[f"history.cell.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    covered = [torch.zeros(10).double()] * len(states)
    for query in queries:
        weights = softmax(additive(p, query, states, covered))
        yield weights
        for j, (a, h) in enumerate(zip(weights, states, strict=True)):
            x, before = w @ torch.cat([a.unsqueeze(0), h, query]) + b, covered[j]
            y = u @ before + c
            r, z = torch.sigmoid(x[:10] + y[:10]), torch.sigmoid(x[10:20] + y[10:20])
            covered[j] = (1 - z) * torch.tanh(x[20:] + r * y[20:]) + z * before


def location_sensitive(p: dict[str, Tensor], queries: Tensor, states: Tensor) -> Iterator[Tensor]:
    filters = p["history.convolution.weight"]
    features = [torch.zeros(10).double()] * len(states)
    for query in queries:
        weights = softmax(additive(p, query, states, features))
        yield weights
        around = [[(i, j + i - 3) for i in range(7) if 0 <= j + i - 3 < len(states)] for j in range(len(states))]
        features = [sum(filters[:, 0, i] * weights[k] for i, k in seen) for seen in around]


def temporal(p: dict[str, Tensor], queries: Tensor, states: Tensor) -> Iterator[Tensor]:
    past: list[Tensor] = []
    for query in queries:
        raised = torch.exp(additive(p, query, states, [torch.zeros(1).double()] * len(states)))
        penalised = raised / sum(past) if past else raised
        yield penalised / penalised.sum()
        past.append(raised)


LOOPS: dict[str, Loop] = {
    "none": none,
    "coverage_sum": coverage_sum,
    "coverage_linguistic": coverage_linguistic,
    "coverage_neural": coverage_neural,
    "temporal": temporal,
    "location_sensitive": location_sensitive,
}


@pytest.mark.parametrize("name", options("attention/history"))
def test_equation_and_gradients(name: str) -> None:
    ours = attention(score="additive", history=name)
    query, embedding, states = inputs()
    lengths = [5, 3]
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
    memory = ours.memory(states, mask)
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights

    expected = torch.zeros(2, 4, 5, dtype=torch.float64)
    for b, length in enumerate(lengths):
        for t, row in enumerate(LOOPS[name](parameters(ours), query[b], states[b, :length])):
            expected[b, t, :length] = row
    agree(weights, expected, [query, states, *ours.parameters()])


@pytest.mark.parametrize("name", ["coverage_sum", "coverage_linguistic", "coverage_neural", "location_sensitive"])
def test_coverage_is_that_before_the_step(name: str) -> None:
    """Before the first target token nothing is covered, so that the first weights are those of the plain score."""
    covered, plain = attention(score="additive", history=name), attention(score="additive")
    plain.load_state_dict({key: value for key, value in covered.state_dict().items() if not key.startswith("history")})
    query, embedding, states = inputs()
    looks = []
    for ours in (covered, plain):
        memory = ours.memory(states, torch.ones(2, 5, dtype=torch.bool))
        looks.append(ours(Query(query, embedding), memory, ours.start(memory)).weights)
    torch.testing.assert_close(looks[0][:, 0], looks[1][:, 0], rtol=0, atol=1e-12)
    assert not torch.allclose(looks[0][:, 1], looks[1][:, 1])


@pytest.mark.parametrize(
    "score", [name for name in options("attention/score") if name not in ("location", "cosine", "qk_norm")]
)
def test_coverage_enters_every_score_that_compares(score: str) -> None:
    equal = score in ("dot", "scaled_dot", "dot_learned_scale", "concat_shared")
    ours = attention(memory_size=4 if equal else 6, score=score, history="coverage_sum")
    query, embedding, states = inputs(memory=4 if equal else 6)
    memory = ours.memory(states, torch.ones(2, 5, dtype=torch.bool))
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    gradient = torch.autograd.grad(weights[0, -1, 0], ours.history.projection.weight)[0]
    assert gradient.abs().sum() > 0


def test_a_fertility_without_sense_is_refused() -> None:
    with pytest.raises(UserError, match="max_fertility must be above 0"):
        attention(score="additive", history=part("history", "coverage_linguistic", max_fertility=0.0))


def test_filters_that_see_nothing_are_refused() -> None:
    for settings in ({"radius": 0}, {"filters": 0}):
        with pytest.raises(UserError, match="filters and radius must be 1 or more"):
            attention(score="additive", history=part("history", "location_sensitive", **settings))


def test_coverage_beside_a_bilinear_score_is_a_longer_encoder_state() -> None:
    """sᵀ (W h + V C) = sᵀ [W V] [h; C]."""
    ours = attention(history="coverage_sum")
    query, embedding, states = inputs()
    memory = ours.memory(states, torch.ones(2, 5, dtype=torch.bool))
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    longer = torch.cat([ours.score.projection.weight, ours.history.projection.weight], dim=1)
    covered = torch.zeros(2, 5, 1).double()
    for t in range(4):
        logits = (query[:, t : t + 1] @ longer @ torch.cat([states, covered], -1).transpose(1, 2)).squeeze(1)
        torch.testing.assert_close(weights[:, t], logits.softmax(-1), rtol=0, atol=1e-12)
        covered = covered + weights[:, t].unsqueeze(-1)


@pytest.mark.parametrize("name", ["coverage_sum", "coverage_linguistic"])
def test_coverage_in_half_precision_goes_on_growing(name: str) -> None:
    made = attention(score="additive", history=name).to(torch.bfloat16)
    queries, embeddings, states = (tensor.detach() for tensor in inputs(1, 600, 200))
    memory = made.memory(states.bfloat16(), torch.ones(1, 200, dtype=torch.bool))
    query = Query(queries.bfloat16(), embeddings.bfloat16())
    with torch.no_grad():
        _, weights, state = made(query, memory, made.start(memory))
    fertility = 1 if memory.history is None else memory.history[0, :, 0].float()
    torch.testing.assert_close(state.history[0, :, 0], weights[0].float().sum(0) / fertility, rtol=1e-4, atol=1e-4)


def test_what_scored_high_before_in_half_precision_goes_on_growing() -> None:
    history, logits = part("history", "temporal")(HistorySizes(4, 6, 5)), torch.zeros(1, 1, 2, dtype=torch.bfloat16)
    state = history.start(torch.ones(1, 2, dtype=torch.bool))
    for _ in range(600):
        state = history.advance(state, logits, logits, logits, logits)
    torch.testing.assert_close(state[0], torch.full((1, 2), math.log(600)))


@pytest.mark.parametrize(
    ("normalizer", "history", "reads"),
    [("softmax", "none", False), ("softmax", "coverage_neural", True), ("mocha", "none", True), ("differential", "none", True)],
)
def test_a_cancelled_query_is_read_where_something_else_reads_it(normalizer: str, history: str, reads: bool) -> None:
    settings = {"chunk": part("normalizer", "uniform"), "noise": 0.0} if normalizer == "mocha" else {}
    made = attention(score="linear", normalizer=part("normalizer", normalizer, **settings), history=history).train()
    queries, embeddings, states = (tensor.detach() for tensor in inputs())
    memory = made.memory(states, torch.ones(states.shape[:2], dtype=torch.bool))
    weights = [made(Query(asked, embeddings), memory, made.start(memory)).weights for asked in (queries, -queries)]
    assert made.reads_query == reads == (not torch.allclose(*weights))


def test_a_fertility_that_underflows_leaves_coverage_finite() -> None:
    ours = attention(score="additive", history="coverage_linguistic")
    with torch.no_grad():
        ours.history.fertility.weight.fill_(1e4)
    query, embedding, states = inputs()
    memory = ours.memory(states, torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool))
    assert memory.history.min().item() == pytest.approx(1e-3)
    assert ours(Query(query, embedding), memory, ours.start(memory)).state.history.isfinite().all()
