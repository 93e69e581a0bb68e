"""Searches against enumeration, against each other and against the model's own probabilities."""

import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attnlab.config import build
from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from attnlab.search import (
    AveragePenalty,
    BeamSearch,
    Ensemble,
    GNMTPenalty,
    GreedySearch,
    Hypothesis,
    LengthPenalty,
    NoPenalty,
    SamplingSearch,
    Search,
)
from attnlab.search.search import BLOCK, MANY, PIECE, KeptSteps, top_tokens, unbatch
from composing import VOCABULARY, composed, copy_ids, model, sentences, singles
from conftest import options
from search.hypotheses import BOS, EOS, LIMITS, score_output, search_sentences


@pytest.mark.parametrize("size", [MANY - 1, MANY, MANY + 1, MANY + BLOCK - 1, 40 * BLOCK, 7851])
def test_the_best_tokens_of_a_large_vocabulary(size: int) -> None:
    """By blocks: the best may be in one block or in several, in the last and shorter one, equal, or forbidden."""
    scores = torch.randn(60, size)
    scores[:10, -3:] += 10
    scores[10:20, :7] += 10
    scores[20:30] = scores[20:30].round()
    scores[30:40] = -torch.inf
    scores[30:35, size // 2] = -1.0
    scores[40:50] = scores[40:50].bfloat16().float()
    for count in (1, 5, 12):
        best, tokens = top_tokens(scores, count)
        assert torch.equal(best, scores.topk(count, dim=-1).values)
        assert torch.equal(best, scores.gather(1, tokens))
        known = best.isfinite()
        for row in range(60):
            assert len({*tokens[row][known[row]].tolist()}) == int(known[row].sum())


@pytest.mark.few(12)
@pytest.mark.parametrize("overrides", singles(), ids=",".join)
def test_search_properties(overrides: tuple[str, ...]) -> None:
    """Beam 1 is greedy; a batch equals its sentences; scores are the model's own; weights are those of forced decoding."""
    made = model(*overrides, seed=5)
    source, lengths = sentences([6, 2, 4, 3])
    greedy = GreedySearch(max_length_factor=1.5, max_length_offset=2)
    limits = {"max_length_factor": 1.5, "max_length_offset": 2}
    for search in (greedy, BeamSearch(width=3, **limits), SamplingSearch(samples=2, **limits)):
        found = search(made, source, lengths, bos=BOS, eos=EOS, copy_ids=copy_ids(source))
        for row, length in enumerate(lengths.tolist()):
            own, size = source[row : row + 1, :length], lengths[row : row + 1]
            alone = search(made, own, size, bos=BOS, eos=EOS, copy_ids=copy_ids(own))[0]
            for ours, other in zip(found[row], alone, strict=True):
                # The orders of an output are equally likely where a decoder does not read it: rounding ranks them.
                tied = ours.log_probability == pytest.approx(other.log_probability, abs=1e-5)
                assert ours.tokens == other.tokens or (tied and sorted(ours.tokens) == sorted(other.tokens))
            for hypothesis in found[row]:
                assert hypothesis.tokens[-1] == EOS
                assert EOS not in hypothesis.tokens[:-1]
                assert len(hypothesis.tokens) <= 1.5 * length + 2
                expected = score_output(made, source[row, :length], hypothesis.tokens)
                assert hypothesis.log_probability == pytest.approx(expected, abs=1e-4)
                target = torch.tensor([[BOS, *hypothesis.tokens[:-1]]])
                decoded = made.decode(target, *made.encode(own, size, copy_ids(own)))
                torch.testing.assert_close(hypothesis.weights[:, :length].double(), decoded.weights[0], rtol=0, atol=1e-6)
                assert (hypothesis.weights[:, length:] == 0).all()

    narrow = BeamSearch(width=1, max_length_factor=1.5, max_length_offset=2)
    words = copy_ids(source)
    beam = narrow(made, source, lengths, bos=BOS, eos=EOS, copy_ids=words)
    one = greedy(made, source, lengths, bos=BOS, eos=EOS, copy_ids=words)
    assert [h[0].tokens for h in beam] == [h[0].tokens for h in one]


@pytest.mark.few(1)
@pytest.mark.parametrize("penalty", [GNMTPenalty(alpha=0.7), AveragePenalty(), NoPenalty()])
def test_full_width_is_exhaustive(penalty: LengthPenalty) -> None:
    """Enumerate every output of up to three tokens and rank it as the search must."""
    made = model("decoder=luong_feeding", "attention=general", seed=2)
    with torch.no_grad():
        made.head.projection.weight.mul_(4.0)
    source, lengths = sentences([5, 3])
    words = [token for token in range(VOCABULARY) if token != EOS]
    outputs = [[*body, EOS] for n in range(3) for body in itertools.product(words, repeat=n)]
    search = BeamSearch(width=len(outputs), length_penalty=penalty, max_length_factor=0, max_length_offset=3)
    found = search(made, source, lengths, bos=BOS, eos=EOS)
    for row, length in enumerate(lengths.tolist()):
        scored = [(score_output(made, source[row, :length], o) / penalty(len(o)), o) for o in outputs]
        expected = sorted(scored, reverse=True)
        assert len(found[row]) == len(outputs)
        assert [h.tokens for h in found[row][:10]] == [tokens for _, tokens in expected[:10]]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in expected], abs=1e-5)


