"""The decoders that answer a question, against plain loops in float64."""

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from attnlab.encoders import EncoderOutput
from attnlab.errors import UserError
from attnlab.layers.entities import EntityMemory
from attnlab.layers.frontend import SourceFrontend
from composing import model, sentences
from conftest import options

TARGET = torch.tensor([[2, 5], [2, 8]])
SLOTS = 3


def dot(one: Tensor, other: Tensor) -> Tensor:
    return torch.stack([a * b for a, b in zip(one, other, strict=True)]).sum()


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + (-x).exp())


def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return torch.stack([value if value > 0 else slope[0] * value for value in x])


def read(p: Mapping[str, Tensor], vectors: Tensor, keys: Tensor) -> list[Tensor]:
    """Henaff et al. 2017, equations 2 to 5, slot by slot."""
    slots = list(keys)
    for s in vectors:
        for j, w in enumerate(keys):
            h = slots[j]
            gate = sigmoid(dot(s, h) + dot(s, w))
            candidate = prelu(p["memory.weight"] @ h + p["key.weight"] @ w + p["input.weight"] @ s, p["activation.weight"])
            new = h + gate * candidate
            slots[j] = new / dot(new, new).sqrt()
    return slots


def answer(q: Tensor, slots: list[Tensor], combine: Tensor, slope: Tensor) -> Tensor:
    """Equation 6, up to R."""
    exponentials = [dot(q, h).exp() for h in slots]
    u = sum(e / sum(exponentials) * h for e, h in zip(exponentials, slots, strict=True))
    return prelu(q + combine @ u, slope)


def differ(module: torch.nn.Module) -> None:
    """Move every parameter away from where a mistake about it would not show."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)


def test_slots_are_those_of_a_plain_loop_and_so_are_gradients() -> None:
    memory = EntityMemory(4).double()
    differ(memory)
    vectors, keys = torch.randn(2, 5, 4).double().requires_grad_(), torch.randn(2, SLOTS, 4).double().requires_grad_()
    lengths = [5, 3]
    ours = memory(vectors, torch.arange(5) < torch.tensor(lengths).unsqueeze(1), keys)
    p = dict(memory.named_parameters())
    theirs = torch.stack([torch.stack(read(p, vectors[b, :n], keys[b])) for b, n in enumerate(lengths)])
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    weight, wanted = torch.randn_like(ours), [vectors, keys, *memory.parameters()]
    pairs = zip(*(torch.autograd.grad((found * weight).sum(), wanted) for found in (ours, theirs)), strict=True)
    for our, their in pairs:
        torch.testing.assert_close(our, their, rtol=0, atol=1e-10)


@pytest.mark.few(6)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("encoder", options("encoder"))
def test_entity_network_is_its_equations(encoder: str, tied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceFrontend, "entities", SLOTS)
    settings = [f"decoder.slots={SLOTS}", f"decoder.tied={tied}"]
    made = model("decoder=entity", "attention=none", f"encoder={encoder}", *settings)
    differ(made.decoder)
    source, lengths = sentences([6, 5])
    states = made.encoder(made.source_frontend(source), lengths).states
    decoded = made.decode(TARGET, *made.encode(source, lengths))
    p = dict(made.decoder.named_parameters())
    own = {name.removeprefix("memory."): parameter for name, parameter in p.items() if name.startswith("memory.")}
    for b, length in enumerate(lengths.tolist()):
        vectors = states[b, :length] @ p["projection.weight"].T if "projection.weight" in p else states[b, :length]
        keys, story = (vectors[:SLOTS], vectors[SLOTS:-1]) if tied else (p["keys"], vectors[:-1])
        expected = answer(vectors[-1], read(own, story, keys), p["combine.weight"], p["activation.weight"])
        for t in range(2):
            torch.testing.assert_close(decoded.readouts[b, t], expected, rtol=0, atol=1e-10)
    assert not decoded.weights.any()


def test_an_entity_network_begins_without_a_bend() -> None:
    """Its slopes are learned from 1; those that torch gives begin at 1/4."""
    parameters = model("decoder=entity", "attention=none").named_parameters()
    slopes = [parameter for name, parameter in parameters if name.endswith("activation.weight")]
    assert [slope.tolist() for slope in slopes] == [[1.0]] * 2


def test_a_key_that_a_short_source_has_no_element_for_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the question itself, or padding, would be an entity."""
    monkeypatch.setattr(SourceFrontend, "entities", SLOTS)
    made = model("decoder=entity", "attention=none", f"decoder.slots={SLOTS}", "decoder.tied=true")
    keys: list[Tensor] = []
    made.decoder.get_submodule("memory").register_forward_hook(lambda module, inputs, output: keys.append(inputs[2]))
    made.encode(*sentences([6, 3, 2]))
    assert keys[0].any(dim=2).tolist() == [[True, True, True], [True, True, False], [True, False, False]]


@pytest.mark.parametrize("attention", ["additive", "none", "uniform"])
def test_the_question_asks_the_other_elements(attention: str) -> None:
    made = model("decoder=answer", f"attention={attention}")
    differ(made.decoder)
    source, lengths = sentences([6, 3])
    states = made.encoder(made.source_frontend(source), lengths).states
    decoded = made.decode(TARGET, *made.encode(source, lengths))
    p = dict(made.decoder.named_parameters())
    for b, length in enumerate(lengths.tolist()):
        q, story = states[b, length - 1], states[b, : length - 1]
        if attention == "additive":
            w, u, v = (p[f"attention.score.{name}.weight"] for name in ("query_projection", "key_projection", "v"))
            logits = [dot(v[0], torch.tanh(w @ q + u @ h)).item() for h in story]
        else:
            logits = [0.0] * len(story)
        total = sum(map(math.exp, logits))
        weights = [math.exp(e) / total for e in logits]
        asked = q
        if attention != "none":
            asked = q + p["combine.weight"] @ sum(a * h for a, h in zip(weights, story, strict=True))
            found = decoded.weights[b, 0]
            torch.testing.assert_close(found[: length - 1], torch.tensor(weights, dtype=torch.float64), rtol=0, atol=1e-10)
            assert not found[length - 1 :].any()
        torch.testing.assert_close(decoded.readouts[b, 0], prelu(asked, p["activation.weight"]), rtol=0, atol=1e-10)


def test_a_source_of_its_end_alone_is_looked_at() -> None:
    made = model("decoder=answer", "attention=additive")
    decoded = made.decode(TARGET[:1], *made.encode(*sentences([1])))
    assert torch.equal(decoded.weights, torch.ones(1, 2, 1).double())


def test_the_language_of_a_source_asks_too() -> None:
    made = model("decoder=answer", "attention=general", "attention.query=[state,language]")
    encoded = EncoderOutput(torch.randn(2, 3, 8).double(), torch.ones(2, 3, dtype=torch.bool), ())
    weights = []
    for language in torch.randn(2, 2, 6).double():
        memory, state = made.decoder.start(encoded._replace(language=language))
        weights.append(made.decoder(torch.zeros(2, 1, 6).double(), memory, state).weights)
    assert not torch.allclose(*weights)


def test_entity_network_has_no_place_for_another_attention() -> None:
    with pytest.raises(UserError, match="has an attention of its own, over its slots: choose none beside it"):
        model("decoder=entity", "attention=dot")
    with pytest.raises(UserError, match="slots must be 1 or more, not 0"):
        model("decoder=entity", "attention=none", "decoder.slots=0")
