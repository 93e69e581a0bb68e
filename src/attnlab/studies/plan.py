"""What a study is to run: its file, its variants, and the folder of each run. Nothing heavy is imported."""

import difflib
import json
import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.utils import create_config_search_path
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, flag_override
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from attnlab.errors import UserError, unknown_key
from attnlab.studies.collection import KNOWN_METRICS, PLAN, named
from attnlab.studies.identity import labels, telling, variant
from attnlab.studies.resuming import write_atomically

log = logging.getLogger(__name__)

MAIN = "study.yaml"
"""The file of a study that is a folder; other files in it are other forms of the study."""
GENERATED = ".variants"
KEYS = {"question", "baseline", "metrics", "variants"}


@dataclass(frozen=True)
class Planned:
    """One run of a plan.

    Attributes:
        overrides: of the config, all of them.
        folder: of the run, below that of the study.
        seed: of weights, batches and dropout.
    """

    overrides: tuple[str, ...]
    folder: str
    seed: int


@dataclass(frozen=True)
class Plan:
    """A study, or a sweep without a file, made ready for Hydra.

    Attributes:
        places: folders of configs; the main config lies in the first.
        config_name: of the main config.
        arguments: what Hydra is told, beside flags.
        folder: ``runs/NAME``.
        settings: the node ``study`` of the config.
        runs: what a basic sweeper would run; empty for another one, which decides as it goes.
        command: what the user typed.
    """

    places: tuple[Path, ...]
    config_name: str
    arguments: list[str]
    folder: Path
    settings: dict[str, Any]
    runs: list[Planned]
    command: str

    def save(self) -> None:
        """Write ``study.json``, from which a report knows the question, the baseline and what is missing."""
        content = {
            **{key: self.settings.get(key) for key in ("question", "baseline", "metrics")},
            "command": self.command,
            "runs": [{"folder": run.folder, "overrides": telling(run.overrides), "seed": run.seed} for run in self.runs],
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.folder / PLAN, json.dumps(content, indent=1, ensure_ascii=False))


class Composer:
    """Composes configs as Hydra does for a run, from several folders.

    Args:
        places: folders of configs, searched in order.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        path = create_config_search_path(None)
        for place in places:
            path.prepend("attnlab", f"file://{place.resolve()}", anchor="schema")
        self.loader = ConfigLoaderImpl(path)

    def compose(self, config_name: str, overrides: Sequence[str]) -> tuple[DictConfig, DictConfig]:
        """Return a config, and Hydra's own.

        Raises:
            HydraException: it does not compose.
        """
        config = self.loader.load_configuration(config_name, list(overrides), run_mode=RunMode.RUN)
        with flag_override(config, ["struct", "readonly"], [False, False]):
            hydra = config.copy().hydra  # a copy, whose interpolations still find the rest
            del config["hydra"]
        return config, hydra

    def parse(self, overrides: Sequence[str]) -> list[Override]:
        """Take overrides apart."""
        return OverridesParser.create(config_loader=self.loader).parse_overrides(list(overrides))


def plan(root: Path, config_name: str, overrides: Sequence[str], places: Sequence[Path], *, command: Sequence[str]) -> Plan:
    """Work out what a study runs.

    Args:
        root: folder of configs that the main config lies in.
        config_name: of the main config.
        overrides: from the command line.
        places: further folders of configs.
        command: what the user typed.

    Raises:
        UserError: a mistake in the study's own node.
        HydraException: a config that does not compose.
    """
    overrides_given = bool(overrides)
    # One that is called as a key of its own would be a key that nothing reads.
    overrides = [f"+{override}" if override.startswith("variant=") else override for override in overrides]
    composer = Composer([root, *places])
    if any(parsed.key_or_group == "name" and parsed.is_sweep_override() for parsed in composer.parse(overrides)):
        raise UserError("name is what a whole sweep is called: it has one value")
    single = [o for o, parsed in zip(overrides, composer.parse(overrides), strict=True) if not parsed.is_sweep_override()]
    config, hydra = composer.compose(config_name, [override for override in single if not override.startswith("+variant=")])
    _check(config.study)
    settings = OmegaConf.to_container(config.study, resolve=True)
    assert isinstance(settings, dict)
    folder = Path(hydra.sweep.dir)
    own_places = [Path(place.removeprefix("file://")) for place in hydra.searchpath or []]
    if settings["variants"]:
        _write_variants(settings["variants"], composer, folder / GENERATED / "variant")
        places = [*places, folder / GENERATED]
        if not any(override.startswith("+variant=") for override in overrides):
            overrides = [f"+variant={','.join(settings['variants'])}", *overrides]
    runs = []
    sweeper = hydra.sweeper
    if sweeper["_target_"].endswith(".BasicSweeper"):
        axes = [f"{key}={value}" for key, value in (sweeper.params or {}).items()]
        (batch,) = BasicSweeper.split_arguments(composer.parse([*axes, *overrides]), None)
        runs = [_planned(job, default_seed=config.seed) for job in batch]
    _, names = labels([tuple(telling(run.overrides)) for run in runs])
    if settings["baseline"] is not None and runs and named(settings["baseline"], names) is None and not overrides_given:
        raise UserError(f"study.baseline: there is no variant {settings['baseline']!r}: there is {'; '.join(names.values())}")
    return Plan(
        places=(root, *places),
        config_name=config_name,
        arguments=[*overrides, search_path([*places, *own_places])],
        folder=folder,
        settings={str(key): value for key, value in settings.items()},
        runs=runs,
        command=shlex.join(command),
    )


def search_path(places: Sequence[Path]) -> str:
    """Return the override by which Hydra searches further folders of configs."""
    escaped = (str(place.resolve()).replace("\\", "\\\\").replace("'", "\\'") for place in places)
    return "hydra.searchpath=[" + ",".join(f"'file://{place}'" for place in escaped) + "]"


def _planned(overrides: Sequence[str], *, default_seed: int) -> Planned:
    seeds = [override.partition("=")[2] for override in overrides if override.startswith("seed=")]
    try:
        seed = int(seeds[-1]) if seeds else int(default_seed)
    except (TypeError, ValueError):
        raise UserError(f"seed is a whole number, not {seeds[-1] if seeds else default_seed}") from None
    # Hydra names the folder of a job by overrides without those that are about Hydra itself.
    own = [override for override in overrides if not override.lstrip("+~").startswith("hydra")]
    return Planned(tuple(own), f"{variant(own)}/seed={seed}", seed)


def _check(study: DictConfig) -> None:
    for key in study:
        if key not in KEYS:
            raise unknown_key(str(key), KEYS, "study")
    metrics = study.metrics
    if not OmegaConf.is_list(metrics) or not metrics or not set(metrics) <= set(KNOWN_METRICS):
        raise UserError(f"study.metrics is a list of any of {', '.join(KNOWN_METRICS)}, not {metrics}")
    variants = study.variants
    if variants is None:
        return
    if not isinstance(variants, DictConfig) or not all(OmegaConf.is_list(overrides) for overrides in variants.values()):
        raise UserError("study.variants names each variant with a list: NAME: [attention=dot, decoder=bahdanau]")
    for name, overrides in ((str(key), value) for key, value in variants.items()):
        if not re.fullmatch(r"[\w.+-]+", name):
            raise UserError(f"study.variants: {name!r} is to be a folder's name: letters, digits and _ . + - alone")
        if not all(isinstance(override, str) for override in overrides):
            raise UserError(f"study.variants.{name}: each item is KEY=VALUE; one with a comma or a colon needs quotes")


def _write_variants(variants: Mapping[str, Sequence[str]], composer: Composer, folder: Path) -> None:
    """Write each variant as an option of a config group, so that every sweeper and launcher can choose among them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, overrides in variants.items():
        choices, keys = [], OmegaConf.create()
        for override in composer.parse(overrides):
            key = override.key_or_group
            if key in ("seed", "name") or key.partition(".")[0] == "hydra":
                raise UserError(f"study.variants.{name}: {key} decides where a run lies: it is no part of a variant")
            if override.is_sweep_override() or override.is_delete():
                raise UserError(f"study.variants.{name}: {override.input_line} is neither one option nor one value")
            if composer.loader.get_group_options(key):
                choices.append({f"override /{key}": override.value()})
            else:
                OmegaConf.update(keys, key, override.value())
        content = OmegaConf.create({"defaults": [*choices, "_self_"]})
        content.merge_with(keys)
        write_atomically(folder / f"{name}.yaml", "# @package _global_\n" + OmegaConf.to_yaml(content))


