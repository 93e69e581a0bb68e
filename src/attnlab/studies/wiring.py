"""From a composed config to objects: every key must be read by somebody, and a mistake in one is told in one line."""

import difflib
import inspect
from collections.abc import Iterable
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, ListConfig, OmegaConf

from attnlab.errors import UserError

HYDRA_KEYS = {"_target_", "_partial_", "_recursive_", "_convert_", "_args_"}


def unknown_key(key: str, known: Iterable[object], where: str = "") -> UserError:
    """Tell of a key that nobody reads, and name the nearest that somebody does."""
    names = sorted(str(name) for name in known)
    near = difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(names)}"
    return UserError(f"no key {key!r}{f' in {where!r}' if where else ''}: {hint}")


def check_keys(config: DictConfig | ListConfig, known: Iterable[str] | None = None, where: str = "") -> None:
    """Refuse keys that nothing reads.

    Args:
        config: a node of the composed config.
        known: the keys read at this node; for a node with a ``_target_``, the parameters of that target instead.
        where: the node's own path, for the message.

    Raises:
        UserError: a key that nothing reads, or a ``_target_`` that cannot be imported.
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
        if isinstance(config[key], DictConfig | ListConfig):
            check_keys(config[key], where=path)


def _parameters(target: str, where: str) -> list[str] | None:
    """Return the names that a target takes, or None if it takes any."""
    try:
        parameters = inspect.signature(get_object(target)).parameters.values()
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"{where}._target_: cannot import {target!r} ({str(error).splitlines()[0]})") from error
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [parameter.name for parameter in parameters]


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
