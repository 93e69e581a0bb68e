"""Values of single keys, as a study's tuning and matching set them."""

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from attnlab.config import WITHOUT_EFFECT
from attnlab.errors import UserError, unknown_key

DECIDES_PLACE = re.compile(r"(seed|name|hydra([./].*)?)$")
"""Keys that decide where a run lies."""


def check_settable(key: str, name: str) -> None:
    """Refuse a key that decides no figure of a run.

    Args:
        key: such as ``optimizer.lr``.
        name: what is wrong with the study if it is one.

    Raises:
        UserError: it is one.
    """
    if DECIDES_PLACE.match(key) or key == "test" or any(f"{key}.".startswith(f"{part}.") for part in WITHOUT_EFFECT):
        raise UserError(f"{name}: {key} decides where a run lies, or no figure of it")


def find_value(config: Mapping[str, Any], key: str, name: str, variant: str) -> Any:
    """Return what a key holds in a resolved config.

    Args:
        config: of a run.
        key: such as ``optimizer.lr``.
        name: what is wrong with the study if there is no such key.
        variant: that the run is of.

    Raises:
        UserError: there is no such key, or it has several values or keys of its own.
    """
    node: Any = config
    for place, part in enumerate(parts := key.split(".")):
        if not isinstance(node, Mapping) or part not in node:
            error = unknown_key(part, node if isinstance(node, Mapping) else (), ".".join(parts[:place]))
            raise UserError(f"{name}: {variant} has {error}")
        node = node[part]
    if isinstance(node, Mapping | list):
        raise UserError(f"{name}: {key} has several values, or keys of its own: name one of these")
    return node


def is_whole_number(number: object) -> TypeGuard[int]:
    """Tell whether something is a whole number, and not true or false."""
    return isinstance(number, int) and not isinstance(number, bool)
