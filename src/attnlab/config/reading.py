"""Config files, each read once by a process: to read them all anew takes a third of the time of every composition."""

import copy
import os
from pathlib import Path
from typing import Any

import yaml

# Private: Hydra remembers files within one composition alone, and a study composes a config for each of its runs.
from hydra._internal import config_loader_impl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource
from typing_extensions import override

from attnlab.data.files import encoding_error

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Reads YAML that nothing is executed of: libyaml's where there is one, which is ten times as fast."""

_read: dict[tuple[str | int, ...], ConfigResult | None] = {}


class KeptRepository(ConfigRepository):
    """Hydra's access to the configs in all places, which reads a file again only after it was edited."""

    @override
    def load_config(self, config_path: str) -> ConfigResult | None:
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        key: tuple[str | int, ...]
        if source is not None and source.scheme() == "file":
            state = os.stat(_place(source, config_path))
            key = (source.provider, source.full_path(), config_path, state.st_mtime_ns, state.st_size, state.st_ino)
        elif source is not None and source.scheme() == "pkg":
            key = (source.provider, source.full_path(), config_path)
        else:
            return super().load_config(config_path)
        if key not in _read:
            try:
                _read[key] = super().load_config(config_path)
            except UnicodeDecodeError as error:
                raise encoding_error(_place(source, config_path), error) from error
        return copy.deepcopy(_read[key])


def _place(source: ConfigSource, config_path: str) -> Path:
    return Path(source.path, f"{config_path.removesuffix('.yaml')}.yaml")


def keep_files() -> None:
    """Let Hydra read config files through :class:`KeptRepository` from now on."""
    config_loader_impl.ConfigRepository = KeptRepository  # type: ignore[attr-defined]
