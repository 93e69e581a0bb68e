"""What a run is, and what it came to, as its folder records them."""

import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Self, get_type_hints

from typing_extensions import override

from attnlab.evaluation.evidence import EXAMPLE
from attnlab.evaluation.measurement import Measurement
from attnlab.hints import fits
from attnlab.runs.names import WEIGHTS

MAP: dict[str, Any] = {
    "test": str,
    EXAMPLE: int,
    "lines": list[str],
    "source": list[str],
    "target": list[str],
    "weights": list[list[float]],
}
"""What a map of ``attention.json`` has, by type."""
TEST: dict[str, Any] = {
    "examples": int,
    "length_unit": str | None,
    "metrics": dict[str, dict[str, Any]],
    "shift": int | None,
    "overlap": int | None,
}
"""What a test set of ``result.json`` has, by type; see :class:`RunResult`."""
MEASUREMENT = get_type_hints(Measurement)
"""What each metric of a test set has, by type."""
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a pair that JSON writes one character with."""
MOST_NODES = 100_000
"""In the config of a run; the largest of this repository's has a few hundred."""
START: dict[str, Any] = {
    **dict.fromkeys(("time", "device", "precision", "python", "platform", "processor", "cuda", "commit"), str | None),
    "threads": int | None,
    "gpus": list[str] | None,
    "dirty": bool | None,
    "packages": dict[str, str] | None,
}
"""What a start in ``environment.json`` may have, by type."""


def metric_name(monitor: str) -> str:
    """Return the name of the metric that is monitored as ``val/NAME``."""
    return monitor.partition("/")[2]


def length_unit(test: Mapping[str, Any]) -> str:
    """Return what a test set's lengths are counted in, by what a result or an evaluation says of it."""
    return str(test.get("length_unit", "tokens"))  # as they were before it was written down


def batch_limits(config: Mapping[str, Any]) -> list[str]:
    """Return the settings by which a training or its tests were cut short, as those of a run for debugging are."""
    trainer = config.get("trainer") or {}
    limits = {key: trainer.get(key) for key in (f"limit_{stage}_batches" for stage in ("train", "val", "test"))}
    return [f"trainer.{key}={value}" for key, value in limits.items() if value is not None and repr(value) != "1.0"]


class Schema:
    """A dataclass that is read from JSON, every field of which is checked.

    A field whose default is None may be missing: what was written before there was such a field is read too.
    """

    @classmethod
    def parse(cls, content: Any) -> Self:
        """Make a record from plain containers.

        Raises:
            ValueError: no mapping, a field that is missing or unknown, or a value of another type.
        """
        if not isinstance(content, Mapping):
            raise ValueError("it is no mapping")
        hints = cls._types()
        names = {item.name for item in fields(cls)}  # type: ignore[arg-type]
        if unknown := content.keys() - names:
            raise ValueError(f"it has an unknown field {sorted(unknown)[0]!r}")
        later = {item.name for item in fields(cls) if item.default is None}  # type: ignore[arg-type]
        if missing := names - later - content.keys():
            raise ValueError(f"it lacks the field {sorted(missing)[0]!r}")
        for name in names & content.keys():
            if not fits(content[name], hints[name]):
                raise ValueError(f"its field {name!r} is {content[name]!r:.60}")
        return cls(**content)

    @classmethod
    @cache  # a report reads the records of hundreds of runs
    def _types(cls) -> dict[str, Any]:
        return get_type_hints(cls)


def _process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass
class RunRecord(Schema):
    """``run.json``: what a folder's run is, written before it trains.

    Attributes:
        id: the run's identity: a hash of its config, its data, the package's version and the code that decides its numbers.
        settings: the same without the code.
        training: identity of its training, which runs that differ in their search alone share.
        recipe: identity of all but its seed, which the seeds of a variant share.
        code: hash of the code alone.
        task: the name of its task.
        name: of the study or sweep.
        variant: what it is called there.
        overrides: what makes the variant.
        seed: of weights, batches and dropout.
        restarts: how often it went on from a checkpoint.
        process: host and process that worked on it last.
        fit: once it is trained, what the training came to; only the tests are left then.
        accepted_code: hashes of later code for which its results were kept on request.
        base: hash of the config that all runs of its study shared when it was asked for last; None of a run by itself.
        logged_as: its id at Weights & Biases, another one for each training; None of a run that was begun without one.
    """

    id: str
    settings: str
    training: str
    recipe: str
    code: str
    task: str
    name: str
    variant: str
    overrides: list[str]
    seed: int
    restarts: int = 0
    process: str = field(default_factory=_process)
    fit: dict[str, Any] = field(default_factory=dict)
    accepted_code: list[str] = field(default_factory=list)
    base: str | None = None
    logged_as: str | None = None


