"""What a study would do if it were started now."""

import json
from collections.abc import Mapping
from typing import Any

from attnlab.config import KEYS, compose, settle
from attnlab.runs.assembly import build_task
from attnlab.runs.folder import RunFolder
from attnlab.runs.identity import Identity, identify
from attnlab.studies.plan import Plan
from attnlab.tasks.task import Task


def preview(plan: Plan) -> list[str]:
    """Tell of each planned run whether it is done, or what would be done, having composed its config and looked at its data.

    Raises:
        UserError: a mistake in a config, or data that cannot be read.
    """
    tasks: dict[str, Task] = {}
    told = []
    for run in plan.runs:
        config = settle(compose(plan.config_name, run.overrides, plan.places).config)
        # What a task is made from: keys of its own, and some of those that every task has. Its data is looked at once.
        parts = json.dumps({key: config[key] for key in config if key in TASK_KEYS or key not in KEYS}, sort_keys=True)
        if parts not in tasks:
            tasks[parts] = build_task(config)
        told.append(_describe(plan.folder.run(run.folder), config, identify(config, tasks[parts])))
    return told


TASK_KEYS = ("task", "data", "batches", "metrics", "cache_dir")


def _describe(folder: RunFolder, config: Mapping[str, Any], identity: Identity) -> str:
    record, state = folder.read_record(), folder.state
    if state == "running":
        return state
    if record is None:
        return f"to do ({state})"
    if record.id == identity.id:
        return state if state == "done" else f"to do ({state})"
    if record.settings != identity.settings:
        return f"to do: the run there ({state}) is another one, by its config, data or version; it will be set aside"
    if state == "done" and identity.code in record.accepted_code:
        return "done, by other code, and kept"
    if state == "done" and config["keep_results"]:
        return "done, by other code; its results will be kept"
    return f"to do: the run there ({state}) was made by other code; it will be set aside, unless --keep-results"
