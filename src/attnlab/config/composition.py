"""Composing a config as Hydra does for a run, from several folders."""

import copy
import hashlib
import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra

# Private: nothing public tells which runs Hydra's own sweeper will make of some overrides.
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override as ParsedOverride
from hydra.core.override_parser.types import ValueType
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from attnlab.config.reading import keep_files
from attnlab.config.refusals import hydra_errors
from attnlab.config.variants import path_part, variant_name, without_keys
from attnlab.errors import UserError
from attnlab.source import PACKAGE

CONF = next(path for path in (PACKAGE / "conf", PACKAGE.parents[1] / "conf") if path.is_dir())
"""The config groups: inside the package when installed from a wheel, beside ``src`` in a checkout."""
EXPERIMENTS = (Path("experiments"), CONF.with_name("experiments"))
"""Where studies are: the user's own, and those that ship, beside ``conf``."""
MAIN = "train"
"""The config that every other one starts from."""
VERSION = "1.3"
"""The version of Hydra whose defaults hold."""

Place = Path | str
"""A folder of configs, or whatever else Hydra searches, such as ``pkg://PACKAGE``."""

OmegaConf.register_new_resolver("variant", variant_name, replace=True)
OmegaConf.register_new_resolver("path_part", path_part, replace=True)
keep_files()
warnings.filterwarnings("ignore", ".*Defaults list is missing `_self_`")  # a config's own keys count over its defaults then too