@torch.no_grad()
def plain_beam(made: Seq2Seq, source: Tensor, width: int, longest: int, threshold: float) -> list[tuple[float, list[int]]]:
    """The best extensions of what is open take the places that are left, one sentence and one hypothesis at a time."""
    memory, start = made.encode(source[None], torch.tensor([len(source)]))
    beam: list[tuple[float, list[int], Any]] = [(0.0, [], start)]
    finished: list[tuple[float, list[int]]] = []
    while beam:
        every = []
        for score, tokens, state in beam:
            log_probabilities, _, after = made.step(torch.tensor([BOS, *tokens][-1:]), memory, state)
            allowed = [EOS] if len(tokens) + 1 == longest else range(VOCABULARY)
            every += [(score + float(log_probabilities[0, token]), [*tokens, token], after) for token in allowed]
        every.sort(key=lambda one: -one[0])
        best = [one for one in every[: width - len(finished)] if one[0] >= every[0][0] - threshold]
        beam = [one for one in best if one[1][-1] != EOS]
        finished += [(score, tokens) for score, tokens, _ in best if tokens[-1] == EOS]
    return sorted(finished, reverse=True)


@pytest.mark.parametrize("threshold", [None, 1.5])
def test_a_beam_is_that_of_a_plain_loop(threshold: float | None) -> None:
    """What is finished keeps its place, and what is too far below the best of its step loses it."""
    search = BeamSearch(
        width=3, length_penalty=NoPenalty(), relative_threshold=threshold, max_length_factor=0, max_length_offset=8
    )
    counts = set()
    for seed in range(8):
        made = model("decoder=luong_feeding", "attention=general", seed=seed)
        with torch.no_grad():
            made.head.projection.weight.mul_(20.0)
        source, lengths = sentences([5, 2])
        for row, found in enumerate(search(made, source, lengths, bos=BOS, eos=EOS)):
            expected = plain_beam(made, source[row, : lengths[row]], 3, 8, math.inf if threshold is None else threshold)
            assert [h.tokens for h in found] == [tokens for _, tokens in expected]
            assert [h.score for h in found] == pytest.approx([score for score, _ in expected])
            counts.add(len(found))
    assert counts == {3} if threshold is None else min(counts) < 3


def test_gnmt_penalty_is_its_equation() -> None:
    assert GNMTPenalty(alpha=0.2)(7) == pytest.approx((5 + 7) ** 0.2 / (5 + 1) ** 0.2)


def test_hypotheses_are_as_long_as_decimal_factors_say() -> None:
    """In binary 1.15 times 100 is less than 115, and 1.1 times 90 is more than 99."""
    longest = GreedySearch(max_length_factor=1.15, max_length_offset=1).limits(torch.tensor([100, 10]))
    assert longest.tolist() == [116, 12]
    bounds = GreedySearch(min_length_factor=1.1, min_length_offset=0).bounds(torch.tensor([90, 10]))
    assert bounds.shortest.tolist() == [99, 11]


@pytest.mark.parametrize("name", options("search"))
def test_configured_searches_terminate_on_a_model_that_never_ends(name: str) -> None:
    search: Search = build(composed(f"search={name}")["search"], "search")
    made = model(seed=1)
    with torch.no_grad():
        made.head.projection.bias[EOS] = -100.0
    source, lengths = sentences([4, 2])
    found = search(made, source, lengths, bos=BOS, eos=EOS)
    assert [len(h[0].tokens) for h in found] == search.limits(lengths).tolist()


