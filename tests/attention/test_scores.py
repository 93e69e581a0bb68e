"""Every score against a loop written from its equation, gradients included."""

import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, rrelu

from attnlab.attention import Query
from attnlab.attention.scores import Dot, Network, Score, score_within, validate_score
from attnlab.errors import UserError
from composing import model, sentences
from conftest import options
from parts import agree, attention, inputs, parameters, part, score

NAMES = options("attention/score")


def dot(a: Tensor, b: Tensor) -> Tensor:
    return sum(a[i] * b[i] for i in range(len(a)))


def times(matrix: Tensor, vector: Tensor) -> Tensor:
    return torch.stack([dot(row, vector) for row in matrix])


def norm(vector: Tensor) -> Tensor:
    return dot(vector, vector) ** 0.5


def network(p: dict[str, Tensor], s: Tensor, h: Tensor, j: int) -> Tensor:
    hidden = (times(p["first.weight"], torch.cat([s, h])) + p["first.bias"]).clamp(min=0)
    hidden = (times(p["rest.1.weight"], hidden) + p["rest.1.bias"]).clamp(min=0)
    return dot(p["rest.3.weight"][0], hidden)


def layer_norm(gain: Tensor, x: Tensor) -> Tensor:
    centred = x - sum(x) / len(x)
    return gain * centred / (dot(centred, centred) / len(x) + 1e-5) ** 0.5


LOOPS: dict[str, Callable[[dict[str, Tensor], Tensor, Tensor, int], Tensor]] = {
    "dot": lambda p, s, h, j: dot(s, h),
    "scaled_dot": lambda p, s, h, j: dot(s, h) / len(s) ** 0.5,
    "dot_learned_scale": lambda p, s, h, j: p["sharpness.beta"][0] * dot(s, h),
    "cosine": lambda p, s, h, j: dot(s, h) / (0.1 * norm(s) * norm(h)),
    "qk_norm": lambda p, s, h, j: (
        dot(layer_norm(p["query_norm.weight"], s), layer_norm(p["key_norm.weight"], h)) / len(s) ** 0.5
    ),
    "general": lambda p, s, h, j: dot(s, times(p["projection.weight"], h)),
    "additive": lambda p, s, h, j: dot(
        p["v.weight"][0], torch.tanh(times(p["query_projection.weight"], s) + times(p["key_projection.weight"], h))
    ),
    "additive_normalized": lambda p, s, h, j: (
        p["gain"][0]
        * dot(
            p["v.weight"][0] / norm(p["v.weight"][0]),
            torch.tanh(
                times(p["query_projection.weight"], s) + times(p["key_projection.weight"], h) + p["key_projection.bias"]
            ),
        )
    ),
    "concat": lambda p, s, h, j: dot(p["v.weight"][0], torch.tanh(times(p["projection.weight"], torch.cat([s, h])))),
    "concat_shared": lambda p, s, h, j: dot(p["v.weight"][0], torch.tanh(times(p["projection.weight"], s + h))),
    "linear": lambda p, s, h, j: dot(torch.cat([p["query_weight.weight"][0], p["key_weight.weight"][0]]), torch.cat([s, h])),
    "network": network,
    "location": lambda p, s, h, j: times(p["projection.weight"], s)[j],
}


def by_loop(made: Score, loop: Callable[..., Tensor], query: Tensor, states: Tensor) -> Tensor:
    p = parameters(made)
    rows = [[[loop(p, q, h, j) for j, h in enumerate(hs)] for q in qs] for qs, hs in zip(query, states, strict=True)]
    return torch.stack([torch.stack([torch.stack(list(row)) for row in batch]) for batch in rows])


@pytest.mark.parametrize("name", NAMES)
def test_equation_and_gradients(name: str) -> None:
    made = score(name)
    query, _, states = inputs(target=3, query=made.query_size, memory=made.memory_size)
    logits = made(query, made.project_keys(states))
    agree(logits, by_loop(made, LOOPS[name], query, states), [query, states, *made.parameters()])


