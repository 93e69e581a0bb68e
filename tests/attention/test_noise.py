"""Noise of normalizers: a stream of its own, which a run that is resumed goes on with."""

import pytest
import torch

from attnlab.attention import Query
from attnlab.attention.noise import NOISE, NoiseStream, draw_gumbel, draw_normal
from conftest import options
from parts import attention, inputs

MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
CPU = torch.device("cpu")


@pytest.mark.parametrize("name", options("attention/normalizer"))
def test_no_normalizer_moves_the_stream_of_dropout(name: str) -> None:
    """Whatever it draws, the masks that dropout draws afterwards are those of any other normalizer."""
    ours = attention(normalizer=name).train()
    query, embedding, states = inputs()
    before = torch.get_rng_state()
    memory = ours.memory(states, MASK)
    ours(Query(query, embedding), memory, ours.start(memory))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["hard", "monotonic", "mocha"])
def test_a_stream_goes_on_from_where_it_was(name: str) -> None:
    ours = attention(normalizer=name).train()
    query, embedding, states = inputs(target=20)
    memory = ours.memory(states, MASK)
    look = lambda: ours(Query(query, embedding), memory, ours.start(memory)).weights  # noqa: E731
    NOISE.seed(3)
    first, where, second = look(), NOISE.state_dict(), look()
    assert not torch.equal(first, second)
    NOISE.seed(3)
    assert torch.equal(look(), first)
    NOISE.seed(4)
    assert not torch.equal(look(), first)
    NOISE.load_state_dict(where)
    assert torch.equal(look(), second)


def test_a_state_of_a_device_that_is_not_there_is_kept() -> None:
    stream, other = NoiseStream(), NoiseStream()
    stream.seed(5)
    elsewhere = torch.Generator().manual_seed(9).get_state()
    stream.load_state_dict({"seed": 5, "states": {"cuda:7": elsewhere}})
    torch.rand(3, generator=stream.generator(CPU))
    other.load_state_dict(stream.state_dict())
    assert torch.equal(other.state_dict()["states"]["cuda:7"], elsewhere)
    assert torch.equal(torch.rand(3, generator=other.generator(CPU)), torch.rand(3, generator=stream.generator(CPU)))


def test_noise_is_of_its_distribution() -> None:
    NOISE.seed(0)
    like = torch.empty(200_000, dtype=torch.float64)
    normal, gumbel = draw_normal(like), draw_gumbel(like)
    assert normal.mean().item() == pytest.approx(0.0, abs=0.01)
    assert normal.std().item() == pytest.approx(1.0, abs=0.01)
    for x in (-1.0, 0.0, 2.0):
        share = (gumbel < x).double().mean()
        torch.testing.assert_close(share, torch.exp(-torch.exp(torch.tensor(-x).double())), rtol=0, atol=0.01)
