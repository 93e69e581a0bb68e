"""Every recurrence, initial state and decoder against a plain loop in float64 written from its equations."""

import itertools
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from attnlab.errors import UserError
from attnlab.layers import networks
from attnlab.layers.recurrence import GRURecurrence, LSTMRecurrence, Recurrence, ResetFirstGRURecurrence, TanhRecurrence
from composing import model, sentences
from conftest import exhaustive_but, options
from parts import agree, lstm, normalize_layer, softmax, under


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


State = tuple[Tensor, ...]


def test_a_network_without_a_fused_run_steps_through_a_sequence() -> None:
    torch.manual_seed(0)
    recurrence = ResetFirstGRURecurrence(5, 3, 4, num_layers=2).double()
    known, late, state = torch.randn(2, 6, 5).double(), torch.randn(2, 6, 3).double(), (torch.randn(2, 2, 4).double(),)
    outputs, final = recurrence.sequence(torch.cat([known, late], -1), state)
    step = recurrence.stepper(known)
    for t in range(6):
        output, state = step(t, late[:, t], state)
        torch.testing.assert_close(outputs[:, t], output, rtol=0, atol=1e-12)
    torch.testing.assert_close(final[0], state[0], rtol=0, atol=1e-12)


def gru(p: dict[str, Tensor], x: Tensor, state: State) -> State:
    (h,) = state
    xr, xz, xn = (p["weight_ih_l0"] @ x + p["bias_ih_l0"]).chunk(3)
    hr, hz, hn = (p["weight_hh_l0"] @ h + p["bias_hh_l0"]).chunk(3)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return ((1 - z) * n + z * h,)


def paper_gru(p: dict[str, Tensor], x: Tensor, state: State, suffix: str = "l0") -> State:
    """Bahdanau et al., appendix A.1.1 and A.2.2, with their z written as 1 - z."""
    (h,) = state
    w, wz, wn = p[f"weight_ih_{suffix}"].chunk(3)
    u, uz, un = p[f"weight_hh_{suffix}"].chunk(3)
    b, bz, bn = (p[f"bias_ih_{suffix}"] + p[f"bias_hh_{suffix}"]).chunk(3)
    r, z = (w @ x + u @ h + b).sigmoid(), 1 - (wz @ x + uz @ h + bz).sigmoid()
    candidate = torch.tanh(wn @ x + un @ (r * h) + bn)
    return ((1 - z) * h + z * candidate,)


def attend(p: dict[str, Tensor], query: Tensor, states: Tensor) -> Tensor:
    """Additive attention over the states of one sentence; returns the context."""
    w, u, v = (p[f"attention.score.{n}.weight"] for n in ("query_projection", "key_projection", "v"))
    logits = torch.stack([v[0] @ torch.tanh(w @ query + u @ state) for state in states])
    return sum(a * h for a, h in zip(softmax(logits), states, strict=True))


Layers = list[State]
Loop = Callable[[dict[str, Tensor], Tensor, Tensor, Layers], Iterator[Tensor]]


def climb(p: dict[str, Tensor], x: Tensor, layers: Layers, cell: Callable[..., State] = lstm) -> Layers:
    """One step of stacked layers; the top one is the last."""
    after: Layers = []
    for number, state in enumerate(layers):
        after.append(cell(under(p, "recurrence.network."), x, state, f"l{number}"))
        x = after[-1][0]
    return after


def bahdanau(p: dict[str, Tensor], embedded: Tensor, states: Tensor, layers: Layers) -> Iterator[Tensor]:
    for x in embedded:
        context = attend(p, layers[-1][0], states)
        layers = climb(p, torch.cat([x, context]), layers)
        yield torch.tanh(p["readout.projection.weight"] @ torch.cat([layers[-1][0], x, context]))