PRODUCTS = ["dot", "scaled_dot", "general", "cosine", "qk_norm"]
BETAS: dict[str, Callable[[dict[str, Tensor], Tensor, float], Tensor | float]] = {
    "fixed": lambda p, s, temperature: 1 / temperature,
    "learned": lambda p, s, temperature: p["sharpness.beta"][0],
    "emitted": lambda p, s, temperature: torch.log(
        1 + torch.exp(dot(p["sharpness.emission.weight"][0], s) + p["sharpness.emission.bias"][0])
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("kind", BETAS)
def test_every_product_may_be_sharper(name: str, kind: str) -> None:
    """One mechanism: the score over a temperature, or times a number that is learned, or emitted for each query."""
    torch.manual_seed(0)
    made = part("score", name, temperature=0.7, sharpness=kind)(4, 4).double()
    query, _, states = inputs(target=3, query=4, memory=4)
    usual = 10 if name == "cosine" else 1
    start = by_loop(made, LOOPS[name], query, states) / usual / 0.7
    if kind != "emitted":
        torch.testing.assert_close(made(query, made.project_keys(states)), start)
    zero = torch.zeros(1, 1, 4).double()
    one = torch.ones(1, 1, 4).double()
    torch.testing.assert_close(made.sharpness.sharpen(zero, one) / made.sharpness.divisor, one / 0.7)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3)
    expected = by_loop(made, lambda p, s, h, j: BETAS[kind](p, s, 0.7) * LOOPS[name](p, s, h, j) / usual, query, states)
    agree(made(query, made.project_keys(states)), expected, [query, states, *made.parameters()])


def test_a_learned_scale_begins_as_that_of_a_scaled_dot_product() -> None:
    query, _, states = inputs(memory=4)
    torch.testing.assert_close(score("dot_learned_scale")(query, states), score("scaled_dot")(query, states))


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_memory_changes_neither_scores_nor_gradients_but_what_is_kept(name: str) -> None:
    made = score(name)
    query, _, states = inputs(target=7, query=made.query_size, memory=made.memory_size)
    keys = made.project_keys(states)

    def within(rows: int) -> tuple[Tensor, int]:
        """The scores, with room for so many queries at once, and the size of the largest tensor kept for gradients."""
        kept = [0]

        def keep(tensor: Tensor) -> Tensor:
            kept.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            scored = score_within(made, query, keys, rows * keys.shape[:2].numel() * made.pair_size * 8 / 2**20)
        return scored, max(kept)

    whole, most = within(7)
    for rows in (3, 1, 0):
        limited, less = within(rows)
        agree(limited, whole, [query, states, *made.parameters()])
        assert less < most if made.pair_size else less == most


@pytest.mark.parametrize("name", ["general", "multihead"])
def test_an_attention_gives_its_score_the_memory_that_it_is_told(name: str) -> None:
    def most_kept(memory: float) -> int:
        made = model("decoder=luong", f"attention={name}", "attention/score=additive", f"attention.score_memory={memory}")
        source, lengths = sentences([30, 30])
        kept = [0]
        with torch.autograd.graph.saved_tensors_hooks(lambda one: (kept.append(one.numel()), one)[1], lambda one: one):
            encoded, state = made.encode(source, lengths)
            made.decode(source, encoded, state)
        return max(kept)

    assert most_kept(1e-3) < most_kept(1024) / 1.5


@pytest.mark.parametrize("activation", ["dropout", "rrelu"])
def test_a_limit_of_memory_leaves_the_gradients_of_a_score_that_draws(activation: str) -> None:
    """The logits are linear in the last weights w: w · ∂(Σ e)/∂w = Σ e, if both are of the same draw."""

    class Drawing(nn.Module):
        def forward(self, hidden: Tensor) -> Tensor:
            return dropout(hidden, 0.5) if activation == "dropout" else rrelu(hidden, training=True)

    made = Network(4, 4, hidden_sizes=(6,), activation=Drawing).double()
    query, _, states = inputs(target=6, query=4, memory=4)
    logits = score_within(made, query, made.project_keys(states), 0)
    (last,) = (weight for name, weight in made.named_parameters() if weight.shape == (1, 6))
    logits.sum().backward()
    torch.testing.assert_close((last * last.grad).sum(), logits.sum())


@pytest.mark.parametrize("longest", [2, 3, 5])
def test_a_score_of_few_positions_is_tried_with_as_many(longest: int) -> None:
    validate_score(part("score", "location", max_length=longest)(4, 4))


def test_options_of_scores_are_in_their_equations() -> None:
    torch.manual_seed(0)
    cases: list[tuple[str, dict[str, object], Callable[..., Tensor]]] = [
        (
            "additive",
            {"bias": True, "hidden_size": 3},
            lambda p, s, h, j: dot(
                p["v.weight"][0],
                torch.tanh(
                    times(p["query_projection.weight"], s) + times(p["key_projection.weight"], h) + p["key_projection.bias"]
                ),
            ),
        ),
        (
            "location",
            {"bias": True, "max_length": 7},
            lambda p, s, h, j: times(p["projection.weight"], s)[j] + p["projection.bias"][j],
        ),
        (
            "network",
            {"hidden_sizes": [3, 2], "activation": nn.Tanh},
            lambda p, s, h, j: dot(
                p["rest.3.weight"][0],
                torch.tanh(
                    times(p["rest.1.weight"], torch.tanh(times(p["first.weight"], torch.cat([s, h])) + p["first.bias"]))
                    + p["rest.1.bias"]
                ),
            ),
        ),
    ]
    for name, settings, loop in cases:
        made = part("score", name, **settings)(4, 6).double()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(0.3)  # away from initial values
        query, _, states = inputs(target=3, query=made.query_size, memory=made.memory_size)
        agree(made(query, made.project_keys(states)), by_loop(made, loop, query, states), [query, states, *made.parameters()])


def test_a_normalized_score_begins_with_the_gain_of_its_equation() -> None:
    assert score("additive_normalized", query=9).gain.item() == pytest.approx(9**-0.5)


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "dot_learned_scale", "cosine", "qk_norm", "concat_shared"])
def test_scores_of_equal_sizes_refuse_others(name: str) -> None:
    with pytest.raises(UserError, match="query size 4 does not match key size 6"):
        part("score", name)(4, 6)


