"""What a study is to run: its file, its variants, and the folder of each run. Nothing heavy is imported."""

import logging
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml

from attnlab.config import (
    ComposedConfig,
    Place,
    compose,
    parse_overrides,
    resolve,
    search_path,
    split_sweep,
    targets,
    variant_labels,
    variant_name,
    variant_overrides,
)
from attnlab.errors import UserError, nearest, unknown_key
from attnlab.runs.files import write_atomically
from attnlab.runs.names import RUNS
from attnlab.studies.claims import check_claims, parse_claims
from attnlab.studies.folder import StudyFolder, StudyPlan
from attnlab.studies.names import Significance

log = logging.getLogger(__name__)

MAIN = "study.yaml"
"""The file of a study that is a folder; other files in it are other forms of the study."""
KEYS = {"question", "baseline", "metrics", "significance", "claims", "variants"}


@dataclass(frozen=True)
class RunPlan:
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
        places: where configs are searched; the main config lies in the first, a folder.
        config_name: of the main config.
        overrides: for Hydra's sweeper.
        folder: of the study.
        settings: the node ``study`` of the config.
        runs: what Hydra's own sweeper would run; empty for another one, which decides as it goes.
        whole: folders of all runs that the study's file has with these settings, also those that were not asked for now.
        command: what the user typed.
    """

    places: tuple[Place, ...]
    config_name: str
    overrides: list[str]
    folder: StudyFolder
    settings: dict[str, Any]
    runs: list[RunPlan]
    whole: list[str]
    command: str

    @property
    def root(self) -> Path:
        """The folder that the main config lies in."""
        return Path(self.places[0])

    @property
    def arguments(self) -> list[str]:
        """What Hydra is told, beside options."""
        return [*self.overrides, search_path(self.places[1:])]

    def targets(self) -> list[str]:
        """Return the classes that the first run's config names: the user's own, of whom a report may make metrics."""
        try:
            config = resolve(compose(self.config_name, self.runs[0].overrides, self.places).config)
        except (IndexError, UserError):  # another sweeper than Hydra's own, or a mistake that the run tells of
            return []
        return list(targets(config))

    @property
    def axis(self) -> str:
        """What the labels of the variants are values of."""
        return variant_labels(self._variants)[0]

    @property
    def labels(self) -> list[str]:
        """What the variant of each run is called."""
        labels = variant_labels(self._variants)[1]
        return [labels[variant] for variant in self._variants]

    @property
    def _variants(self) -> list[tuple[str, ...]]:
        return [tuple(variant_overrides(run.overrides)) for run in self.runs]

    def save(self) -> None:
        """Write down what a report needs to know: the question, the baseline, what was asked for, and what is missing.

        What an earlier command planned is still planned if it is a run of the study's file.
        """
        runs = {r.folder: {"folder": r.folder, "overrides": variant_overrides(r.overrides), "seed": r.seed} for r in self.runs}
        before = self.folder.read_plan()
        earlier = {str(run["folder"]): run for run in before.runs} if before else {}
        places = {place: index for index, place in enumerate(self.whole)}
        runs = {place: run for place, run in earlier.items() if place in places} | runs
        order = sorted(runs, key=lambda place: places.get(place, len(places)))
        commands = list(dict.fromkeys([*(before.commands if before else ()), self.command]))
        told = {key: value for key, value in self.settings.items() if key != "variants"}
        self.folder.write_plan(StudyPlan(**told, commands=commands, runs=[runs[place] for place in order]))


def plan(
    root: Path,
    config_name: str,
    overrides: Sequence[str],
    places: Sequence[Place],
    *,
    command: Sequence[str],
    scratch: Path | None = None,
) -> Plan:
    """Work out what a study runs.

    Args:
        root: folder of configs that the main config lies in.
        config_name: of the main config.
        overrides: from the command line.
        places: further places of configs.
        command: what the user typed.
        scratch: folder for the files of the variants, where nothing is to be run; None is the study's own.

    Raises:
        UserError: a mistake in the study's own node, or a config that does not compose.
    """
    # A variant that is called as if it were a key of the config's own would be a key that nothing reads.
    overrides = [f"+{override}" if override.startswith("variant=") else override for override in overrides]
    everywhere = [root, *places, *_own_places(root / f"{config_name}.yaml")]
    parsed = parse_overrides(overrides, everywhere)
    if any(override.key == "name" and override.is_sweep for override in parsed):
        raise UserError("name is what a whole sweep is called: it has one value")
    single = [override.text for override in parsed if not override.is_sweep and override.key != "variant"]
    composition = compose(config_name, single, everywhere)
    settings = _settings(composition)
    folder = StudyFolder(composition.value("hydra.sweep.dir"))
    if composition.value("hydra.sweep.subdir") != _run(single, composition.value("seed")).folder:
        raise UserError("hydra.sweep.subdir is VARIANT/seed=N in every study, by which its runs are found again: leave it out")
    axes = {key.lstrip("+~") for key in composition.value("hydra.sweeper.params") or {}}
    swept = [override.text for override in parsed]
    beside = [override.text for override in parsed if override.place not in axes]
    if settings["variants"]:
        options = scratch or folder.variant_options
        _write_variants(settings["variants"], everywhere, options / "variant")
        everywhere.append(options)
        _check_choice(overrides, settings["variants"], everywhere)
        all_of_them = f"+variant={','.join(settings['variants'])}"
        beside = [all_of_them, *(override.text for override in parsed if override.place not in {*axes, "variant"})]
        if not any(override.key == "variant" for override in parsed):
            swept.insert(0, all_of_them)
    runs = _runs(composition, swept, everywhere)
    whole = [run.folder for run in _runs(composition, beside, everywhere)]
    planned = Plan(tuple(everywhere), config_name, swept, folder, settings, runs, whole, shlex.join(command))
    if not overrides:  # else the baseline, or what a claim is about, may be left out on purpose
        _check_baseline(planned)
    _check_claims(planned, composition.value("metrics") or {}, complete=not overrides)
    return planned


def _own_places(path: Path) -> list[Place]:
    """Return the places that a config asks for itself; Hydra allows that to a main config alone."""
    hydra = _read(path).get("hydra")
    searched = hydra.get("searchpath") if isinstance(hydra, dict) else None
    return [Path(url.removeprefix("file://")) if url.startswith("file://") else url for url in map(str, searched or ())]


def _check_choice(overrides: Sequence[str], variants: Iterable[str], places: Sequence[Place]) -> None:
    chosen = [override for override in overrides if override.startswith("+variant=")]
    for (override,) in split_sweep(chosen, places) if chosen else []:
        name = override.partition("=")[2]
        if name not in variants:
            raise UserError(f"study.variants has no {name!r}: {nearest(name, variants)}")


def _runs(composition: ComposedConfig, overrides: Sequence[str], places: Sequence[Place]) -> list[RunPlan]:
    if not str(composition.value("hydra.sweeper._target_")).endswith(".BasicSweeper"):
        return []
    axes = [f"{key}={value}" for key, value in (composition.value("hydra.sweeper.params") or {}).items()]
    return [_run(job, composition.value("seed")) for job in split_sweep([*axes, *overrides], places)]


def _run(overrides: Sequence[str], default_seed: object) -> RunPlan:
    seeds = [override.partition("=")[2] for override in overrides if override.startswith("seed=")]
    try:
        seed = int(seeds[-1] if seeds else str(default_seed))
    except ValueError:
        raise UserError(f"seed is a whole number, not {seeds[-1] if seeds else default_seed}") from None
    # Hydra names the folder of a job by overrides without those that are about Hydra itself.
    own = [override for override in overrides if not override.lstrip("+~").startswith("hydra")]
    return RunPlan(tuple(own), f"{variant_name(own)}/seed={seed}", seed)


def _settings(composition: ComposedConfig) -> dict[str, Any]:
    """Return the node of the study itself, having checked it."""
    study = dict.fromkeys(KEYS) | (composition.value("study") or {})
    for key in study:
        if key not in KEYS:
            raise unknown_key(str(key), KEYS, "study")
    metrics, known = study["metrics"], composition.value("metrics") or {}
    if not isinstance(study["question"], str | None):
        raise UserError(f"study.question is text, not {study['question']!r}")
    if metrics is not None and not (isinstance(metrics, list) and metrics and {*map(str, metrics)} <= {*known}):
        raise UserError(f"study.metrics is a list of any of {', '.join(known)}, not {metrics}")
    if study["significance"] not in get_args(Significance):
        raise UserError(f"study.significance is one of {', '.join(get_args(Significance))}, not {study['significance']!r}")
    study["claims"] = [claim.text for claim in parse_claims(study["claims"])]
    variants = study["variants"]
    if variants is None:
        return study
    if not isinstance(variants, dict) or not all(isinstance(overrides, list) for overrides in variants.values()):
        raise UserError("study.variants names each variant with a list: NAME: [attention=dot, decoder=bahdanau]")
    for name, overrides in variants.items():
        if not re.fullmatch(r"[\w.+-]+", str(name)):
            raise UserError(f"study.variants: {name!r} is to be a folder's name: letters, digits and _ . + - alone")
        if not all(isinstance(override, str) for override in overrides):
            raise UserError(f"study.variants.{name}: each item is KEY=VALUE; one with a comma or a colon needs quotes")
    return {**study, "variants": {str(name): overrides for name, overrides in variants.items()}}


def _check_claims(planned: Plan, metrics: Iterable[str], *, complete: bool) -> None:
    from attnlab.studies.collection import find_variant

    labels = _labels(planned) if complete else {}
    claims = parse_claims(planned.settings["claims"])
    check_claims(claims, [*metrics], lambda label: find_variant(label, labels), list(labels.values()))


def _labels(planned: Plan) -> dict[tuple[str, ...], str]:
    """Return the label of each variant by its overrides."""
    return {tuple(variant_overrides(run.overrides)): label for run, label in zip(planned.runs, planned.labels, strict=True)}


def _check_baseline(planned: Plan) -> None:
    from attnlab.studies.collection import find_variant

    baseline, labels = planned.settings["baseline"], _labels(planned)
    if baseline is not None and labels and find_variant(baseline, labels) is None:
        raise UserError(f"study.baseline: there is no variant {baseline!r}: there is {'; '.join(labels.values())}")


def _write_variants(variants: Mapping[str, Sequence[str]], places: Sequence[Place], folder: Path) -> None:
    """Write each variant as an option of a config group, so that every sweeper and launcher can choose among them."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.yaml"):  # of a variant that the study no longer has
        if path.stem not in variants:
            path.unlink()
    for name, overrides in variants.items():
        choices: list[Any] = []
        keys: dict[str, Any] = {}
        for override in parse_overrides(overrides, places):
            if override.key in ("seed", "name") or re.match(r"hydra\b", override.key):
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
        content = {"defaults": [*choices, "_self_"], **keys}
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        write_atomically(folder / f"{name}.yaml", f"# @package _global_\n{text}")


