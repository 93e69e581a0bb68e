"""What makes a run this run and no other: its config, its data, and the code that decides its numbers."""

import hashlib
import inspect
import json
import pkgutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import attnlab
from attnlab.source import PACKAGE, foreign_files, hash_code
from attnlab.tasks.task import Task

ROOMS = ("attention", "layers", "encoders", "decoders", "heads", "search", "data", "evaluation", "training")
"""Folders whose code decides a run's numbers, beside that of its task."""
MODULES = ("model.py", "seeding.py", "tasks/task.py", "tasks/predictor.py")
PICTURES = {"evaluation/heatmaps.py", "evaluation/plots.py"}
"""Modules of these rooms that decide no number."""

WITHOUT_EFFECT: dict[str, Collection[str]] = {
    "": ("data", "logger", "resume", "keep_results", "study", "cache_dir"),  # data is known better by its fingerprint
    "batches": ("num_workers",),
    "callbacks": ("samples",),
    "trainer": ("enable_progress_bar",),
}
"""Parts of a config, by node, that do not decide a run's numbers."""


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
    return Identity(
        id=_hash(config, fingerprint, code),
        settings=_hash(config, task.content),
        training=_hash(config, fingerprint, code, leave_out=("search", "name", "metrics")),
        recipe=_hash(config, fingerprint, code, leave_out=("seed", "name")),
        code=code,
    )


def _hash(config: Mapping[str, Any], *facts: str, leave_out: Collection[str] = ()) -> str:
    decisive: dict[str, Any] = {}
    for key, value in config.items():
        if key in leave_out or key in WITHOUT_EFFECT[""]:
            continue
        idle = WITHOUT_EFFECT.get(key, ())
        decisive[key] = {k: v for k, v in value.items() if k not in idle} if idle and isinstance(value, Mapping) else value
    text = json.dumps([decisive, *facts, attnlab.__version__], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def hash_run_code(config: Mapping[str, Any], task: Task) -> str:
    """Return a hash of the code that decides a run's numbers: the package's, and every class of the user's that is named."""
    files: set[Path] = {PACKAGE / module for module in MODULES}
    for room in ROOMS:
        files |= set((PACKAGE / room).rglob("*.py"))
    files -= {PACKAGE / module for module in PICTURES}
    files |= foreign_files(map(pkgutil.resolve_name, _targets(config)))
    own = Path(inspect.getfile(type(task)))
    if own.is_relative_to(PACKAGE):
        files |= set(own.parent.rglob("*.py"))
    return hash_code(files)


def _targets(node: Any) -> Iterator[str]:
    """Yield every class and function that a config names."""
    if isinstance(node, Mapping):
        if isinstance(node.get("_target_"), str):
            yield node["_target_"]
        for value in node.values():
            yield from _targets(value)
    elif isinstance(node, list):
        for value in node:
            yield from _targets(value)
