"""Parts of one's own that do not keep their promises are refused when an attention is made of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention import Memory
from attnlab.attention.histories import History, HistorySizes
from attnlab.attention.keys import Keys
from attnlab.attention.noise import NOISE, draw_normal
from attnlab.attention.normalizers import Softmax, StatelessNormalizer
from attnlab.attention.scores import General
from attnlab.attention.validation import Sizes, as_part, validate_parts
from attnlab.attention.windows import Global, Region, Window
from attnlab.encoders.encoder import Encoder, EncoderOutput
from attnlab.errors import UserError
from parts import EMBEDDING, MEMORY, QUERY, attention


class Weights(StatelessNormalizer):
    """Weights by a function of logits and of what is allowed."""

    function: Callable[[Tensor, Tensor], Tensor]

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.scale = nn.Parameter(torch.ones(1))

    @override
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        return type(self).function(logits * self.scale, allowed)


class Pairs(Keys):
    """Keys and values by a function of states."""

    function: Callable[[Tensor], tuple[Tensor, Tensor]]

    @override
    def forward(self, states: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        return type(self).function(states)


class Centre(Window):
    """Adds to logits near a learned position."""

    function: Callable[[Tensor], Tensor]

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.centre = nn.Parameter(torch.ones(1))

    @override
    def bias(self, position: Tensor, *numbers: Tensor) -> Tensor:
        return type(self).function(position - self.centre)


class Everywhere(Window):
    """Looks behind the end of a source."""

    @override
    def region(self, mask: Tensor, numbers: tuple[Tensor, ...]) -> Region:
        return Region(torch.ones_like(mask).unsqueeze(1))


class FirstHalf(Global):
    """Inherits a region that asks no function of a position."""

    @override
    def is_near(self, position: Tensor, *numbers: Tensor) -> Tensor:
        return (position < 2).view(1, 1, -1)


class Nowhere(Window):
    """Looks at nothing."""

    @override
    def is_near(self, position: Tensor, *numbers: Tensor) -> Tensor:
        return (position < 0).view(1, 1, -1)


class Behind(Window):
    """Looks at the position of its own step, of which a source may have too few."""

    @override
    def place(self, query: Tensor, mask: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        return ((step.unsqueeze(1) + torch.arange(query.shape[1])).unsqueeze(2),)

    @override
    def is_near(self, position: Tensor, *numbers: Tensor) -> Tensor:
        return (position - numbers[0]).abs() <= 2


class Tally(History):
    """Remembers the sum of the weights, and says that it does not."""

    sequential = False

    @override
    def start(self, mask: Tensor) -> Tensor:
        return torch.zeros(len(mask), 1, mask.shape[1])

    @override
    def adjust_logits(self, logits: Tensor, state: Tensor) -> Tensor:
        return logits - state

    @override
    def advance(self, state: Tensor, logits: Tensor, weights: Tensor, query: Tensor, memory: Memory) -> Tensor:
        return state + weights.sum(1, keepdim=True)


class Remembered(Tally):
    """Changes logits by a function of them and of the sum of the weights."""

    sequential = True
    function: Callable[[Tensor, Any], Tensor]

    @override
    def adjust_logits(self, logits: Tensor, state: Tensor) -> Tensor:
        return type(self).function(logits, state)


def softmax(logits: Tensor, allowed: Tensor) -> Tensor:
    return logits.masked_fill(~allowed, -1e9).softmax(-1)


def made(kind: type, function: Callable[..., Any]) -> Callable[..., Any]:
    class Own(kind):
        """Of one's own."""

    Own.__name__, Own.function = kind.__name__, staticmethod(function)
    return Own


