"""Another search for a trained model: chosen anew, or the one that it was tested with, in part or with other settings."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf
from yaml import YAMLError

from attnlab.config.checks import check
from attnlab.config.composition import CONF, MAIN, compose, hydra_errors, resolve
from attnlab.errors import UserError


def search_node(recorded: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return the search that overrides ask for, checked and resolved.

    Args:
        recorded: a run's config, whose search is changed unless another one is chosen.
        overrides: ``search=OPTION``, ``search/PART=OPTION`` and ``search.KEY=VALUE``.

    Raises:
        UserError: an override of what is not there, or a config without a search.
    """
    if not isinstance(recorded.get("search"), Mapping):
        raise UserError("the config of the run is damaged: it holds no search")
    if any(override.startswith("search=") for override in overrides):
        node: dict[str, Any] = compose(MAIN, overrides, [CONF]).value("search")
    else:
        node = _changed(recorded["search"], overrides)
    check(node, path="search")
    return node


def _changed(search: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    parts = [override for override in overrides if re.match(r"search/\w+=", override)]
    config = OmegaConf.create({"search": dict(search)})
    with hydra_errors():
        for part in parts:
            key = part.partition("=")[0].replace("/", ".")
            OmegaConf.update(config, key, compose(MAIN, [part], [CONF]).value(key), merge=False, force_add=True)
        try:
            config.merge_with_dotlist([override for override in overrides if override not in parts])
        except YAMLError as error:
            raise UserError(f"{' '.join(overrides)}: a value is no YAML ({' '.join(str(error).split())})") from error
    changed: dict[str, Any] = resolve(config)["search"]
    return changed
