"""What a study would do if it were started now."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch

from attnlab.config import compose, variant_overrides, without_keys
from attnlab.errors import UserError, warn
from attnlab.runs.assembly import TaskStore, build_model, build_module, prepare_task
from attnlab.runs.checks import check_module, check_settings, check_trainer
from attnlab.runs.evaluation import check_metrics
from attnlab.runs.execution import make_record
from attnlab.runs.folder import RunFolder
from attnlab.runs.record import RunRecord
from attnlab.runs.resume import OTHER_CODE, decide
from attnlab.studies.claims import check_measures, parse_claims
from attnlab.studies.collection import VARIANT, chosen_variant, find_variant
from attnlab.studies.matching import match_sizes
from attnlab.studies.options import find_trial
from attnlab.studies.plan import Plan, RunPlan
from attnlab.studies.values import find_value

LEARNING = ("optimizer", "scheduler")
"""Parts of a config of which no model is made."""
MANY = 10
"""With more variants the check takes seconds, and says so."""


def preview(plan: Plan) -> list[str]:
    """Tell of each planned run whether it is done, or what would be done.

    Of a run that has a folder the config is composed and the data are looked at.

    Raises:
        UserError: a mistake in a config, or data that cannot be read.
    """
    tasks = TaskStore()
    told = []
    for run in plan.runs:
        folder = plan.folder.run(run.folder)
        if not folder.path.exists():
            told.append(f"to do ({folder.state})")
            continue
        config = plan.config(run)
        told.append(_describe(folder, config, make_record(config, tasks.find(config), run.overrides)))
    return told


def check_plan(plan: Plan) -> Plan:
    """Return a plan with the sizes that its ``study.match`` asks for, having looked for every mistake that can be found before
    anything is trained.

    Raises:
        UserError: a mistake in the study, in the config of a variant or in its data, or parts of a variant that do not go
            together.
    """
    trials = _checked_trials(plan)
    if (count := len({run.variant for run in plan.runs}) + len(trials)) > MANY:
        warn(f"checking the configs and the models of {count} variants{' and trials' if trials else ''}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # models are tried on a few numbers, for which several threads only wait for each other
    try:
        tasks = TaskStore()
        _check_claims(plan, tasks)
        matched = match_sizes(plan, tasks)
        _check_configs(matched, tasks)
        _check_models(matched, tasks)
    finally:
        torch.set_num_threads(threads)
    return matched


def check_trainers(plan: Plan, *, in_sweep: bool = True) -> None:
    """Refuse a trainer that no run can have, such as one for a device that is not there, where runs are launched on this
    machine.

    Args:
        plan: of whose variants the first run that is not done is looked at.
        in_sweep: refuse a trainer that no run of a sweep can have, too.

    Raises:
        UserError: there is such a trainer.
    """
    of_hydra = [override for override in plan.overrides if override.lstrip("+~").startswith("hydra")]
    launcher = str(compose(plan.config_name, of_hydra, plan.places).value("hydra.launcher._target_"))
    if not launcher.endswith((".BasicLauncher", ".JoblibLauncher")):
        return
    known: set[str] = set()
    own: dict[tuple[str, ...], tuple[RunPlan, str]] = {}
    for run, label in zip(plan.runs, plan.labels, strict=True):
        if run.variant not in own and plan.folder.run(run.folder).state != "done":
            own[run.variant] = (run, label)
    for run, label in own.values():
        config = plan.config(run)
        trainer = json.dumps(config["trainer"], sort_keys=True, default=str)
        if trainer not in known:
            known.add(trainer)
            try:
                check_trainer(config, in_sweep=in_sweep)
            except UserError as error:
                raise UserError(f"{label}: {error}") from error


def _check_configs(plan: Plan, tasks: TaskStore) -> None:
    """Refuse a mistake in the config of a variant, or a tuning that no run could be made of, before anything is trained.

    Of every variant the first run is looked at, and the trials of :func:`_checked_trials`.

    Raises:
        UserError: a key that a variant does not have, a value that it cannot have, or a metric that cannot decide.
    """
    first: dict[tuple[str, ...], RunPlan] = {}
    for run in plan.runs:
        first.setdefault(run.variant, run)
    configs = {variant: plan.config(run) for variant, run in first.items()}
    labels = plan.names
    alike: dict[str, str] = {}
    for variant, config in configs.items():
        settings = json.dumps(without_keys(config, {"name", "study"}), sort_keys=True, default=str)
        if (other := alike.setdefault(settings, labels[variant])) != labels[variant]:
            raise UserError(f"{other} and {labels[variant]} are one and the same: their settings are equal; leave one out")
    if plan.trials is None:
        return
    tuned = plan.settings["tune"]["trials"][0]
    for variant, config in configs.items():
        for key in tuned:
            find_value(config, key, f"study.tune.keys.{key}", labels[variant])
    for run, _ in _checked_trials(plan):
        plan.trials.config(run)
    name = plan.settings["tune"]["metric"]
    if name is not None:
        metric = tasks.find(plan.config(plan.runs[0])).metrics[name]
        if not metric.is_due("epoch") or metric.higher_is_better is None:
            raise UserError(f"study.tune.metric: {name} is not measured on the validation set, or has no better and worse")


def _checked_trials(plan: Plan) -> list[tuple[RunPlan, str]]:
    """Return the trials whose configs and models are looked at, and their labels.

    These are all; but where nothing is tuned that models are made of, they are the first of every variant, and those of the
    first variant with all values.
    """
    if plan.trials is None:
        return []
    is_of_learning = all(key.partition(".")[0] in LEARNING for key in plan.settings["tune"]["trials"][0])
    first = plan.trials.runs[0].variant
    pairs = zip(plan.trials.runs, plan.trials.labels, strict=True)
    return [pair for pair in pairs if not is_of_learning or find_trial(pair[0].overrides) == 0 or pair[0].variant == first]


def _check_models(plan: Plan, tasks: TaskStore) -> None:
    """Refuse a variant whose parts do not go together, before anything is trained: a model is built for the first run of each
    variant that is not done, and for the trials of :func:`_checked_trials`.

    Raises:
        UserError: there is such a variant, or a mistake in its data.
    """
    known: set[tuple[str, ...]] = set()
    looked_at = [(plan, run, label) for run, label in zip(plan.runs, plan.labels, strict=True)]
    if plan.trials is not None:
        looked_at += [(plan.trials, run, label) for run, label in _checked_trials(plan)]
    for own, run, label in looked_at:
        variant = tuple(variant_overrides(run.overrides))
        if variant in known or own.folder.run(run.folder).state == "done":
            continue
        known.add(variant)
        config = own.config(run)
        try:
            task = tasks.find(config)
            check_settings(config, task)
            prepare_task(config, task)
            check_module(config, build_module(config, task, build_model(config, task)))
            # A trial measures no test set: without this, its study would learn of a mistake when all trials are done.
            check_metrics(task, map(task.examples, [*task.measured_tests, "val"]), "test")
        except UserError as error:
            raise UserError(f"{label}: {error}") from error


def _check_claims(plan: Plan, tasks: TaskStore) -> None:
    """Refuse a claim that the data or the metrics of its first variant cannot decide, before anything is trained.

    Raises:
        UserError: there is such a claim, or a mistake in a config.
    """
    claims = parse_claims(plan.settings["claims"])
    if not (claims and plan.runs):
        return
    runs = dict(zip(reversed(plan.labels), reversed(plan.runs), strict=True))
    known = {tuple(variant_overrides(run.overrides)): label for label, run in runs.items()}
    columns = [rows.values() for rows in (plan.settings["columns"] or {}).values()]
    for claim in claims:
        label = find_variant(claim.one, known) or _neighbour(claim.one, runs, columns)
        if label is not None:
            task = tasks.find(plan.config(runs[label]))
            check_measures(claim, task.measured_tests, task.metrics)


def _neighbour(left_out: str, runs: Mapping[str, RunPlan], columns: Iterable[Collection[str]]) -> str | None:
    """Return a variant of the same task as one that the command line left out, or None if it left out the whole column."""
    words = {word.removeprefix(VARIANT) for word in left_out.split()}
    column = next((column for column in columns if {*column} & words), None)
    return next((label for label, run in runs.items() if column is None or chosen_variant(run.variant) in column), None)


def _describe(folder: RunFolder, config: Mapping[str, Any], record: RunRecord) -> str:
    state = folder.state
    if state == "running":
        return state
    is_trial = not config["test"]
    decision = decide(folder, record, resume=config["resume"], keep_results=config["keep_results"], is_trial=is_trial)
    if decision.deed == "done":
        return "done"
    if decision.previous is not None and decision.deed == "kept":
        is_accepted = record.code in decision.previous.accepted_code
        return "done, by other code, and kept" if is_accepted else "done, by other code; its results will be kept"
    if decision.deed == "diverged":
        return "diverged, which it would again"
    if not decision.reason:
        return f"to do ({state})"
    hint = ", unless --keep-results" if decision.reason == OTHER_CODE and state == "done" else ""
    return f"to do: the run there ({state}) {decision.reason}; it will be set aside{hint}"
