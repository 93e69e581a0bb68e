"""Variants and trials as options of config groups, so that every sweeper and launcher can choose among them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from attnlab.config import Place, parse_overrides, variant_overrides
from attnlab.data.replacement import write_atomically
from attnlab.errors import UserError
from attnlab.studies.values import DECIDES_PLACE

TRIAL = re.compile(r"\+?trial=t(\d+)$")
"""The override that makes a run one of a study's trials."""
ROOT = "study_with_variants"
"""The main config of a study that has variants."""


def write_variants(variants: Mapping[str, Sequence[str]], places: Sequence[Place], folder: Path) -> None:
    """Write each variant of a study as an option; those of an earlier plan stay, which a sweep may still be composing from.

    Args:
        variants: overrides by name.
        places: of configs.
        folder: of the group.

    Raises:
        UserError: what no variant can hold.
    """
    for name, overrides in variants.items():
        choices: list[Any] = []
        keys: dict[str, Any] = {}
        for override in parse_overrides(overrides, places):
            if DECIDES_PLACE.match(override.key):
                raise UserError(f"study.variants.{name}: {override.key} decides where a run lies: it is no part of a variant")
            if override.is_sweep or override.is_deletion:
                raise UserError(f"study.variants.{name}: {override.text} is neither one option nor one value")
            if override.is_choice and override.text.startswith("+"):
                raise UserError(f"study.variants.{name}: {override.text} adds an option: leave out the +")
            if override.is_choice:
                choices.append({f"override /{override.place}": override.value})
            elif override.place != override.key:
                raise UserError(f"study.variants.{name}: {override.text} chooses no option, which alone may say for what it is")
            else:
                _set(keys, override.key, override.value)
        _write(folder / f"{name}.yaml", {"defaults": [*choices, "_self_"], **keys})


def write_root(config_name: str, folder: Path) -> str:
    """Write a main config around a study's, and return its name.

    What the main config itself chooses, Hydra lets no option choose otherwise: a variant's decoder would be left out in silence
    where the study's file overrides the decoder of train. One level below, the option that comes last has its way.

    Args:
        config_name: of the study's config.
        folder: a place of configs.
    """
    _write(folder / f"{ROOT}.yaml", {"defaults": [config_name, "_self_"]})
    return ROOT


def write_trials(trials: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the values of each trial as an option; none is tested.

    Args:
        trials: values by key.
        folder: of the group.
    """
    names = name_trials(len(trials))
    for name, values in zip(names, trials, strict=True):
        keys: dict[str, Any] = {"test": False}
        for key, value in values.items():
            _set(keys, key, value)
        _write(folder / f"{name}.yaml", keys)


def name_trials(count: int) -> list[str]:
    """Return what the options of some trials are called: a number alone would be none to Hydra."""
    return [f"t{number}" for number in range(count)]


def variant_of(overrides: Sequence[str]) -> tuple[str, ...]:
    """Return what makes the variant of a run or of a trial."""
    return tuple(override for override in variant_overrides(overrides) if not TRIAL.match(override))


def find_trial(overrides: Iterable[str]) -> int | None:
    """Return the number of the trial that overrides make a run; None where they make none."""
    return next((int(found[1]) for found in map(TRIAL.match, overrides) if found), None)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, f"# @package _global_\n{yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)}")


def _set(keys: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for number, parent in enumerate(parents, 1):
        keys = keys.setdefault(parent, {})
        if not isinstance(keys, dict):
            raise _twice(".".join(parents[:number]), path)
    if isinstance(keys.get(last), dict):
        raise _twice(path, f"{path}.{next(iter(keys[last]))}")
    keys[last] = value


def _twice(path: str, within: str) -> UserError:
    return UserError(f"{path} and {within}, which is in it, are set by one variant: leave one out")