def test_the_linear_score_cannot_see_its_query() -> None:
    """Whatever the query, the weights are the same; an additive score's are not."""
    for name, blind in (("linear", True), ("additive", False)):
        made = attention(score=name)
        query, embedding, states = inputs()
        memory = made.memory(states, torch.ones(2, 5, dtype=torch.bool))
        weights = made(Query(query, embedding), memory, made.start(memory)).weights
        assert torch.allclose(weights, weights[:, :1], atol=1e-12) is blind


def test_concat_shared_is_not_luongs_concat() -> None:
    """The tutorials' form is the paper's with both halves of W equal, and no other."""
    shared, concat = score("concat_shared"), part("score", "concat")(4, 4).double()
    query, _, states = inputs(memory=4)
    with torch.no_grad():
        concat.projection.weight.copy_(torch.cat([shared.projection.weight] * 2, dim=1))
        concat.v.weight.copy_(shared.v.weight)
    logits = shared(query, shared.project_keys(states))
    torch.testing.assert_close(concat(query, concat.project_keys(states)), logits)
    with torch.no_grad():
        concat.projection.weight[:, :4] *= 2
    assert not torch.allclose(concat(query, concat.project_keys(states)), logits)


def test_location_never_looks_at_the_source_and_refuses_a_longer_one() -> None:
    made = part("score", "location", max_length=5)(4, 6).double()
    query, _, states = inputs()
    first = made(query, made.project_keys(states))
    assert torch.equal(first, made(query, made.project_keys(states * 2)))
    with pytest.raises(UserError, match=r"has 5 positions.*has 9 tokens.*max_length to 9"):
        made.project_keys(torch.zeros(1, 9, 6))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("cosine", {"temperature": 0.0}, "temperature must be above 0, not 0"),
        ("general", {"sharpness": "soft"}, "sharpness is fixed, learned, emitted, not 'soft'"),
        ("network", {"hidden_sizes": []}, "hidden_sizes names the units of one hidden layer or more"),
    ],
)
def test_values_without_sense_are_refused(name: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        part("score", name, **settings)(4, 4)


class Wrong(Score):
    """A dot product with a mistake."""

    def __init__(self, mistake: Callable[[Tensor, Tensor], Tensor], query_size: int = 6, memory_size: int = 6) -> None:
        super().__init__(query_size, memory_size)
        self.mistake = mistake

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.mistake(query, keys)


def products(query: Tensor, keys: Tensor) -> Tensor:
    return query @ keys.transpose(1, 2)


MISTAKES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str]] = {
    "one key": (
        lambda q, k: products(q, k).sum(-1, keepdim=True),
        r"gives torch.float32 \(2, 3, 1\) for 2 examples of 3 queries",
    ),
    "turned round": (lambda q, k: products(q, k).transpose(1, 2), r"gives torch.float32 \(2, 4, 3\)"),
    "whole numbers": (lambda q, k: products(q, k).long(), "gives torch.int64"),
    "double precision": (lambda q, k: products(q, k).double(), "gives torch.float64"),
    "no number": (lambda q, k: products(q, k).log(), "logits that are no finite numbers"),
    "a wrong key": (lambda q, k: {"query": q}["keys"], r"KeyError: 'keys' \(test_scores.py, line \d+\)"),
    "the end": (lambda q, k: sys.exit(3), "cannot score queries .* SystemExit: 3"),
    "other queries": (lambda q, k: products(q, k) + products(q, k).mean(1, keepdim=True), "changes with the other queries"),
    "other keys": (lambda q, k: products(q, k).log_softmax(-1), "changes with the other keys"),
    "the batch": (lambda q, k: products(q, k) - products(q, k).amax(0, keepdim=True), "changes with the other examples"),
    "chance": (lambda q, k: dropout(products(q, k), 0.5, True), "gives other logits for the same queries and keys"),
    "nothing": (lambda q, k: None, "the score Wrong gives NoneType: forward returns one tensor, the logits"),  # type: ignore[dict-item,return-value]
    "a crash": (lambda q, k: q @ k, r"cannot score queries \(2, 3, 6\): RuntimeError: .* \(test_scores.py, line \d+\)"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_score_that_sees_what_it_must_not_is_refused_before_it_is_trained(name: str) -> None:
    mistake, told = MISTAKES[name]
    with pytest.raises(UserError, match=told):
        validate_score(Wrong(mistake))
    with pytest.raises(UserError, match=told):
        attention(6, 6, score=lambda query_size, memory_size: Wrong(mistake, query_size, memory_size))


@pytest.mark.parametrize("size", [-1, "many"])
def test_a_size_of_pairs_that_is_none_is_refused(size: object) -> None:
    made = Dot(4, 4)
    made.pair_size = size  # type: ignore[assignment]
    with pytest.raises(UserError, match=rf"the score Dot has a pair_size of {size!r}: it is a whole number"):
        validate_score(made)


class Stuck(Score):
    """Scores in which something does not learn."""

    def __init__(self, cut: bool) -> None:
        super().__init__(4, 4)
        self.cut = cut
        self.first, self.second = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        logits = products(self.first(query), keys)
        return logits.detach() if self.cut else logits


@pytest.mark.parametrize(("cut", "name"), [(True, "first.weight"), (False, "second.weight")])
def test_a_parameter_that_no_gradient_reaches_is_told(cut: bool, name: str) -> None:
    with pytest.raises(UserError, match=f"no gradient reaches {name} of the score Stuck"):
        validate_score(Stuck(cut))
    stuck = Stuck(cut)
    for parameter in stuck.parameters() if cut else stuck.second.parameters():
        parameter.requires_grad = False
    validate_score(stuck)


def test_trying_a_score_draws_no_random_numbers() -> None:
    made = part("score", "additive")(4, 4)
    state = torch.get_rng_state()
    validate_score(made)
    assert torch.equal(torch.get_rng_state(), state)


class Bent(Dot):
    """A product with keys that are cut off at zero."""

    def project_keys(self, states: Tensor) -> Tensor:
        return states.relu()


def test_keys_that_are_not_projected_linearly_must_say_so() -> None:
    with pytest.raises(UserError, match="let its class say linear_keys = False"):
        validate_score(Bent(4, 4))
    honest = type("Honest", (Bent,), {"linear_keys": False})
    validate_score(honest(4, 4))
    with pytest.raises(UserError, match="a Honest score does not project its keys linearly"):
        attention(6, 6, score=honest, history="coverage_sum")