def _set(keys: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        keys = keys.setdefault(parent, {})
    keys[last] = value


def find_study(name: str, places: Sequence[Path]) -> tuple[Path, str]:
    """Find a study.

    Args:
        name: of a study in one of the places: NAME.yaml, NAME/study.yaml, or FOLDER/FILE.yaml; or the path of a file.
        places: folders of studies, the first that has it being taken.

    Returns:
        The folder that it lies in, and its name there.

    Raises:
        UserError: there is none, or it does not say what its runs are called.
    """
    own = [Path(name)] if name.endswith(".yaml") else []
    for path in [*(place / end for place in places for end in (f"{name}.yaml", Path(name, MAIN))), *own]:
        if path.is_file():
            if _read(path).get("name") is None:
                raise UserError(f"{path} does not say what its runs are called: add a line such as name: {path.stem}")
            return path.parent, path.stem
    hint = nearest(name, {study.name for study in list_studies(places)})
    raise UserError(f"no study {name!r} in {' or '.join(map(str, places))}, and no file of that name: {hint}")


@dataclass(frozen=True)
class StudyFile:
    """A study that can be run.

    Attributes:
        name: what ``attnlab study`` takes.
        question: in words.
        folder: where its runs are.
    """

    name: str
    question: str
    folder: Path


def list_studies(places: Sequence[Path]) -> list[StudyFile]:
    """List the studies in some folders: every file with a question, in the order of their names."""
    found: dict[str, StudyFile] = {}
    for study in (study for place in places for study in _files_with_a_question(place)):
        found.setdefault(study.name, study)
    return sorted(found.values(), key=lambda study: study.name)


def _files_with_a_question(place: Path) -> Iterator[StudyFile]:
    for path in sorted([*place.glob("*.yaml"), *place.glob("*/*.yaml")]):
        try:
            content = _read(path)
        except UserError as error:
            log.warning("%s", str(error)[:200])
            continue
        study = content.get("study")
        question = study.get("question") if isinstance(study, dict) else None
        if question:
            name = str(path.relative_to(place).with_suffix("")).removesuffix("/study")
            yield StudyFile(name, " ".join(str(question).split()), Path(RUNS, str(content.get("name") or name)))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    return content if isinstance(content, dict) else {}