class ComposedConfig:
    """A composed config, with Hydra's own settings under ``hydra``; neither resolved nor checked."""

    def __init__(self, config: DictConfig) -> None:
        self._config = config

    def value(self, key: str) -> Any:
        """Return what a key holds, resolved, as plain containers; None where there is nothing.

        Args:
            key: such as ``seed`` or ``hydra.sweep.dir``.

        Raises:
            UserError: an interpolation of what is not there.
        """
        with hydra_errors(), self._as_that_of_a_job():
            return _plain(OmegaConf.select(self._config, key))

    @property
    def config(self) -> dict[str, Any]:
        """The config without Hydra's own settings, resolved, for :func:`attnlab.config.settle`.

        Raises:
            UserError: an interpolation of what is not there.
        """
        own = OmegaConf.masked_copy(self._config, [str(key) for key in self._config if key != "hydra"])
        with self._as_that_of_a_job():
            return resolve(own)

    def digest(self, leave_out: Collection[str]) -> str:
        """Return a hash of the config as it is written, its interpolations included, without some of its keys and Hydra's."""
        written = OmegaConf.to_container(self._config, resolve=False)
        text = json.dumps(without_keys(written, {*leave_out, "hydra"}), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def with_values(self, values: Mapping[str, Any]) -> "ComposedConfig":
        """Return the config with other values of some keys; see :func:`with_values`."""
        return ComposedConfig(with_values(self._config, values))

    @contextmanager
    def _as_that_of_a_job(self) -> Iterator[None]:
        """Let ``${hydra:...}`` find Hydra's settings, as in a job that Hydra runs."""
        job = HydraConfig.instance()
        before = job.cfg
        job.set_config(self._config)
        try:
            yield
        finally:
            job.cfg = before


def compose(config_name: str, overrides: Sequence[str], places: Sequence[Place]) -> ComposedConfig:
    """Compose a config.

    Args:
        config_name: of the main config.
        overrides: without sweeps.
        places: where configs are searched, in this order; the main config lies in the first, a folder.

    Raises:
        UserError: it does not compose.
    """
    with _search(places):
        return ComposedConfig(hydra.compose(config_name, [*overrides, search_path(places[1:])], return_hydra_config=True))


def with_values(config: DictConfig, values: Mapping[str, Any]) -> DictConfig:
    """Return a config with other values of some keys, which interpolations of these then have as well.

    Args:
        config: as it was composed.
        values: by key, such as ``optimizer.lr``.

    Raises:
        UserError: a key that the config does not have.
    """
    changed = copy.deepcopy(config) if values else config
    with hydra_errors():
        for key, value in values.items():
            OmegaConf.update(changed, key, value)
    return changed


def resolve(config: Mapping[str, Any] | DictConfig) -> dict[str, Any]:
    """Return a config as plain containers, without interpolations.

    Raises:
        UserError: an interpolation of what is not there.
    """
    with hydra_errors():
        resolved: dict[str, Any] = _plain(config if isinstance(config, DictConfig) else OmegaConf.create(dict(config)))
        return resolved


def _plain(node: Any) -> Any:
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def search_path(places: Sequence[Place]) -> str:
    """Return the override by which Hydra searches further places."""
    urls = (place if isinstance(place, str) else f"file://{place.resolve()}" for place in places)
    return f"hydra.searchpath=[{','.join(map(quote, urls))}]"


def quote(value: str) -> str:
    """Return any text as a value of an override."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@contextmanager
def _search(places: Sequence[Place]) -> Iterator[None]:
    with hydra_errors(), hydra.initialize_config_dir(str(Path(places[0]).resolve()), version_base=VERSION):
        yield


@dataclass(frozen=True)
class Override:
    """An override, taken apart.

    Attributes:
        text: as Hydra takes it, all options that a glob stands for written out.
        key: a key, or a config group.
        place: the key, or the group and after an @ the part of the config that its option is for, without a sign before it.
        value: of the key, or the option of the group; None where there are several.
        is_choice: whether it chooses an option of a config group.
        is_sweep: whether it has several values, of which each run has one.
        is_deletion: whether it takes the key away.
    """

    text: str
    key: str
    place: str
    value: Any
    is_choice: bool
    is_sweep: bool
    is_deletion: bool


def parse_overrides(overrides: Sequence[str], places: Sequence[Place]) -> list[Override]:
    """Take overrides apart.

    Raises:
        UserError: one that Hydra does not understand, or keys, or several options at once, where a config group is to have the
            name of one option.
    """
    with _search(places):
        groups = _Groups(places)
        read = _parse(overrides, groups)
        found = [
            Override(
                _without_glob(parsed),
                parsed.key_or_group,
                parsed.get_key_element().lstrip("+~"),
                None if parsed.is_sweep_override() else parsed.value(),
                bool(groups.get_group_options(parsed.key_or_group)),
                parsed.is_sweep_override(),
                parsed.is_delete(),
            )
            for parsed in read
        ]
        for one, override in zip(read, found, strict=True):
            for value in _values(one) if override.is_choice else ():
                if isinstance(value, dict):
                    keys = f"{override.place.replace('/', '.')}.KEY=VALUE sets one of its keys"
                    raise UserError(f"{override.text}: {override.place} is chosen by the name of an option; {keys}")
                if isinstance(value, list):
                    _check_together(override.text, override.key, value, places)
    return found


def check_defaults(config_name: str, places: Sequence[Place]) -> None:
    """Refuse a config that chooses together what does not go together.

    Raises:
        UserError: it does.
    """
    with _search(places):
        loader = GlobalHydra.instance().config_loader()
        chosen: dict[tuple[Any, ...], list[str]] = {}
        for one in loader.compute_defaults_list(config_name, [search_path(places[1:])], RunMode.RUN).defaults:
            group, _, option = str(one.config_path).rpartition("/")
            chosen.setdefault((one.parent, one.package, group), []).append(option)
        for (_, package, group), options in chosen.items():
            if group and package:  # settings of the whole config are no option of anything
                _check_together(f"the defaults of {config_name}", group, options, places)


def _check_together(where: str, group: str, options: Sequence[str], places: Sequence[Place]) -> None:
    """Refuse several options of a group whose options are each a whole thing: Hydra would mix their keys without a word.

    Options such as the losses of ``auxiliary``, each of which is named in the group's node, do go together.
    """
    if len(options) < 2:
        return
    for option in options:
        alone = hydra.compose(None, [f"+{group}={option}", search_path(places[1:])])
        if "_target_" in (OmegaConf.select(alone, group.replace("/", ".")) or {}):
            each = f"-m {group}={','.join(options)} trains a model with each of them"
            raise UserError(f"{where}: {group} takes one option, and these would be mixed: {each}")


def _values(parsed: ParsedOverride) -> list[Any]:
    if not parsed.is_sweep_override():
        return [parsed.value()]
    return list(parsed.sweep_iterator()) if parsed.is_discrete_sweep() else []


def split_sweep(overrides: Sequence[str], places: Sequence[Place]) -> list[list[str]]:
    """Return the overrides of each run that Hydra's own sweeper makes of some overrides, in its order.

    Raises:
        UserError: one that Hydra does not understand, a range that cannot be counted through, or one that is empty.
    """
    with _search(places):
        (runs,) = BasicSweeper.split_arguments(_parse(overrides, _Groups(places)), None)
    if not runs:
        raise UserError("the sweep has no runs: an axis has no value, as seed=range(1,1) would have none")
    return [list(run) for run in runs]


class _Groups:
    """The options of config groups in all places, which a parser asks for where it is given a glob."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.loader = GlobalHydra.instance().config_loader()
        self.overrides = [search_path(places[1:])]

    def get_group_options(self, group_name: str, results_filter: Any = None, **_: Any) -> list[str]:
        filters = {} if results_filter is None else {"results_filter": results_filter}
        return list(self.loader.get_group_options(group_name, overrides=self.overrides, **filters))


def _parse(overrides: Sequence[str], groups: Any) -> list[ParsedOverride]:
    return list(OverridesParser.create(config_loader=groups).parse_overrides(list(overrides)))


def _without_glob(parsed: ParsedOverride) -> str:
    if parsed.value_type is not ValueType.GLOB_CHOICE_SWEEP:
        return str(parsed.input_line)
    found = list(parsed.sweep_string_iterator())
    if not found:
        raise UserError(f"{parsed.input_line}: no option of {parsed.get_key_element()} is named so")
    return f"{parsed.get_key_element()}={','.join(found)}"