MISTAKES: dict[str, tuple[str, type, Callable[..., Any], str]] = {
    "none": ("normalizer", Weights, softmax, ""),
    "a wrong shape": ("normalizer", Weights, lambda e, _: e.softmax(-1).sum(-1), r"gives torch.float32 \(2, 1\) for logits"),
    "another type": ("normalizer", Weights, lambda e, m: softmax(e, m).double(), "gives torch.float64"),
    "no number": ("normalizer", Weights, lambda e, m: softmax(e, m) / 0, "no finite numbers"),
    "padding": ("normalizer", Weights, lambda e, _: e.softmax(-1), "gives weight to a position that is not allowed"),
    "a sum": ("normalizer", Weights, lambda e, m: e.sigmoid() * m, "sum to .*: let its class say sums_to_one = False"),
    "below zero": ("normalizer", Weights, lambda e, m: 2 * softmax(e, m) - m / m.sum(-1, keepdim=True), "shares = False"),
    "the future": ("normalizer", Weights, lambda e, m: softmax(e + e.mean(1, keepdim=True), m), "looks at other queries"),
    "a crash": ("normalizer", Weights, lambda e, m: {"e": e}["logits"], r"KeyError: 'logits' \(test_own_parts.py, line"),
    "a cut": ("normalizer", Weights, lambda e, m: softmax(e.detach(), m), "no gradient reaches normalizer.scale"),
    "the batch": ("keys", Pairs, lambda h: (h, h - h.mean(0, keepdim=True)), "the other sources of a batch"),
    "all positions": ("keys", Pairs, lambda h: (h, h - h.mean(1, keepdim=True)), "the padding behind a source"),
    "a size": ("keys", Pairs, lambda h: (h[..., 1:], h), r"have the shapes \[\(2, 4, 5\), \(2, 4, 6\)\], and by key_size"),
    "one tensor": ("keys", Pairs, lambda h: h, "the keys Pairs give Tensor: forward returns two tensors, keys and values"),
    "no keys": ("keys", Pairs, lambda h: (h / 0, h), "the keys Pairs give keys or values that are no finite"),
    "a bias": ("window", Centre, lambda distance: -distance.square(), ""),
    "no bias": ("window", Centre, lambda distance: distance.sqrt(), "the window Centre gives a bias that is no finite number"),
    "not everywhere": ("window", FirstHalf, softmax, "a region of its own, which its is_near, bias and prior do not say"),
    "nothing behind": ("window", Behind, softmax, "the window Behind allows no position .* behind the 8th target token"),
    "nowhere": ("window", Nowhere, softmax, "the window Nowhere allows no position of a source that has tokens to some"),
    "a shape": ("history", Remembered, lambda logits, state: logits[..., 0], r"makes logits \(2, 1\) of logits \(2, 1, 4\)"),
    "no logits": ("history", Remembered, lambda logits, state: logits / 0, "makes keys or logits that are no finite numbers"),
    "a state lost": ("history", Remembered, lambda logits, state: logits - state.lost, "test_own_parts.py, line"),
    "everywhere": ("window", Everywhere, softmax, "the window Everywhere allows positions where a source has no token"),
    "no gradient": ("window", Centre, lambda distance: -distance.detach().square(), "no gradient reaches window.centre"),
    "a window's crash": ("window", Centre, lambda distance: distance @ distance[:1], "test_own_parts.py, line"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_part_that_does_not_keep_its_promise_is_refused(name: str) -> None:
    group, kind, function, told = MISTAKES[name]
    if not told:
        attention(**{group: made(kind, function)})
        return
    with pytest.raises(UserError, match=told):
        attention(**{group: made(kind, function)})


class Capped(General):
    """A product that is capped after it."""

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query, keys).tanh()


class Flat(Softmax):
    """A softmax of half of the logits, which does not say so."""

    @override
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        return super().forward(logits / 2, allowed)


class Slanted(Window):
    """Adds to the logits, and says so to whom asks for the whole region alone."""

    @override
    def forward(self, query: Tensor, mask: Tensor, step: Tensor) -> Region:
        region = super().forward(query, mask, step)
        return region._replace(bias=torch.arange(mask.shape[1]).expand(len(mask), query.shape[1], -1).float())


@pytest.mark.parametrize(
    ("group", "kind", "honest"),
    [("score", Capped, {"is_product": False}), ("normalizer", Flat, None), ("window", Slanted, None)],
)
def test_what_a_kernel_would_compute_otherwise_is_refused(group: str, kind: type, honest: dict[str, Any] | None) -> None:
    with pytest.raises(UserError, match=f"the {group} {kind.__name__}.* compute another context than a kernel"):
        attention(**{group: kind})
    if honest is not None:
        attention(**{group: type("Honest", (kind,), honest)})


def test_what_carries_something_on_must_say_so() -> None:
    with pytest.raises(
        UserError, match="with the history Tally computes is not the same for a sequence of queries and for one after another"
    ):
        attention(history=Tally)
    attention(history=type("Tally", (Tally,), {"sequential": True}))


@pytest.mark.parametrize("group", ["score", "keys", "window", "normalizer", "history"])
def test_what_is_no_part_is_told(group: str) -> None:
    class Wrong(nn.Module):
        """No part."""

        def __init__(self, *sizes: int | HistorySizes) -> None:
            super().__init__()

    with pytest.raises(UserError, match=f"Wrong is no {group}: let its class inherit from {group.title()}"):
        attention(**{group: Wrong})


def test_a_part_that_is_not_prepared_is_told() -> None:
    class Unprepared(StatelessNormalizer):
        def __init__(self, query_size: int, memory_size: int) -> None:
            self.size = query_size

        @override
        def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
            return softmax(logits, allowed)

    with pytest.raises(UserError, match="Unprepared is not prepared: call super"):
        attention(normalizer=Unprepared)


class Sized(Encoder):
    """An encoder of given sizes, and of no others."""

    def __init__(self, **sizes: Any) -> None:
        super().__init__()
        for name, size in sizes.items():
            setattr(self, name, size)

    @override
    def forward(self, embeddings: Tensor, lengths: Tensor) -> EncoderOutput:
        raise AssertionError


def test_what_a_part_leaves_unset_is_told() -> None:
    with pytest.raises(
        UserError, match=r"Sized has no num_layers and no num_directions: set self\.num_layers and self\.num_dir"
    ):
        as_part(Sized(output_size=4, hidden_size=2), Encoder)


def test_an_attribute_of_another_type_is_told() -> None:
    sizes: dict[str, Any] = {"output_size": np.int64(4), "hidden_size": 2, "num_layers": 1, "num_directions": 1}
    assert as_part(Sized(**sizes), Encoder)
    with pytest.raises(UserError, match="Sized has source_length = '4', which must be a whole number or None"):
        as_part(Sized(**sizes, source_length="4"), Encoder)


def test_trying_parts_draws_no_random_numbers() -> None:
    made = attention(normalizer="mocha").float()
    NOISE.seed(1)
    torch.manual_seed(1)
    expected = torch.rand(3), draw_normal(torch.zeros(3))
    NOISE.seed(1)
    torch.manual_seed(1)
    validate_parts(made, Sizes(QUERY, MEMORY, EMBEDDING))
    assert not made.training
    torch.testing.assert_close((torch.rand(3), draw_normal(torch.zeros(3))), expected, rtol=0, atol=0)
