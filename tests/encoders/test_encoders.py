"""Properties of every encoder that conf/ has, each new one against a plain loop in float64, and what encoders refuse."""

import functools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnlab.attention.scores import Additive, Dot, General
from attnlab.config import build
from attnlab.encoders import (
    ConvolutionalEncoder,
    DeepRecurrentEncoder,
    DualStageEncoder,
    EmbeddingEncoder,
    Encoder,
    EncoderOutput,
    HistoryEncoder,
    TransformerEncoder,
)
from attnlab.errors import UserError
from attnlab.layers.positions import NoPositions, Positions, Sinusoids, sinusoids
from attnlab.layers.recurrence import LSTMRecurrence
from attnlab.seeding import initialize
from composing import composed
from conftest import options
from parts import lstm, normalize_layer, under

INPUT, HIDDEN = 6, 4

VARIANTS = [
    *([f"encoder={option}"] for option in options("encoder")),
    ["encoder=deep", "encoder.bidirectional=false", "encoder.num_layers=3"],
    ["encoder=deep", "encoder.residual=false", "encoder.layer_norm=false", "encoder.network._target_=torch.nn.GRU"],
    ["encoder=deep", "encoder.residual=false", "encoder.num_layers=1"],
    ["encoder=convolutional", "encoder.kernel_size=5", "encoder.num_layers=1"],
    ["encoder=transformer", "encoder.pre_norm=false"],
    *(["encoder=transformer", f"encoder/positions={option}", "encoder.heads=2"] for option in options("encoder/positions")),
    ["encoder=embeddings", "encoder/positions=sinusoids"],
    ["encoder=history", "attention/score@encoder.score=additive", "decoder/cell@encoder.cell=gru", "encoder.num_layers=2"],
]


@functools.cache
def config(*overrides: str) -> dict[str, Any]:
    return composed(*overrides)["encoder"]


def randomized(encoder: Encoder) -> Encoder:
    """Every gain and bias too, which begin where a mistake about them would not show."""
    initialize(encoder, seed=1)
    torch.manual_seed(0)
    for parameter in encoder.double().eval().parameters():
        nn.init.normal_(parameter, std=0.5)
    return encoder


def make(overrides: list[str], **keys: object) -> Encoder:
    small = config(*overrides).copy()
    small.update({"hidden_size": HIDDEN} if "hidden_size" in small else {})
    small.update(keys)
    return randomized(build(small, "encoder")(INPUT))


def outputs(encoded: EncoderOutput) -> list[Tensor]:
    return [encoded.states, *([] if encoded.values is None else [encoded.values]), *encoded.final]


@pytest.mark.parametrize("overrides", VARIANTS, ids=",".join)
def test_properties(overrides: list[str]) -> None:
    """Padding and company change nothing, padding is zero, sizes are those announced, everything learns."""
    encoder = make(overrides)
    lengths = torch.tensor([2, 6, 1, 4])
    embeddings = torch.randn(4, 7, INPUT).double()
    encoded = encoder(embeddings, lengths)

    assert encoded.states.shape == (4, 7, encoder.output_size)
    assert encoded.values is None or encoded.values.shape == encoded.states.shape
    shape = (4, encoder.num_layers, encoder.num_directions, encoder.hidden_size)
    assert [part.shape for part in encoded.final] == [shape] * len(encoded.final)
    assert {output.dtype for output in outputs(encoded)} == {torch.float64}
    assert torch.equal(encoded.mask, torch.arange(7) < lengths.unsqueeze(1))
    for output in outputs(encoded)[: -len(encoded.final)]:
        assert (output[~encoded.mask] == 0).all()

    disturbed = encoder(torch.where(encoded.mask.unsqueeze(-1), embeddings, 100.0), lengths)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(outputs(encoded), outputs(disturbed), strict=True))
    for row, length in enumerate(lengths.tolist()):
        alone = encoder(embeddings[row : row + 1, :length], lengths[row : row + 1])
        for ours, theirs in zip(outputs(encoded), outputs(alone), strict=True):
            ours = ours[row, :length] if ours.dim() == 3 else ours[row]
            torch.testing.assert_close(ours, theirs[0], rtol=0, atol=1e-12)

    if list(encoder.parameters()):
        sum((output * torch.randn_like(output)).sum() for output in outputs(encoded)).backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("option", options("encoder"))
