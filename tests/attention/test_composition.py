"""The table of what does not go together: every rule is met by something, and speaks in plain words."""

import re

import pytest

from attnlab.attention import ContextGate, NoAttention
from attnlab.attention.composition import RULES, Composition, validate_composition
from attnlab.errors import UserError
from parts import attention, part, sequential_normalizers


def chosen(group: str, name: str) -> object:
    return part(group, name)(4, 4)


SCORES = {name: chosen("score", name) for name in ("general", "location", "cosine")}
UNIFORM, SOFTMAX, MONOTONIC = (chosen("normalizer", name) for name in ("uniform", "softmax", "monotonic"))
COVERED, PLAIN = attention(history="coverage_sum"), attention()
LEARNED, HALVES = attention(keys="projected").keys, attention(keys="split").keys
NOTHING = NoAttention(4, 4, 4)

BROKEN = [
    Composition(normalizer=UNIFORM, history=COVERED.history),
    Composition(normalizer=UNIFORM, window=chosen("window", "gaussian")),
    Composition(normalizer=UNIFORM, keys=LEARNED),
    Composition(normalizer=UNIFORM, comparison="2 heads"),
    Composition(SCORES["location"], keys=LEARNED),
    Composition(SCORES["location"], history=COVERED.history),
    Composition(SCORES["location"], comparison="past states"),
    Composition(chosen("score", "linear"), history=attention(history="temporal").history),
    Composition(SCORES["cosine"], history=COVERED.history),
    Composition(chunk=MONOTONIC),
    Composition(query=("embedding",), comparison="2 heads"),
    Composition(outer=PLAIN, inner=NOTHING),
]
"""What breaks each rule of the table, in its order, and no other."""


def test_every_rule_is_broken_by_something_and_by_nothing_else() -> None:
    for index, parts in enumerate(BROKEN):
        assert [rule.applies(parts) for rule in RULES] == [index == other for other in range(len(RULES))]


@pytest.mark.parametrize("index", range(len(RULES)))
def test_a_message_names_the_parts_and_no_key(index: int) -> None:
    with pytest.raises(UserError) as refusal:
        validate_composition(BROKEN[index])
    message = str(refusal.value)
    assert "\n" not in message
    assert "NoneType" not in message
    assert re.search(r"[{}/=]|\w\.\w", message) is None


@pytest.mark.parametrize(
    "parts",
    [
        Composition(),
        Composition(SCORES["general"], PLAIN.window, SOFTMAX, LEARNED, COVERED.history),
        Composition(SCORES["cosine"], PLAIN.window, MONOTONIC, LEARNED, attention(history="temporal").history),
        Composition(SCORES["location"], chosen("window", "gaussian"), MONOTONIC, HALVES, PLAIN.history),
        Composition(None, chosen("window", "local_p"), UNIFORM, HALVES, PLAIN.history),
        Composition(SCORES["general"], comparison="2 heads", query=("embedding", "state")),
        Composition(chunk=UNIFORM),
        Composition(outer=NOTHING, inner=PLAIN),
    ],
)
def test_what_goes_together_passes(parts: Composition) -> None:
    validate_composition(parts)


@pytest.mark.parametrize("name", [*sequential_normalizers(), "differential"])
@pytest.mark.parametrize(("whole", "place"), [("mocha", "chunk"), ("differential", "each")])
def test_some_scores_are_not_normalised_with_more_than_them(name: str, whole: str, place: str) -> None:
    with pytest.raises(UserError, match="normalizer reads more than scores, so that it cannot normalise some of them by"):
        attention(normalizer=part("normalizer", whole, **{place: part("normalizer", name)}))


def test_weights_that_lose_mass_do_so_in_every_attention_around_them() -> None:
    inner = attention(normalizer="mocha")
    assert inner.shares
    assert not attention(normalizer=part("normalizer", "mocha", chunk=part("normalizer", "sigmoid"))).shares
    for ours in (inner, ContextGate(4, 6, 3, inner=lambda q, m, e: inner)):
        assert not ours.sums_to_one
    assert ContextGate(4, 6, 3, inner=lambda q, m, e: attention()).sums_to_one
    assert not NOTHING.sums_to_one
