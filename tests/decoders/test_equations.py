"""Every recurrence, initial state and decoder against a plain loop in float64 written from its equations."""

import pytest
import torch
from torch import Tensor

from attnlab.layers.recurrence import GRURecurrence, LSTMRecurrence, Recurrence, TanhRecurrence
from attnlab.errors import UserError
from composing import model, sentences
from conftest import options


@pytest.mark.parametrize("kind", [TanhRecurrence, GRURecurrence, LSTMRecurrence])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_stepping_is_torchs_own_network(kind: type[Recurrence], num_layers: int) -> None:
    """With the step's input known beforehand, stepping must equal torch's fused run over everything."""
    torch.manual_seed(0)
    recurrence = kind(5, 3, 4, num_layers=num_layers).double()
    known, late = torch.randn(2, 6, 5).double(), torch.randn(2, 6, 3).double()
    state = tuple(torch.randn(2, num_layers, 4).double() for _ in range(recurrence.state_parts))

    expected, expected_state = recurrence.sequence(torch.cat([known, late], -1), state)
    step, outputs = recurrence.stepper(known), []
    for t in range(6):
        output, state = step(t, late[:, t], state)
        outputs.append(output)

    torch.testing.assert_close(torch.stack(outputs, 1), expected, rtol=0, atol=1e-12)
    for part, expected_part in zip(state, expected_state, strict=True):
        torch.testing.assert_close(part, expected_part, rtol=0, atol=1e-12)


def lstm(p: dict[str, Tensor], x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    gates = p["weight_ih_l0"] @ x + p["bias_ih_l0"] + p["weight_hh_l0"] @ h + p["bias_hh_l0"]
    i, f, g, o = gates.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def attend(p: dict[str, Tensor], query: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """Additive attention over the states of one sentence."""
    w, u, v = (p[f"decoder.attention.score.{n}.weight"] for n in ("query_projection", "key_projection", "v"))
    logits = torch.stack([v[0] @ torch.tanh(w @ query + u @ state) for state in states])
    weights = torch.exp(logits) / torch.exp(logits).sum()
    return sum(a * h for a, h in zip(weights, states, strict=True)), weights


def reference(decoder: str, p: dict[str, Tensor], embedded: Tensor, states: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
    """Readouts of one sentence, token by token."""
    cell = {name.rpartition(".")[2]: value for name, value in p.items() if "decoder.recurrence" in name}
    fed, readouts = torch.zeros_like(h), []
    for x in embedded:
        if decoder == "bahdanau":
            context, _ = attend(p, h, states)
            h, c = lstm(cell, torch.cat([x, context]), h, c)
            readouts.append(torch.tanh(p["decoder.readout.weight"] @ torch.cat([h, x, context])))
        else:
            h, c = lstm(cell, torch.cat([x, fed]) if decoder == "luong_feeding" else x, h, c)
            context, _ = attend(p, h, states)
            fed = torch.tanh(p["decoder.combine.weight"] @ torch.cat([context, h]))
            readouts.append(fed)
    return readouts


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "luong_feeding"])
def test_decoder_is_its_equations(decoder: str) -> None:
    made = model(f"decoder={decoder}", "attention=additive")
    source, lengths = sentences([5, 3])
    target = torch.tensor([[2, 5, 6, 7], [2, 8, 9, 3]])
    encoded = made.encoder(made.source_embedding(source), lengths)
    memory, state = made.decoder.start(encoded)
    decoded = made.decode(target, memory, state)

    p = dict(made.named_parameters())
    expected = []
    for b, length in enumerate(lengths.tolist()):
        h, c = (part[b, 0] for part in state.hidden)
        embedded = made.target_embedding.weight[target[b]]
        expected.append(torch.stack(reference(decoder, p, embedded, encoded.states[b, :length], h, c)))
    torch.testing.assert_close(decoded.readouts, torch.stack(expected), rtol=0, atol=1e-10)

    weight = torch.randn_like(decoded.readouts)
    used = [q for name, q in p.items() if not name.startswith("output")]
    for ours, theirs in zip(
        torch.autograd.grad((decoded.readouts * weight).sum(), used, retain_graph=True),
        torch.autograd.grad((torch.stack(expected) * weight).sum(), used),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_bridge_reads_the_backward_encoders_first_state() -> None:
    made = model("decoder.initial_state.backward_only=true")
    source, lengths = sentences([5, 3])
    encoded = made.encoder(made.source_embedding(source), lengths)
    _, state = made.decoder.start(encoded)
    backward_first = encoded.states[:, 0, 4:]
    projection = made.decoder.initial_state.projections[0]
    torch.testing.assert_close(state.hidden[0][:, 0], torch.tanh(projection(backward_first)), rtol=0, atol=1e-12)


def test_last_state_is_copied_and_sizes_are_checked() -> None:
    made = model("decoder/initial_state=last", "encoder.bidirectional=false", "encoder.hidden_size=8")
    source, lengths = sentences([5, 3])
    encoded = made.encoder(made.source_embedding(source), lengths)
    _, state = made.decoder.start(encoded)
    last = torch.stack([encoded.states[0, 4], encoded.states[1, 2]])
    torch.testing.assert_close(state.hidden[0][:, 0], last, rtol=0, atol=1e-12)
    with pytest.raises(UserError, match=r"1 layers of 8.*2 layers of 8"):
        model("decoder/initial_state=last", "decoder.num_layers=2")


@pytest.mark.parametrize("initial", options("decoder/initial_state"))
@pytest.mark.parametrize("cell", options("decoder/cell"))
@pytest.mark.parametrize("encoder", options("encoder"))
def test_any_encoder_starts_any_decoder(initial: str, cell: str, encoder: str) -> None:
    made = model(f"decoder/initial_state={initial}", f"decoder/cell={cell}", f"encoder={encoder}")
    source, lengths = sentences([5, 3])
    _, state = made.encode(source, lengths)
    assert [part.shape for part in state.hidden] == [(2, 1, 8)] * made.decoder.recurrence.state_parts


def test_plain_decoder_refuses_an_attention() -> None:
    with pytest.raises(UserError, match="choose attention=none"):
        model("decoder=plain", "attention=dot")


def test_plain_decoder_is_told_the_summary_only_where_asked() -> None:
    """With zeros as initial state the source reaches the decoder through the summary alone."""
    for summary, same in (("every_step", False), ("start", True)):
        made = model("decoder=plain", "attention=none", f"decoder.summary={summary}", "decoder/initial_state=zeros")
        target = torch.tensor([[2, 5, 6], [2, 5, 6]])
        decoded = made.decode(target, *made.encode(*sentences([5, 3])))
        assert torch.equal(decoded.readouts[0], decoded.readouts[1]) is same
