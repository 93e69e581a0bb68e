"""From a composed config to objects: every key must be read by somebody, and a mistake in one is told in one line."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hydra.errors import InstantiationException
from hydra.utils import get_object, instantiate
from lightning.fabric.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, ListConfig, OmegaConf

from attnlab.errors import UserError, unknown_key

COUNTED = re.compile("(size|layers|heads)$")
"""Keys that count something that there must be."""

HYDRA_KEYS = {"_target_", "_partial_", "_recursive_", "_convert_", "_args_"}


def check(config: DictConfig | ListConfig, known: Mapping[str, Any] | None = None, where: str = "") -> None:
    """Refuse keys that nothing reads, and values that are not what they are read as.

    Args:
        config: a node of the composed config.
        known: the keys read at this node, with the types of their values; for a node with a ``_target_``, the parameters of
            that target instead.
        where: the node's own path, for the message.

    Raises:
        UserError: a key that nothing reads, a value of the wrong type, or a ``_target_`` that cannot be imported.
    """
    keys: list[Any] = list(config) if isinstance(config, DictConfig) else list(range(len(config)))
    if "_target_" in keys:
        known = _parameters(config._target_, where)
    for key in keys:
        path = f"{where}.{key}" if where else str(key)
        if isinstance(key, str) and known is not None and key not in HYDRA_KEYS and key not in known:
            raise unknown_key(key, known, where)
        if OmegaConf.is_missing(config, key):
            raise UserError(f"{path} has no default: add {path}=VALUE")
        value = config[key]
        if isinstance(value, DictConfig | ListConfig):
            check(value, where=path)
        if known is not None and not isinstance(value, DictConfig) and not _fits(value, hint := known.get(key, Any)):
            raise UserError(f"{path} must be {_spoken(hint)}, not {_plain(value)!r}")
        if isinstance(key, str) and key.endswith("dropout") and isinstance(value, int | float) and not 0 <= value < 1:
            raise UserError(f"{path} is a probability from 0 to below 1, not {value}")
        if isinstance(key, str) and COUNTED.search(key) and isinstance(value, int) and value < 1:
            raise UserError(f"{path} must be 1 or more, not {value}")


def _parameters(target: str, where: str) -> dict[str, Any] | None:
    """Return the names that a target takes and the types it says they have, or None if it takes any."""
    try:
        made = get_object(target)
        parameters = inspect.signature(made).parameters
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"{where}._target_: cannot import {target!r} ({str(error).splitlines()[0]})") from error
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    try:
        hints = get_type_hints(made.__init__ if inspect.isclass(made) else made)
    except (NameError, TypeError):  # names that exist for a type checker alone
        hints = {}
    return {name: hints.get(name, Any) for name in parameters}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, ListConfig) else value


def _fits(value: object, hint: Any) -> bool:
    """Tell whether a plain value or a list is of a type; types that are not plain themselves are left to the target."""
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if get_origin(hint) in (Sequence, list, tuple):
        return isinstance(value, ListConfig) and all(_fits(item, get_args(hint)[0]) for item in value)
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, hint) if hint in (bool, str, NoneType) else True


def _spoken(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_spoken(option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    if get_origin(hint) in (Sequence, list, tuple):
        return f"a list, each {_spoken(get_args(hint)[0])}"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "null"}.get(hint, str(hint))


def build(config: DictConfig) -> Any:
    """Instantiate a node; a mistake that a component tells of reaches the user in the component's own words.

    Raises:
        UserError: whatever the component refuses.
    """
    try:
        return instantiate(config, _convert_="object")
    except InstantiationException as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, UserError):
            cause = cause.__cause__
        raise (cause or error) from None


@contextmanager
def blame(what: str) -> Iterator[None]:
    """Let what a library says of values that it refuses reach the user as a mistake in the config.

    Args:
        what: the part of the config that the values come from.

    Raises:
        UserError: the library refused.
    """
    try:
        yield
    except (MisconfigurationException, ValueError, TypeError) as error:
        raise UserError(f"{what}: {' '.join(str(error).split())}") from error