def test_dropout_acts_in_training_alone(option: str) -> None:
    if "dropout" not in config(f"encoder={option}"):
        pytest.skip("it has none")
    encoder = make([f"encoder={option}"], dropout=0.5, num_layers=2)
    sentence = torch.randn(1, 5, INPUT).double(), torch.tensor([5])
    assert torch.equal(encoder(*sentence).states, encoder(*sentence).states)
    encoder.train()
    assert not torch.equal(encoder(*sentence).states, encoder(*sentence).states)


def test_dropout_of_a_deep_encoder_is_between_its_layers() -> None:
    encoder = make(["encoder=deep"], dropout=0.5, num_layers=3).train()
    read: list[Tensor] = []
    for network in encoder.networks:  # type: ignore[union-attr]
        network.register_forward_pre_hook(lambda _, given: read.append(given[0].data))
    embeddings = torch.randn(1, 5, INPUT).double()
    encoder(embeddings, torch.tensor([5]))
    assert torch.equal(read[0], embeddings[0])
    assert [bool((one == 0).any()) for one in read] == [False, True, True]


def assert_equal(encoder: Encoder, loop: Callable[[dict[str, Tensor], Tensor], list[Tensor]], size: int = INPUT) -> None:
    """Compare all that an encoder puts out, and the gradients of all that goes in, with a loop over one sentence."""
    randomized(encoder)
    embeddings = torch.randn(1, 5, size).double().requires_grad_()
    ours = [output[0] for output in outputs(encoder(embeddings, torch.tensor([5])))]
    theirs = loop(dict(encoder.named_parameters()), embeddings[0])

    weights = [torch.randn_like(output) for output in ours]
    inputs = [embeddings, *encoder.parameters()]
    for results in (ours, theirs):
        loss = sum((output * weight).sum() for output, weight in zip(results, weights, strict=True))
        results.extend(torch.autograd.grad(loss, inputs, retain_graph=True))
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=0, atol=1e-10)


