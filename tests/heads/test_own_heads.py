"""A head of one's own that does not keep its promises is refused when a model is made of it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.decoders import Decoder, DecoderOutput, DecoderState
from attnlab.encoders import EncoderOutput
from attnlab.errors import UserError
from attnlab.heads import Head, TargetSpace
from attnlab.heads.validation import validate_head

SIZE, TOKENS = 4, 7
SCORE = Callable[[Tensor, DecoderOutput], Tensor]


def encoded() -> EncoderOutput:
    states = torch.randn(2, 4, SIZE, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[True, True, True, True], [True, True, True, False]])
    return EncoderOutput(states, mask, (states[:, :1, None],))


def decoded() -> DecoderOutput:
    draw = torch.Generator().manual_seed(2)
    readouts, states, embeddings = (torch.randn(2, 3, SIZE, generator=draw) for _ in range(3))
    weights = torch.full((2, 3, 4), 0.25)
    return DecoderOutput(readouts, weights, readouts[..., :0], states, embeddings, DecoderState((), readouts[:, 0], None))


class Own(Head):
    """Scores by a function of what a layer makes of the readouts, and of all that the decoder gave."""

    def __init__(self, score: SCORE = lambda scores, _: scores) -> None:
        decoder = cast(Decoder, SimpleNamespace(readout_size=SIZE))
        super().__init__(decoder, SIZE, TargetSpace(TOKENS, padding_id=0, unknown_id=1, end_id=3))
        self.projection, self.score = nn.Linear(SIZE, TOKENS), score

    @override
    def forward(self, decoded: DecoderOutput, memory: Any, dropout: nn.Module) -> Tensor:
        return self.score(self.projection(dropout(decoded.readouts)), decoded)


class Detached(Own):
    """Learns nothing."""

    @override
    def loss(self, scores: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
        return (scores.argmax(-1) != labels).float().mean()


class Spread(Own):
    """A loss for each label."""

    @override
    def loss(self, scores: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
        return scores.square().sum(-1)


def closed(scores: Tensor, _: DecoderOutput) -> Tensor:
    return torch.cat([torch.full_like(scores[..., :1], -torch.inf), scores[..., 1:]], dim=-1)


MISTAKES: dict[str, tuple[Callable[[], Head], str]] = {
    "a size": (lambda: Own(lambda s, _: s[..., 1:]), r"gives scores \(2, 3, 6\): they are \(2, 3, 7 or more tokens\)"),
    "one step": (lambda: Own(lambda s, _: s[:, 0]), r"gives scores \(2, 7\): they are \(2, 3, "),
    "no number": (lambda: Own(lambda s, _: s.log()), "scores that are NaN or infinite, or -inf to every token"),
    "a token that cannot be": (lambda: Own(closed), "gives -inf to a token: let its class say all_tokens_possible = False"),
    "an undeclared field": (
        lambda: Own(lambda s, d: s + d.states.mean(-1, keepdim=True)),
        "which must say in `reads` all that it reads of the decoder's output, cannot be computed: RuntimeError",
    ),
    "other positions": (
        lambda: Own(lambda s, _: s - s.mean(1, keepdim=True)),
        "other scores where some positions alone are scored: let its class say in `reads`",
    ),
    "no gradient": (Detached, "gives a loss that no gradient leads back from"),
    "many losses": (Spread, "gives a loss that is no single finite number"),
    "a crash": (lambda: Own(lambda s, _: s @ s), r"Own cannot be computed: RuntimeError: .* \(test_own_heads.py, line \d+\)"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_head_that_does_not_keep_its_promise_is_refused(name: str) -> None:
    make, told = MISTAKES[name]
    with pytest.raises(UserError, match=told):
        validate_head(make(), encoded(), decoded())


class Bare(Own):
    """Has no parameter, as a head that points by a product has none."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.ZeroPad1d((0, TOKENS - SIZE))  # type: ignore[assignment]


def test_a_head_may_have_no_parameter() -> None:
    assert not list(Bare().parameters())
    validate_head(Bare(), encoded(), decoded())


def test_a_head_that_keeps_it_is_left_as_it_was() -> None:
    head = Own()
    validate_head(head, encoded(), decoded())
    assert head.training
    assert all(parameter.grad is None for parameter in head.parameters())
