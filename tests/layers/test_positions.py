"""Every option of positions against plain loops in float64, in both kinds of self-attention, and what positions promise."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnlab.config import build
from attnlab.encoders import EmbeddingEncoder, TransformerEncoder
from attnlab.errors import UserError
from attnlab.layers.positions import Alibi, Positions, RelativeBias, Rotary
from attnlab.layers.transformer import SelfAttention
from composing import composed, model
from conftest import options

SIZE, HEADS, LENGTH = 8, 2, 7
OPTIONS = options("encoder/positions")
KEYS = {"relative_bias": {"buckets": 8, "max_distance": 5}}
"""By which a sequence of seven tokens reaches every kind of bucket."""


def make(option: str, *, causal: bool, size: int = SIZE, heads: int = HEADS) -> Positions:
    node = composed("encoder=transformer", f"encoder/positions={option}")["encoder"]["positions"]
    positions: Positions = build({**node, **KEYS.get(option, {})}, "encoder.positions")(size, heads, causal=causal).double()
    torch.manual_seed(0)
    for parameter in positions.parameters():
        nn.init.normal_(parameter)
    return positions


def product(q: Tensor, k: Tensor) -> Tensor:
    return q @ k / math.sqrt(len(q))


def turned(vector: Tensor, position: int) -> Tensor:
    """By complex numbers, which turn where they are multiplied."""
    pairs = torch.complex(vector[::2], vector[1::2])
    angles = torch.tensor([position * 10000 ** (-2 * i / len(vector)) for i in range(len(pairs))], dtype=torch.float64)
    rotated = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(rotated).flatten()


def bucket(offset: int, *, causal: bool) -> int:
    """The function of T5, with 8 buckets and a largest distance of 5."""
    each = 8 if causal else 4
    exact, distance = each // 2, abs(offset)
    grown = (
        exact + int(math.log(max(distance, 1) / exact) / math.log(5 / exact) * (each - exact))
        if distance >= exact
        else distance
    )
    return min(grown, each - 1) + (each if not causal and offset > 0 else 0)


Logit = Callable[[Tensor, Tensor, int, int, int, bool, Tensor], Tensor]
LOGITS: dict[str, Logit] = {
    "none": lambda q, k, *_: product(q, k),
    "sinusoids": lambda q, k, *_: product(q, k),
    "rotary": lambda q, k, p, j, *_: product(turned(q, p), turned(k, j)),
    "alibi": lambda q, k, p, j, head, *_: product(q, k) - abs(p - j) / 2 ** (8 * (head + 1) / HEADS),
    "relative_bias": lambda q, k, p, j, head, causal, b: product(q, k) + b[head, bucket(j - p, causal=causal)],
}
"""e_pj of a head from its query at p and its key at j."""


def loop(option: str, attention: SelfAttention, states: Tensor, *, causal: bool, biases: Tensor) -> Tensor:
    """Self-attention over one sequence, pair by pair."""
    project = attention.projections
    outputs = []
    for p, state in enumerate(states):
        seen = range(p + 1) if causal else range(len(states))
        heads = []
        for head in range(HEADS):
            rows = slice(head * SIZE // HEADS, (head + 1) * SIZE // HEADS)
            w_q, w_k, w_v = (
                m.weight[rows] for m in (project.query_projection, project.key_projection, project.value_projection)
            )
            logits = [LOGITS[option](w_q @ state, w_k @ states[j], p, j, head, causal, biases) for j in seen]
            powers = [logit.exp() for logit in logits]
            heads.append(sum(power / sum(powers) * (w_v @ states[j]) for power, j in zip(powers, seen, strict=True)))
        outputs.append(project.output_projection.weight @ torch.cat(heads))  # type: ignore[arg-type]
    return torch.stack(outputs)


def test_every_option_has_a_loop() -> None:
    assert sorted(LOGITS) == OPTIONS


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("option", OPTIONS)
def test_self_attention_is_equal_to_a_loop(option: str, causal: bool) -> None:
    """Outputs and gradients; where a token sees those before it, whether they come at once or in pieces."""
    positions = make(option, causal=causal)
    attention = SelfAttention(SIZE, heads=HEADS).double()
    biases = getattr(positions, "biases", torch.zeros(HEADS, 8))
    states = torch.randn(1, LENGTH, SIZE, dtype=torch.float64, requires_grad=True)

    expected = loop(option, attention, states[0], causal=causal, biases=biases)
    found = []
    if causal:
        past = attention.start(1, states)
        for piece in states.split([3, 1, 1, 2], dim=1):
            output, past = attention.attend_backwards(piece, past, positions)
            found.append(output)
        whole, _ = attention.attend_backwards(states, attention.start(1, states), positions)
        torch.testing.assert_close(torch.cat(found, dim=1), whole, rtol=0, atol=1e-12)
    else:
        whole = attention(states, torch.ones(1, LENGTH, dtype=torch.bool), positions)
    torch.testing.assert_close(whole[0], expected, rtol=0, atol=1e-12)

    inputs = [states, *attention.parameters(), *positions.parameters()]
    weights = torch.randn_like(expected)
    for ours, theirs in zip(*(torch.autograd.grad((one * weights).sum(), inputs) for one in (whole[0], expected)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("option", OPTIONS)
def test_a_decoder_tells_the_same_token_twice_apart(option: str) -> None:
    """And it reads tokens one by one as it reads them together."""
    made = model("decoder=transformer", "decoder.heads=2", f"encoder/positions@decoder.positions={option}")
    tokens = torch.tensor([[2, 5, 6, 5, 6, 5]])
    memory, state = made.encode(torch.tensor([[5, 6, 7, 3]]), torch.tensor([4]))
    embeddings = made.target_frontend(tokens, None)
    whole: Tensor = made.decoder(embeddings, memory.decoder, state).readouts
    steps = []
    for embedding in embeddings.split(1, dim=1):
        output = made.decoder(embedding, memory.decoder, state)
        state = output.state
        steps.append(output.readouts)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-12)
    assert not torch.allclose(whole[0, 1], whole[0, 3], rtol=0, atol=1e-6)


def test_without_positions_an_encoder_sees_a_bag_of_tokens() -> None:
    """With any others it does not."""
    order = torch.tensor([3, 0, 4, 1, 2])
    embeddings, lengths = torch.randn(1, 5, SIZE, dtype=torch.float64), torch.tensor([5])
    sees_bag = {}
    for option in OPTIONS:
        encoder = TransformerEncoder(
            SIZE,
            hidden_size=SIZE,
            heads=HEADS,
            positions=lambda *_, **keys: make(option, **keys),  # noqa: B023
        ).double()
        states, other = (encoder(one, lengths).states for one in (embeddings, embeddings[:, order]))
        sees_bag[option] = torch.allclose(states[:, order], other, rtol=0, atol=1e-12)
    assert sees_bag == {option: option == "none" for option in OPTIONS}


@pytest.mark.parametrize("option", ["rotary", "alibi", "relative_bias"])
def test_logits_depend_on_distances_alone(option: str) -> None:
    positions = make(option, causal=True)
    query, keys = torch.randn(1, HEADS, 3, SIZE // HEADS).double(), torch.randn(1, HEADS, 3, SIZE // HEADS).double()

    def logits(start: int) -> Tensor:
        products = positions.rotate(query, start) @ positions.rotate(keys, start).transpose(2, 3)
        bias = positions.bias(3, start + 3, query)
        return products if bias is None else products + bias[..., start:]

    torch.testing.assert_close(logits(0), logits(40), rtol=0, atol=1e-10)


def test_the_buckets_are_those_of_t5_by_default() -> None:
    """32 of them up to a distance of 128: those that the formula has where its logarithm is no whole number."""
    torch.manual_seed(0)
    positions = RelativeBias(SIZE, HEADS, causal=False)
    nn.init.normal_(positions.biases)
    bias = positions.bias(200, 200, torch.zeros(()))
    for distance in range(200):
        grown = 8 + (math.log(max(distance, 1) / 8) / math.log(128 / 8)) * 8
        found = distance if distance < 8 else min(math.floor(grown + 1e-9), 15)
        assert torch.equal(bias[:, distance, 0], positions.biases[:, found])
        assert torch.equal(bias[:, 0, distance], positions.biases[:, found + (16 if distance else 0)])


def test_a_relative_bias_begins_with_nothing() -> None:
    assert (RelativeBias(SIZE, HEADS, causal=True).biases == 0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_far_positions_are_turned_as_precisely_as_half_precision_can(dtype: torch.dtype) -> None:
    vector = torch.randn(1, 1, 1, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = Rotary(8, 1, causal=True).rotate(vector, 3001)
    assert found.dtype == dtype
    expected = turned(vector[0, 0, 0].double(), 3001)
    torch.testing.assert_close(found[0, 0, 0].double(), expected, rtol=0, atol=4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("is_training", [False, True])
def test_half_precision_comes_near_single(option: str, is_training: bool) -> None:
    """Where the logits gain numbers the kernel is given them in the precision of its queries."""
    encoder = TransformerEncoder(SIZE, hidden_size=SIZE, heads=HEADS, positions=lambda *_, **keys: make(option, **keys).float())
    embeddings, lengths = torch.randn(2, 5, SIZE), torch.tensor([5, 3])
    expected = encoder(embeddings, lengths).states
    with torch.set_grad_enabled(is_training), torch.autocast("cpu", torch.bfloat16):
        found = encoder(embeddings, lengths).states
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=0.1)


@pytest.mark.parametrize(
    ("make_one", "told"),
    [
        (lambda: Rotary(6, 2, causal=False), "2 heads of a state of 6 have 3: choose"),
        (lambda: RelativeBias(8, 2, causal=True, max_distance=16), "max_distance 16: the first 16 distances"),
        (lambda: EmbeddingEncoder(8, positions=Alibi), "Alibi acts in self-attention"),
        (lambda: EmbeddingEncoder(8, positions=Rotary), "Rotary acts in self-attention"),
    ],
)
def test_what_cannot_be_is_refused(make_one: Callable[[], object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        make_one()