def test_a_beam_reads_open_hypotheses_alone() -> None:
    made = model("decoder=luong_feeding", seed=5)
    source, lengths = sentences([6, 2, 4, 3])
    rows: list[int] = []

    class Counting:
        encode = made.encode

        def step(self, tokens: Tensor, *rest: Any) -> Any:
            rows.append(len(tokens))
            return made.step(tokens, *rest)

    found = BeamSearch(width=3, **LIMITS)(Counting(), source, lengths, bos=BOS, eos=EOS)
    assert len({len(h.tokens) for hypotheses in found for h in hypotheses}) > 2
    written = [len(h.tokens) for hypotheses in found for h in hypotheses]
    assert rows == [4, *(sum(length > step for length in written) for step in range(1, max(written)))]


REFUSED: dict[str, Callable[[], object]] = {
    "width must be 1 or more, not 0": lambda: BeamSearch(width=0),
    "max_length_offset be 1 or more, not 2.0 and 0": lambda: GreedySearch(max_length_offset=0),
    "must not be negative": lambda: GreedySearch(min_length_offset=-1),
    "relative_threshold must not be negative": lambda: BeamSearch(relative_threshold=-0.5),
    "relative_threshold has no effect": lambda: BeamSearch(width=1, relative_threshold=1.0),
    "must not be above those of the longest": lambda: GreedySearch(min_length_offset=11),
    "a min_length_offset of 1 would have no effect": lambda: GreedySearch(min_length_offset=1),
    "no 4 tokens twice": lambda: GreedySearch(max_length_factor=0, max_length_offset=4, no_repeat_ngram=4),
    "coverage_penalty must not be negative, as -1.0 is": lambda: BeamSearch(coverage_penalty=-1.0),
    "a width of 1 leaves nothing to rank": lambda: BeamSearch(width=1, coverage_penalty=0.1),
    "choose an option of its group": lambda: BeamSearch(length_penalty="gnmt"),  # type: ignore[arg-type]
    "alpha must be above 0 and at most 10, not 0.0": lambda: GNMTPenalty(alpha=0.0),
    "alpha must be above 0 and at most 10, not 1000": lambda: GNMTPenalty(alpha=1000),
    "temperature must be from 1e-06 to 1000000.0, not 0": lambda: SamplingSearch(temperature=0),
    "temperature must be from 1e-06 to 1000000.0, not inf": lambda: SamplingSearch(temperature=math.inf),
    "a top_k of 1 always draws the most probable token": lambda: SamplingSearch(top_k=1, temperature=2.0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_impossible_settings_and_settings_without_effect_are_refused(message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        REFUSED[message]()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", [BeamSearch, GreedySearch, SamplingSearch])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_comes_twice(kind: type[Search], size: int) -> None:
    long = {"max_length_factor": 0.0, "max_length_offset": 9, "min_length_offset": 9}

    def repeats(hypotheses: list[list[Hypothesis]]) -> bool:
        grams = [[tuple(h.tokens[i : i + size]) for i in range(len(h.tokens) - size)] for hs in hypotheses for h in hs]
        return any(len(set(each)) < len(each) for each in grams)

    assert kind is SamplingSearch or repeats(search_sentences(kind(**long)))
    assert not repeats(search_sentences(kind(**long, no_repeat_ngram=size)))


def beam_of_one(made: Seq2Seq, source: Tensor, length: int, width: int, threshold: float, longest: int) -> dict[str, float]:
    """Beam search of one sentence, prefix by prefix, every prefix read from its start: what ends, and its log-probability."""
    memory, state = made.encode(source[None, :length], torch.tensor([length]))
    prefixes, finished = {(): 0.0}, {}
    for size in range(1, longest + 1):
        extensions = {}
        for prefix, score in prefixes.items():
            decoded = made.decode(torch.tensor([[BOS, *prefix]]), memory, state)
            following = torch.log_softmax(made.scores(decoded, memory), -1)[0, -1].tolist()
            for token in [EOS] if size == longest else range(VOCABULARY):
                extensions[*prefix, token] = score + following[token]
        best = sorted(extensions.items(), key=lambda item: -item[1])[: width - len(finished)]
        best = [(tokens, score) for tokens, score in best if score >= best[0][1] - threshold]
        finished |= {str(list(tokens)): score for tokens, score in best if tokens[-1] == EOS}
        prefixes = {tokens: score for tokens, score in best if tokens[-1] != EOS}
    return finished


@pytest.mark.few(2)
@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3, 100.0])
def test_relative_threshold_drops_what_is_far_below_the_best(threshold: float) -> None:
    made = model("decoder=luong_feeding", "attention=general", seed=5)
    with torch.no_grad():
        made.head.projection.weight.mul_(2.0)
    source, lengths = sentences([6, 2, 4, 3])
    limits = {"max_length_factor": 0.0, "max_length_offset": 5}
    found = BeamSearch(width=4, relative_threshold=threshold, **limits)(made, source, lengths, bos=BOS, eos=EOS)
    for row, length in enumerate(lengths.tolist()):
        expected = beam_of_one(made, source[row], length, 4, threshold, 5)
        assert {str(h.tokens): h.log_probability for h in found[row]} == pytest.approx(expected, abs=1e-4)
    counts = [len(hypotheses) for hypotheses in found]
    assert max(counts) == 1 if threshold == 0.0 else min(counts) >= 1
    if threshold == 100.0:
        every = BeamSearch(width=4, **limits)(made, source, lengths, bos=BOS, eos=EOS)
        assert [[h.tokens for h in hs] for hs in found] == [[h.tokens for h in hs] for hs in every]


def test_coverage_penalty_is_its_equation() -> None:
    search = BeamSearch(width=4, length_penalty=NoPenalty(), coverage_penalty=0.3, **LIMITS)
    for length, hypotheses in zip([6, 2, 4, 3], search_sentences(search), strict=True):
        for h in hypotheses:
            looked = [sum(float(h.weights[t, j]) for t in range(len(h.tokens))) for j in range(length)]
            expected = h.log_probability + 0.3 * sum(math.log(min(total, 1.0)) for total in looked)
            assert h.score == pytest.approx(expected, abs=1e-4)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


@pytest.mark.parametrize("looked", [1e-3, 1e-5])
def test_a_word_that_is_hardly_looked_at_costs_what_its_equation_says(looked: float) -> None:
    weights = torch.tensor([[1 - looked / 2, looked / 2]] * 2)
    finished: Any = SimpleNamespace(sources=[0], scores=[-1.0], tokens=[[5, EOS]], weights=lambda: [weights])
    ((found,),) = BeamSearch(length_penalty=NoPenalty(), coverage_penalty=0.5)._rank(finished, torch.tensor([2]))
    assert found.score == pytest.approx(-1.0 + 0.5 * math.log(looked))


def test_an_ensemble_averages_probabilities_and_weights() -> None:
    models = [model("decoder=bahdanau", seed=1), model("attention=dot", seed=2)]
    source, lengths = sentences([5, 3])
    ensemble = Ensemble(models)
    hypothesis = BeamSearch(width=3, **LIMITS)(ensemble, source, lengths, bos=BOS, eos=EOS)[1][0]
    total, weights = 0.0, []
    states = [made.encode(source[1:, :3], lengths[1:]) for made in models]
    before = BOS
    for token in hypothesis.tokens:
        steps = [made.step(torch.tensor([before]), *state) for made, state in zip(models, states, strict=True)]
        total += math.log(sum(float(p[0, token].exp().detach()) for p, _, _ in steps) / 2)
        weights.append(sum(w[0] for _, w, _ in steps) / 2)
        states = [(memory, after) for (memory, _), (_, _, after) in zip(states, steps, strict=True)]
        before = token
    assert hypothesis.log_probability == pytest.approx(total, abs=1e-4)
    torch.testing.assert_close(hypothesis.weights[:, :3].double(), torch.stack(weights), rtol=0, atol=1e-6)
    alone = BeamSearch(width=3, **LIMITS)(Ensemble([models[0]] * 2), source, lengths, bos=BOS, eos=EOS)
    one = BeamSearch(width=3, **LIMITS)(models[0], source, lengths, bos=BOS, eos=EOS)
    assert [h.tokens for h in alone[0]] == [h.tokens for h in one[0]]
    with pytest.raises(UserError, match="the same head"):
        Ensemble([models[0], model("head=pointer_generator")])
    other = model("attention=dot")
    other.targets = other.targets._replace(size=VOCABULARY + 1)
    with pytest.raises(UserError, match="write the same targets"):
        Ensemble([models[1], other])


class Tied:
    """A model that likes padding best, and two words equally."""

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return source, torch.zeros(len(source), 1)

    def step(self, tokens: Tensor, memory: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores = torch.tensor([9.0, 0, 0, 1, 5, 2, 5]).repeat(len(tokens), 1)
        return scores.log_softmax(-1), torch.ones(len(tokens), memory.shape[1]), state


@pytest.mark.parametrize("search", [GreedySearch, BeamSearch, partial(SamplingSearch, samples=20)])
def test_padding_is_never_written(search: Callable[..., Search]) -> None:
    source, lengths = sentences([3, 2])
    found = search(max_length_factor=0, max_length_offset=6)(Tied(), source, lengths, bos=BOS, eos=EOS, padding=0)
    assert all(0 not in hypothesis.tokens for hypotheses in found for hypothesis in hypotheses)


class Rounded:
    """A model of which many tokens are equally likely, as in bfloat16; what comes next depends on the last token alone."""

    def __init__(self, size: int) -> None:
        self.table = torch.randn(size, size).round()

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return source.float(), source[:, :1].float()

    def step(self, tokens: Tensor, memory: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.table[tokens].log_softmax(-1), torch.zeros_like(memory), state


@pytest.mark.parametrize("kind", [Tied, *(partial(Rounded, size) for size in (MANY - 1, MANY, MANY + 900))])
def test_a_beam_of_one_is_greedy_where_tokens_are_equally_probable(kind: Callable[[], Any]) -> None:
    source, lengths = sentences([3, 2] * 20)
    tied, starts = kind(), torch.arange(4, 44)
    one, other = (
        search(tied, source, lengths, bos=starts, eos=EOS, padding=0) for search in (GreedySearch(), BeamSearch(width=1))
    )
    assert [h.tokens for (h,) in one] == [h.tokens for (h,) in other]


class Ending:
    """A model that ends every sentence at some step, and looks at one position after the other."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return source, torch.zeros(len(source), dtype=torch.long)

    def step(self, tokens: Tensor, memory: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores = torch.linspace(0.0, 1.0, VOCABULARY).repeat(len(tokens), 1)
        scores[:, EOS] = torch.where(state + 1 >= self.steps, 50.0, -50.0)
        weights = torch.zeros(len(tokens), memory.shape[1])
        return scores.log_softmax(-1), weights.scatter(1, state.unsqueeze(1) % memory.shape[1], 1.0), state + 1


class Weights(TorchDispatchMode):
    """Counts the elements that are made of tensors with a given last dimension."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.made = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        made = function(*arguments, **(named or {}))
        if isinstance(made, Tensor) and made.dim() > 1 and made.shape[-1] == self.size:
            self.made += made.numel()
        return made


@pytest.mark.parametrize("kind", [BeamSearch, GreedySearch, SamplingSearch])
def test_weights_cost_as_much_as_was_written(kind: type[Search]) -> None:
    """Not as much as might have been, and not again at every step: else one long line takes all the memory there is."""
    source, lengths = torch.full((4, 211), 5), torch.full((4,), 211)

    def cost(steps: int, limit: int) -> int:
        search = kind(max_length_factor=0.0, max_length_offset=limit)
        with Weights(211) as counted:
            found = search(Ending(steps), source, lengths, bos=BOS, eos=EOS)
        assert {len(h.tokens) for hypotheses in found for h in hypotheses} <= {steps, steps + 1}
        return counted.made

    assert cost(3, limit=3000) == cost(3, limit=30)
    assert cost(80, limit=80) < 2.5 * cost(40, limit=40)


@pytest.mark.parametrize("kind", [BeamSearch, SamplingSearch])
def test_a_search_names_the_setting_that_raises_its_number_of_hypotheses(kind: type[Search]) -> None:
    assert kind(**{kind.max_hypotheses_setting: 7}).max_hypotheses == 7
    assert (GreedySearch.max_hypotheses_setting, GreedySearch().max_hypotheses) == (None, 1)


@pytest.mark.parametrize("kind", [BeamSearch, GreedySearch, SamplingSearch])
def test_what_a_sentence_may_not_repeat_is_its_own(kind: type[Search]) -> None:
    """Sentences of a batch end one after another, and leave it."""
    search = kind(**LIMITS, no_repeat_ngram=1)
    for seed in range(3):
        made = model(seed=seed)
        source, lengths = sentences([2, 6, 3, 5])
        together = search(made, source, lengths, bos=BOS, eos=EOS)
        for row, length in enumerate(lengths.tolist()):
            (alone,) = search(made, source[row : row + 1, :length], lengths[row : row + 1], bos=BOS, eos=EOS)
            assert [h.tokens for h in together[row]] == [h.tokens for h in alone]


@pytest.mark.parametrize("kind", [BeamSearch, GreedySearch, SamplingSearch])
def test_a_hypothesis_that_nothing_but_the_end_could_follow_ends_early(kind: type[Search]) -> None:
    """With every word written once there is none left, though more are demanded."""
    search = kind(max_length_factor=0.0, max_length_offset=40, min_length_offset=30, no_repeat_ngram=1)
    for hypotheses in search_sentences(search):
        assert [sorted(h.tokens) for h in hypotheses] == [list(range(VOCABULARY))] * len(hypotheses)
        assert hypotheses
        assert all(h.tokens[-1] == EOS and math.isfinite(h.log_probability) for h in hypotheses)


@pytest.mark.parametrize("kind", [GreedySearch, BeamSearch, SamplingSearch])
def test_the_score_of_a_long_hypothesis_is_the_sum_of_its_steps(kind: type[Search]) -> None:
    """In single precision the sum of 500 steps is off by more than 1e-4."""
    step = torch.log_softmax(torch.tensor([[-50.0, -50.0, -50.0, -50.0, 0.1, 0.0]]), dim=-1)

    class Endless:
        def encode(self, source: torch.Tensor, lengths: torch.Tensor, copy_ids: torch.Tensor | None = None) -> Any:
            return (torch.zeros(1, 1),), (torch.zeros(1, 1),)

        def step(self, tokens: torch.Tensor, memory: Any, state: Any) -> Any:
            return step.repeat(len(tokens), 1), torch.ones(len(tokens), 1), state

    search = kind(max_length_factor=0.0, max_length_offset=500)
    ((hypothesis, *_),) = search(Endless(), torch.tensor([[EOS]]), torch.tensor([1]), bos=BOS, eos=EOS)  # type: ignore[arg-type]
    assert len(hypothesis.tokens) == 500
    assert hypothesis.log_probability == pytest.approx(sum(float(step[0, token]) for token in hypothesis.tokens), rel=1e-12)


def test_a_hypothesis_holds_no_more_than_its_own_weights() -> None:
    """A view is pickled with all that it is a view of, where processes bring their results together."""
    for weights in unbatch([torch.rand(4, 5), torch.rand(2, 5)], [torch.arange(4), torch.tensor([1, 3])]):
        assert weights.untyped_storage().nbytes() == weights.numel() * weights.element_size()


def test_what_a_search_keeps_of_a_step_does_not_change_with_it() -> None:
    """A model may write every step into the same memory."""
    kept, step = KeptSteps(), torch.zeros(2, 3)
    for number in range(PIECE + 1):
        kept.keep(step.fill_(number))
    assert [own.unique().tolist() for own in kept] == [[number] for number in range(PIECE + 1)]


LONG_SOURCE = """
import resource
import sys
import torch
from attnlab.search import BeamSearch, GreedySearch
from attnlab.training.memory import keep_freed_memory

class Model:
    def encode(self, source, lengths, copy_ids=None):
        return torch.zeros(1, 1001, 128), torch.zeros(1, 1)

    def step(self, tokens, memory, state):
        hidden = torch.tanh(memory + 1)
        return torch.randn(len(tokens), 50).log_softmax(-1), hidden.softmax(1)[..., 0], state

keep_freed_memory()
torch.set_num_threads(1)
source, lengths = torch.zeros(1, 1001, dtype=torch.long), torch.tensor([1001])
length = {"min_length_factor": 0.0, "min_length_offset": 250, "max_length_factor": 0.0, "max_length_offset": 250}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{"greedy": GreedySearch, "beam": BeamSearch}[sys.argv[1]](**length)(Model(), source, lengths, bos=2, eos=3)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the peak is another elsewhere")
@pytest.mark.parametrize(("search", "most"), [("greedy", 60_000), ("beam", 120_000)])
def test_a_long_source_takes_no_more_memory_than_its_weights_and_states(search: str, most: int) -> None:
    """Each step's weights once lay between the states that came and went, and a search took gigabytes.

    Each has a process of its own: what another search has left decides where the next one finds room.
    """
    assert int(subprocess.check_output([sys.executable, "-c", LONG_SOURCE, search], text=True)) < most
