"""Searches against enumeration, against each other and against the model's own probabilities."""

import itertools

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from attnlab.search import AveragePenalty, BeamSearch, GNMTPenalty, GreedySearch, Search
from composing import VOCABULARY, copyable, model, sentences, singles
from conftest import options

BOS, EOS = 2, 3


def forced(made: Seq2Seq, source: Tensor, tokens: list[int]) -> float:
    """The model's own log-probability of an output, by teacher forcing."""
    target = torch.tensor([[BOS, *tokens]])
    memory, state = made.encode(source.unsqueeze(0), torch.tensor([len(source)]), copyable(source.unsqueeze(0)))
    decoded = made.decode(target[:, :-1], memory, state)
    log_probabilities = torch.log_softmax(made.scores(decoded, memory), -1)
    return float(log_probabilities.detach()[0].gather(1, target[0, 1:, None]).sum())


@pytest.mark.parametrize("overrides", singles(), ids=",".join)
def test_search_properties(overrides: tuple[str, ...]) -> None:
    """Beam 1 is greedy; a batch equals its sentences; scores are the model's own; weights are those of forced decoding."""
    made = model(*overrides, seed=5)
    source, lengths = sentences([6, 2, 4, 3])
    greedy = GreedySearch(max_length_factor=1.5, max_length_offset=2)
    for search in (greedy, BeamSearch(width=3, max_length_factor=1.5, max_length_offset=2)):
        found = search(made, source, lengths, bos=BOS, eos=EOS, copyable=copyable(source))
        for row, length in enumerate(lengths.tolist()):
            own, size = source[row : row + 1, :length], lengths[row : row + 1]
            alone = search(made, own, size, bos=BOS, eos=EOS, copyable=copyable(own))[0]
            assert [h.tokens for h in found[row]] == [h.tokens for h in alone]
            for hypothesis in found[row]:
                assert hypothesis.tokens[-1] == EOS
                assert EOS not in hypothesis.tokens[:-1]
                assert len(hypothesis.tokens) <= 1.5 * length + 2
                expected = forced(made, source[row, :length], hypothesis.tokens)
                assert hypothesis.log_probability == pytest.approx(expected, abs=1e-4)
            best = found[row][0]
            target = torch.tensor([[BOS, *best.tokens[:-1]]])
            decoded = made.decode(target, *made.encode(own, size, copyable(own)))
            torch.testing.assert_close(best.weights[:, :length].double(), decoded.weights[0], rtol=0, atol=1e-6)
            assert (best.weights[:, length:] == 0).all()

    narrow = BeamSearch(width=1, max_length_factor=1.5, max_length_offset=2)
    words = copyable(source)
    beam = narrow(made, source, lengths, bos=BOS, eos=EOS, copyable=words)
    one = greedy(made, source, lengths, bos=BOS, eos=EOS, copyable=words)
    assert [h[0].tokens for h in beam] == [h[0].tokens for h in one]


@pytest.mark.parametrize("penalty", [None, AveragePenalty(), GNMTPenalty(alpha=0.7)])
def test_full_width_is_exhaustive(penalty: object) -> None:
    """Enumerate every output of up to three tokens and rank it as the search must."""
    made = model("decoder=luong_feeding", "attention=general", seed=2)
    with torch.no_grad():
        made.output.weight.mul_(4.0)
    source, lengths = sentences([5, 3])
    words = [token for token in range(VOCABULARY) if token != EOS]
    outputs = [[*body, EOS] for n in range(3) for body in itertools.product(words, repeat=n)]
    search = BeamSearch(width=len(outputs), length_penalty=penalty, max_length_factor=0, max_length_offset=3)  # type: ignore[arg-type]
    found = search(made, source, lengths, bos=BOS, eos=EOS)
    divide = penalty or (lambda length: 1.0)
    for row, length in enumerate(lengths.tolist()):
        scored = [(forced(made, source[row, :length], o) / divide(len(o)), o) for o in outputs]  # type: ignore[operator]
        expected = sorted(scored, reverse=True)
        assert len(found[row]) == len(outputs)
        assert [h.tokens for h in found[row][:10]] == [tokens for _, tokens in expected[:10]]
        assert found[row][0].score == pytest.approx(expected[0][0], abs=1e-5)


def test_gnmt_penalty_is_its_equation() -> None:
    assert GNMTPenalty(alpha=0.2)(7) == pytest.approx((5 + 7) ** 0.2 / (5 + 1) ** 0.2)


@pytest.mark.parametrize("name", options("search"))
def test_configured_searches_terminate_on_a_model_that_never_ends(name: str) -> None:
    config = OmegaConf.load(f"conf/search/{name}.yaml")
    config.pop("defaults", None)
    search: Search = instantiate(config)
    made = model(seed=1)
    with torch.no_grad():
        made.output.bias[EOS] = -100.0
    source, lengths = sentences([4, 2])
    found = search(made, source, lengths, bos=BOS, eos=EOS)
    assert [len(h[0].tokens) for h in found] == search.limits(lengths).tolist()


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(UserError, match="width"):
        BeamSearch(width=0)
    with pytest.raises(UserError, match="max_length"):
        GreedySearch(max_length_offset=0)
