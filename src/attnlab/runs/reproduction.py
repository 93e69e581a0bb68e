"""Running a recorded run again, to see whether every figure comes out the same."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnlab.data.processes import is_first_process
from attnlab.errors import UserError
from attnlab.runs.assembly import build_task
from attnlab.runs.building import read_trusted_config, report_damage
from attnlab.runs.execution import execute
from attnlab.runs.folder import RunFolder
from attnlab.runs.identity import hash_run_code
from attnlab.runs.names import SHAPE

REPRODUCTION = "reproduced"
"""Folder of the second run, within that of the first."""

MEASURES_OF_MACHINE = {"train/tokens_per_second", "train_seconds", "train_tokens_per_second", "seconds", "restarts"}
MEASURES_OF_MACHINE |= {"peak_memory", "peak_gpu_memory"}
ORIGIN = ("version", "code", "data")
"""What a result says of where it comes from; with other code these differ although every figure is the same."""


@dataclass(frozen=True)
class Discrepancy:
    """A figure that did not come out the same.

    Attributes:
        name: such as ``test.metrics.loss.value``, or ``epoch 3, val/loss``.
        recorded: what it was.
        found: what it is now; None if it is not there.
    """

    name: str
    recorded: Any
    found: Any


def reproduce(path: Path) -> tuple[int, list[Discrepancy], list[Discrepancy]]:
    """Carry out a recorded run again, from the config that it recorded, in a folder of its own.

    Args:
        path: of a finished run.

    Returns:
        How many figures were compared, those that differ, and what of versions and hardware differs.

    Raises:
        UserError: no finished run there, or the data is another by now.
    """
    recorded = RunFolder(path)
    if recorded.is_exported:
        raise UserError(f"{path} was exported to be shared, without what it takes to run it again: name the run itself")
    record = recorded.read_record()
    if record is None or not recorded.is_finished:
        raise UserError(f"{path} holds no finished run: name a folder with {recorded.result_file.name}, {SHAPE}")
    result = recorded.read_result()
    config = read_trusted_config(recorded)
    config["logger"] = {"_target_": "attnlab.training.loggers.no_logger", "_partial_": True}
    if config["threads"] is None:
        config["threads"] = _first_start(recorded).get("threads")
    again = RunFolder(path / REPRODUCTION)
    if is_first_process() and again.result_file.is_file():
        shutil.rmtree(again.path)
    with report_damage(path):
        task = build_task(config)
        code = hash_run_code(config, task)
    if code == result.code and task.data_fingerprint != result.data:
        raise UserError(f"the data is not what {path} was trained on: its fingerprint was {result.data}")
    execute(config, again.path, record.overrides)
    if not is_first_process():
        return 0, [], []
    before, now = dict(_figures(recorded)), dict(_figures(again))
    return len(before), _differences(before, now), _differences(_origin(recorded), _origin(again))


def _origin(folder: RunFolder) -> dict[str, Any]:
    result = asdict(folder.read_result())
    return {**dict(_flatten(_first_start(folder), "")), **{name: result[name] for name in ORIGIN}}


def _first_start(folder: RunFolder) -> dict[str, Any]:
    """Return what a run was first started in, where it was trained or began to be; the time is no part of it."""
    return {name: value for name, value in next(iter(folder.read_starts()), {}).items() if name != "time"}


def _figures(folder: RunFolder) -> Iterator[tuple[str, Any]]:
    for line in folder.read_curve():
        epoch = int(line["epoch"]) + 1
        yield from ((f"epoch {epoch}, {name}", v) for name, v in line.items() if name not in MEASURES_OF_MACHINE)
    result = folder.read_result()
    skipped = {*MEASURES_OF_MACHINE, *ORIGIN, "id"}  # which also knows how many threads were asked for
    yield from ((name, value) for name, value in _flatten(asdict(result), "") if name not in skipped and value is not None)
    for test in result.tests:
        lines = folder.read_hypotheses(test)
        yield from ((f"{test}, hypothesis {n}", line) for n, line in enumerate(lines, 1))


def _flatten(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, item in enumerate(value):
            yield from _flatten(item, f"{name}[{number}]")
    else:
        yield name, value


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Discrepancy]:
    # As JSON, in which NaN equals NaN.
    return [Discrepancy(n, value, now.get(n)) for n, value in before.items() if json.dumps(now.get(n)) != json.dumps(value)]
