"""Running a recorded run again, to see whether every figure comes out the same."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

import attnlab
from attnlab.errors import UserError
from attnlab.studies.collection import Run
from attnlab.studies.prospect import fingerprint
from attnlab.studies.resuming import found
from attnlab.studies.run import execute

FOLDER = "reproduced"
MEASURES_TIME = {"train/tokens_per_second", "train_seconds", "train_tokens_per_second", "seconds", "restarts"}


@dataclass(frozen=True)
class Difference:
    """A figure that did not come out the same.

    Attributes:
        name: such as ``test.bleu.value``, or ``epoch 3, val/loss``.
        recorded: what it was.
        found: what it is now; None if it is not there.
    """

    name: str
    recorded: Any
    found: Any


def reproduce(folder: Path) -> tuple[int, list[Difference], list[Difference]]:
    """Carry out a recorded run again, from the config that it recorded, in a folder ``reproduced`` of its own.

    Args:
        folder: of a finished run.

    Returns:
        How many figures were compared, those that differ, and what of versions and hardware differs.

    Raises:
        UserError: no finished run there, or the data is another by now.
    """
    begun = found(folder)
    if begun is None or not (folder / "result.json").is_file():
        raise UserError(f"{folder} holds no finished run: name a folder with result.json, runs/NAME/VARIANT/seed=N")
    recorded = Run(folder, tuple(begun.overrides), begun.seed, "done")
    config = OmegaConf.create(recorded.config)
    assert isinstance(config, DictConfig)
    config.logger = {"_target_": "attnlab.training.loggers.no_logger", "_partial_": True}
    if config.threads is None:
        torch.set_num_threads(recorded.environment["threads"])
    place = folder / FOLDER
    if (place / "result.json").is_file():
        shutil.rmtree(place)
    same_version = recorded.result["version"] == attnlab.__version__  # the fingerprint of data depends on it
    if same_version and fingerprint(config) != recorded.result["data"]:
        raise UserError(f"the data is not what {folder} was trained on: its fingerprint was {recorded.result['data']}")
    execute(config, place, begun.overrides)
    if int(os.environ.get("LOCAL_RANK", "0")):
        return 0, [], []
    again = Run(place, tuple(begun.overrides), begun.seed, "done")
    before, now = dict(_figures(recorded)), dict(_figures(again))
    packages = dict(_flat(recorded.environment, "")), dict(_flat(again.environment, ""))
    return len(before), _differences(before, now), _differences(*packages)


def _figures(run: Run) -> Iterator[tuple[str, Any]]:
    for line in run.curve:
        yield from ((f"epoch {int(line['epoch']) + 1}, {name}", v) for name, v in line.items() if name not in MEASURES_TIME)
    yield from ((name, value) for name, value in _flat(run.result, "") if name not in MEASURES_TIME)
    for test in run.result["tests"]:
        yield from ((f"{test}, hypothesis {n}", line) for n, line in enumerate(run.hypotheses(test), 1))


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, item in enumerate(value):
            yield from _flat(item, f"{name}[{number}]")
    else:
        yield name, value


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    # As JSON, in which NaN equals NaN.
    return [Difference(n, value, now.get(n)) for n, value in before.items() if json.dumps(now.get(n)) != json.dumps(value)]