@dataclass(frozen=True)
class RunResult(Schema):
    """``result.json``: what a run came to, written last.

    Attributes:
        id: the run's identity.
        version: of attnlab.
        code: hash of the code that decided its numbers.
        data: fingerprint of its data alone, whatever examples its task made of it.
        parameters: of the model, shared ones counted once.
        epochs: trained.
        steps: trained.
        monitor: the metric that chose the checkpoint, such as ``val/loss``; None where none was kept.
        best: its best value.
        train_seconds: of training, without validation.
        train_tokens_per_second: target tokens.
        seconds: of the whole run.
        restarts: how often it went on from a checkpoint.
        tests: of each test set ``examples``, ``length_unit`` (of its sources), ``metrics`` (of each ``value``, ``signature``,
            ``low``, ``high``), the ``shift`` by which its attention was read, where that is compared with gold links, and its
            ``overlap``, how many of all its examples are in training too, where there are any.
        multiply_adds: for a target token, as :func:`attnlab.training.arithmetic.count_multiply_adds` counts them.
        peak_memory: the largest resident set of its processes, in bytes.
        peak_gpu_memory: what torch had allocated on its GPU at most, in bytes; None without one.
    """

    id: str
    version: str
    code: str
    data: str
    parameters: int
    epochs: int
    steps: int
    monitor: str | None
    best: float | None
    train_seconds: float
    train_tokens_per_second: float
    seconds: float
    restarts: int
    tests: dict[str, dict[str, Any]]
    multiply_adds: float | None = None
    peak_memory: int | None = None
    peak_gpu_memory: int | None = None

    @classmethod
    @override
    def parse(cls, content: Any) -> Self:
        result = super().parse(content)
        for name, test in result.tests.items():
            if "/" in name or "\0" in name:
                raise ValueError(f"its test set {name!r:.60} is no part of a file's name")
            check_types(test, TEST)
            for measurement in test["metrics"].values():
                check_types(measurement, MEASUREMENT)
        return result

    @property
    def shift(self) -> int | None:
        """By which its attention was read, the same for all test sets; None where that was compared with no gold links."""
        return next((test["shift"] for test in self.tests.values() if test.get("shift") is not None), None)

    def metric(self, test: str, name: str) -> float | None:
        """Return a metric of a test set, or None where it was not measured."""
        measured = self.tests.get(test, {}).get("metrics", {}).get(name)
        return None if measured is None else float(measured["value"])

    def signature(self, test: str, name: str) -> str:
        """Return what must agree for a metric to be compared; empty where it was not measured."""
        return str(self.tests.get(test, {}).get("metrics", {}).get(name, {}).get("signature", ""))


def is_plain(config: Any) -> bool:
    """Tell whether a config holds mappings, lists, texts, numbers, truth values and nothing else, as one that a run wrote does.

    YAML can make more of a file: tuples and sets, of which Hydra would build what is inside, and an anchor within itself.
    """
    left, count = [config], 0
    while left and (count := count + 1) <= MOST_NODES:
        node = left.pop()
        if isinstance(node, dict):
            left += [*node, *node.values()]
        elif isinstance(node, list):
            left += node
        elif node is not None and not isinstance(node, str | int | float):
            return False
    return not left


def parse_json(text: str) -> Any:
    """Return what a file of somebody else's may hold.

    Raises:
        ValueError: no JSON, what is nested too deeply, or half of a surrogate pair, which no page can be written with.
    """
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if SURROGATE.search(text):
        json.dumps(content, ensure_ascii=False).encode()
    return content


def check_types(content: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    """Check what a mapping has of some keys; one that is missing counts as None.

    Raises:
        ValueError: it is of another type.
    """
    for key, hint in types.items():
        if not fits(content.get(key), hint):
            raise ValueError(f"its {key} is {content.get(key)!r:.60}")


def parse_mapping(content: Any) -> dict[str, Any]:
    """Return what is a mapping.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(content, dict):
        raise ValueError("it is no mapping")
    return content


def parse_attention(content: Any) -> list[dict[str, Any]]:
    """Return the maps of ``attention.json``.

    Raises:
        ValueError: one is no mapping, or lacks a key, or what it has there is of another kind.
    """
    for item in content:
        check_types(parse_mapping(item), MAP)
        if len(item["lines"]) != 2:
            raise ValueError("its lines are no pair")
    return [{**item} for item in content]


def parse_starts(content: Any) -> list[dict[str, Any]]:
    """Return the starts of ``environment.json``.

    Raises:
        ValueError: one is no mapping, or what it has is of another type.
    """
    starts = [parse_mapping(start) for start in (content if isinstance(content, list) else [content])]
    for start in starts:
        check_types(start, START)
    return starts


@dataclass(frozen=True)
class ProbeFigure(Schema):
    """A figure of a probe.

    Attributes:
        label: what a table calls it.
        unit: empty where there is none.
        digits: decimal places in tables.
        value: NaN where it has none.
        low: lower end of the 95 % confidence interval by a bootstrap over examples, or None.
        high: upper end.
    """

    label: str
    unit: str
    digits: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ProbeRecord(Schema):
    """``probes/TEST.json``: what experiments on a run's attention found on a test set.

    Attributes:
        id: the run's identity when it was probed.
        version: of attnlab.
        checkpoint: the file of its weights.
        targets: that it was made to write: ``references`` or ``own targets``.
        seed: of the examples and of the permutations.
        permutations: that were averaged over.
        batch_size: on which the draws of the permutations depend.
        swap: the folder of the run whose weights it was given, and its identity; None where there was none.
        examples: their numbers in the test set, from 1.
        figures: by name, each a :class:`ProbeFigure`.
        code: a hash of the code that made it; None where it was not written down.
    """

    id: str
    version: str
    checkpoint: str
    targets: str
    seed: int
    permutations: int
    batch_size: int
    swap: list[str] | None
    examples: list[int]
    figures: dict[str, dict[str, Any]]
    code: str | None = None

    @classmethod
    def parse(cls, content: Any) -> Self:
        """Make a record from plain containers; see :meth:`Schema.parse`."""
        record = super().parse(content)
        for name in record.figures:
            record.figure(name)
        return record

    def figure(self, name: str) -> ProbeFigure:
        """Return the figure of a name."""
        return ProbeFigure.parse(self.figures[name])

    @property
    def signature(self) -> str:
        """What must agree for two probes to be compared; runs are given the weights of one run for one of them."""
        swapped = f", weights swapped with those of {self.swap[0]}" if self.swap else ""
        weights = "" if self.checkpoint == WEIGHTS else f", {self.checkpoint}"
        drawn = f"seed {self.seed}, {self.permutations} permutations"
        return f"{len(self.examples)} examples, {self.targets}, {drawn}{swapped}{weights}"
