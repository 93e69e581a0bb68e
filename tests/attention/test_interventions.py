"""Other weights in the place of an attention's own, for every attention and every decoder of conf/."""

import pytest
import torch
from torch import Tensor

from attnlab.attention import Query, collect_head_weights, find_attentions
from attnlab.attention.interventions import (
    GivenWeights,
    HeadAblation,
    Intervention,
    OwnWeights,
    PermutedWeights,
    Place,
    UniformWeights,
    intervene,
)
from attnlab.errors import UserError
from attnlab.model import Seq2Seq
from composing import UNATTENDED, model, sentences
from conftest import exhaustive_but, options
from parts import attention, inputs

TARGET = torch.tensor([[2, 5, 6, 7], [2, 8, 3, 0], [2, 4, 4, 9]])
LENGTHS = [5, 3, 4]
ATTENTIONS = [name for name in options("attention") if name != "none"]
DECODERS = [name for name in options("decoder") if name not in UNATTENDED]


class Witness(Intervention):
    """Keeps what another intervention is given and returns."""

    def __init__(self, inner: Intervention) -> None:
        self.inner = inner
        self.seen: list[tuple[Place, Tensor, Tensor, Tensor, int]] = []

    def replace(self, place: Place, weights: Tensor, mask: Tensor, step: int) -> Tensor:
        other = self.inner.replace(place, weights, mask, step)
        self.seen.append((place, weights, other, mask, step))
        return other


def composed_model(*overrides: str) -> Seq2Seq:
    try:
        return model(*overrides)
    except UserError as error:
        pytest.skip(str(error))


def decode(made: Seq2Seq, intervention: Intervention | None = None) -> tuple[Tensor, Tensor]:
    """Scores and reported weights."""
    memory, state = made.encode(*sentences(LENGTHS))
    if intervention is None:
        decoded = made.decode(TARGET, memory, state)
    else:
        with intervene(made.decoder, intervention):
            decoded = made.decode(TARGET, memory, state)
    return made.scores(decoded, memory), decoded.weights


@pytest.mark.few(12)
@pytest.mark.parametrize("decoder", exhaustive_but(("luong", "transformer"), DECODERS))
@pytest.mark.parametrize("name", ATTENTIONS)
def test_own_weights_change_no_bit(name: str, decoder: str) -> None:
    made = composed_model(f"attention={name}", f"decoder={decoder}")
    for ours, theirs in zip(decode(made, OwnWeights()), decode(made), strict=True):
        assert torch.equal(ours, theirs)
    assert find_attentions(made.decoder)
    assert all(one.attention.replacement is None for one in find_attentions(made.decoder))


@pytest.mark.few(6)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_every_attention_goes_on_with_other_weights(name: str) -> None:
    made = composed_model(f"attention={name}")
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    for inner in (PermutedWeights(1), UniformWeights(), HeadAblation(0, 0)):
        witness = Witness(inner)
        with torch.no_grad(), collect_head_weights(made.decoder) as collected:
            _, reported = decode(made, witness)
        assert sum(other.shape[2] for *_, other, _, _ in witness.seen) == TARGET.shape[1]
        for place, weights, other, seen_mask, _ in witness.seen:
            assert torch.equal(seen_mask, mask)
            assert other.shape == weights.shape == (3, place.heads, weights.shape[2], 5)
            assert (other.masked_select(~mask[:, None, None]) == 0).all()
            total = weights.sum(-1)
            if isinstance(inner, PermutedWeights):
                torch.testing.assert_close(other.sort(-1)[0], weights.sort(-1)[0], rtol=0, atol=0)
            elif isinstance(inner, UniformWeights):
                for row, length in enumerate(LENGTHS):
                    expected = (total[row] / length).unsqueeze(-1).expand(*total[row].shape, length)
                    torch.testing.assert_close(other[row, ..., :length], expected)
            else:
                assert (other[:, 0] == 0).all()
                assert torch.equal(other[:, 1:], weights[:, 1:])
        after = torch.cat([other for _, _, other, _, _ in witness.seen], dim=2)
        (calls,) = collected.values()
        assert torch.equal(torch.cat(calls, dim=2), after)
        torch.testing.assert_close(reported, after.mean(dim=1))


