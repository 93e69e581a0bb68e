"""The model card of a run: what its files tell of it, in the form that hubs of models read."""

import importlib.metadata
import inspect
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from attnlab.config import find_option, foreign_targets
from attnlab.evaluation.measurement import Measurement, bootstrap_interval, write_estimate
from attnlab.evaluation.metric import Metric
from attnlab.evaluation.resampling import sum_blocks
from attnlab.runs.files import BLOCK
from attnlab.runs.folder import RunFolder
from attnlab.runs.names import BOOTSTRAP_SAMPLES
from attnlab.runs.record import RunResult, batch_limits
from attnlab.tasks.predictor import Predictor

MODEL = ("model", "encoder", "attention", "decoder", "head")
"""Nodes of a config that make a model; what others name made its data or trained it."""

Measured = dict[str, dict[str, Measurement]]
"""Of every test set the metrics by name, without those that have no value."""


def write_card(
    folder: RunFolder,
    predictor: Predictor,
    config: Mapping[str, Any],
    *,
    name: str,
    licence: str | None,
    counts: Mapping[str, int],
) -> str:
    """Return the card of a run, Markdown behind front matter in YAML.

    Args:
        folder: of a finished run.
        predictor: with its model.
        config: as it is shared.
        name: of the model.
        licence: that it is given under; None tells none.
        counts: examples of the splits that no result tells of, as far as they are known.

    Raises:
        UserError: a file of the run that is damaged.
    """
    task, result = predictor.task, folder.read_result()
    measured = _measure(folder, task.metrics, result)
    languages = list(task.languages)
    metadata = _metadata(config, predictor, result, measured, name=name, licence=licence, languages=languages)
    starts = folder.read_starts()
    nodes = {key: node for key, node in config.items() if isinstance(node, Mapping) and "_target_" in node and key != "data"}
    foreign = sorted({str(target) for target in foreign_targets(config)})
    environment = Environment(
        loader=PackageLoader("attnlab.runs", "sharing"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"describe": describe, "cell": _cell}
    return environment.get_template("card.md").render(
        metadata=yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True),
        name=name,
        argument=shlex.quote(name),
        literal=json.dumps(name, ensure_ascii=False),
        licence=licence,
        task=task.name,
        purpose=(inspect.getdoc(type(task)) or "").partition("\n\n")[0].replace("\n", " "),
        forecasts=bool(task.targets.numbers),
        languages=languages,
        config=config,
        model={key: node for key, node in nodes.items() if key in MODEL},
        training={key: node for key, node in nodes.items() if key not in MODEL and key != "trainer"},
        foreign=foreign,
        modules=sorted({target.rpartition(".")[0] for target in foreign}),
        result=result,
        limits=batch_limits(config),
        counts={**counts, **{test: told["examples"] for test, told in result.tests.items()}},
        tests=list(measured),
        rows=_rows(task.metrics, measured),
        signatures=_signatures(task.metrics, measured),
        start=starts[-1] if starts else {},
        versions=_versions(starts[-1].get("packages", {})) if starts else {},
        samples=BOOTSTRAP_SAMPLES,
    )


def describe(node: Any) -> str:
    """Return a node of a config as a call of its class: ``Dot(temperature=1.0)``."""
    if isinstance(node, Mapping):
        inner = {key: describe(item) for key, item in node.items() if key not in ("_target_", "_partial_")}
        if "_target_" in node:
            name = str(node["_target_"]).rpartition(".")[2]
            return f"{name}({', '.join(f'{key}={item}' for key, item in inner.items())})"
        return f"{{{', '.join(f'{key}: {item}' for key, item in inner.items())}}}"
    if isinstance(node, list):
        return f"[{', '.join(map(describe, node))}]"
    return " ".join(str(node).replace("`", "'").split())


def _metadata(
    config: Mapping[str, Any],
    predictor: Predictor,
    result: RunResult,
    measured: Measured,
    *,
    name: str,
    licence: str | None,
    languages: Sequence[str],
) -> dict[str, Any]:
    """Return the front matter."""
    task = predictor.task
    option = find_option("data", config["data"])
    corpus = option.name if option else describe(config["data"]).partition("(")[0]
    results = [
        {
            "task": {"type": task.name, "name": task.name},
            "dataset": {
                "name": f"{corpus}, {test}",
                "type": corpus,
                "split": test,
                "args": {"fingerprint": result.data, "examples": result.tests[test]["examples"]},
            },
            "metrics": [
                {"type": key, "name": task.metrics[key].title, "value": one.value, "args": _arguments(one)}
                for key, one in own.items()
                if task.metrics[key].higher_is_better is not None
            ],
        }
        for test, own in measured.items()
    ]
    return {
        **({"language": list(languages)} if languages else {}),
        **({"license": licence} if licence else {}),
        "library_name": "attnlab",
        "tags": ["attnlab", "attention", task.name],
        **({"datasets": [option.name]} if option and option.is_complete else {}),
        **({"model-index": [{"name": name, "results": results}]} if results else {}),
    }


def _arguments(one: Measurement) -> dict[str, Any]:
    told = {"signature": one.signature or None, "low": one.low, "high": one.high}
    return {key: value for key, value in told.items() if value is not None}


def _measure(folder: RunFolder, metrics: Mapping[str, Metric], result: RunResult) -> Measured:
    """Return the figures of a result, with an interval where what each example adds is there."""
    found: Measured = {}
    for test, told in result.tests.items():
        statistics = folder.read_statistics(test)
        own = {key: Measurement(**figure) for key, figure in told["metrics"].items() if key in metrics}
        found[test] = {key: one for key, one in own.items() if math.isfinite(one.value)}
        for key, one in found[test].items():
            if one.low is None and key in statistics and metrics[key].higher_is_better is not None:
                low, high = bootstrap_interval(metrics[key], sum_blocks(statistics[key], statistics[BLOCK]), BOOTSTRAP_SAMPLES)
                found[test][key] = replace(one, low=low, high=high)
    return found


def _rows(metrics: Mapping[str, Metric], measured: Measured) -> list[list[str]]:
    """Return the table of metrics by test sets."""
    return [
        [metric.title, *(_write(own[key], metric) if key in own else "" for own in measured.values())]
        for key, metric in metrics.items()
        if any(key in own for own in measured.values())
    ]


def _write(one: Measurement, metric: Metric) -> str:
    return write_estimate(one.value, one.low, one.high, metric.digits)


def _signatures(metrics: Mapping[str, Metric], measured: Measured) -> dict[str, str]:
    """Return the labels of the metrics that have each signature."""
    found: dict[str, dict[str, None]] = {}
    for own in measured.values():
        for key, one in own.items():
            if one.signature:
                found.setdefault(one.signature, {})[metrics[key].label] = None
    return {signature: ", ".join(labels) for signature, labels in found.items()}


def _versions(packages: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of what attnlab itself requires."""
    requirements = map(Requirement, importlib.metadata.requires("attnlab") or ())
    required = {canonicalize_name(one.name) for one in requirements if one.marker is None}  # the others are of extras
    return {name: version for name, version in packages.items() if canonicalize_name(name) in required}


def _cell(text: str) -> str:
    """Return text for a cell of a table in Markdown."""
    return " ".join(text.replace("|", r"\|").split())
