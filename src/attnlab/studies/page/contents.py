"""What a study's page shows beside its table and its charts: everything but its form."""

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Literal

from attnlab.evaluation.evidence import EXAMPLE
from attnlab.studies.collection import Study
from attnlab.studies.notes import SEEDS
from attnlab.studies.run import Run
from attnlab.studies.table import Comparison

SAMPLES = 10
"""Examples of each test set, shown with their predictions."""

SHOWN = 12
"""Variants whose attention and predictions a page holds, and whose lines its charts draw until others are chosen."""

PACKAGES = ("torch", "lightning", "hydra-core")


@dataclass(frozen=True)
class Heatmap:
    """What one variant looks at in one example; ``weights`` are target_len × source_len."""

    variant: str
    source: list[str]
    target: list[str]
    weights: list[list[float]]
    links: list[list[int]]


@dataclass(frozen=True)
class Example:
    """One example, and the variants that show it."""

    name: str
    maps: list[Heatmap]


@dataclass(frozen=True)
class Piece:
    """Words of a prediction, or of the reference where the prediction lacks them."""

    text: str
    mark: Literal["", "ins", "del"]


@dataclass(frozen=True)
class SharedPrediction:
    """One prediction and the variants that made it."""

    variants: list[str]
    pieces: list[Piece]


@dataclass(frozen=True)
class Sample:
    """An example of a test set, by its number there, and what became of it."""

    number: int
    source: str
    reference: str
    predictions: list[SharedPrediction]


@dataclass(frozen=True)
class Unfinished:
    """A run without a result."""

    state: str
    name: str
    reason: str
    error: str


@dataclass(frozen=True)
class Recipe:
    """What makes a variant."""

    variant: str
    overrides: list[str]
    seeds: list[int]


@dataclass(frozen=True)
class Fact:
    """Something that should be the same for all runs of a study, and how many runs have which value."""

    name: str
    values: dict[str, int]


def select_variants(study: Study, comparison: Comparison | None) -> list[str]:
    """Return the variants that a page shows in full: all of them or, of many, the baseline and those that rank first."""
    ranked = [str(row[0].value) for row in comparison.rows] if comparison else [*study.variants]
    first = [study.baseline] if study.baseline in study.variants else []
    chosen = [label for label in dict.fromkeys([*first, *ranked]) if label in study.variants][:SHOWN]
    return [label for label in study.variants if label in chosen or len(study.variants) <= SHOWN]


def examples(study: Study, variants: Collection[str]) -> list[Example]:
    """Return the attention of the first finished run that has any, of each of some variants, example by example.

    Those that most variants show come first.
    """
    found: dict[tuple[str, ...], Example] = {}
    for label, run in _first(study, variants, lambda run: bool(run.attention)).items():
        for shown in run.attention:
            name = f"{shown['test']} {shown[EXAMPLE]}: {shown['lines'][0]}"
            found.setdefault((name, *shown["lines"]), Example(name, [])).maps.append(_heatmap(label, shown))
    return sorted(found.values(), key=lambda example: -len(example.maps))


def _heatmap(label: str, shown: Mapping[str, Any]) -> Heatmap:
    weights = [[round(weight, 3) if math.isfinite(weight) else 0.0 for weight in row] for row in shown["weights"]]
    return Heatmap(label, shown["source"], shown["target"], weights, shown.get("links") or [])


def _first(study: Study, variants: Collection[str], suits: Callable[[Run], bool]) -> dict[str, Run]:
    """Return the first finished run that suits, of each of some variants that has one."""
    chosen = {label: next(filter(suits, runs), None) for label, runs in study.finished_variants.items() if label in variants}
    return {label: run for label, run in chosen.items() if run}


def samples(study: Study, test: str, variants: Collection[str]) -> list[Sample]:
    """Return the first examples of a test set with what the first finished run of each of some variants made of them."""
    found: dict[tuple[int, str, str], dict[str, list[str]]] = {}
    chosen = _first(study, variants, lambda run: bool(run.predictions(test) and run.references(test)))
    for label, run in chosen.items():
        for example, text in islice(zip(run.examples(test), run.predictions(test), strict=False), SAMPLES):
            found.setdefault(example, {}).setdefault(text, []).append(label)
    return [
        Sample(*example, [SharedPrediction(by, pieces(example[-1], text)) for text, by in made.items()])
        for example, made in sorted(found.items(), key=lambda item: item[0][0])
    ]


