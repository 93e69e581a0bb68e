"""What a study is to run: its file, its variants, and the folder of each run. Nothing heavy is imported."""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from attnlab.config import (
    WITHOUT_EFFECT,
    ComposedConfig,
    Place,
    check_defaults,
    compose,
    parse_overrides,
    quote,
    search_path,
    settle,
    split_sweep,
    targets,
    variant_labels,
    variant_name,
    variant_overrides,
)
from attnlab.errors import UserError, nearest
from attnlab.studies.claims import check_claims, parse_claims
from attnlab.studies.collection import chosen_variant, find_variant
from attnlab.studies.files import own_places, own_settings
from attnlab.studies.folder import StudyFolder, StudyPlan
from attnlab.studies.matching import Match, parse_match
from attnlab.studies.names import no_baseline
from attnlab.studies.options import name_trials, variant_of, write_root, write_trials, write_variants
from attnlab.studies.settings import KEYS, read_settings
from attnlab.studies.tuning.search import Tuning, keep_numbers, parse_tuning

UNWRITTEN = {"variants", "controls"}
"""Keys that no report needs: what they hold is in the overrides of the runs."""


@dataclass(frozen=True)
class RunPlan:
    """One run of a plan.

    Attributes:
        overrides: of the config, all of them.
        folder: of the run, below that of the study.
        seed: of weights, batches and dropout.
        values: that the run's variant is given beside its overrides, by key, such as those that its tuning chose.
    """

    overrides: tuple[str, ...]
    folder: str
    seed: int
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variant(self) -> tuple[str, ...]:
        """What makes its variant, whatever the trial."""
        return variant_of(self.overrides)