@pytest.mark.few(4)
@pytest.mark.parametrize("decoder", DECODERS)
def test_given_weights_are_those_of_each_step(decoder: str) -> None:
    """The whole target at once, or one token after another: what follows from other weights is the same."""
    made = model("attention=multihead", f"decoder={decoder}")
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    torch.manual_seed(3)
    places = find_attentions(made.decoder)
    given = [torch.rand(3, 4, TARGET.shape[1], 5, dtype=torch.float64) * mask[:, None, None] for _ in places]
    scores, reported = decode(made, GivenWeights(given))
    memory, state = made.encode(*sentences(LENGTHS))
    steps = []
    with intervene(made.decoder, GivenWeights(given)):
        for token in TARGET.unbind(1):
            decoded = made.decode(token.unsqueeze(1), memory, state)
            steps.append(made.scores(decoded, memory))
            state = decoded.state
    torch.testing.assert_close(torch.cat(steps, 1), scores)
    assert any(torch.allclose(reported, one.mean(dim=1)) for one in given)
    own = decode(made)[0]
    assert not torch.allclose(scores[:, -1], own[:, -1])
    changed = [one.clone() for one in given]
    for one in changed:
        one[:, :, 0] = 0
    later = decode(made, GivenWeights(changed))[0]
    assert not torch.allclose(later[:, 0], scores[:, 0])
    feeds = not torch.allclose(later[:, -1], scores[:, -1])  # what the first token looked at reaches the last one
    assert feeds == (decoder not in ("answer", "luong"))


def test_heads_of_another_number_take_the_mean() -> None:
    given = torch.rand(3, 2, 4, 5)
    place, weights = Place(0, 4), torch.zeros(3, 4, 1, 5)
    found = GivenWeights([given]).replace(place, weights, torch.ones(3, 5, dtype=torch.bool), 2)
    torch.testing.assert_close(found, given[:, :, 2:3].mean(1, keepdim=True).expand(-1, 4, -1, -1))


def test_the_context_is_made_of_the_other_weights() -> None:
    """In plain loops: c_t = Σ_j a'_tj v_j, with the weights of each row in another order."""
    ours = attention(window="local_p")
    query, embedding, states = inputs()
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
    memory = ours.memory(states, mask)
    own = ours(Query(query, embedding), memory, ours.start(memory)).weights
    with intervene(ours, PermutedWeights(7)):
        context, weights, _ = ours(Query(query, embedding), memory, ours.start(memory))
    noise = torch.rand(2, 1, 4, 5, generator=torch.Generator().manual_seed(7))
    for row, length in enumerate((5, 3)):
        for t in range(4):
            order = sorted(range(length), key=noise[row, 0, t].tolist().__getitem__)
            expected = torch.zeros(memory.values.shape[-1], dtype=torch.float64)
            for j in range(length):
                assert weights[row, t, j] == own[row, t, order[j]]
                expected = expected + own[row, t, order[j]] * memory.values[row, j]
            torch.testing.assert_close(context[row, t], expected, rtol=0, atol=1e-12)


def test_an_intervention_inside_another_gives_the_outer_one_back() -> None:
    made = model("decoder=luong", "attention=additive")
    own = decode(made)[0]
    with intervene(made.decoder, UniformWeights()):
        uniform = decode(made)[0]
        with intervene(made.decoder, OwnWeights()):
            assert torch.equal(decode(made)[0], own)
        assert torch.equal(decode(made)[0], uniform)
    assert torch.equal(decode(made)[0], own)
    assert not torch.equal(uniform, own)


def test_nothing_stays_replaced_after_an_error() -> None:
    made = model("decoder=transformer", "attention=multihead")
    before = decode(made)[0]
    with pytest.raises(ZeroDivisionError), intervene(made.decoder, UniformWeights()):
        raise ZeroDivisionError
    assert torch.equal(decode(made)[0], before)
