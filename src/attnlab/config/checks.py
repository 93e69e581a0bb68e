"""A config is checked before anything is built from it: every key must be read by somebody, and be what it is read as."""

import inspect
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hydra.utils import get_object
from omegaconf import DictConfig

from attnlab.config.composition import resolve
from attnlab.errors import UserError, unknown_key

NODES = (
    "task data batches encoder attention decoder head objective auxiliary optimizer scheduler search metrics trainer callbacks "
    "logger model study"
)
KEYS: dict[str, Any] = {
    "name": str,
    "seed": int,
    "threads": int | None,
    "resume": bool,
    "keep_results": bool,
    "monitor": str,
    "cache_dir": str | None,
    **dict.fromkeys(NODES.split(), Any),
}
"""What is read of any task's config, and its type; a task reads further keys: the parameters of its class."""

HYDRA_KEYS = {"_target_", "_partial_", "_recursive_", "_convert_", "_args_"}
MISSING = "???"

RANGES: tuple[tuple[re.Pattern[str], type | UnionType, Callable[[Any], bool], str], ...] = (
    (re.compile("(size|layers|heads)$"), int, lambda count: count >= 1, "must be 1 or more"),
    (re.compile("dropout$"), int | float, lambda share: 0 <= share < 1, "is a probability from 0 to below 1"),
)
"""By the end of its key: what a value must be that torch would take, to fail with it later or not at all."""

logging.getLogger("hydra.utils").setLevel(logging.CRITICAL)  # it would tell of what cannot be imported once more


def settle(config: Mapping[str, Any] | DictConfig) -> dict[str, Any]:
    """Check every key and value of a run's config, and return it resolved, as plain containers.

    Raises:
        UserError: a key that nothing reads, a value of another type or none at all, or a ``_target_`` that cannot be imported.
    """
    resolved = resolve(config)
    task = resolved.get("task")
    target = task.get("_target_") if isinstance(task, Mapping) else None
    check(resolved, KEYS | ((_parameters(target, "task") or {}) if isinstance(target, str) else {}))
    for key in KEYS:
        if key not in resolved:
            raise UserError(f"the config has no {key!r}, which every run needs")
    return resolved


def check(value: Any, hint: Any = Any, path: str = "") -> None:
    """Refuse keys that nothing reads, and values that are not what they are read as.

    Args:
        value: a node of a resolved config.
        hint: the type that it is read as, or a mapping from the keys that are read to their types; what a ``_target_`` takes
            is known from its signature.
        path: of the node, for the message.

    Raises:
        UserError: a key that nothing reads, a value of another type or none at all, or a ``_target_`` that cannot be imported.
    """
    if value == MISSING:
        raise UserError(f"{path} has no default: add {path}=VALUE")
    if isinstance(value, Mapping):
        known = _known_keys(value, hint, path)
        for key, item in value.items():
            if known is not None and key not in HYDRA_KEYS and key not in known:
                raise unknown_key(str(key), known, path)
            check(item, (known or {}).get(key, Any), f"{path}.{key}" if path else str(key))
        return
    if not _fits(value, hint):
        raise UserError(f"{path} must be {_in_words(hint)}, not {value!r}")
    for pattern, kind, holds, told in RANGES:
        if pattern.search(path) and isinstance(value, kind) and not isinstance(value, bool) and not holds(value):
            raise UserError(f"{path} {told}, not {value}")
    for index, item in enumerate(value if isinstance(value, list) else ()):
        check(item, path=f"{path}.{index}")


def _known_keys(node: Mapping[str, Any], hint: Any, path: str) -> Mapping[str, Any] | None:
    """Return the keys of a node that are read, with their types, or None if all are."""
    if "_target_" in node:
        return _parameters(node["_target_"], path)
    if isinstance(hint, Mapping):
        return hint
    options = next((option for option in (hint, *get_args(hint)) if is_dataclass(option)), None)
    if options is None and not _fits(node, hint):
        raise UserError(f"{path} must be {_in_words(hint)}, not keys with values of their own")
    return None if options is None else get_type_hints(options)


def _parameters(target: str, path: str) -> dict[str, Any] | None:
    """Return the names that a target takes and the types it says they have, or None if it takes any."""
    try:
        made = get_object(target)
        parameters = inspect.signature(made).parameters
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}._target_: cannot import {target!r} ({reason})") from error
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    try:
        hints = get_type_hints(made.__init__ if inspect.isclass(made) else made)
    except (NameError, TypeError):  # names that exist for a type checker alone
        hints = {}
    return {name: hints.get(name, Any) for name in parameters}


def _fits(value: object, hint: Any) -> bool:
    """Tell whether a plain value is of a type; types that are not plain themselves are left to the target."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin in (Sequence, list, tuple):
        return isinstance(value, list) and all(_fits(item, arguments[0]) for item in value)
    if origin is Literal:
        return value in arguments
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, hint) if hint in (bool, str, NoneType) else True


def _in_words(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_in_words(option) for option in arguments)
    if origin is Literal:
        return " or ".join(map(str, arguments))
    if origin in (Sequence, list, tuple):
        return f"a list, each {_in_words(arguments[0])}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "null"}
    return words.get(hint, str(hint))
