"""Comparing the variants of a study: figures over seeds, and paired tests against the baseline."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import numpy as np
from scipy import stats

from attnlab.errors import UserError
from attnlab.evaluation import significance
from attnlab.evaluation.metric import Metric, Statistics
from attnlab.studies.collection import Run, Study
from attnlab.studies.cost import COSTS, Cost
from attnlab.studies.notes import notes, signatures
from attnlab.studies.table import Cell, Comparison

SAMPLES = 2000
"""Exchanges of each paired test: a p-value near 0.05 is then known to within 0.01."""


@dataclass(frozen=True)
class Column:
    """One column of a comparison.

    Attributes:
        name: in the header.
        cells: by the label of the variant; holes are left out.
        brief: whether a narrow table shows it.
    """

    name: str
    cells: dict[str, Cell]
    brief: bool


def compare_variants(study: Study, *, samples: int = SAMPLES) -> Comparison:
    """Compare all variants of a study; what failed or is missing is a hole in the table and a note below it.

    Args:
        study: to be compared.
        samples: exchanges of each paired test against the baseline.

    Raises:
        UserError: no finished run, or a metric that no run declares.
    """
    if not study.finished_runs:
        raise UserError(f"no run below {study.folder.path} is finished ({len(study.runs)} planned)")
    columns = [Column("seeds", {label: _seeds(runs) for label, runs in study.variants.items()}, brief=True)]
    for name, metric in study.metrics.items():
        for test in study.tests:
            columns += _columns_of(study, name, metric, test, samples)
    columns += [_cost_column(study, cost) for cost in COSTS]
    nothing = Cell("-")
    rows = [[Cell(label, label), *(column.cells.get(label, nothing) for column in columns)] for label in _order(study, columns)]
    return Comparison(
        study.name,
        [study.axis, *(column.name for column in columns)],
        rows,
        notes(study),
        [run.pending for run in study.runs if not run.is_done],
        [0, *(place for place, column in enumerate(columns, 1) if column.brief)],
    )


def _cost_column(study: Study, cost: Cost) -> Column:
    return column(cost.label, study.done(), lambda run: cost.read(run.result), brief=cost.brief)


def _order(study: Study, columns: Sequence[Column]) -> list[str]:
    """Order variants by the first metric on the first test set, the best first and those without it last."""
    _, metric = study.ranking
    cells = next((column.cells for column in columns if column.name == f"{study.tests[0]} {metric.label}"), {})
    sign = 1 if metric.higher_is_better is False else -1

    def rank(label: str) -> float:
        value = cells[label].value if label in cells else None
        return sign * value if isinstance(value, float) else math.inf

    return sorted(study.variants, key=rank)


def _columns_of(study: Study, name: str, metric: Metric, test: str, samples: int) -> list[Column]:
    """Return what the table shows of a metric on a test set: nothing, its values, or also the differences to the baseline."""
    ranking, first = study.ranking
    if not any(run.value(test, name) is not None for run in study.finished_runs):
        return []
    # On a narrow table another metric of the same evidence would say little more.
    brief = name == ranking or (test == study.tests[0] and metric.computed_from != first.computed_from)
    comparable = len(signatures(study, name, test)) == 1
    best = {True: max, False: min, None: None}[metric.higher_is_better] if comparable else None
    form = f"{{:.{metric.digits}f}}"
    found = [
        column(
            f"{test} {metric.label}",
            study.done(),
            lambda run: run.value(test, name),
            form=form,
            spread=True,
            best=best,
            brief=brief,
        )
    ]
    if name == ranking and study.baseline in study.done() and len(study.done()) > 1:
        found.append(_differences(study, test, samples))
    return found


def column(
    name: str,
    done: Mapping[str, Sequence[Run]],
    read: Callable[[Run], float | None],
    *,
    form: str = "{:,.0f}",
    spread: bool = False,
    best: Callable[[Sequence[float]], float] | None = None,
    brief: bool = True,
) -> Column:
    """Average what is read from each run over a variant's seeds.

    Args:
        name: in the header.
        done: finished runs of each variant.
        read: of one run; None where there is nothing.
        form: of the numbers.
        spread: also show how far the seeds lie apart.
        best: chooses the best of several values, which is marked; None marks none.
        brief: whether a narrow table shows the column.
    """
    values = {label: [value for run in runs if (value := read(run)) is not None] for label, runs in done.items()}
    means = {label: float(mean(found)) for label, found in values.items() if found}
    marked = best(list(means.values())) if best and len(means) > 1 else None
    cells = {}
    for label, value in means.items():
        text, more, short = form.format(value), {}, ""
        if spread and len(values[label]) > 1:
            deviation = stdev(values[label])
            low, high = student_interval(values[label])
            short = f"{text} ± {form.format(deviation)}"
            text = f"{short} [{form.format(low)}, {form.format(high)}]"
            more = {"sd": deviation, "low": low, "high": high}
        cells[label] = Cell(text, value, value == marked, more, short)
    return Column(name, cells, brief)


def student_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Student's confidence interval of the mean of at least two values."""
    half = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return mean(values) - half, mean(values) + half


def _seeds(runs: Sequence[Run]) -> Cell:
    done = sum(run.is_done for run in runs)
    return Cell(str(done) if done == len(runs) else f"{done} of {len(runs)}", float(done))


def _differences(study: Study, test: str, samples: int) -> Column:
    """Compare the first metric with the baseline's on the same examples of the same seeds."""
    name, metric = study.ranking
    assert study.baseline is not None
    measured = {
        label: {run.seed: run for run in runs if run.value(test, name) is not None} for label, runs in study.done().items()
    }
    own = measured.pop(study.baseline)
    by_seeds: dict[tuple[int, ...], list[str]] = {}
    for label, runs in measured.items():
        by_seeds.setdefault(tuple(seed for seed in runs if seed in own), []).append(label)
    p_values: dict[str, float] = {}
    differences: dict[str, float] = {}
    for seeds, labels in by_seeds.items():
        baseline = _stack([own[seed] for seed in seeds], test, name)
        stacked = {label: _stack([measured[label][seed] for seed in seeds], test, name) for label in labels}
        # Of another number of examples is another test set, which a note tells of.
        systems = {
            label: found
            for label, found in stacked.items()
            if baseline is not None and found is not None and found.shape == baseline.shape
        }
        if baseline is None or not systems:
            continue
        p_values |= {
            label: found.p for label, found in significance.compare_systems(metric, baseline, systems, samples=samples).items()
        }
        for label in systems:
            differences[label] = mean(_value(measured[label][seed], test, name) for seed in seeds) - mean(
                _value(own[seed], test, name) for seed in seeds
            )
    cells = {study.baseline: Cell("baseline", 0.0)}
    for label, p in significance.holm(p_values).items():
        difference = f"{differences[label]:+.{metric.digits}f}{'*' if p < 0.05 else ''}"
        cells[label] = Cell(f"{difference} (p {_probability(p, samples)})", differences[label], more={"p": p})
    return Column(f"{test} Δ{metric.label}", cells, brief=test == study.tests[0])


def _stack(runs: Sequence[Run], test: str, metric: str) -> Statistics | None:
    """Set what the examples of several runs add one after another."""
    found = [run.statistics(test, metric) for run in runs]
    known = [statistics for statistics in found if statistics is not None]
    return np.concatenate(known) if known and len(known) == len(found) else None


def _value(run: Run, test: str, metric: str) -> float:
    value = run.value(test, metric)
    assert value is not None
    return value


def _probability(p: float, samples: int) -> str:
    return f"< {2 / samples:.3f}" if p < 2 / samples else f"{p:.3f}"