def bahdanau_paper(p: dict[str, Tensor], embedded: Tensor, states: Tensor, layers: Layers) -> Iterator[Tensor]:
    for x in embedded:
        previous = layers[-1][0]
        context = attend(p, previous, states)
        layers = climb(p, torch.cat([x, context]), layers, paper_gru)
        t = p["readout.projection.weight"] @ torch.cat([previous, x, context]) + p["readout.projection.bias"]
        yield torch.stack([torch.maximum(t[2 * j], t[2 * j + 1]) for j in range(len(t) // 2)])


def luong(p: dict[str, Tensor], embedded: Tensor, states: Tensor, layers: Layers) -> Iterator[Tensor]:
    for x in embedded:
        layers = climb(p, x, layers)
        output = layers[-1][0]
        yield torch.tanh(p["combine.weight"] @ torch.cat([attend(p, output, states), output]))


def luong_feeding(p: dict[str, Tensor], embedded: Tensor, states: Tensor, layers: Layers) -> Iterator[Tensor]:
    fed = torch.zeros_like(layers[0][0])
    for x in embedded:
        layers = climb(p, torch.cat([x, fed]), layers)
        output = layers[-1][0]
        fed = torch.tanh(p["combine.weight"] @ torch.cat([attend(p, output, states), output]))
        yield fed


def conditional(p: dict[str, Tensor], embedded: Tensor, states: Tensor, layers: Layers) -> Iterator[Tensor]:
    state = layers[0]
    for x in embedded:
        between = gru(under(p, "recurrence.network."), x, state)
        context = attend(p, between[0], states)
        state = gru(under(p, "second.network."), context, between)
        yield torch.tanh(p["readout.projection.weight"] @ torch.cat([state[0], x, context]))


def gnmt(p: dict[str, Tensor], embedded: Tensor, states: Tensor, layers: Layers) -> Iterator[Tensor]:
    first, second, third = layers
    for x in embedded:
        context = attend(p, first[0], states)
        first = lstm(under(p, "recurrence.network."), torch.cat([x, context]), first)
        second = lstm(under(p, "upper.0.network."), torch.cat([first[0], context]), second)
        third = lstm(under(p, "upper.1.network."), torch.cat([second[0], context]), third)
        yield third[0] + second[0]


def transformer(p: dict[str, Tensor], embedded: Tensor, states: Tensor, layers: Layers) -> Iterator[Tensor]:
    """Pre-norm, two layers of two heads, token by token over a growing past."""
    pasts: list[list[Tensor]] = [[], []]
    size, heads = 8, 2
    for position, embedding in enumerate(embedded):
        angles = [position / 10000 ** (2 * (i // 2) / size) for i in range(size)]
        x = p["input_projection.weight"] @ embedding
        x = x + torch.tensor([math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)], dtype=torch.float64)
        for index, past in enumerate(pasts):
            q = under(p, f"layers.{index}.")
            past.append(normalize_layer(under(q, "self_attention_residual.norm."), x))
            projections, own = under(q, "self_attention.projections."), []
            matrices = [projections[f"{name}_projection.weight"] for name in ("query", "key", "value")]
            for head in range(heads):
                w_q, w_k, w_v = (matrix.chunk(heads)[head] for matrix in matrices)
                logits = torch.stack([(w_q @ past[-1]) @ (w_k @ y) / (size / heads) ** 0.5 for y in past])
                own.append(sum(a * (w_v @ y) for a, y in zip(softmax(logits), past, strict=True)))
            x = x + projections["output_projection.weight"] @ torch.cat(own)
            x = x + attend(q, normalize_layer(under(q, "attention_residual.norm."), x), states)
            hidden = (
                q["feedforward.0.weight"] @ normalize_layer(under(q, "feedforward_residual.norm."), x) + q["feedforward.0.bias"]
            )
            x = x + q["feedforward.3.weight"] @ hidden.clamp(min=0) + q["feedforward.3.bias"]
        yield normalize_layer(under(p, "norm."), x)


LOOPS: dict[str, tuple[Loop, list[str]]] = {
    "bahdanau": (bahdanau, []),
    "bahdanau_paper": (bahdanau_paper, []),
    "luong": (luong, []),
    "luong_feeding": (luong_feeding, []),
    "conditional": (conditional, []),
    "gnmt": (gnmt, ["decoder.num_layers=3"]),
    "transformer": (transformer, ["decoder.heads=2"]),
}


DEEP = ["bahdanau", "bahdanau_paper", "luong", "luong_feeding"]


@pytest.mark.parametrize(
    ("name", "more"),
    [*((name, []) for name in options("decoder") if name in LOOPS), *((name, ["decoder.num_layers=3"]) for name in DEEP)],
)
def test_decoder_is_its_equations(name: str, more: list[str]) -> None:
    loop, settings = LOOPS[name]
    made = model(f"decoder={name}", "attention=additive", *settings, *more)
    source, lengths = sentences([5, 3])
    target = torch.tensor([[2, 5, 6, 7], [2, 8, 9, 3]])
    encoded = made.encoder(made.source_frontend(source), lengths)
    _, state = made.decoder.start(encoded)
    decoded = made.decode(target, *made.encode(source, lengths))

    p = dict(made.named_parameters())
    expected = []
    for b, length in enumerate(lengths.tolist()):
        recurrent = isinstance(state.hidden[0], Tensor)
        layers = [tuple(part[b, i] for part in state.hidden) for i in range(state.hidden[0].shape[1])] if recurrent else []
        embedded = made.target_frontend.embedding.weight[target[b]]
        expected.append(torch.stack(list(loop(under(p, "decoder."), embedded, encoded.states[b, :length], layers))))
    torch.testing.assert_close(decoded.readouts, torch.stack(expected), rtol=0, atol=1e-10)

    weight = torch.randn_like(decoded.readouts)
    used = [q for name, q in p.items() if not name.startswith("head")]
    for ours, theirs in zip(
        torch.autograd.grad((decoded.readouts * weight).sum(), used, retain_graph=True),
        torch.autograd.grad((torch.stack(expected) * weight).sum(), used),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_plain_decoder_is_its_equation() -> None:
    made = model("decoder=plain", "attention=none", "decoder/initial_state=zeros", "encoder.num_layers=2")
    source, lengths = sentences([5, 3])
    target = torch.tensor([[2, 5, 6, 7], [2, 8, 9, 3]])
    encoded = made.encoder(made.source_frontend(source), lengths)
    p = under(dict(made.named_parameters()), "decoder.recurrence.network.")
    decoded = made.decode(target, *made.encode(source, lengths))
    rows, state = [], (torch.zeros(8).double(), torch.zeros(8).double())
    for b, t in itertools.product(range(2), range(4)):
        state = (torch.zeros(8).double(), torch.zeros(8).double()) if t == 0 else state
        x = torch.cat([made.target_frontend.embedding.weight[target[b, t]], encoded.final[0][b, -1].flatten()])
        state = lstm(p, x, state)
        rows.append(state[0])
    agree(decoded.readouts, torch.stack(rows).view(2, 4, 8), [*p.values(), made.target_frontend.embedding.weight])


def test_the_post_norm_transformer_normalises_after_each_sublayer() -> None:
    """Vaswani et al.'s own form: every sublayer's output leaves the layer normalised, and nothing is normalised at the end."""
    made = model("decoder=transformer", "decoder.pre_norm=false")
    decoded = made.decode(torch.tensor([[2, 5, 6]]), *made.encode(*sentences([4])))
    torch.testing.assert_close(decoded.readouts.mean(-1), torch.zeros(1, 3).double(), rtol=0, atol=1e-9)
    torch.testing.assert_close(decoded.readouts.var(-1, unbiased=False), torch.ones(1, 3).double(), rtol=0, atol=1e-3)
    assert not hasattr(made.decoder.norm, "weight")


def test_the_transformer_reports_the_weights_of_the_layer_asked_for() -> None:
    looks = []
    for layer in (0, 1, -1):
        made = model("decoder=transformer", "attention=multihead", f"decoder.weights_layer={layer}")
        looks.append(made.decode(torch.tensor([[2, 5, 6]]), *made.encode(*sentences([4]))))
    assert made.decoder.leaves_out_weights, "of the other layer, which a kernel may compute"
    assert torch.equal(looks[1].weights, looks[2].weights)
    assert not torch.allclose(looks[0].weights, looks[1].weights)
    torch.testing.assert_close(looks[0].readouts, looks[1].readouts, rtol=0, atol=1e-12)
    with pytest.raises(UserError, match="weights_layer 2 is none of 2 layers"):
        model("decoder=transformer", "decoder.weights_layer=2")


@pytest.mark.parametrize("decoder", ["transformer", "conditional"])
def test_decoders_that_live_on_the_context_refuse_to_go_without(decoder: str) -> None:
    with pytest.raises(UserError, match="choose another attention"):
        model(f"decoder={decoder}", "attention=none")


def test_gnmts_residual_connection_is_never_dropped() -> None:
    made = model("decoder=gnmt", "decoder.num_layers=3", "decoder.dropout=0.9").train()
    with torch.no_grad():
        for parameter in made.decoder.upper[1].parameters():
            parameter.zero_()
    decoded = made.decode(torch.tensor([[2, 5, 6]]), *made.encode(*sentences([4])))
    assert (decoded.readouts != 0).all()


@pytest.mark.parametrize("encoder", ["encoder=transformer", "encoder.bidirectional=false"])
def test_backward_only_wants_a_backward_encoder(encoder: str) -> None:
    with pytest.raises(UserError, match="reads forwards alone"):
        model("decoder=bahdanau_paper", encoder)


def test_gnmt_wants_two_layers() -> None:
    with pytest.raises(UserError, match="2 layers or more, not 1"):
        model("decoder=gnmt", "decoder.num_layers=1")


def test_bridge_reads_the_backward_encoders_first_state() -> None:
    made = model("decoder.initial_state.backward_only=true")
    source, lengths = sentences([5, 3])
    encoded = made.encoder(made.source_frontend(source), lengths)
    _, state = made.decoder.start(encoded)
    backward_first = encoded.states[:, 0, 4:]
    projection = made.decoder.initial_state.projections[0]
    torch.testing.assert_close(state.hidden[0][:, 0], torch.tanh(projection(backward_first)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("backward_only", [False, True])
def test_bridge_reads_each_part_of_the_state_of_the_encoders_top_layer(backward_only: bool) -> None:
    layers = ["encoder.num_layers=2", "decoder.num_layers=3", "decoder/cell=lstm"]
    made = model(*layers, f"decoder.initial_state.backward_only={str(backward_only).lower()}")
    source, lengths = sentences([5, 3])
    encoded = made.encoder(made.source_frontend(source), lengths)
    _, state = made.decoder.start(encoded)
    for own, final, bridge in zip(state.hidden, encoded.final, made.decoder.initial_state.projections, strict=True):
        forward, backward = final[:, 1].unbind(1)
        read = backward if backward_only else torch.cat([forward, backward], dim=1)
        expected = torch.tanh(read @ bridge.weight.t() + bridge.bias).view(2, 3, -1)
        torch.testing.assert_close(own, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("decoder", ["answer", "bahdanau", "conditional", "gnmt", "luong", "luong_feeding", "transformer"])
def test_contexts_are_made_of_the_values_where_an_encoder_gives_some(decoder: str) -> None:
    single = ["decoder.num_layers=1", "decoder.heads=2"] if decoder == "transformer" else []
    made = model(f"decoder={decoder}", "encoder=convolutional", "attention=general", *single)
    source, lengths = sentences([5, 3])
    encoded = made.encoder(made.source_frontend(source), lengths)
    first = made.target_frontend(torch.tensor([[2], [2]]))
    doubled = encoded._replace(values=2 * encoded.values)
    one, other = (made.decoder(first, *made.decoder.start(read)) for read in (encoded, doubled))
    torch.testing.assert_close(other.weights, one.weights, rtol=0, atol=1e-12)
    torch.testing.assert_close(other.contexts, 2 * one.contexts, rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoder", ["lstm", "transformer", "deep"])
def test_mean_starts_from_the_mean_of_the_states(encoder: str) -> None:
    made = model("decoder=conditional", "decoder/cell=lstm", f"encoder={encoder}")
    source, lengths = sentences([5, 3])
    encoded = made.encoder(made.source_frontend(source), lengths)
    _, state = made.decoder.start(encoded)
    for part, projection in zip(state.hidden, made.decoder.initial_state.projections, strict=True):
        w, b = projection.weight, projection.bias
        rows = []
        for i, length in enumerate(lengths.tolist()):
            mean = sum(encoded.states[i, j] for j in range(length)) / length
            rows.append(torch.tanh(w @ mean + b))
        agree(part[:, 0], torch.stack(rows), [w, b, *made.encoder.parameters()])


def test_last_state_is_copied_and_sizes_are_checked() -> None:
    made = model("decoder/initial_state=last", "encoder.bidirectional=false", "encoder.hidden_size=8")
    source, lengths = sentences([5, 3])
    encoded = made.encoder(made.source_frontend(source), lengths)
    _, state = made.decoder.start(encoded)
    last = torch.stack([encoded.states[0, 4], encoded.states[1, 2]])
    torch.testing.assert_close(state.hidden[0][:, 0], last, rtol=0, atol=1e-12)
    with pytest.raises(UserError, match=r"1 layers of 8.*2 layers of 8.*choose a bridge"):
        model("decoder/initial_state=last", "decoder.num_layers=2")


@pytest.mark.few(6)
@pytest.mark.parametrize("cell", options("decoder/cell"))
@pytest.mark.parametrize("initial", options("decoder/initial_state"))
def test_in_mixed_precision_a_state_has_one_type_at_every_step(initial: str, cell: str) -> None:
    made = model(
        f"decoder/initial_state={initial}", f"decoder/cell={cell}", "encoder.bidirectional=false", "encoder.hidden_size=8"
    )
    made.float()
    source, lengths = sentences([5, 3])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        memory, start = made.encode(source, lengths)
        _, _, after = made.step(source[:, 0], memory, start)
    assert {part.dtype for part in (*start.hidden, *after.hidden)} == {torch.float32}


@pytest.mark.parametrize("decoder", ["luong", "plain", "bahdanau"])
@pytest.mark.parametrize("cell", options("decoder/cell"))
def test_in_mixed_precision_steps_carry_what_a_whole_sequence_does(
    decoder: str, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, whose networks then run in single precision: a state that was rounded at every step would differ."""
    for network in (networks.RNN, networks.GRU, networks.LSTM):
        monkeypatch.setattr(network, "_can_be_cast", lambda *_: False)
    attention = ["attention=none"] if decoder == "plain" else []
    made = model(f"decoder={decoder}", f"decoder/cell={cell}", *attention).float()
    source, lengths = sentences([5, 3])
    target = torch.randint(4, 9, (2, 60), generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        memory, state = made.encode(source, lengths)
        whole = made.decode(target, memory, state).state.hidden
        for tokens in target.unbind(1):
            _, _, state = made.step(tokens, memory, state)
    for one, other in zip(whole, state.hidden, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-3)


@pytest.mark.few(6)
@pytest.mark.parametrize("initial", options("decoder/initial_state"))
@pytest.mark.parametrize("cell", exhaustive_but(["lstm"], options("decoder/cell")))
@pytest.mark.parametrize("encoder", options("encoder"))
def test_any_encoder_starts_any_cell_by_any_initial_state(initial: str, cell: str, encoder: str) -> None:
    chosen = [f"decoder/initial_state={initial}", f"decoder/cell={cell}", f"encoder={encoder}"]
    try:
        made = model(*chosen)
    except UserError as error:
        refusal = str(error)
        assert initial == "last"
        assert "make them equal" in refusal
        return
    source, lengths = sentences([5, 3])
    _, state = made.encode(source, lengths)
    assert [part.shape for part in state.hidden] == [(2, 1, 8)] * made.decoder.recurrence.state_parts


def test_plain_decoder_refuses_an_attention() -> None:
    with pytest.raises(UserError, match="choose no attention"):
        model("decoder=plain", "attention=dot")


def test_plain_decoder_is_told_the_summary_only_where_asked() -> None:
    """With zeros in the bridge the source reaches the decoder through the summary alone."""
    for summary, same in (("every_step", False), ("start", True)):
        made = model("decoder=plain", "attention=none", f"decoder.summary={summary}")
        for parameter in made.decoder.initial_state.parameters():
            torch.nn.init.zeros_(parameter)
        target = torch.tensor([[2, 5, 6], [2, 5, 6]])
        decoded = made.decode(target, *made.encode(*sentences([5, 3])))
        assert torch.equal(decoded.readouts[0], decoded.readouts[1]) is same
    with pytest.raises(UserError, match="is told nothing of the source"):
        model("decoder=plain", "attention=none", "decoder/initial_state=zeros", "decoder.summary=start")


@pytest.mark.few(2)
@pytest.mark.parametrize("decoder", ["bahdanau", "bahdanau_paper", "luong", "luong_feeding", "plain"])
def test_dropout_between_the_layers_of_one_is_refused(decoder: str) -> None:
    attention = "attention=none" if decoder == "plain" else "attention=additive"
    with pytest.raises(UserError, match=r"a dropout of 0.5 between layers has no effect on one layer"):
        model(f"decoder={decoder}", attention, "decoder.dropout=0.5")
    model(f"decoder={decoder}", attention, "decoder.dropout=0.5", "decoder.num_layers=2")
