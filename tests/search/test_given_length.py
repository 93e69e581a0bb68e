"""Searches for hypotheses of a given length."""

import itertools

import pytest
import torch
from torch import Tensor

from attnlab.config import build
from attnlab.model import Seq2Seq
from attnlab.search import (
    BeamSearch,
    GreedySearch,
    SamplingSearch,
    Search,
)
from composing import VOCABULARY, composed, model, sentences
from conftest import options
from search.hypotheses import BOS, EOS, LIMITS, score_output, search_sentences


@pytest.mark.parametrize("kind", [BeamSearch, GreedySearch, SamplingSearch])
def test_a_hypothesis_is_as_long_as_demanded(kind: type[Search]) -> None:
    search = kind(**LIMITS, min_length_factor=1.0, min_length_offset=1)
    for hypotheses, length in zip(search_sentences(search), [6, 2, 4, 3], strict=True):
        assert all(length + 1 <= len(h.tokens) <= 1.5 * length + 2 for h in hypotheses)
    short = search_sentences(kind(max_length_factor=0.0, max_length_offset=4, min_length_offset=4))
    assert {len(h.tokens) for hypotheses in short for h in hypotheses} == {4}


@pytest.mark.parametrize("kind", [BeamSearch, GreedySearch, SamplingSearch])
def test_a_hypothesis_that_would_rather_end_is_no_longer_than_demanded(kind: type[Search]) -> None:
    made = model(seed=5)
    with torch.no_grad():
        made.head.projection.bias[EOS] = 30.0
    source, lengths = sentences([6, 2, 4, 3])
    found = kind(**LIMITS, min_length_offset=2)(made, source, lengths, bos=BOS, eos=EOS)
    assert {len(hypotheses[0].tokens) for hypotheses in found} == {2}


def step_by_step(made: Seq2Seq, source: Tensor, length: int, target: int) -> list[int]:
    """Greedy search for an output of a given length, a step and a sentence at a time, without any search of attnlab's."""
    memory, state = made.encode(source[None, :length], torch.tensor([length]))
    tokens = [BOS]
    for step in range(1, target + 1):
        log_probabilities, _, state = made.step(torch.tensor(tokens[-1:]), memory, state)
        known = log_probabilities[0].tolist()
        allowed = [EOS] if step == target else [token for token in range(VOCABULARY) if token != EOS]
        tokens.append(max(allowed, key=lambda token: known[token]))
    return tokens[1:]


def test_greedy_search_of_a_given_length_is_that_of_a_plain_loop() -> None:
    made = model("decoder=luong_feeding", "attention=general", seed=2)
    source, lengths = sentences([5, 3, 2, 6])
    wanted = torch.tensor([4, 1, 9, 2])
    # Settings about lengths stand back: none of these outputs would be allowed by them.
    search = GreedySearch(max_length_factor=0, max_length_offset=20, min_length_offset=12)
    found = search(made, source, lengths, bos=BOS, eos=EOS, target_lengths=wanted)
    rows = zip(source, lengths.tolist(), wanted.tolist(), strict=True)
    assert [h[0].tokens for h in found] == [step_by_step(made, *row) for row in rows]


def test_a_full_beam_of_a_given_length_is_exhaustive() -> None:
    made = model("decoder=luong_feeding", "attention=general", seed=2)
    with torch.no_grad():
        made.head.projection.weight.mul_(4.0)
    source, lengths = sentences([5, 3, 2])
    wanted = [3, 2, 1]
    words = [token for token in range(VOCABULARY) if token != EOS]
    search = BeamSearch(width=len(words) ** 2)
    found = search(made, source, lengths, bos=BOS, eos=EOS, target_lengths=torch.tensor(wanted))
    for row, (length, target) in enumerate(zip(lengths.tolist(), wanted, strict=True)):
        outputs = [[*body, EOS] for body in itertools.product(words, repeat=target - 1)]
        scored = sorted(((score_output(made, source[row, :length], o), o) for o in outputs), reverse=True)
        assert len(found[row]) == len(outputs)
        assert [h.tokens for h in found[row][:10]] == [tokens for _, tokens in scored[:10]]
        assert found[row][0].log_probability == pytest.approx(scored[0][0], abs=1e-5)


@pytest.mark.parametrize("name", options("search"))
@pytest.mark.parametrize("bias", [-100.0, 100.0])
def test_every_search_finds_hypotheses_of_a_given_length(name: str, bias: float) -> None:
    """Of a model that never ends, and of one that ends at once."""
    search: Search = build(composed(f"search={name}")["search"], "search")
    made = model(seed=1)
    with torch.no_grad():
        made.head.projection.bias[EOS] = bias
    source, lengths = sentences([4, 2, 3])
    wanted = [3, 17, 1]
    found = search(made, source, lengths, bos=BOS, eos=EOS, target_lengths=torch.tensor(wanted))
    assert [{len(h.tokens) for h in hypotheses} for hypotheses in found] == [{length} for length in wanted]
    assert all(h.tokens.index(EOS) == len(h.tokens) - 1 for hypotheses in found for h in hypotheses)
