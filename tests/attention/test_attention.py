"""The composition of parts, and attentions around attentions."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.attention import AttentionMechanism, ContextGate, IntraDecoderAttention, Memory, MultiHeadAttention, Query
from attnlab.config import build
from attnlab.errors import UserError
from attnlab.trees import select
from composing import composed
from conftest import exhaustive_but, options
from parts import agree, attention, inputs, mechanism, parameters, part

MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
GROUPS = ("score", "window", "normalizer", "keys", "history")


def look(ours: AttentionMechanism, query: Tensor, embedding: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    context, weights, _ = ours(Query(query, embedding), memory, ours.start(memory))
    return context, weights


def stepwise(ours: AttentionMechanism, query: Tensor, embedding: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    """One target token at a time, the batch turned around after each as a beam might."""
    state, contexts, weights, order = ours.start(memory), [], [], torch.arange(len(query))
    for t in range(query.shape[1]):
        step = Query(query[order, t : t + 1], embedding[order, t : t + 1])
        context, step_weights, state = ours(step, memory, state)
        contexts.append(context[order])
        weights.append(step_weights[order])
        back = torch.arange(len(query)).flip(0)
        memory, state, order = select(memory, back), select(state, back), order[back]
    return torch.cat(contexts, 1), torch.cat(weights, 1)


def pairs() -> list[dict[str, str]]:
    """Every two parts of different groups that conf/ has, the others as usual."""
    return [
        {one: a, other: b}
        for one, other in itertools.combinations(GROUPS, 2)
        for a, b in itertools.product(options(f"attention/{one}"), options(f"attention/{other}"))
    ]


FEATURES = [("history", name) for name in options("attention/history") if part("history", name).func.changes_keys]
UNIFORM, LOCATION, PROJECTED = ("normalizer", "uniform"), ("score", "location"), ("keys", "projected")
REFUSED = [
    *[(UNIFORM, other) for other in [*FEATURES, PROJECTED, ("history", "temporal"), ("window", "gaussian")]],
    *[(LOCATION, other) for other in [*FEATURES, PROJECTED]],
    *[(("score", name), other) for name in ("cosine", "qk_norm") for other in FEATURES],
    (("score", "linear"), ("history", "temporal")),
]
"""Two parts of which one would have no effect or never learn. Everything else must go together."""


@pytest.mark.few(40)
@pytest.mark.parametrize("chosen", pairs(), ids=lambda chosen: ",".join(f"{k}={v}" for k, v in chosen.items()))
def test_any_two_parts_go_together_or_say_why_not(chosen: dict[str, str]) -> None:
    size = 8 if chosen.get("keys") == "split" else 4
    if any(one in chosen.items() and other in chosen.items() for one, other in REFUSED):
        with pytest.raises(UserError, match=r"does not look at keys|project its keys|ignores the score|makes equal weights"):
            attention(memory_size=size, **chosen)
        return
    ours = attention(memory_size=size, **chosen)
    query, embedding, states = inputs(memory=size)
    memory = ours.memory(states, MASK)
    context, weights = look(ours, query, embedding, memory)

    assert (weights[1, :, 3:] == 0).all()
    total = weights.sum(-1)
    if ours.shares:
        assert (weights >= 0).all()
        assert (total <= 1 + 1e-12).all()
    if ours.sums_to_one:
        torch.testing.assert_close(total, torch.ones(2, 4).double())
    torch.testing.assert_close(context, weights @ memory.values)
    alone_memory = ours.memory(states[1:, :3], MASK[1:, :3])
    alone, alone_weights = look(ours, query[1:], embedding[1:], alone_memory)
    torch.testing.assert_close(context[1:], alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(weights[1:, :, :3], alone_weights, rtol=0, atol=1e-12)
    for together, apart in zip((context, weights), stepwise(ours, query, embedding, memory), strict=True):
        torch.testing.assert_close(together, apart, rtol=0, atol=1e-12)


@pytest.mark.few(10)
@pytest.mark.parametrize("name", options("attention"))
@pytest.mark.parametrize("dtype", exhaustive_but([torch.bfloat16], [torch.float16, torch.bfloat16, torch.float32]))
@pytest.mark.parametrize("training", exhaustive_but([True], [False, True]))
def test_no_nan_in_any_precision_even_for_an_empty_source(name: str, dtype: torch.dtype, training: bool) -> None:
    ours = mechanism(name, 8, 8, 4).to(dtype).train(training)
    torch.manual_seed(0)
    states = (10 * torch.randn(3, 5, 8)).to(dtype).requires_grad_()
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    query, embedding = (10 * torch.randn(3, 4, 8)).to(dtype), torch.randn(3, 4, 4).to(dtype)
    memory = ours.memory(states, mask)
    total = torch.zeros(())
    for need_weights in (True, False):
        output = ours(Query(query, embedding), memory, ours.start(memory), need_weights=need_weights)
        assert output.context.isfinite().all()
        assert output.context.dtype == dtype
        total = total + output.context.float().sum()
    weights = ours(Query(query, embedding), memory, ours.start(memory)).weights
    assert (weights >= 0).all() or not ours.shares
    assert (weights[1, :, 2:] == 0).all()
    assert (weights[2] == 0).all()
    if ours.sums_to_one:
        torch.testing.assert_close(weights[:2].float().sum(-1), torch.ones(2, 4), rtol=0, atol=2e-2)
    if ours.context_size:
        total.backward()
        assert states.grad is not None
        assert states.grad.isfinite().all()


@pytest.mark.parametrize(
    "parts",
    [["embedding"], ["state", "embedding"], ["state", "context"], ["language"], ["context", "language", "state"], "embedding"],
)
def test_what_a_query_is_made_of(parts: list[str] | str) -> None:
    """The query is the named parts side by side; the previous context and the language token come through the state."""
    ours = attention(score="additive", query=parts)
    query, embedding, states = inputs()
    memory = ours.memory(states, MASK)
    context, weights = look(ours, query, embedding, memory)

    plain = attention(query_size=ours.score.query_size, score="additive")
    plain.load_state_dict(ours.state_dict())
    names = [parts] if isinstance(parts, str) else parts
    before, expected = torch.zeros(2, 6, dtype=torch.float64), []
    for t in range(4):
        vectors = {"state": query[:, t], "embedding": embedding[:, t], "context": before, "language": embedding[:, 0]}
        full_query = torch.cat([vectors[name] for name in names], dim=-1).unsqueeze(1)
        before = look(plain, full_query, embedding[:, :1], memory)[0].squeeze(1)
        expected.append(before)
    agree(context, torch.stack(expected, 1), [query, embedding, states])
    for together, apart in zip((context, weights), stepwise(ours, query, embedding, memory), strict=True):
        torch.testing.assert_close(together, apart, rtol=0, atol=1e-12)


@pytest.mark.parametrize("parts", [[], ["state", "state"], ["source"], ["state", "source"]])
def test_a_query_of_nothing_or_of_the_unknown_is_refused(parts: list[str]) -> None:
    with pytest.raises(UserError, match="query names one or more of state, embedding, context, language, each once"):
        attention(query=parts)


@pytest.mark.parametrize("name", options("attention/keys"))
def test_keys_and_values(name: str) -> None:
    ours = attention(keys=name)
    query, embedding, states = inputs()
    memory = ours.memory(states, torch.ones(2, 5, dtype=torch.bool))
    context, _ = look(ours, query, embedding, memory)

    p = parameters(ours)
    halves = {"split": (states[..., ::2], states[..., 1::2]), "states": (states, states)}
    if name == "projected":
        halves[name] = (states @ p["keys.key_projection.weight"].T, states @ p["keys.value_projection.weight"].T)
    keys, values = halves[name]
    rows = []
    for b, t in itertools.product(range(2), range(4)):
        logits = torch.stack([query[b, t] @ (p["score.projection.weight"] @ k) for k in keys[b]])
        rows.append(sum(a * v for a, v in zip(torch.exp(logits) / torch.exp(logits).sum(), values[b], strict=True)))
    agree(context, torch.stack(rows).view(2, 4, -1), [query, states, *ours.parameters()])


def test_an_encoders_own_values_are_what_is_averaged() -> None:
    ours = attention()
    query, embedding, states = inputs()
    values = torch.randn_like(states)
    weights = look(ours, query, embedding, ours.memory(states, MASK))[1]
    torch.testing.assert_close(look(ours, query, embedding, ours.memory(states, MASK, values))[0], weights @ values)


def multihead(
    score: Any = "scaled_dot", *, heads: int = 2, query: str | list[str] = "state", **chosen: Any
) -> MultiHeadAttention:
    """Parts are chosen by name or given as factories."""
    named = {"score": score, "window": "global", "normalizer": "softmax", "history": "none", **chosen}
    parts = {group: part(group, made) if isinstance(made, str) else made for group, made in named.items()}
    torch.manual_seed(0)
    return MultiHeadAttention(4, 6, 3, heads=heads, query=query, **parts).double().eval()


def test_heads_are_attentions_in_subspaces() -> None:
    ours = multihead()
    query, embedding, states = inputs()
    context, weights = look(ours, query, embedding, ours.memory(states, MASK))

    p = parameters(ours)
    q, k, v = (p[f"projections.{name}_projection.weight"] for name in ("query", "key", "value"))
    expected, mean = [], []
    for b, t in itertools.product(range(2), range(4)):
        heads, average = [], torch.zeros(5, dtype=torch.float64)
        length = int(MASK[b].sum())
        for head in (slice(0, 2), slice(2, 4)):
            own_query = q[head] @ query[b, t]
            logits = torch.stack([own_query @ (k[head] @ h) / 2**0.5 for h in states[b, :length]])
            a = torch.exp(logits) / torch.exp(logits).sum()
            heads.append(sum(w * (v[head] @ h) for w, h in zip(a, states[b, :length], strict=True)))
            average = average + torch.nn.functional.pad(a, (0, 5 - length)) / 2
        expected.append(p["projections.output_projection.weight"] @ torch.cat(heads))
        mean.append(average)
    agree(context, torch.stack(expected).view(2, 4, 4), [query, states, *ours.parameters()])
    agree(weights, torch.stack(mean).view(2, 4, 5), [query, states])


def test_heads_ask_with_the_embedding_of_their_own_sequence_and_average_an_encoders_own_values() -> None:
    ours = multihead("general", query=["state", "embedding"])
    query, embedding, states = inputs()
    whole = torch.ones(2, 5, dtype=torch.bool)
    together = look(ours, query, embedding, ours.memory(states, whole))
    for row in (slice(0, 1), slice(1, 2)):
        alone = look(ours, query[row], embedding[row], ours.memory(states[row], whole[row]))
        torch.testing.assert_close(tuple(part[row] for part in together), alone)
    torch.testing.assert_close(look(ours, query, embedding, ours.memory(states, whole, -states))[0], -together[0])


@pytest.mark.parametrize(("name", "own"), [("mocha", "selection"), ("differential", "second")])
def test_a_normalizers_own_score_compares_with_encoder_states_whatever_keys_and_values_are(name: str, own: str) -> None:
    ours = attention(normalizer=name, keys="projected")
    states = inputs()[2]
    expected = getattr(ours.normalizer, own).project_keys(states)
    torch.testing.assert_close(ours.memory(states, MASK, -states).normalizer, expected)


@pytest.mark.parametrize("group", ["score", "window", "normalizer", "history"])
def test_every_part_sits_in_several_heads_or_is_refused(group: str) -> None:
    for name in options(f"attention/{group}"):
        if name in ("location", "uniform"):
            with pytest.raises(UserError, match="but 2 heads need one that compares"):
                multihead(**{group: name})
            continue
        ours = multihead(**{group: name})
        query, embedding, states = inputs()
        memory = ours.memory(states, MASK)
        together, apart = look(ours, query, embedding, memory), stepwise(ours, query, embedding, memory)
        for one, other in zip(together, apart, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_heads_without_a_state_in_their_query_are_refused() -> None:
    with pytest.raises(UserError, match="2 heads project the decoder's state, which must be a part of their query"):
        multihead(query="embedding")


@pytest.mark.parametrize("name", ["context_gate", "intra_decoder"])
def test_a_wrapper_around_nothing_is_refused(name: str) -> None:
    config = composed(f"attention={name}", "attention@attention.inner=none")["attention"]
    with pytest.raises(UserError, match="would hide the source from the decoder"):
        build(config, "attention")(8, 8, 4)


@pytest.mark.parametrize("normalizer", ["monotonic", "mocha"])
def test_the_expectation_of_a_batch_is_that_of_its_sequences(normalizer: str) -> None:
    """In training too padding and company change nothing."""
    ours = attention(normalizer=part("normalizer", normalizer, noise=0.0)).train()
    query, embedding, states = inputs()
    together = look(ours, query, embedding, ours.memory(states, MASK))[0]
    alone = look(ours, query[1:], embedding[1:], ours.memory(states[1:, :3], MASK[1:, :3]))[0]
    torch.testing.assert_close(together[1:], alone, rtol=0, atol=1e-12)


def test_intra_decoder_attention_is_its_equations() -> None:
    torch.manual_seed(0)
    ours = IntraDecoderAttention(4, 6, 3, inner=lambda q, m, e: attention(q, m, e), score=part("score", "general")).double()
    query, embedding, states = inputs()
    memory = ours.memory(states, MASK)
    context, weights = look(ours, query, embedding, memory)

    source = look(ours.inner, query, embedding, memory)
    w, own = ours.past_score.projection.weight, []
    for b, t in itertools.product(range(2), range(4)):
        logits = [query[b, t] @ (w @ query[b, i]) for i in range(t)]
        total = sum(torch.exp(e) for e in logits)
        zero = 0 * query[b, t]
        own.append(sum((torch.exp(e) / total * query[b, i] for i, e in enumerate(logits)), start=zero))
    agree(context, torch.cat([source[0], torch.stack(own).view(2, 4, 4)], -1), [query, states, *ours.parameters()])
    torch.testing.assert_close(weights, source[1])
    for together, apart in zip((context, weights), stepwise(ours, query, embedding, memory), strict=True):
        torch.testing.assert_close(together, apart, rtol=0, atol=1e-12)
    with pytest.raises(UserError, match="a Location score does not look at keys, but past states need one that compares"):
        IntraDecoderAttention(4, 6, 3, inner=lambda q, m, e: attention(q, m, e), score=part("score", "location"))


def test_differential_attention_is_its_equation() -> None:
    ours = attention(normalizer="differential")
    query, embedding, states = inputs()
    context, weights = look(ours, query, embedding, ours.memory(states, MASK))
    first, second = ours.score.projection.weight, ours.normalizer.second.projection.weight
    q1, k1, q2, k2 = ours.normalizer.vectors
    factor = torch.exp(sum(q1 * k1)) - torch.exp(sum(q2 * k2)) + 0.2
    rows, contexts = [], []
    for b, t in itertools.product(range(2), range(4)):
        source = states[b, : int(MASK[b].sum())]
        maps = [torch.exp(torch.stack([query[b, t] @ (w @ h) for h in source])) for w in (first, second)]
        a = maps[0] / maps[0].sum() - factor * maps[1] / maps[1].sum()
        rows.append(torch.nn.functional.pad(a, (0, 5 - len(source))))
        contexts.append(sum(x * h for x, h in zip(a, source, strict=True)))
    wanted = [query, states, *ours.parameters()]
    agree(weights, torch.stack(rows).view(2, 4, 5), wanted)
    agree(context, torch.stack(contexts).view(2, 4, 6), wanted)
    assert (weights < 0).any()
    with pytest.raises(UserError, match="a Uniform normalizer ignores the score, but two maps need one that compares"):
        attention(normalizer=part("normalizer", "differential", each=part("normalizer", "uniform")))


def test_the_vectors_of_a_differential_attention_begin_small() -> None:
    vectors = attention(query_size=512, normalizer="differential").normalizer.vectors
    assert vectors.std().item() == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("form", ["source", "target", "both"])
def test_context_gate_is_its_equation(form: str) -> None:
    torch.manual_seed(0)
    ours = ContextGate(4, 6, 3, inner=lambda q, m, e: attention(q, m, e), form=form).double()
    query, embedding, states = inputs()
    memory = ours.memory(states, MASK)
    context, _ = look(ours, query, embedding, memory)
    plain, _ = look(ours.inner, query, embedding, memory)
    wz, uz, cz = ours.gate.weight[:, :3], ours.gate.weight[:, 3:7], ours.gate.weight[:, 7:]
    w, u, c = ours.target_projection.weight[:, :3], ours.target_projection.weight[:, 3:], ours.source_projection.weight
    rows = []
    for b, t in itertools.product(range(2), range(4)):
        y, s, h = embedding[b, t], query[b, t], plain[b, t]
        z = 1 / (1 + torch.exp(-(wz @ y + uz @ s + cz @ h + ours.gate.bias)))
        written = w @ y + u @ s
        parts = {"source": written + z * (c @ h), "target": z * written + c @ h, "both": (1 - z) * written + z * (c @ h)}
        rows.append(torch.tanh(parts[form]))
    agree(context, torch.stack(rows).view(2, 4, 4), [query, embedding, states, *ours.parameters()])


def test_split_needs_an_even_size() -> None:
    with pytest.raises(UserError, match="split keys halve an encoder state, but its size is 7"):
        attention(memory_size=7, keys="split")
