"""The charts of a study's page: what they draw, not how."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from attnlab.evaluation.metric import Metric
from attnlab.studies.collection import Study
from attnlab.studies.cost import Cost, known_costs
from attnlab.studies.lengths import measure_runs_by_length
from attnlab.studies.run import Run
from attnlab.studies.tuning.selection import Selection, Trial

POINTS = 200
"""Epochs of a learning curve that are drawn, evenly spaced from the first to the last."""


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


def curves(study: Study) -> list[Chart]:
    """Return the learning curves of every metric: first the one that chose the checkpoints, then the validation set's.

    A variant is the mean of its finished runs; one without any is shown by what its others have come to.
    """
    shown = {label: [run for run in runs if run.is_done] or runs for label, runs in study.variants.items()}
    names = {name for runs in shown.values() for run in runs for line in run.curve for name in line}
    metrics = {f"val/{name}": f"val {metric.title}" for name, metric in {**study.known_metrics, **study.metrics}.items()}
    charts = []
    for name in sorted(names, key=lambda name: (name != study.monitor, not name.startswith("val/"), name)):
        if name.startswith(("val/", "val_", "train/")):
            lines = [(label, _by_epoch(runs, name)) for label, runs in shown.items()]
            series = [line for label, found in lines if (line := _series(label, found))]
            charts.append(Chart(name, "epoch", metrics.get(name, name), series, []))
    return [chart for chart in charts if chart.series]


def _by_epoch(runs: Iterable[Run], name: str) -> dict[float, list[float]]:
    values: dict[float, list[float]] = {}
    for run in runs:
        for line in run.curve:
            if name in line:
                values.setdefault(line["epoch"] + 1, []).append(line[name])
    epochs = sorted(values)
    if len(epochs) > POINTS:
        epochs = [epochs[round(place * (len(epochs) - 1) / (POINTS - 1))] for place in range(POINTS)]
    return {epoch: values[epoch] for epoch in epochs}


def lengths(study: Study) -> list[Chart]:
    """Return every metric by the length of the source, on every test set: first the metric that ranks, then the table's."""
    metrics = {**study.metrics, **study.known_metrics}
    charts = [_by_length(study, test, name, metric) for name, metric in metrics.items() for test in study.tests]
    return [chart for chart in charts if chart.series]


def _by_length(study: Study, test: str, name: str, metric: Metric) -> Chart:
    ends: dict[int, int] = {}
    lines: dict[str, dict[int, list[float]]] = {}
    labels = [label for label, runs in study.finished_variants.items() for _ in runs]
    for label, buckets in zip(labels, measure_runs_by_length(study.finished_runs, test, name, metric), strict=True):
        for bucket in buckets:
            ends[bucket.low] = max(bucket.high, ends.get(bucket.low, 0))
            lines.setdefault(label, {}).setdefault(bucket.low, []).append(bucket.value)
    ticks = {low: _range(low, ends[low]) for low in sorted(ends)}
    series = [_series(label, {ticks[low]: found[low] for low in ticks if low in found}) for label, found in lines.items()]
    return Chart(
        f"{test} {metric.label}",
        f"source {study.length_unit(test)}",
        metric.title,
        [line for line in series if line],
        [*ticks.values()],
    )


def _range(low: int, high: int) -> str:
    return f"{low}\N{EN DASH}{high}" if low != high else str(low)


def costs(study: Study) -> list[Chart]:
    """Return, for every kind of cost, a point a variant: its cost and the metric that ranks, on the first test set."""
    if not study.finished_runs or not study.tests:
        return []
    known = known_costs(run.result for run in study.finished_runs)
    charts = [_by_cost(study, study.tests[0], cost) for cost in known]
    return [chart for chart in charts if chart.series]


def _by_cost(study: Study, test: str, cost: Cost) -> Chart:
    name, metric = study.ranking
    series = []
    for label, runs in study.finished_variants.items():
        pairs = [(cost.read(run.result), run.value(test, name)) for run in runs]
        known = [(amount, value) for amount, value in pairs if amount is not None and value is not None]
        x, y = (_spread([pair[place] for pair in known]) for place in (0, 1))
        if x and y:
            series.append(Series(label, [x], [y]))
    return Chart(cost.title, cost.title, f"{test} {metric.title}", series, [])


def budgets(selection: Selection) -> list[Chart]:
    """Return the expected best score on the validation set against the number of trials."""
    series = []
    for label, variant in selection.variants.items():
        found = {float(budget): [value] for budget, value in enumerate(variant.expected, 1)}
        if line := _series(label, found):
            series.append(line)
    chart = Chart(selection.monitor, "trials", f"expected best {selection.monitor}", series, [])
    return [chart] if series else []


def trials(selection: Selection) -> list[Chart]:
    """Return the scores of the trials against what they tried, for every key that is tuned."""
    tried = next(iter(selection.variants.values())).trials if selection.variants else []
    charts = []
    for key in tried[0].values if len(tried) > 1 else ():
        values = list(dict.fromkeys(trial.values[key] for trial in tried))
        if all(isinstance(value, int | float) for value in values):
            values.sort()
        lines = {
            label: {str(value): _scores(variant.trials, key, value) for value in values}
            for label, variant in selection.variants.items()
        }
        series = [line for label, found in lines.items() if (line := _series(label, found))]
        charts.append(Chart(key, key, selection.monitor, series, [str(value) for value in values]))
    return [chart for chart in charts if chart.series]


def _scores(tried: Iterable[Trial], key: str, value: object) -> list[float]:
    return [score for trial in tried if trial.values[key] == value for score, _ in trial.outcomes.values()]


def _series(label: str, found: Mapping[Any, Sequence[float]]) -> Series | None:
    spreads = {x: spread for x, values in found.items() if (spread := _spread(values))}
    return Series(label, [*spreads], [*spreads.values()]) if spreads else None


def _spread(values: Sequence[float]) -> Spread | None:
    finite = [value for value in values if math.isfinite(value)]
    return Spread(fmean(finite), float(min(finite)), float(max(finite)), len(finite)) if finite else None
