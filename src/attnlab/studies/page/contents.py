"""What a study's page shows, drawn from its runs: everything but its form."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from statistics import mean
from typing import Any, Literal

from omegaconf import OmegaConf

from attnlab.studies.collection import Run, Study

SENTENCES = 10
"""Of each test set, shown as samples."""

COSTS: dict[str, str] = {
    "train_seconds": "training time (seconds)",
    "parameters": "parameters",
    "train_tokens_per_second": "training speed (target tokens per second)",
}

PACKAGES = ("torch", "lightning", "hydra-core")


@dataclass(frozen=True)
class Spread:
    """One figure of a variant over its seeds."""

    mean: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Series:
    """One variant's line, or its one point, in a chart."""

    variant: str
    x: list[float | str | Spread]
    y: list[Spread]


@dataclass(frozen=True)
class Chart:
    """What one option of a chart's selector shows.

    Attributes:
        name: of the option.
        x: title of the axis.
        y: title of the axis.
        series: a line a variant.
        ticks: of the x axis in their order, if it is one of categories.
    """

    name: str
    x: str
    y: str
    series: list[Series]
    ticks: list[str]


@dataclass(frozen=True)
class Heatmap:
    """What one variant looks at in one sentence; ``weights`` are target_len × source_len."""

    variant: str
    source: list[str]
    target: list[str]
    weights: list[list[float]]
    links: list[list[int]]


@dataclass(frozen=True)
class Sentence:
    """The same sentence in all variants."""

    name: str
    maps: list[Heatmap]


@dataclass(frozen=True)
class Piece:
    """Words of a hypothesis, or of the reference where the hypothesis lacks them."""

    text: str
    mark: Literal["", "ins", "del"]


@dataclass(frozen=True)
class Translation:
    """One hypothesis and the variants that wrote it."""

    variants: list[str]
    pieces: list[Piece]


@dataclass(frozen=True)
class Sample:
    """A sentence of a test set and what became of it."""

    source: str
    reference: str
    translations: list[Translation]


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


def curves(study: Study) -> list[Chart]:
    """Return the learning curves of every metric, those of the validation set first.

    A variant is the mean of its finished runs; one without any is shown by what its others have come to.
    """
    shown = {label: [run for run in runs if run.state == "done"] or runs for label, runs in study.variants.items()}
    names = {name for runs in shown.values() for run in runs for line in run.curve for name in line}
    charts = []
    for name in sorted(names, key=lambda name: (name != "val/bleu", not name.startswith("val/"), name)):
        if name.startswith(("val/", "train/")):
            lines = [(label, _by_epoch(runs, name)) for label, runs in shown.items()]
            charts.append(Chart(name, "epoch", name, [line for label, found in lines if (line := _series(label, found))], []))
    return [chart for chart in charts if chart.series]


def _by_epoch(runs: Iterable[Run], name: str) -> dict[float, list[float]]:
    values: dict[float, list[float]] = {}
    for run in runs:
        for line in run.curve:
            if name in line:
                values.setdefault(line["epoch"] + 1, []).append(line[name])
    return dict(sorted(values.items()))


def lengths(study: Study) -> list[Chart]:
    """Return, for every test set, quality by the length of the source."""
    charts = []
    for test in study.tests:
        buckets: set[tuple[int, int]] = set()
        lines: dict[str, dict[str, list[float]]] = {}
        for label, measured in _measured(study, test):
            for bucket in measured.get("by_length", ()):
                buckets.add((bucket["from"], bucket["to"]))
                lines.setdefault(label, {}).setdefault(_range(bucket["from"], bucket["to"]), []).append(bucket["bleu"])
        ticks = [_range(low, high) for low, high in sorted(buckets)]
        series = [_series(label, {tick: found[tick] for tick in ticks if tick in found}) for label, found in lines.items()]
        charts.append(Chart(test, "source tokens", "BLEU", [line for line in series if line], ticks))
    return [chart for chart in charts if chart.series]


def _measured(study: Study, test: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (label, run.result["tests"][test])
        for label, runs in study.done().items()
        for run in runs
        if test in run.result["tests"]
    ]


def _range(low: int, high: int) -> str:
    return f"{low}\N{EN DASH}{high}" if low != high else str(low)


def costs(study: Study) -> list[Chart]:
    """Return, for every kind of cost, a point a variant: its cost and its BLEU on the first test set."""
    test = next(iter(study.tests), "")
    charts = []
    for key, name in COSTS.items():
        series = []
        for label, runs in study.done().items():
            pairs = [
                (float(run.result[key]), float(run.result["tests"][test]["bleu"]["value"]))
                for run in runs
                if run.result.get(key) is not None and "bleu" in run.result["tests"].get(test, {})
            ]
            x, y = (_spread([pair[place] for pair in pairs]) for place in (0, 1))
            if x and y:
                series.append(Series(label, [x], [y]))
        charts.append(Chart(name, name, f"BLEU, {test}", series, []))
    return [chart for chart in charts if chart.series]


def _series(label: str, found: Mapping[Any, Sequence[float]]) -> Series | None:
    spreads = {x: spread for x, values in found.items() if (spread := _spread(values))}
    return Series(label, [*spreads], [*spreads.values()]) if spreads else None