def placed(x: Tensor) -> list[Tensor]:
    """Add the sinusoids."""
    size = x.shape[1]
    angles = [[j / 10000 ** (i // 2 * 2 / size) for i in range(size)] for j in range(len(x))]
    waves = [[math.cos(angle) if i % 2 else math.sin(angle) for i, angle in enumerate(row)] for row in angles]
    return list(x + torch.tensor(waves, dtype=x.dtype))


def with_mean(states: list[Tensor], *others: list[Tensor]) -> list[Tensor]:
    mean = sum(states) / len(states)
    return [torch.stack(states), *map(torch.stack, others), mean.view(1, 1, -1)]


@pytest.mark.parametrize("size", [INPUT, 2 * HIDDEN, HIDDEN])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_deep_recurrent_encoder(size: int, bidirectional: bool, residual: bool, layer_norm: bool) -> None:
    def loop(p: dict[str, Tensor], embeddings: Tensor) -> list[Tensor]:
        x, hidden, cells = list(embeddings), [], []
        for layer in range(2):
            y: list[list[Tensor]] = [[] for _ in x]
            for direction in range(1 + bidirectional):
                h = c = torch.zeros(HIDDEN).double()
                for j in reversed(range(len(x))) if direction else range(len(x)):
                    h, c = lstm(under(p, f"networks.{layer}."), x[j], (h, c), "l0" + "_reverse" * direction)
                    y[j].append(h)
                cells.append(c)
            for j, parts in enumerate(y):
                new = torch.cat(parts)
                new = normalize_layer(under(p, f"norms.{layer}."), new) if layer_norm else new
                x[j] = x[j] + new if residual and len(x[j]) == len(new) else new
            hidden += [x[-1][:HIDDEN], x[0][HIDDEN:]][: 1 + bidirectional]
        return [torch.stack(x), *(torch.stack(part).view(2, 1 + bidirectional, HIDDEN) for part in (hidden, cells))]

    keys = {"bidirectional": bidirectional, "residual": residual, "layer_norm": layer_norm}
    assert_equal(DeepRecurrentEncoder(size, network=nn.LSTM, hidden_size=HIDDEN, **keys), loop, size)


@pytest.mark.parametrize("kernel_size", [1, 3, 7])
def test_convolutional_encoder(kernel_size: int) -> None:
    def loop(p: dict[str, Tensor], embeddings: Tensor) -> list[Tensor]:
        elements = [p["projection.weight"] @ x + p["projection.bias"] for x in placed(embeddings)]
        z = elements
        for layer in range(2):
            w, b = (p[f"blocks.{layer}.convolution.{name}"] for name in ("weight", "bias"))
            taps = [[(k, j + k - kernel_size // 2) for k in range(kernel_size)] for j in range(len(z))]
            sums = [b + sum(w[:, :, k] @ z[i] for k, i in row if 0 <= i < len(z)) for row in taps]
            z = [(y[:HIDDEN] * torch.sigmoid(y[HIDDEN:]) + x) * math.sqrt(0.5) for x, y in zip(z, sums, strict=True)]
        return with_mean(z, [x + e for x, e in zip(z, elements, strict=True)])

    assert_equal(ConvolutionalEncoder(INPUT, hidden_size=HIDDEN, num_layers=2, kernel_size=kernel_size), loop)


def test_convolutional_encoder_begins_with_states_of_the_variance_of_its_input() -> None:
    torch.manual_seed(0)
    encoder = ConvolutionalEncoder(64, hidden_size=64, dropout=0.2)
    assert encoder.projection.weight.std().item() == pytest.approx((1 / 64) ** 0.5, rel=0.05)
    for block in encoder.blocks:
        assert block.convolution.weight.std().item() == pytest.approx((4 * 0.8 / (3 * 64)) ** 0.5, rel=0.05)
    assert all((parameter == 0).all() for name, parameter in encoder.named_parameters() if name.endswith("bias"))


def transformer(p: dict[str, Tensor], embeddings: Tensor, pre_norm: bool) -> list[Tensor]:
    x = placed(embeddings)
    if "projection.weight" in p:
        x = placed(torch.stack([p["projection.weight"] @ word + p["projection.bias"] for word in embeddings]))
    for layer in range(2):
        at = f"layers.{layer}."
        y = [normalize_layer(under(p, f"{at}attention_residual.norm."), v) for v in x] if pre_norm else x
        matrices = (p[f"{at}attention.projections.{name}_projection.weight"] for name in ("query", "key", "value"))
        q, k, v = ([w @ word for word in y] for w in matrices)
        for i in range(len(x)):
            heads = []
            for part in (slice(0, HIDDEN // 2), slice(HIDDEN // 2, HIDDEN)):
                scores = [torch.exp(q[i][part] @ key[part] / math.sqrt(HIDDEN / 2)) for key in k]
                heads.append(sum(score / sum(scores) * value[part] for score, value in zip(scores, v, strict=True)))
            x[i] = x[i] + p[f"{at}attention.projections.output_projection.weight"] @ torch.cat(heads)
        x = x if pre_norm else [normalize_layer(under(p, f"{at}attention_residual.norm."), v) for v in x]
        for i, state in enumerate(x):
            read = normalize_layer(under(p, f"{at}feedforward_residual.norm."), state) if pre_norm else state
            inner = torch.clamp(p[f"{at}feedforward.0.weight"] @ read + p[f"{at}feedforward.0.bias"], min=0)
            added = state + p[f"{at}feedforward.3.weight"] @ inner + p[f"{at}feedforward.3.bias"]
            x[i] = added if pre_norm else normalize_layer(under(p, f"{at}feedforward_residual.norm."), added)
    return with_mean([normalize_layer(under(p, "norm."), v) for v in x] if pre_norm else x)


@pytest.mark.parametrize("size", [INPUT, HIDDEN])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_transformer_encoder(size: int, pre_norm: bool) -> None:
    encoder = TransformerEncoder(size, hidden_size=HIDDEN, heads=2, feedforward_size=5, pre_norm=pre_norm)
    assert isinstance(encoder.projection, nn.Linear) == (size != HIDDEN)
    assert_equal(encoder, lambda p, embeddings: transformer(p, embeddings, pre_norm), size)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_sinusoids_are_as_precise_as_their_dtype(dtype: torch.dtype) -> None:
    expected = torch.stack(placed(torch.zeros(400, 8).double()))[300:]
    encodings = sinusoids(300, 100, 8, torch.zeros((), dtype=dtype))
    assert encodings.dtype == dtype
    tolerance = max(torch.finfo(dtype).eps, 400 * torch.finfo(torch.promote_types(dtype, torch.float32)).eps)
    torch.testing.assert_close(encodings.double(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("positions", [NoPositions, Sinusoids])
def test_embedding_encoder(positions: type[Positions]) -> None:
    encoder = EmbeddingEncoder(INPUT, positions=positions)
    assert not list(encoder.parameters())
    in_order = positions is Sinusoids
    assert_equal(encoder, lambda _, embeddings: with_mean(placed(embeddings) if in_order else list(embeddings)))


def test_history_encoder() -> None:
    def loop(p: dict[str, Tensor], embeddings: Tensor) -> list[Tensor]:
        states: list[Tensor] = []
        h = c = context = torch.zeros(HIDDEN).double()
        for x in embeddings:
            if states:
                scores = [torch.exp(h @ p["score.projection.weight"] @ past) for past in states]
                context = sum(score / sum(scores) * past for score, past in zip(scores, states, strict=True))
            h, c = lstm(under(p, "recurrence.network."), torch.cat([x, context]), (h, c))
            states.append(h)
        return [torch.stack(states), h.view(1, 1, -1), c.view(1, 1, -1)]

    assert_equal(HistoryEncoder(INPUT, cell=LSTMRecurrence, score=General, hidden_size=HIDDEN), loop)


@pytest.mark.parametrize("layers", [1, 2])
def test_dual_stage_encoder(layers: int) -> None:
    """Qin et al. 2017, equations 8 to 11, with courses that are zero after the source's end; of two layers the top one asks."""

    def loop(p: dict[str, Tensor], embeddings: Tensor) -> list[Tensor]:
        query, key = p["input_attention.score.query_projection.weight"], p["input_attention.score.key_projection.weight"]
        v = p["input_attention.score.v.weight"][0]
        courses = [torch.cat([course, torch.zeros(3).double()]) for course in embeddings.t()]
        state = [(torch.zeros(HIDDEN).double(),) * 2] * layers
        states = []
        for x in embeddings:
            scores = [torch.exp(v @ torch.tanh(query @ torch.cat(state[-1]) + key @ course)) for course in courses]
            read = torch.stack([score / sum(scores) * number for score, number in zip(scores, x, strict=True)])
            for layer in range(layers):
                state[layer] = lstm(under(p, "recurrence.network."), read, state[layer], f"l{layer}")
                read = state[layer][0]
            states.append(read)
        return [torch.stack(states), *(torch.stack(part).unsqueeze(1) for part in zip(*state, strict=True))]

    score, sizes = partial(Additive, hidden_size=5), {"hidden_size": HIDDEN, "num_layers": layers, "max_length": 8}
    assert_equal(DualStageEncoder(INPUT, cell=LSTMRecurrence, score=score, **sizes), loop)


def test_a_source_longer_than_the_courses_of_an_input_attention_is_refused() -> None:
    encoder = make(["encoder=dual_stage"], max_length=4)
    with pytest.raises(UserError, match="5 elements: raise the encoder's max_length"):
        encoder(torch.randn(1, 5, INPUT).double(), torch.tensor([5]))


class Numbered(Dot):
    content_based = False


REFUSED: dict[str, Callable[[], Encoder]] = {
    r"embeddings of size 6 to states of size 8 .* set residual to false": lambda: make(["encoder=deep"], num_layers=1),
    r"kernel_size is odd, .* not 4": lambda: make(["encoder=convolutional"], kernel_size=4),
    r"kernel_size is odd, .* not -1": lambda: make(["encoder=convolutional"], kernel_size=-1),
    r"3 heads cannot share a query of size 4": lambda: make(["encoder=transformer"], heads=3),
    r"a Numbered score does not look at keys, but past states need": lambda: HistoryEncoder(
        INPUT, cell=LSTMRecurrence, score=Numbered, hidden_size=HIDDEN
    ),
    r"a Numbered score does not look at keys, but the courses of the input need": lambda: DualStageEncoder(
        INPUT, cell=LSTMRecurrence, score=Numbered, hidden_size=HIDDEN, max_length=2 * HIDDEN
    ),
}


@pytest.mark.parametrize("option", ["rnn", "gru", "lstm", "deep", "history", "dual_stage"])
def test_dropout_between_the_layers_of_one_is_refused(option: str) -> None:
    with pytest.raises(UserError, match=r"a dropout of 0.5 between layers has no effect on one layer"):
        make([f"encoder={option}"], dropout=0.5, num_layers=1)


@pytest.mark.parametrize("message", REFUSED)
def test_refused_in_one_line(message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        REFUSED[message]()
    assert "\n" not in str(refusal.value)
