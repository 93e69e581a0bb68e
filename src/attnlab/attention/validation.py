"""What the parts of an attention promise, tried on a few numbers before anything is trained."""

import re
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from attnlab.attention.keys import Keys
from attnlab.attention.mechanism import AttentionOutput, Memory, Part, Query
from attnlab.attention.scores import find_unreached
from attnlab.attention.trial import are_close, preserve_state
from attnlab.attention.windows import Window
from attnlab.errors import UserError, attempt
from attnlab.hints import wrong_attribute

if TYPE_CHECKING:
    from attnlab.attention.attention import Attention

GROUPS = ("keys", "window", "normalizer", "history")
"""The parts, but for the score, which is tried by itself."""
PartKind = TypeVar("PartKind", bound=nn.Module)
QUERIES, POSITIONS = 3, 4


class Sizes(NamedTuple):
    """What an attention is made for."""

    query: int
    memory: int
    embedding: int


def as_part(made: PartKind, kind: type) -> PartKind:
    """Return what a factory made, if it is a part of the kind.

    Raises:
        UserError: it is not.
    """
    if not isinstance(made, kind):
        name = re.sub("(?<=[a-z])(?=[A-Z])", " ", kind.__name__.removesuffix("Mechanism")).lower()
        raise UserError(f"{type(made).__name__} is no {name}: let its class inherit from {kind.__name__}")
    if "_modules" not in vars(made):
        raise UserError(f"{type(made).__name__} is not prepared: call super().__init__ with its sizes first in its own")
    if told := wrong_attribute(made, kind):
        raise UserError(f"{type(made).__name__} has {told}")
    return made


def validate_parts(attention: "Attention", sizes: Sizes) -> None:
    """Try what the parts of an attention promise, and whether it answers several queries as it answers each by itself.

    Raises:
        UserError: a part that raises or does not keep its promise.
    """
    draw = torch.Generator().manual_seed(0)
    query = Query(*(torch.randn(2, QUERIES, size, generator=draw) for size in (sizes.query, sizes.embedding)))
    limits = (part.max_length for part in attention.modules() if isinstance(part, Part))
    positions = min(limit or POSITIONS for limit in (POSITIONS, *limits))
    states = torch.randn(2, positions, sizes.memory, generator=draw)
    mask = torch.ones(2, positions, dtype=torch.bool)
    shorter = max(positions - 1, 1)
    mask[1, shorter:] = False
    with preserve_state(attention):
        _try_keys(attention.keys, states)
        _try_window(attention.window, mask)
        _try_normalizer(attention, attention.memory(states, mask))
        _try_history(attention, attention.memory(states, mask))
        _try_whole(attention, query, states, mask)
        if attention.kernel_obstacle is None:
            _try_kernel(attention, query, states, mask)
        attention.train()
        with torch.enable_grad():
            _try_learning(attention, query, states, mask)


def _name(group: str, part: Part) -> str:
    return f"the {group} {type(part).__name__}"


def _try_keys(keys: Keys, states: Tensor) -> None:
    name = _name("keys", keys)
    with attempt(name, keys):
        pair = keys(states, states)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise UserError(f"{name} give {type(pair).__name__}: forward returns two tensors, keys and values")
    with attempt(name, keys):
        shapes = [tuple(part.shape) for part in pair]
    positions = states.shape[1]
    wanted = [(2, positions, keys.key_size), (2, positions, keys.value_size)]
    if shapes != wanted:
        raise UserError(
            f"{name}: keys and values of 2 sources of {positions} positions have the shapes {shapes}, and by "
            f"key_size and value_size {wanted}"
        )
    if not all(bool(part.isfinite().all()) for part in pair):
        raise UserError(f"{name} give keys or values that are no finite numbers")


def _try_window(window: Window, mask: Tensor) -> None:
    for first in (0, 2 * mask.shape[1]):  # a target may be longer than its source
        _try_window_from(window, mask, first)


def _try_window_from(window: Window, mask: Tensor, first: int) -> None:
    name = _name("window", window)
    queries, step = torch.zeros(2, QUERIES, window.query_size), torch.full((2,), first)
    with attempt(name, window):
        region, numbers = window(queries, mask, step), window.place(queries, mask, step)
        own, said = window.region(mask, numbers), Window.region(window, mask, numbers)
        allowed = region.allowed.expand(2, QUERIES, mask.shape[1])
        is_same = [_is_same(one, other) for one, other in zip(own, said, strict=True)]
    if allowed.dtype != torch.bool:
        raise UserError(f"{name} allows positions by {allowed.dtype}: it must be torch.bool")
    if bool((allowed & ~mask.unsqueeze(1)).any()):
        raise UserError(f"{name} allows positions where a source has no token")
    if not bool(allowed.any(-1).all()):
        where = f" behind the {first}th target token" if first else ""
        raise UserError(f"{name} allows no position of a source that has tokens to some queries{where}")
    for what, given in (("a bias", region.bias), ("a prior", region.prior)):
        if given is not None and not bool(given.isfinite().all()):
            raise UserError(f"{name} gives {what} that is no finite number")
    if not all(is_same):  # which kernels ask, one position at a time
        raise UserError(f"{name} has a region of its own, which its is_near, bias and prior do not say: inherit from Window")


def _is_same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other if one is None or other is None else bool((one == other).all())