@dataclass(frozen=True)
class Plan:
    """A study, or a sweep without a file, made ready for Hydra.

    Attributes:
        places: where configs are searched; the main config lies in the first, a folder.
        config_name: of the main config, which is the study's or, where it has variants, one around it.
        overrides: for Hydra's sweeper.
        folder: of the study.
        settings: the node ``study`` of the config.
        runs: what Hydra's own sweeper would run; empty for another one, which decides as it goes.
        whole: folders of all runs that the study's file has with these settings, also those that were not asked for now.
        command: what the user typed.
        trials: of the study's tuning, which come before its runs; None where nothing is tuned.
        match: the size that is to be set; see :func:`attnlab.studies.matching.match_sizes`.
        base: hash of the config that all runs share, before overrides and whatever varies.
        varied: keys that differ between the runs of one variant.
    """

    places: tuple[Place, ...]
    config_name: str
    overrides: list[str]
    folder: StudyFolder
    settings: dict[str, Any]
    runs: list[RunPlan]
    whole: list[str]
    command: str
    trials: "Plan | None" = None
    match: Match | None = None
    base: str = ""
    varied: frozenset[str] = frozenset({"seed"})
    _configs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _hashes: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, repr=False, compare=False)

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
            config = self.config(self.runs[0])
        except (IndexError, UserError):  # another sweeper than Hydra's own, or a mistake that the run tells of
            return []
        return list(targets(config))

    def config(self, run: RunPlan) -> dict[str, Any]:
        """Return the config of a run, resolved and checked; it is composed once, which takes half a second.

        Raises:
            UserError: a mistake in it.
        """
        known = run.folder, repr(run.values)
        if known not in self._configs:
            number = next(number for number, one in enumerate(self.runs) if one.folder == run.folder)
            output = quote(str(self.folder.run(run.folder).path.absolute()))
            job = [f"hydra.job.num={number}", f"hydra.runtime.output_dir={output}"]
            composed = compose(self.config_name, [*run.overrides, *job], self.places)
            self._hashes.setdefault(run.variant, composed.digest(self.varied))
            self._configs[known] = settle(composed.with_values(run.values).config)
        return deepcopy(self._configs[known])

    def hashes(self) -> dict[str, str]:
        """Return of each run, by its folder, a hash of its config as it is written, which the runs of a variant share.

        Of each variant one config is composed, if none was.

        Raises:
            UserError: a mistake in it.
        """
        for run in self.runs:
            if run.variant not in self._hashes:
                self.config(run)
        return {run.folder: self._hashes[run.variant] for run in self.runs}

    @property
    def axis(self) -> str:
        """What the labels of the variants are values of."""
        return variant_labels(self._variants)[0]

    @property
    def names(self) -> dict[tuple[str, ...], str]:
        """What each variant is called, by its overrides."""
        return variant_labels(self._variants)[1]

    @property
    def labels(self) -> list[str]:
        """What the variant of each run is called."""
        names = self.names
        return [names[variant] for variant in self._variants]

    @property
    def _variants(self) -> list[tuple[str, ...]]:
        return [tuple(variant_overrides(run.overrides)) for run in self.runs]

    def starts(self) -> list[float | None]:
        """Return when each run was last begun, in seconds of the clock; None of one that never was."""
        files = [self.folder.run(run.folder).record_file for run in self.runs]
        return [file.stat().st_mtime if file.is_file() else None for file in files]

    def save(self) -> None:
        """Write down what a report needs to know: the question, the baseline, what was asked for, and what is missing.

        What an earlier command planned is still planned if it is a run of the study's file.
        """
        runs = {r.folder: {"folder": r.folder, "overrides": variant_overrides(r.overrides), "seed": r.seed} for r in self.runs}
        places = {place: index for index, place in enumerate(self.whole)}
        told = {key: value for key, value in self.settings.items() if key not in UNWRITTEN}
        self.folder.path.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder.lock_file):  # of two commands at once each keeps what the other plans
            before = self.folder.read_plan()
            earlier = {str(run["folder"]): run for run in before.runs} if before else {}
            runs = {place: run for place, run in earlier.items() if place in places} | runs
            order = sorted(runs, key=lambda place: places.get(place, len(places)))
            commands = list(dict.fromkeys([*(before.commands if before else ()), self.command]))
            self.folder.write_plan(StudyPlan(**told, commands=commands, runs=[runs[place] for place in order], base=self.base))


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
    path = root / f"{config_name}.yaml"
    everywhere = [root, *places, *own_places(path)]
    others = parse_overrides([one for one in overrides if not one.startswith("+variant=")], everywhere)
    if any(override.key == "name" and override.is_sweep for override in others):
        raise UserError("name is what a whole sweep is called: it has one value")
    single = [override.text for override in others if not override.is_sweep]
    check_defaults(config_name, everywhere)
    composition = compose(config_name, single, everywhere)
    base = compose(config_name, [], everywhere).digest({*WITHOUT_EFFECT, "name", "seed", "data"})  # data have a fingerprint
    settings = read_settings(composition.value("study"), composition.value("metrics") or {})
    if settings["columns"] and ("metrics" in own_settings(path) or any(one.key == "study.metrics" for one in others)):
        raise UserError("study.metrics names what one task measures, and does not go with study.columns: leave it out")
    folder = StudyFolder(composition.value("hydra.sweep.dir"))
    (job,) = split_sweep(single, everywhere)  # as Hydra writes it: seed=1_0 is 10
    alone = _run(job, composition.value("seed")).folder
    if composition.value("hydra.sweep.subdir") != alone:
        raise UserError("hydra.sweep.subdir is VARIANT/seed=N in every study, by which its runs are found again: leave it out")
    params = composition.value("hydra.sweeper.params") or {}
    for key in (key for key, values in params.items() if isinstance(values, list)):
        raise UserError(f"hydra.sweeper.params.{key}: an axis is written as text, such as {key}: a,b, and not as a list")
    axes = {key.lstrip("+~") for key in params}
    if "name" in axes:
        raise UserError("hydra.sweeper.params: name is what a whole study is called, and no axis: leave it out")
    if settings["variants"]:
        if "variant" in axes:
            raise UserError("hydra.sweeper.params.variant: study.variants is that axis itself: leave it out")
        options = scratch or folder.variant_options
        write_variants(settings["variants"], everywhere, options / "variant")
        everywhere.insert(0, options)
        config_name = write_root(config_name, options)
        _check_choice(overrides, settings["variants"], everywhere)
    parsed = parse_overrides(overrides, everywhere)  # variants have options now, which glob(...) finds
    for axis in {override.place for override in parsed if override.is_sweep}:
        if sum(override.place == axis for override in parsed) > 1:
            raise UserError(f"{axis} is given more than once, and the last would count: name all its values at once")
    swept = [override.text for override in parsed]
    beside = [override.text for override in parsed if override.place not in axes]
    if settings["variants"]:
        all_of_them = f"+variant={','.join(settings['variants'])}"
        beside = [all_of_them, *(override.text for override in parsed if override.place not in {*axes, "variant"})]
        if not any(override.key == "variant" for override in parsed):
            swept.insert(0, all_of_them)
        _check_variants(settings["variants"], {*axes, *(one.place for one in parsed)}, everywhere)
    runs = _runs(composition, swept, everywhere)
    for folder_name, count in Counter(run.folder for run in runs).items():
        if count > 1:
            raise UserError(f"{folder_name} would be run {count} times: an axis names a value again, once is enough")
    every = _runs(composition, beside, everywhere)
    whole = [run.folder for run in every]
    planned = Plan(tuple(everywhere), config_name, swept, folder, settings, runs, whole, shlex.join(command), base=base)
    tuning, match = parse_tuning(settings["tune"]), parse_match(settings["match"])
    taken = {*axes, *(override.place for override in parsed)}
    if tuning or match:
        taken |= _keys_of_variants(settings["variants"], everywhere)
        if not runs:
            raise UserError("study.tune and study.match need Hydra's own sweeper: leave hydra.sweeper as it is")
    if match:
        _check_free(match.key, {*taken, *(tuning.keys if tuning else ())}, "study.match.key")
        planned = replace(planned, match=match)
    if tuning:
        _check_tuning(tuning, planned, taken, composition.value("metrics") or {})
        planned = _with_trials(planned, tuning, composition, beside, scratch)
    # Another axis makes other variants than those that the study's file names; what the command names is there.
    same_variants = all(one.place in {*axes, "variant"} for one in parsed if one.is_sweep)
    is_complete = same_variants or any(one.key.startswith("study.") for one in parsed)
    labels = replace(planned, runs=list({run.folder: run for run in (*every, *runs)}.values())).names if is_complete else {}
    _check_baseline(planned, labels)
    _check_claims(planned, composition.value("metrics") or {}, labels)
    return planned


