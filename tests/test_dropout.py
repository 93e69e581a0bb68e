"""Dropout of every part that has one: where it acts, in training alone."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.layers.positions import NoPositions
from attnlab.layers.transformer import FeedForward, Residual, SelfAttention
from composing import UNATTENDED, VOCABULARY, assembled, model, possible, sentences
from conftest import options

PARTS = [(group, name) for group in ("encoder", "decoder", "head") for name in options(group)]


def alone(group: str, name: str) -> list[str]:
    return [f"{group}={name}", *(["attention=none"] if name in UNATTENDED else [])]


class Hidden(nn.Module):
    """What hides everything, as a probability of one would."""

    @override
    def forward(self, vectors: Tensor) -> Tensor:
        return torch.zeros_like(vectors)


@pytest.mark.few(5)
@pytest.mark.parametrize(("group", "name"), PARTS, ids=lambda value: value)
def test_dropout_is_on_vectors_of_both_sides_and_on_readouts(group: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = model(*alone(group, name))
    encoded: list[Tensor] = []
    start = made.decoder.start
    monkeypatch.setattr(made.decoder, "start", lambda found: (encoded.append(found.states), start(found))[1])
    source, lengths = sentences([5, 4])
    others = torch.where(source > 3, 4 + (source - 3) % (VOCABULARY - 4), source)
    target, other = (possible(made, tokens[:, :4], lengths) for tokens in (source, others))
    memory, state = made.encode(source, lengths, source)
    made.dropout = Hidden()
    made.encode(source, lengths, source)
    made.encode(others, lengths, others)
    whole, hidden, equal = encoded
    assert not torch.equal(whole, hidden)
    assert torch.equal(hidden, equal)
    decoded, same = (made.decode(tokens, memory, state) for tokens in (target, other))
    assert torch.equal(decoded.readouts, same.readouts)
    changed = decoded._replace(readouts=torch.randn_like(decoded.readouts))
    assert torch.equal(made.scores(decoded, memory), made.scores(changed, memory))
    some = torch.tensor([0, 2, 5])
    assert torch.equal(made.scores(decoded, memory, some), made.scores(changed, memory, some))
    made.dropout = nn.Identity()
    assert not torch.equal(made.scores(decoded, memory), made.scores(changed, memory))


def rates(node: Any, path: str) -> Iterator[str]:
    """The keys of all dropouts in a config."""
    for key, value in node.items() if isinstance(node, dict) else ():
        if key.endswith("dropout"):
            yield f"{path}.{key}"
        yield from rates(value, f"{path}.{key}")


@pytest.mark.few(5)
@pytest.mark.parametrize(("group", "name"), PARTS, ids=lambda value: value)
def test_a_part_draws_its_own_dropout_in_training_alone(group: str, name: str) -> None:
    node = assembled(*alone(group, name))[group]
    own = [*rates(node, group)]
    for key in own:
        fixed = [*([f"{group}.num_layers=2"] if "num_layers" in node else []), *(f"{other}=0" for other in own if other != key)]
        check_dropout([*alone(group, name), *fixed], key)


def check_dropout(overrides: list[str], key: str) -> None:
    source, lengths = sentences([6, 5, 4])

    def scores(rate: float, *, training: bool) -> list[Tensor]:
        made = model(*overrides, f"{key}={rate}").train(training)
        found = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            memory, state = made.encode(source, lengths, source)
            found.append(made.scores(made.decode(possible(made, source[:, :4], lengths), memory, state), memory))
        return found

    assert torch.equal(*scores(0.5, training=False))
    assert torch.equal(*scores(0.0, training=True))
    one, other = scores(0.5, training=True)
    assert not torch.allclose(one, other)


def test_sublayers_of_a_transformer_drop_hidden_units_outputs_and_weights() -> None:
    states, mask = torch.randn(2, 50, 4), torch.ones(2, 50, dtype=torch.bool)
    hidden = FeedForward(4, hidden_size=4, dropout=0.5)
    nn.init.eye_(hidden[3].weight)
    nn.init.zeros_(hidden[3].bias)
    units = torch.relu(hidden[0](states))
    residual = Residual(4, pre_norm=True, dropout=0.5)
    for dropped, whole in ((hidden(states), units), (residual.add(torch.zeros_like(states), states), states)):
        kept = dropped != 0
        assert 0.3 < kept[whole != 0].float().mean() < 0.7
        torch.testing.assert_close(dropped[kept], 2 * whole[kept])
    attention = SelfAttention(4, heads=2, dropout=0.5)
    positions = NoPositions(4, 2, causal=True)
    assert not torch.allclose(attention(states, mask, positions), attention(states, mask, positions))
    start = attention.start(2, states)
    assert not torch.allclose(*(attention.attend_backwards(states, start, positions)[0] for _ in range(2)))


@pytest.mark.parametrize(("group", "sublayers"), [("encoder", 2), ("decoder", 3)])
def test_every_sublayer_of_a_transformer_has_the_dropout_of_its_part(group: str, sublayers: int) -> None:
    made = model(f"{group}=transformer", f"{group}.dropout=0.25", f"{group}.num_layers=2", "encoder.hidden_size=8")
    part = getattr(made, group)
    layers = [module for module in part.modules() if isinstance(module, FeedForward | Residual | SelfAttention)]
    assert len(layers) == 2 * (sublayers + 2)
    own = [module.p for module in part.modules() if isinstance(module, nn.Dropout)]
    assert {*own, *(module.dropout for module in layers if isinstance(module, SelfAttention))} == {0.25}