def _try_normalizer(attention: "Attention", memory: Memory) -> None:
    normalizer, state = attention.normalizer, attention.start(memory)
    name = _name("normalizer", normalizer)
    queries = torch.zeros(2, 1, attention.window.query_size)
    allowed = memory.mask.unsqueeze(1)
    logits = torch.linspace(-1, 2, allowed.numel()).view_as(allowed)
    with attempt(name, normalizer):
        weights, _ = normalizer.advance(logits, allowed, queries, memory, state.normalizer)
        sums = weights.sum(-1)
    if weights.shape != logits.shape or weights.dtype != logits.dtype:
        raise UserError(
            f"{name} gives {weights.dtype} {tuple(weights.shape)} for logits of {logits.dtype} {tuple(logits.shape)}: weights "
            "have their type and shape"
        )
    if not bool(weights.isfinite().all()):
        raise UserError(f"{name} gives weights that are no finite numbers")
    if bool(weights[~allowed].any()):
        raise UserError(f"{name} gives weight to a position that is not allowed, where it must be zero")
    if normalizer.sums_to_one and not torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
        raise UserError(f"{name} gives weights that sum to {float(sums[0]):.3g}: let its class say sums_to_one = False")
    if normalizer.shares and (bool((weights < 0).any()) or bool((sums > 1.001).any())):
        raise UserError(f"{name} gives weights below zero, or of a sum above one: let its class say shares = False")


def _try_history(attention: "Attention", memory: Memory) -> None:
    """Let a history follow two target tokens."""
    history, state = attention.history, attention.start(memory).history
    name, queries = _name("history", history), torch.zeros(2, 1, attention.window.query_size)
    allowed = memory.mask.unsqueeze(1)
    logits = torch.linspace(-1, 2, allowed.numel()).view_as(allowed)
    weights = logits.masked_fill(~allowed, -torch.inf).softmax(-1)
    for _ in range(2):
        with attempt(name, history):
            changed = {"keys": (history.adjust_keys(memory.keys, state), memory.keys)}
            changed["logits"] = (history.adjust_logits(logits, state), logits)
            shapes = {what: (tuple(after.shape), tuple(before.shape)) for what, (after, before) in changed.items()}
            are_finite = all(bool(after.isfinite().all()) for after, _ in changed.values())
            state = history.advance(state, logits, weights, queries, memory)
        for what, (after, before) in shapes.items():
            if after != before:
                raise UserError(f"{name} makes {what} {after} of {what} {before}: their shape stays")
        if not are_finite:
            raise UserError(f"{name} makes keys or logits that are no finite numbers")


def _name_own(attention: "Attention") -> tuple[str, Part]:
    """Return what an attention is called that is made of some parts, and the first of them that is not attnlab's."""
    parts = {group: getattr(attention, group) for group in GROUPS}
    own = {group: part for group, part in parts.items() if not type(part).__module__.startswith("attnlab.")} or parts
    return f"an attention with {', '.join(_name(group, part) for group, part in own.items())}", next(iter(own.values()))


def _try_whole(attention: "Attention", query: Query, states: Tensor, mask: Tensor) -> None:
    def answer(query: Query, states: Tensor, mask: Tensor) -> Tensor:
        memory = attention.memory(states, mask)
        answered: AttentionOutput = attention(query, memory, attention.start(memory))
        return answered.context

    def rows(tensors: Query, rows: slice) -> Query:
        return Query(*(tensor[rows] for tensor in tensors))

    name, own = _name_own(attention)
    first, last, shorter = slice(1), slice(1, 2), int(mask[1].sum())
    with attempt(name, own):
        whole, memory, steps = answer(query, states, mask), attention.memory(states, mask), []
        state = attention.start(memory)
        for t in range(QUERIES):
            context, _, state = attention(Query(*(part[:, t : t + 1] for part in query)), memory, state)
            steps.append(context)
        same = {
            "is not the same for a sequence of queries and for one after another: a part looks at other queries, or carries "
            "something from one to the next without saying sequential = True": (torch.cat(steps, dim=1), whole),
            "changes with the other sources of a batch": (answer(rows(query, first), states[first], mask[first]), whole[first]),
            "changes with the padding behind a source": (
                answer(rows(query, last), states[last, :shorter], mask[last, :shorter]),
                whole[last],
            ),
        }
    if not bool(whole.isfinite().all()):
        raise UserError(f"the context that {name} computes is no finite number")
    for complaint, (one, other) in same.items():
        if not are_close(one, other):
            raise UserError(f"the context that {name} computes {complaint}")


def _try_kernel(attention: "Attention", query: Query, states: Tensor, mask: Tensor) -> None:
    """Compare what a kernel makes of the parts, where nobody reads the weights, with what they compute themselves."""
    memory = attention.memory(states, mask)
    state, asked = attention.start(memory), attention.kernel
    parts = {"score": attention.score, "window": attention.window, "normalizer": attention.normalizer}
    names = ", ".join(_name(group, part) for group, part in parts.items() if part is not None)
    with attempt(f"an attention with {names}", attention.score):
        context = attention(query, memory, state).context
        try:
            attention.kernel = "sdpa"
            fused = attention(query, memory, state, need_weights=False).context
        finally:
            attention.kernel = asked
    if not are_close(context, fused):
        raise UserError(
            f"{names} compute another context than a kernel makes of them where nobody reads the weights: let a score "
            "change as_product too, or say is_product = False, a normalizer that is no softmax say softmax_temperature = None, "
            "and a window all in place, is_near, bias and prior"
        )


def _try_learning(attention: "Attention", query: Query, states: Tensor, mask: Tensor) -> None:
    with attempt(*_name_own(attention)):
        memory = attention.memory(states, mask)
        context, weights, _ = attention(query, memory, attention.start(memory))
    if name := find_unreached(attention, context.sum() + weights.square().sum()):
        raise UserError(f"no gradient reaches {name} of an attention, which would not learn")