def _with_trials(
    planned: Plan, tuning: Tuning, composition: ComposedConfig, beside: Sequence[str], scratch: Path | None
) -> Plan:
    """Return a plan with the trials of its tuning, which are a study of their own in a folder of the study's."""
    before = planned.folder.read_plan()
    proposed = keep_numbers(tuning.propose(), before.tune["trials"] if before and before.tune else [])
    folder = planned.folder.tuning
    options = scratch or folder.variant_options
    write_trials(proposed, options / "trial")
    places = tuple(dict.fromkeys([*planned.places, options]))
    axis = [f"+trial={','.join(name_trials(tuning.trials))}", f"seed={','.join(map(str, tuning.seeds))}"]
    place = f"hydra.sweep.dir={quote(str(folder.path))}"
    kept = [[text for text in overrides if not _sets_seed(text)] for overrides in (planned.overrides, beside)]
    swept, whole = ([*overrides, *axis, place] for overrides in kept)
    told = {"metric": tuning.metric, "seeds": list(tuning.seeds), "trials": proposed}
    trials = replace(
        planned,
        places=places,
        overrides=swept,
        folder=folder,
        settings={**dict.fromkeys(KEYS), "significance": "seeds", "claims": []},
        varied=planned.varied | {*tuning.keys},
        runs=_runs(composition, swept, places),
        whole=[run.folder for run in _runs(composition, whole, places)],
    )
    return replace(planned, settings={**planned.settings, "tune": told}, trials=trials)


