"""Another search or other metrics for a trained model: a new option, or the recorded one with some keys changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf
from yaml import YAMLError

from attnlab.config.checks import KEYS, check
from attnlab.config.composition import CONF, MAIN, Place, compose, parse_overrides, resolve
from attnlab.config.refusals import hydra_errors
from attnlab.errors import UserError


def amend(group: str, recorded: Mapping[str, Any], overrides: Sequence[str], places: Sequence[Place] = ()) -> dict[str, Any]:
    """Return the node of a group that overrides ask for, checked and resolved.

    Args:
        group: such as ``search``.
        recorded: a run's config, whose node is changed unless another option is chosen.
        overrides: ``search=OPTION``, ``search/PART=OPTION`` and ``search.KEY=VALUE``.
        places: where options are searched beside attnlab's own.

    Raises:
        UserError: an override of what is not there, or a config without such a node.
    """
    if not isinstance(recorded.get(group), Mapping):
        raise UserError(f"the config of the run is damaged: it holds no {group}")
    parse_overrides([override for override in overrides if "." not in override.partition("=")[0]], [CONF, *places])
    if any(override.startswith(f"{group}=") for override in overrides):
        node: dict[str, Any] = compose(MAIN, overrides, [CONF, *places]).value(group)
    else:
        node = _amend_node(group, recorded[group], overrides, places)
    check(node, KEYS.get(group, Any), group)
    return node


def _amend_node(group: str, node: Mapping[str, Any], overrides: Sequence[str], places: Sequence[Place]) -> dict[str, Any]:
    parts = [override for override in overrides if "/" in override.partition("=")[0]]
    config = OmegaConf.create({group: dict(node)})
    with hydra_errors():
        for part in parts:
            key = part.partition("=")[0].replace("/", ".")
            OmegaConf.update(config, key, compose(MAIN, [part], [CONF, *places]).value(key), merge=False, force_add=True)
        try:
            config.merge_with_dotlist([override for override in overrides if override not in parts])
        except YAMLError as error:
            raise UserError(f"{' '.join(overrides)}: a value is no YAML ({' '.join(str(error).split())})") from error
    changed: dict[str, Any] = resolve(config)[group]
    return changed
