"""What a config that somebody else may have written is allowed to build."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import yaml
from hydra.utils import get_object

from attnlab.config.composition import CONF
from attnlab.config.reading import Loader
from attnlab.errors import UserError

FAMILIES = {
    "torch.optim.": ("torch.optim.Optimizer", "torch.optim.lr_scheduler.LRScheduler"),
    "torch.nn.": ("torch.nn.Module",),
    "lightning.pytorch.callbacks.": ("lightning.pytorch.Callback",),
    "lightning.pytorch.loggers.": ("lightning.pytorch.loggers.Logger",),
}
"""Packages of libraries, and the base classes of what may be built from each."""


_trusted: ContextVar[frozenset[str] | None] = ContextVar("trusted", default=frozenset())


class UntrustedError(UserError):
    """A config names a class that attnlab does not know to be harmless."""


@contextmanager
def trust(further: Iterable[str] | None) -> Iterator[None]:
    """Let configs build further targets.

    Args:
        further: such as those of the config that the user runs; None is whatever a config names.
    """
    before = _trusted.get()
    token = _trusted.set(None if further is None or before is None else before | frozenset(further))
    try:
        yield
    finally:
        _trusted.reset(token)


def validate_targets(config: Any, place: str, *, to_run: bool = True) -> None:
    """Refuse a config that builds what neither attnlab's own groups name nor a library has as a component.

    Nothing that is refused was imported, unless it is attnlab's. To be called before anything is built from a config that was
    read from a run.

    Args:
        config: a resolved config, or a node of one.
        place: where it was read, for the message.
        to_run: whether what is built may run commands that the config names; if not, such a component may be built.

    Raises:
        UntrustedError: another ``_target_``, a component that runs a command, or an interpolation, which could make one.
    """
    trusted = _trusted.get()
    if trusted is None:
        return
    for text in _texts(config):
        if "${" in text:
            raise UntrustedError(f"{place} holds the interpolation {text!r:.80}, which no config that a run wrote does")
    for target in foreign_targets(config):
        if isinstance(target, str) and target.startswith("attnlab.") and target not in trusted:
            raise UntrustedError(
                f"{place} builds {target}, which is no component of this version of attnlab: use the version that wrote it, or "
                "add --trust (in Python trust=True) if the name is right"
            )
        if not isinstance(target, str) or target not in trusted:
            raise UntrustedError(
                f"{place} builds {target}, which is no component of attnlab: if it is your own, or you trust whoever wrote it, "
                "add --trust (in Python trust=True)"
            )
    for node in _nodes(config) if to_run else ():
        target = node["_target_"]
        if target.startswith("attnlab.") and target not in trusted and getattr(get_object(target), "runs_commands", False):
            raise UntrustedError(
                f"{place} may run the command {node.get('program')!r:.200}: if it is your own, or you trust whoever wrote it, "
                "add --trust (in Python trust=True)"
            )


def foreign_targets(config: Any) -> Iterator[Any]:
    """Yield every ``_target_`` in a config that is neither attnlab's nor a component of a library; none of them is imported."""
    for target in targets(config):
        if not isinstance(target, str) or not (target in _shipped_targets() or _is_component(target)):
            yield target


def targets(node: Any) -> Iterator[Any]:
    """Yield every ``_target_`` in a config, at any depth."""
    for made in _nodes(node):
        yield made["_target_"]


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every node with a ``_target_``, at any depth."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield node
        for item in node.values():
            yield from _nodes(item)
    elif isinstance(node, list | tuple | set):
        for item in node:
            yield from _nodes(item)


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, item in node.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(node, list | tuple | set):
        for item in node:
            yield from _texts(item)


@cache
def _shipped_targets() -> frozenset[str]:
    """Return every ``_target_`` that the config groups of attnlab name."""
    files = (path.read_text(encoding="utf-8") for path in CONF.rglob("*.yaml"))
    return frozenset(target for text in files for target in targets(yaml.load(text, Loader)))


def _is_component(target: str) -> bool:
    """Tell whether a name is a class that such a package defines, and of a kind that a config builds."""
    for package, bases in FAMILIES.items():
        if target.startswith(package):
            try:
                made = get_object(target)
            except Exception:  # whatever a name without sense raises
                return False
            own = isinstance(made, type) and f"{made.__module__}.".startswith(package)
            return own and issubclass(made, tuple(get_object(base) for base in bases))
    return False
