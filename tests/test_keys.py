"""No key of a part is idle: another value makes another model, or another training of it."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import pytest
import torch
from hydra.utils import get_object

from attnlab.attention.noise import NOISE
from attnlab.errors import UserError
from composing import UNATTENDED, composed, model, possible, sentences
from conftest import CONF, exhaustive_but, options

PARTS = ("encoder", "attention", "decoder", "head")
GROUPS = [
    str(folder.relative_to(CONF))
    for part in PARTS
    for folder in sorted([CONF / part, *(CONF / part).rglob("*")])
    if folder.is_dir()
]
OWNER = {"encoder": "transformer", "attention": "general", "decoder": "bahdanau", "head": "values"}


def chosen(group: str, name: str) -> list[str]:
    """Overrides by which a model has an option."""
    part, _, inner = group.partition("/")
    owner = [f"{part}={OWNER[part]}"] if inner else []
    alone = ["attention=none"] if group == "decoder" and name in UNATTENDED else []
    return [*owner, f"{group}={name}", *alone]


class Key(NamedTuple):
    """A key in the config of a model, and other values that it may have."""

    overrides: list[str]
    path: str
    others: tuple[Any, ...]


def keys(node: Any, path: str, overrides: list[str]) -> Iterator[tuple[str, Key]]:
    """Every key in a node that is a number, a flag or one of several words, by its class and name."""
    made = get_object(node["_target_"]) if "_target_" in node else None
    hints = get_type_hints(made.__init__) if made else {}
    for key, value in node.items():
        others: tuple[Any, ...] = ()
        if isinstance(value, dict):
            yield from keys(value, f"{path}.{key}", overrides)
        elif isinstance(value, bool):
            others = (not value,)
        elif isinstance(value, int):
            others = (value + 1, value * 2, value // 2, value - 1)
        elif isinstance(value, float):
            others = (value + 1, value * 2, value / 2, value + 0.25, value - 1)
        elif get_origin(hints.get(key)) is Literal:
            others = tuple(other for other in get_args(hints[key]) if other != value)
        if made and others and not key.startswith("_"):
            yield f"{made.__qualname__}.{key}", Key(overrides, f"{path}.{key}", others)


def found_keys(part: str) -> dict[str, list[Key]]:
    found: dict[str, list[Key]] = {}
    for group in (group for group in GROUPS if group.partition("/")[0] == part):
        for name in options(group):
            overrides = chosen(group, name)
            for key, place in keys(composed(*overrides)[part], part, overrides):
                found.setdefault(key, []).append(place)
    return found


def outcome(overrides: list[str]) -> list[torch.Tensor]:
    """The initial weights, what the model makes of sentences in training and evaluation, where it looks, and its gradient."""
    made = model(*overrides)
    source, lengths = sentences([9, 7, 8])
    target = possible(made, source[:, :6], lengths)
    found = [*made.state_dict().values()]
    for training in (False, True):
        made.train(training)
        torch.manual_seed(1)
        NOISE.seed(1)
        memory, state = made.encode(source, lengths, source)
        decoded = made.decode(target, memory, state)
        found += [made.scores(decoded, memory), decoded.weights]
    found[-2].tanh().square().sum().backward()  # type: ignore[no-untyped-call]
    return [*found, *(own.grad for own in made.parameters() if own.grad is not None)]


def differ(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) != len(other) or any(a.shape != b.shape or not torch.equal(a, b) for a, b in zip(one, other, strict=True))


ELSEWHERE = {
    "kernel": "every kernel computes the same, tests/attention/test_kernels.py",
    "score_memory": "what is computed again is the same, tests/attention/test_scores.py",
    "dropout": "between layers, of which there is one here, tests/test_dropout.py",
    "max_distance": "of sources that are longer than these, tests/layers/test_positions.py",
    "tied": "for tasks with a vocabulary of answers, tests/decoders/test_answers.py",
}
"""Keys that change nothing here, and where they are tested."""


def changes_something(places: list[Key]) -> bool:
    for place in places:
        before = outcome(place.overrides)
        for other in place.others:
            try:
                after = outcome([*place.overrides, f"{place.path}={other}"])
            except UserError:
                continue
            if differ(before, after):
                return True
    return False


@pytest.mark.parametrize("part", exhaustive_but(["head"], PARTS))
def test_every_key_changes_what_is_computed(part: str) -> None:
    found = {key: places for key, places in found_keys(part).items() if key.rpartition(".")[2] not in ELSEWHERE}
    assert found
    assert [key for key, places in found.items() if not changes_something(places)] == []
