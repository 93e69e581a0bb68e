"""Sampling against the model's own probabilities."""

import pytest
import torch

from attnlab.search import (
    GreedySearch,
    SamplingSearch,
)
from composing import VOCABULARY, model, sentences
from search.hypotheses import BOS, EOS, LIMITS, search_sentences


def test_samples_follow_the_distribution_of_the_model() -> None:
    made = model(seed=5)
    source, lengths = sentences([5, 3])
    memory, state = made.encode(source, lengths)
    expected = made.step(torch.tensor([BOS, BOS]), memory, state)[0].exp()
    drawn = SamplingSearch(samples=4000, **LIMITS)(made, source, lengths, bos=BOS, eos=EOS)
    for row, hypotheses in enumerate(drawn):
        first = torch.tensor([h.tokens[0] for h in hypotheses]).bincount(minlength=VOCABULARY) / 4000
        torch.testing.assert_close(first, expected[row].float(), rtol=0, atol=0.03)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


def test_sampling_is_greedy_when_cold_and_cut_to_one() -> None:
    greedy = [[h.tokens for h in hs] for hs in search_sentences(GreedySearch(**LIMITS))]
    for settings in ({"temperature": 1e-4}, {"top_k": 1}, {"top_p": 1e-6}):
        assert [[h.tokens for h in hs] for hs in search_sentences(SamplingSearch(**settings, **LIMITS))] == greedy


def test_top_k_and_top_p_cut_the_tail() -> None:
    search = SamplingSearch(top_k=3)
    log_probabilities = torch.tensor([0.4, 0.3, 0.2, 0.1]).log().repeat(5000, 1)
    draws = torch.rand(5000, generator=torch.Generator().manual_seed(0))
    kept = search.choose(log_probabilities, draws).bincount(minlength=4) / 5000
    torch.testing.assert_close(kept, torch.tensor([4 / 9, 3 / 9, 2 / 9, 0.0]), rtol=0, atol=0.03)
    nucleus = SamplingSearch(top_p=0.5).choose(log_probabilities, draws).bincount(minlength=4) / 5000
    torch.testing.assert_close(nucleus, torch.tensor([4 / 7, 3 / 7, 0.0, 0.0]), rtol=0, atol=0.03)
    exactly = torch.tensor([0.5, 0.25, 0.25]).log().repeat(9, 1)
    assert SamplingSearch(top_p=0.5).choose(exactly, torch.linspace(0, 0.99, 9)).tolist() == [0] * 9


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_temperature_sharpens_or_flattens(temperature: float) -> None:
    probabilities = torch.tensor([0.4, 0.3, 0.2, 0.1])
    draws = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    drawn = SamplingSearch(temperature=temperature).choose(probabilities.log().repeat(20_000, 1), draws)
    expected = [p ** (1 / temperature) for p in probabilities.tolist()]
    assert (drawn.bincount(minlength=4) / 20_000).tolist() == pytest.approx([p / sum(expected) for p in expected], abs=0.015)


def test_a_sample_depends_on_its_sentence_and_the_seed_alone() -> None:
    made = model(seed=5)
    source, lengths = sentences([6, 2, 4])
    search = SamplingSearch(samples=3, **LIMITS)
    together = search(made, source, lengths, bos=BOS, eos=EOS)
    again = search(made, source, lengths, bos=BOS, eos=EOS)
    assert [[h.tokens for h in hs] for hs in again] == [[h.tokens for h in hs] for hs in together]
    alone = search(made, source[2:, :4], lengths[2:], bos=BOS, eos=EOS)[0]
    assert [h.tokens for h in together[2]] == [h.tokens for h in alone]
    other = SamplingSearch(samples=3, seed=2, **LIMITS)(made, source, lengths, bos=BOS, eos=EOS)
    assert [[h.tokens for h in hs] for hs in other] != [[h.tokens for h in hs] for hs in together]
    draws = search.draw(torch.tensor([[5, 6, 3, 0], [7, 6, 3, 9]]), torch.tensor([3, 4]), 9)
    assert draws.shape == (6, 9)
    assert len({tuple(row) for row in draws.tolist()}) == 6, "of another sentence, or another sample"
    assert torch.equal(search.draw(torch.tensor([[5, 6, 3]]), torch.tensor([3]), 9), draws[:3]), "padding is not of a sentence"


def test_a_share_of_the_mass_is_one_of_what_the_best_few_tokens_have() -> None:
    """Of 0.4, 0.3, 0.2 and 0.1 the best two have 0.7, half of which the first one has alone."""
    log_probabilities, draws = torch.tensor([[0.1, 0.4, 0.2, 0.3]]).log(), torch.tensor([0.99])
    assert SamplingSearch(top_k=2, top_p=0.5).choose(log_probabilities, draws).tolist() == [1]
    assert SamplingSearch(top_k=2, top_p=0.6).choose(log_probabilities, draws).tolist() == [3]