def find(name: str, places: Sequence[Path]) -> tuple[Path, str]:
    """Find a study.

    Args:
        name: of a study in one of the places: NAME.yaml, NAME/study.yaml, or FOLDER/FILE.yaml; or the path of a file.
        places: folders of studies, the first that has it being taken.

    Returns:
        The folder that it lies in, and its name there.

    Raises:
        UserError: there is none, or it does not say what its runs are called.
    """
    for place in places:
        for path in (place / f"{name}.yaml", place / name / MAIN):
            if path.is_file():
                return _named(path)
    path = Path(name)
    if path.suffix == ".yaml" and path.is_file():
        return _named(path)
    known = {study.name for study in studies(places)}
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(sorted(known)) or 'none'}"
    raise UserError(f"no study {name!r} in {' or '.join(map(str, places))}, and no file of that name: {hint}")


def _named(path: Path) -> tuple[Path, str]:
    try:
        content = OmegaConf.load(path)
    except (OSError, YAMLError, OmegaConfBaseException) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, DictConfig) or OmegaConf.select(content, "name") is None:
        raise UserError(f"{path} does not say what its runs are called: add a line such as name: {path.stem}")
    return path.parent, path.stem


@dataclass(frozen=True)
class Known:
    """A study that can be run.

    Attributes:
        name: what ``attnlab study`` takes.
        question: in words, empty if there is none.
        folder: where its runs are.
    """

    name: str
    question: str
    folder: Path


def studies(places: Sequence[Path]) -> list[Known]:
    """List the studies in some folders: every file with a question."""
    found: dict[str, Known] = {}
    for place in places:
        for path in sorted([*place.glob("*.yaml"), *place.glob("*/*.yaml")]):
            try:
                content = OmegaConf.load(path)
            except (OSError, YAMLError, OmegaConfBaseException) as error:
                log.warning("%s cannot be read: %s", path, " ".join(str(error).split())[:100])
                continue
            question = OmegaConf.select(content, "study.question")
            name = str(path.relative_to(place).with_suffix("")).removesuffix("/study")
            if question and name not in found:
                run_name = OmegaConf.select(content, "name") or name
                found[name] = Known(name, " ".join(str(question).split()), Path("runs", str(run_name)))
    return sorted(found.values(), key=lambda study: study.name)