def _spread(values: Sequence[float]) -> Spread | None:
    finite = [value for value in values if math.isfinite(value)]
    return Spread(mean(finite), min(finite), max(finite), len(finite)) if finite else None


def sentences(study: Study) -> list[Sentence]:
    """Return the attention of every variant's first finished run that has any, sentence by sentence."""
    found = {label: run.attention for label, run in _first(study, lambda run: bool(run.attention)).items()}
    shown = []
    for place in range(max(map(len, found.values()), default=0)):
        maps = [
            Heatmap(
                label,
                looks[place]["source"],
                looks[place]["target"],
                [[round(weight, 3) if math.isfinite(weight) else 0.0 for weight in row] for row in looks[place]["weights"]],
                looks[place].get("links") or [],
            )
            for label, looks in found.items()
            if place < len(looks)
        ]
        shown.append(Sentence(f"{place + 1}. {' '.join(maps[0].source)}", maps))
    return shown


def _first(study: Study, suits: Callable[[Run], bool]) -> dict[str, Run]:
    """Return each variant's first finished run that suits."""
    chosen = {label: next(filter(suits, runs), None) for label, runs in study.done().items()}
    return {label: run for label, run in chosen.items() if run}


def samples(study: Study, test: str) -> list[Sample]:
    """Return the first sentences of a test set with what each variant's first finished run made of them."""
    chosen = _first(study, lambda run: bool(run.hypotheses(test) and run.references(test)))
    if not chosen:
        return []
    texts = next(iter(chosen.values()))
    hypotheses = {label: run.hypotheses(test) for label, run in chosen.items()}
    shown = []
    for place, (source, reference) in enumerate(
        islice(zip(texts.sources(test), texts.references(test), strict=False), SENTENCES)
    ):
        wrote: dict[str, list[str]] = {}
        for label, lines in hypotheses.items():
            if place < len(lines):
                wrote.setdefault(lines[place], []).append(label)
        shown.append(Sample(source, reference, [Translation(by, pieces(reference, text)) for text, by in wrote.items()]))
    return shown


def pieces(reference: str, hypothesis: str) -> list[Piece]:
    """Tell a hypothesis from the reference, word by word."""
    right, written = reference.split(), hypothesis.split()
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
    return [
        Unfinished(
            run.state,
            str(run.folder.relative_to(study.folder)),
            next((line.strip() for line in reversed(run.error.splitlines()) if line.strip()), ""),
            run.error.strip(),
        )
        for run in study.runs
        if run.state != "done"
    ]


def recipes(study: Study) -> list[Recipe]:
    """Return what makes each variant."""
    return [Recipe(label, [*runs[0].overrides], [run.seed for run in runs]) for label, runs in study.variants.items()]


def differences(study: Study) -> tuple[list[str], dict[str, list[str | None]]]:
    """Compare the resolved configs of the variants.

    Returns:
        The variants that have a config, and each key that they differ in with its values; None where a config lacks it.
    """
    configs = {label: next((run.config for run in runs if run.config), "") for label, runs in study.variants.items()}
    flat = {label: _flat(OmegaConf.to_container(OmegaConf.create(text))) for label, text in configs.items() if text}
    keys = dict.fromkeys(key for config in flat.values() for key in config)
    # A variant whose first seed has left no config is shown by another one's.
    values = {key: [config.get(key) for config in flat.values()] for key in keys if key != "seed"}
    return [*flat], {key: found for key, found in values.items() if len(set(found)) > 1}


def _flat(node: Any, where: str = "") -> dict[str, str]:
    if isinstance(node, dict) and node:
        parts = (_flat(value, f"{where}.{key}" if where else str(key)) for key, value in node.items())
        return {key: value for part in parts for key, value in part.items()}
    return {where: node if isinstance(node, str) else json.dumps(node, ensure_ascii=False)}


def facts(study: Study) -> list[Fact]:
    """Return what the runs ran on and in, with how many did."""
    readers: dict[str, tuple[Callable[[Run], dict[str, Any]], Callable[[dict[str, Any]], object]]] = {
        "attnlab": (lambda run: run.result, lambda result: result.get("version")),
        "data": (lambda run: run.result, lambda result: result.get("data")),
        "commit": (lambda run: run.environment, _commit),
        "Python": (lambda run: run.environment, lambda ran: ran.get("python")),
        **{name: (lambda run: run.environment, _package(name)) for name in PACKAGES},
        "processor": (lambda run: run.environment, lambda ran: ran.get("processor")),
        "threads": (lambda run: run.environment, lambda ran: ran.get("threads")),
        "GPUs": (lambda run: run.environment, lambda ran: ", ".join(ran.get("gpus") or ()) or "none"),
    }
    found = []
    for name, (read, tell) in readers.items():
        values = Counter(str(value) for run in study.runs if (content := read(run)) and (value := tell(content)) is not None)
        if values:
            found.append(Fact(name, dict(values.most_common())))
    return found


def _commit(ran: Mapping[str, Any]) -> str | None:
    if not ran.get("commit"):
        return None
    return f"{ran['commit']} with uncommitted changes" if ran.get("dirty") else str(ran["commit"])


def _package(name: str) -> Callable[[Mapping[str, Any]], object]:
    return lambda ran: ran.get("packages", {}).get(name)
