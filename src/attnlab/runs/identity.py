"""What makes a run this run and no other: its config, its data, and the code that decides its numbers."""

import hashlib
import inspect
import json
import pkgutil
from collections.abc import Collection, Mapping, Set
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import attnlab
from attnlab.config import WITHOUT_EFFECT, targets, without_keys
from attnlab.runs.record import metric_name
from attnlab.search import Search
from attnlab.source import OWN, PACKAGE, foreign_files, hash_code, read_package
from attnlab.tasks.task import Task

ROOMS = ("attention", "layers", "encoders", "decoders", "heads", "search", "data", "evaluation", "training")
"""Folders whose code decides a run's numbers, beside that of its task."""
MODULES = ["model.py", "seeding.py", "precision.py", "trees.py", "tasks/task.py", "tasks/predictor.py"]
MODULES += ["runs/assembly.py", "runs/execution.py", "runs/evaluation.py"]
INTERVENTIONS = "attention/interventions.py"
"""What probes alone use."""
IDLE = (
    INTERVENTIONS,
    "attention/trial.py",
    "attention/validation.py",
    "data/progress.py",
    "data/replacement.py",
    "encoders/validation.py",
    "decoders/validation.py",
    "heads/validation.py",
    "search/validation.py",
    "evaluation/fonts.py",
    "evaluation/heatmaps.py",
    "evaluation/plots.py",
    "evaluation/significance",
    "training/loggers.py",
    "training/placement.py",
)
"""Modules and folders of these rooms that decide no number of a run."""

read_package()  # now: what is edited later is not what this process has imported


class Identity(NamedTuple):
    """Hashes of a run; see :class:`attnlab.runs.record.RunRecord`."""

    id: str
    settings: str
    training: str
    recipe: str
    code: str


def identify(config: Mapping[str, Any], task: Task) -> Identity:
    """Return what makes a run this one.

    Args:
        config: resolved.
        task: made from it.

    Raises:
        UserError: data that cannot be read.
    """
    code, fingerprint = hash_run_code(config, task), task.fingerprint
    trained = {**config, "metrics": _watched_metrics(config), "search": _limits(config)}
    return Identity(
        id=_hash(config, fingerprint, code),
        settings=_hash(config, task.content),
        training=_hash(
            trained,
            fingerprint,
            hash_run_code(trained, task) if OWN in code else code,  # of the user's own not all decides a training
            leave_out=("name", "test"),
        ),
        recipe=_hash(config, fingerprint, code, leave_out=("seed", "name")),
        code=code,
    )


def _watched_metrics(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nodes of the metrics that choose the checkpoint, stop the training or lower the learning rate."""
    parts = (config, config["scheduler"], *(config.get("callbacks") or {}).values())
    watched = {metric_name(str(part["monitor"])) for part in parts if isinstance(part, Mapping) and part.get("monitor")}
    return {name: node for name, node in config["metrics"].items() if name in watched}


def _limits(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of hypotheses, which hold in validation too; of a search nothing else decides a training."""
    search = config.get("search") or {}
    return {limit.name: search.get(limit.name, limit.default) for limit in fields(Search)}


def _hash(config: Mapping[str, Any], *facts: str, leave_out: Collection[str] = ()) -> str:
    usual = {"test"} if config.get("test", True) else set()  # of a run from before it could be left out too
    decisive = without_keys(config, {*WITHOUT_EFFECT, *usual, "data", *leave_out})  # data is known better by its fingerprint
    text = json.dumps([decisive, *facts, attnlab.__version__], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def hash_run_code(config: Mapping[str, Any], task: Task) -> str:
    """Return hashes of the code that decides a run's numbers: the package's and, if the config names any, after a plus the
    hash of the user's own classes.
    """
    return _hash_decisive(config, task, _run_files())


def hash_probe_code(config: Mapping[str, Any], task: Task) -> str:
    """Return hashes of the code that decides what a probe of a run finds: that of the run and that of the experiments, in the
    form of :func:`hash_run_code`.
    """
    places = [PACKAGE / name for name in ("probing", INTERVENTIONS)]
    more = {file for file in read_package() if any(map(file.is_relative_to, places))}
    return _hash_decisive(config, task, _run_files() | more)


def _hash_decisive(config: Mapping[str, Any], task: Task, files: Set[Path]) -> str:
    files = files | foreign_files(map(pkgutil.resolve_name, targets(without_keys(config, WITHOUT_EFFECT))))
    room = Path(inspect.getfile(type(task))).resolve()
    if room.is_relative_to(PACKAGE):
        files = files | {room.parent}
    own = {file for file in files if not file.is_relative_to(PACKAGE)}
    return OWN.join(hash_code(part) for part in (files - own, own) if part)


def run_modules() -> list[str]:
    """Return the names of the package's modules that decide the numbers of any run, those of every task included."""
    files = _run_files() | {file for file in read_package() if file.is_relative_to(PACKAGE / "tasks")}
    names = (".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files)
    return sorted(name.removesuffix(".__init__") for name in names)


def _run_files() -> set[Path]:
    places, idle = ([PACKAGE / name for name in names] for names in ((*ROOMS, *MODULES), IDLE))
    return {
        file for file in read_package() if any(map(file.is_relative_to, places)) and not any(map(file.is_relative_to, idle))
    }