def _keys_of_variants(variants: Mapping[str, Sequence[str]] | None, places: Sequence[Place]) -> set[str]:
    return {override.place for overrides in (variants or {}).values() for override in parse_overrides(overrides, places)}


def _check_variants(variants: Mapping[str, Sequence[str]], taken: Collection[str], places: Sequence[Place]) -> None:
    """Refuse variants that would not be what they are called: two that are one, or a key that is set again."""
    named: dict[tuple[str, ...], str] = {}
    for name, own in variants.items():
        if (other := named.setdefault(tuple(sorted(own)), name)) != name:
            raise UserError(f"study.variants: {other} and {name} are one and the same: leave one out")
    for key in sorted(_keys_of_variants(variants, places).intersection(taken)):
        raise UserError(f"study.variants: an axis or the command line sets {key} too: leave it out of one of them")


def _check_free(key: str, taken: Iterable[str], name: str) -> None:
    if key in taken:
        raise UserError(
            f"{name}: an axis, a variant, the tuning or the command line sets {key} too: leave it out of one of them"
        )


def _check_tuning(tuning: Tuning, planned: Plan, taken: Collection[str], metrics: Iterable[str]) -> None:
    """Refuse a tuning that does not go with the rest of its study.

    Args:
        tuning: of the study.
        planned: the study without its trials.
        taken: keys that axes, variants and the command line set.
        metrics: names of those that are measured.
    """
    for key in tuning.keys:
        _check_free(key, taken, f"study.tune.keys.{key}")
    if tuning.metric is not None and tuning.metric not in metrics:
        raise UserError(f"study.tune.metric: no metric {tuning.metric!r}: {nearest(tuning.metric, metrics)}")
    seeds = sorted({int(place.rpartition("=")[2]) for place in planned.whole} | {run.seed for run in planned.runs})
    for seed in {*seeds}.intersection(tuning.seeds):
        told = ", ".join(map(str, seeds))
        raise UserError(f"study.tune.seed is {seed}, which is a seed of the study ({told}): trials need one of their own")


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


def _sets_seed(override: str) -> bool:
    return override.lstrip("+").startswith("seed=")


def _run(overrides: Sequence[str], default_seed: object) -> RunPlan:
    seeds = [override.partition("=")[2] for override in overrides if _sets_seed(override)]
    given = seeds[-1] if seeds else str(default_seed)
    if not given.isdecimal():
        raise UserError(f"seed is a whole number, 0 or more, not {given!r}")
    seed = int(given)
    # Hydra names the folder of a job by overrides without those that are about Hydra itself.
    own = [override for override in overrides if not override.lstrip("+~").startswith("hydra")]
    return RunPlan(tuple(own), f"{variant_name(own)}/seed={seed}", seed)


def _check_claims(planned: Plan, metrics: Iterable[str], labels: Mapping[tuple[str, ...], str]) -> None:
    claims, columns = parse_claims(planned.settings["claims"]), planned.settings["columns"] or {}
    column = {variant: name for name, rows in columns.items() for variant in rows.values()}
    places = {label: column.get(chosen_variant(overrides), "") for overrides, label in labels.items()}
    measured = None if columns else [*metrics]
    check_claims(claims, measured, lambda one: find_variant(one, labels), [*labels.values()], places)


def _check_baseline(planned: Plan, labels: Mapping[tuple[str, ...], str]) -> None:
    baseline = planned.settings["baseline"]
    if planned.settings["columns"] is None and baseline is not None and labels and find_variant(baseline, labels) is None:
        for run in {run.variant: run for run in planned.runs}.values():
            planned.config(run)  # an axis that is no key, or a misspelt option of one, makes other labels, and is told so
        raise no_baseline(baseline, labels.values())