def pieces(reference: str, prediction: str) -> list[Piece]:
    """Tell a prediction from the reference, word by word."""
    right, written = reference.split(), prediction.split()
    found = []
    for kind, left, left_end, start, end in SequenceMatcher(None, right, written, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(Piece(" ".join(written[start:end]), ""))
            continue
        if left < left_end:
            found.append(Piece(" ".join(right[left:left_end]), "del"))
        if start < end:
            found.append(Piece(" ".join(written[start:end]), "ins"))
    return found


def unfinished(study: Study) -> list[Unfinished]:
    """Return the runs without a result, with what those that failed said last."""
    named, more = study.first_unfinished
    return [
        *(_of_run(run) for run in named),
        *(Unfinished(state, told, "", "") for state, told in more.items()),
    ]


def _of_run(run: Run) -> Unfinished:
    error = run.error.strip()
    return Unfinished(run.state, run.folder.place, error.splitlines()[-1] if error else "", error)


def recipes(study: Study) -> list[Recipe]:
    """Return what makes each variant."""
    return [Recipe(label, [*runs[0].overrides], [run.seed for run in runs]) for label, runs in study.variants.items()]


def differences(study: Study) -> tuple[list[str], dict[str, list[str | None]]]:
    """Compare the resolved configs of the variants.

    Returns:
        The variants that have a config, and each key that they differ in with its values; None where a config lacks it.
    """
    configs = {label: next((run.config for run in runs if run.config), {}) for label, runs in study.variants.items()}
    flat = {label: _flat(config) for label, config in configs.items() if config}
    keys = dict.fromkeys(key for config in flat.values() for key in config)
    # A variant whose first seed has left no config is shown by another one's.
    values = {key: [config.get(key) for config in flat.values()] for key in keys if key not in SEEDS}
    return [*flat], {key: found for key, found in values.items() if len(set(found)) > 1}


def shared_settings(study: Study) -> dict[str, str]:
    """Return what is the same in the resolved configs of all variants, but for what makes the study and how parts are built."""
    configs = (next((run.config for run in runs if run.config), {}) for runs in study.variants.values())
    flat = [_flat({key: node for key, node in config.items() if key != "study"}) for config in configs if config]
    shared = set.intersection(*({*one.items()} for one in flat)) if flat else set()
    own = ((key, value) for key, value in (flat[0].items() if flat else ()) if key not in SEEDS and "_partial_" not in key)
    return {key: value for key, value in own if (key, value) in shared}


def _flat(node: Any, where: str = "") -> dict[str, str]:
    if isinstance(node, dict) and node:
        parts = (_flat(value, f"{where}.{key}" if where else str(key)) for key, value in node.items())
        return {key: value for part in parts for key, value in part.items()}
    return {where: node if isinstance(node, str) else json.dumps(node, ensure_ascii=False)}


def facts(study: Study) -> list[Fact]:
    """Return what the runs ran on and in, with how many did."""
    results = [run.result for run in study.finished_runs]
    started = [[_describe(start) for start in run.starts] for run in study.runs if run.starts]
    # A run that was started again in the same counts once.
    told: dict[str, list[object]] = {
        "attnlab": [result.version for result in results],
        "data": [result.data for result in results],
        "code": [result.code for result in results],
        **{name: [v for starts in started for v in dict.fromkeys(s[name] for s in starts)] for name in _describe({})},
    }
    counts = {name: Counter(str(value) for value in values if value is not None) for name, values in told.items()}
    return [Fact(name, dict(count.most_common())) for name, count in counts.items() if count]


def _describe(start: Mapping[str, Any]) -> dict[str, object]:
    return {
        "commit": _commit(start),
        "Python": start.get("python"),
        **{name: (start.get("packages") or {}).get(name) for name in PACKAGES},
        "processor": start.get("processor"),
        "threads": start.get("threads"),
        "GPUs": ", ".join(start.get("gpus") or ()) or "none",
        "device": start.get("device"),
        "precision": start.get("precision"),
    }


def _commit(ran: Mapping[str, Any]) -> str | None:
    if not ran.get("commit"):
        return None
    return f"{ran['commit']} with uncommitted changes" if ran.get("dirty") else str(ran["commit"])
