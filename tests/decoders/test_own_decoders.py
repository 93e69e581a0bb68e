"""A decoder of one's own that does not keep its promises is refused when a model is made of it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from typing_extensions import override

from attnlab.attention import Memory, NoAttention
from attnlab.decoders import Decoder, DecoderOutput, DecoderState
from attnlab.decoders.validation import validate_decoder
from attnlab.encoders import EmbeddingEncoder, EncoderOutput
from attnlab.errors import UserError

SIZE = 4
MASK = torch.tensor([[True, True, True, True], [True, True, True, False]])
Summary = Callable[[EncoderOutput], Tensor]
Read = Callable[[Tensor, Tensor, Tensor], Tensor]


def encoded() -> EncoderOutput:
    states = torch.randn(2, 4, SIZE, generator=torch.Generator().manual_seed(1))
    return EncoderOutput(states, MASK, (states[:, :1, None],))


def mean(source: EncoderOutput) -> Tensor:
    return (source.states * source.mask.unsqueeze(2)).sum(1) / source.mask.sum(1, keepdim=True)


def running(embeddings: Tensor, source: Tensor, before: Tensor) -> Tensor:
    return before.unsqueeze(1) + embeddings.cumsum(1) + source.unsqueeze(1)


class Own(Decoder):
    """States by a function of embeddings, a summary of the source, and the state before."""

    def __init__(self, read: Read = running, summary: Summary = mean, *, feeds_back: bool = True) -> None:
        super().__init__(EmbeddingEncoder(SIZE), SIZE)
        self.attention = NoAttention(SIZE, SIZE, SIZE)
        self.read, self.summary, self.feeds_back = read, summary, feeds_back

    @override
    def start(self, encoded: EncoderOutput) -> tuple[Any, DecoderState]:
        first = torch.zeros(len(encoded.mask), SIZE)
        return (self.summary(encoded), self.attention.memory(encoded.states, encoded.mask)), DecoderState((), first, None)

    @override
    def forward(self, embeddings: Tensor, memory: tuple[Tensor, Memory], state: DecoderState) -> DecoderOutput:
        source, looked = memory
        states = self.read(embeddings, source, state.feedback)
        weights = states.new_zeros(*embeddings.shape[:2], looked.mask.shape[1])
        after = states[:, -1] - source if self.feeds_back else state.feedback
        return DecoderOutput(states, weights, states[..., :0], states, embeddings, DecoderState((), after, None))


class Other(Own):
    """Gives something else."""

    def forward(self, embeddings: Tensor, memory: Any, state: DecoderState) -> DecoderOutput:
        return embeddings  # type: ignore[return-value]


class Narrow(Own):
    """Says another size than it has."""

    def __init__(self) -> None:
        super().__init__()
        self.readout_size = 5


MISTAKES: dict[str, tuple[Callable[[], Decoder], str]] = {
    "a tensor": (Other, "the decoder Other gives Tensor: forward returns a DecoderOutput"),
    "a size": (Narrow, r"gives readouts \(2, 3, 4\) .* its sizes say \(2, 3, 5\)"),
    "no number": (lambda: Own(lambda x, s, b: running(x, s, b).log()), "gives readouts that are no finite numbers"),
    "no memory": (lambda: Own(feeds_back=False), "other readouts where the tokens come one after another, as in a search"),
    "the future": (
        lambda: Own(lambda x, s, b: running(x, s, b) + x.mean(1, keepdim=True)),
        "other readouts where the tokens come one after another",
    ),
    "the batch": (
        lambda: Own(summary=lambda e: mean(e) - mean(e).mean(0)),
        "other readouts where a source is alone in its batch",
    ),
    "padding": (lambda: Own(summary=lambda e: e.states.mean(1)), "other readouts where there is no padding behind a source"),
    "a crash": (
        lambda: Own(lambda x, s, b: x @ s),
        r"Own cannot be computed: RuntimeError: .* \(test_own_decoders.py, line \d+\)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_decoder_that_does_not_keep_its_promise_is_refused(name: str) -> None:
    make, told = MISTAKES[name]
    with pytest.raises(UserError, match=told):
        validate_decoder(make(), encoded(), SIZE)


def test_a_decoder_that_keeps_it_is_read_and_left_as_it_was() -> None:
    decoder = Own()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    output = validate_decoder(decoder, encoded(), SIZE)
    assert output.readouts.shape == (2, 3, SIZE)
    assert decoder.training
    assert torch.rand(1) == expected
