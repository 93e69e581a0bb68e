"""An encoder of one's own that does not keep its promises is refused when a model is made of it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.encoders import EncoderOutput
from attnlab.encoders.encoder import ParallelEncoder, token_mask
from attnlab.encoders.validation import validate_encoder
from attnlab.errors import UserError


class Own(ParallelEncoder):
    """States by a function of embeddings and mask."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__(4)
        self.function = function

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        mask = token_mask(embeddings, lengths)
        return self._output(self.function(embeddings, mask), mask)


class Other(Own):
    """Gives something else."""

    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        return self.function(embeddings, token_mask(embeddings, lengths))  # type: ignore[return-value]


def late(states: Tensor, mask: Tensor) -> EncoderOutput:
    return EncoderOutput(states, mask, (states[:, -1, None, None],))


def own_values(states: Tensor, mask: Tensor, values: Tensor) -> EncoderOutput:
    return ParallelEncoder._output(states, mask, values)


MISTAKES: dict[str, tuple[ParallelEncoder, str]] = {
    "a tensor": (Other(lambda x, _: x), "the encoder Other gives Tensor: forward returns an EncoderOutput"),
    "a size": (Other(lambda x, m: EncoderOutput(x[..., 1:], m, (x[:, :1, None],))), r"gives states \(2, 4, 3\) for 2 sources"),
    "a final": (
        Other(lambda x, m: EncoderOutput(x, m, (x[:, 0],))),
        r"final \(2, 4\) .*its sizes say \(2, 1, 1, 4\)",
    ),
    "a mask": (Other(lambda x, m: EncoderOutput(x, m | True, (x[:, :1, None],))), "a mask that is not true where"),
    "a mask of numbers": (
        Other(lambda x, m: EncoderOutput(x, m.float(), (x[:, :1, None],))),
        "gives a mask of torch.float32: it is boolean",
    ),
    "no number": (Own(lambda x, _: x.log()), "gives states that are no finite numbers"),
    "the batch": (Own(lambda x, _: x - x.mean(0)), "states that change with the other sources of a batch"),
    "padding": (Own(lambda x, _: x - x.mean(1, keepdim=True)), "states that change with the padding behind a source"),
    "values of the batch": (
        Other(lambda x, m: own_values(x, m, x - x.mean(0))),
        "values that change with the other sources of a batch",
    ),
    "a size of values": (
        Other(lambda x, m: own_values(x, m, x[..., 1:])),
        r"gives values \(2, 4, 3\) for 2 sources .* \(2, 4, 4\)",
    ),
    "the last": (Other(late), "a final state that changes with other sources or with padding"),
    "a crash": (Own(lambda x, _: x[:, :-1]), r"cannot be computed: RuntimeError: .* \(test_own_encoders.py, line \d+\)"),
}


class OneLength(ParallelEncoder):
    """A linear layer over all positions."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.source_length, self.layer = 6, nn.Linear(6, 6)

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        return self._output(self.layer(embeddings.transpose(1, 2)).transpose(1, 2), token_mask(embeddings, lengths))


def test_a_part_of_one_length_is_tried_with_sources_of_it() -> None:
    validate_encoder(OneLength(4), 4, (6, 6))
    with pytest.raises(UserError, match=r"OneLength cannot be computed: RuntimeError: mat1 and mat2"):
        validate_encoder(OneLength(4), 4)


@pytest.mark.parametrize("name", MISTAKES)
def test_an_encoder_that_does_not_keep_its_promise_is_refused(name: str) -> None:
    encoder, told = MISTAKES[name]
    with pytest.raises(UserError, match=told):
        validate_encoder(encoder, 4)


def test_trying_an_encoder_changes_nothing() -> None:
    encoder = Own(lambda x, _: nn.functional.dropout(x, 0.5, encoder.training)).train()
    state = torch.get_rng_state()
    validate_encoder(encoder, 4)
    assert encoder.training
    assert torch.equal(torch.get_rng_state(), state)
