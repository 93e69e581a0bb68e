"""Which option of a config group a node was made by."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml
from omegaconf import MISSING

from attnlab.config.composition import CONF
from attnlab.config.reading import Loader


class Option(NamedTuple):
    """An option of a config group.

    Attributes:
        name: of its file.
        is_complete: whether it leaves nothing to be filled in, such as the path of a file of the user's.
    """

    name: str
    is_complete: bool


def find_option(group: str, node: Mapping[str, Any]) -> Option | None:
    """Return the option of a group that builds what a node does; None where attnlab has none, or several.

    Args:
        group: such as ``data``.
        node: of a resolved config.
    """
    found = []
    for path in sorted((CONF / group).glob("*.yaml")):
        content = yaml.load(path.read_text(encoding="utf-8"), Loader) or {}
        if "_target_" in content and content["_target_"] == node.get("_target_"):
            found.append(Option(path.stem, MISSING not in content.values()))
    return found[0] if len(found) == 1 else None
