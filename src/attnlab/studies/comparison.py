"""Comparing the variants of a study: figures over seeds, and what may be said of their differences."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.special import stdtrit  # scipy.stats takes a second to import

from attnlab.errors import UserError
from attnlab.evaluation.measurement import write_estimate
from attnlab.evaluation.metric import Metric
from attnlab.evaluation.significance.difference import LEVEL
from attnlab.evaluation.significance.improvement import Probability
from attnlab.runs.record import ProbeFigure
from attnlab.studies.collection import Study
from attnlab.studies.comparability import is_comparable
from attnlab.studies.contrasts import Contrast
from attnlab.studies.cost import Cost, known_costs
from attnlab.studies.inference import CLUSTER, IMPROVEMENT, ORDER, Inference, difference_title, infer
from attnlab.studies.matching import read_size
from attnlab.studies.notes import remarks
from attnlab.studies.pace import EqualTime, choose_best, equal_time, equal_time_title
from attnlab.studies.run import Run
from attnlab.studies.table import Cell, Comparison
from attnlab.studies.tuning.selection import Selection
from attnlab.studies.tuning.summary import tabulate
from attnlab.studies.verdicts import judge_claims

FEW = 3
"""Metrics of a study that a narrow table shows all of, on the first test set."""


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


def compare_variants(study: Study, selection: Selection | None = None) -> Comparison:
    """Compare all variants of a study; what failed or is missing is a hole in the table and a note below it.

    Args:
        study: to be compared.
        selection: what its tuning found; None where nothing was tuned.

    Raises:
        UserError: no finished run, or a metric that no run declares.
    """
    if not study.finished_runs:
        raise UserError(f"no run below {study.folder.path} is finished ({len(study.runs)} planned)")
    inference = infer(study)
    columns = [Column("seeds", {label: _seeds(runs) for label, runs in study.variants.items()}, brief=True)]
    for name, metric in study.metrics.items():
        for test in study.tests:
            columns += _columns_of(study, name, metric, test, inference)
    for test in study.tests:
        columns += _probe_columns(study, test)
    if pace := equal_time(study):
        columns.append(_equal_time_column(study, pace))
    columns += [_cost_column(study, cost) for cost in known_costs(run.result for run in study.finished_runs)]
    if study.plan.match:
        columns.append(_size_column(study, study.plan.match["key"]))
    nothing = Cell("-")
    rows = [[Cell(label, label), *(column.cells.get(label, nothing) for column in columns)] for label in _order(study, columns)]
    return Comparison(
        study.name,
        [study.axis, *(column.name for column in columns)],
        rows,
        remarks(study, inference),
        study.pending,
        [0, *(place for place, column in enumerate(columns, 1) if column.brief)],
        judge_claims(study),
        tabulate(study, selection) if selection else None,
    )


def _equal_time_column(study: Study, pace: EqualTime) -> Column:
    name, metric = study.ranking
    best = choose_best(metric) if is_comparable(study, name) else None
    return metric_column(equal_time_title(metric), metric, pace.reached, pace.value, best=best, brief=False)


def _cost_column(study: Study, cost: Cost) -> Column:
    return column(cost.label, study.finished_variants, lambda run: cost.read(run.result), brief=cost.brief)


def _probe_columns(study: Study, test: str) -> list[Column]:
    """Return what experiments on the attention found on a test set, where somebody made them."""
    probes = [found for run in study.finished_runs if (found := run.probe(test)) is not None]
    figures = {name: found.figure(name) for found in probes for name in found.figures}
    return [_probe_column(study, test, name, figure) for name, figure in figures.items()]


def _probe_column(study: Study, test: str, name: str, figure: ProbeFigure) -> Column:
    def read(run: Run) -> float | None:
        found = run.probe(test)
        value = found.figure(name).value if found and name in found.figures else math.nan
        return value if math.isfinite(value) else None

    form = f"{{:.{figure.digits}f}}"
    return column(f"{test} {figure.label}", study.finished_variants, read, form=form, spread=True, brief=False)


def _size_column(study: Study, key: str) -> Column:
    sizes = {label: read_size(runs[0].config, key) for label, runs in study.finished_variants.items()}
    return Column(key, {label: Cell(str(size), float(size)) for label, size in sizes.items() if size is not None}, brief=False)


def _order(study: Study, columns: Sequence[Column]) -> list[str]:
    """Order variants by the first metric on the first test set, the best first and those without it last."""
    name, metric = study.ranking
    if not is_comparable(study, name, study.tests[0]):  # such values make no order
        return list(study.variants)
    cells = next((column.cells for column in columns if column.name == f"{study.tests[0]} {metric.label}"), {})

    def rank(label: str) -> float:
        value = cells[label].value if label in cells else None
        return -metric.sign * value if isinstance(value, float) else math.inf

    return sorted(study.variants, key=rank)


def _columns_of(study: Study, name: str, metric: Metric, test: str, inference: Inference) -> list[Column]:
    """Return what the table shows of a metric on a test set: nothing, its values, or also the differences to the baseline."""
    ranking, _ = study.ranking
    if not any(run.value(test, name) is not None for run in study.finished_runs):
        return []
    # Of many metrics on a narrow table another one of the same evidence would say little more.
    is_first_of_kind = name == next(n for n, other in study.metrics.items() if other.computed_from == metric.computed_from)
    brief = name == ranking or (test == study.tests[0] and (is_first_of_kind or len(study.metrics) <= FEW))
    best = choose_best(metric) if is_comparable(study, name, test) else None
    label = f"{test} {metric.label}"
    found = metric_column(label, metric, study.finished_variants, lambda run: run.value(test, name), best=best, brief=brief)
    return [found, *_inference_columns(study, test, inference)] if name == ranking else [found]


def metric_column(
    name: str,
    metric: Metric,
    done: Mapping[str, Sequence[Run]],
    read: Callable[[Run], float | None],
    *,
    best: Callable[[Sequence[float]], float] | None = None,
    brief: bool = True,
) -> Column:
    """Average a metric's values, in its digits and within its limits; see :func:`column`."""
    form = f"{{:.{metric.digits}f}}"
    return column(name, done, read, form=form, spread=True, best=best, brief=brief, limits=metric.limits)


def column(
    name: str,
    done: Mapping[str, Sequence[Run]],
    read: Callable[[Run], float | None],
    *,
    form: str = "{:,.0f}",
    spread: bool = False,
    best: Callable[[Sequence[float]], float] | None = None,
    brief: bool = True,
    limits: tuple[float, float] = Metric.limits,
) -> Column:
    """Average what is read from each run over a variant's seeds.

    Args:
        name: in the header.
        done: finished runs of each variant.
        read: of one run; None where there is nothing.
        form: of the numbers.
        spread: also show how far the seeds lie apart.
        best: chooses the best of several values, which is marked if any is another; None marks none.
        brief: whether a narrow table shows the column.
        limits: beyond which no value can be, and no interval goes.
    """
    values = {label: [value for run in runs if (value := read(run)) is not None] for label, runs in done.items()}
    means = {label: float(mean(found)) for label, found in values.items() if found}
    marked = best(list(means.values())) if best and len({*means.values()}) > 1 else None
    cells = {}
    for label, value in means.items():
        text, more, short = form.format(value), {}, ""
        if spread and len(values[label]) > 1:
            deviation = stdev(values[label])
            text = short = f"{text} ± {form.format(deviation)}"
            more = {"sd": deviation}
            if deviation:  # equal values do not tell what others would be
                low, high = (min(max(end, limits[0]), limits[1]) for end in student_interval(values[label]))
                text = f"{short} [{form.format(low)}, {form.format(high)}]"
                more |= {"low": low, "high": high}
        cells[label] = Cell(text, value, value == marked, more, short)
    return Column(name, cells, brief)


def student_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return Student's confidence interval of the mean of at least two values, whose squares may be too large for a float."""
    half = float(stdtrit(len(values) - 1, 1 - LEVEL / 2)) * stdev(values) / math.sqrt(len(values))
    return mean(values) - half, mean(values) + half


def _seeds(runs: Sequence[Run]) -> Cell:
    done = sum(run.is_done for run in runs)
    return Cell(str(done) if done == len(runs) else f"{done} of {len(runs)}", float(done))


def _inference_columns(study: Study, test: str, inference: Inference) -> list[Column]:
    """Return what the table says of differences in the metric that ranks, on one test set."""
    digits = study.ranking[1].digits
    against = {variant: found for (where, variant), found in inference.against.items() if where == test}
    made = {variant: found for variant, found in against.items() if isinstance(found, Contrast)}
    columns = []
    if against:
        assert study.baseline is not None
        cells = {study.baseline: Cell("baseline", 0.0)}
        cells |= {variant: Cell(found) for variant, found in against.items() if isinstance(found, str)}
        p_values = {variant: inference.corrected.get((test, variant), math.nan) for variant in made}
        cells |= {variant: _difference(found, p_values[variant], digits) for variant, found in made.items()}
        columns.append(Column(f"{test} {difference_title(study)}", cells, brief=test == study.tests[0]))
    improvements = {variant: found for (where, variant), found in inference.improvements.items() if where == test}
    if improvements:
        cells = {variant: _probability(found) for variant, found in improvements.items()}
        columns.append(Column(f"{test} {IMPROVEMENT}", cells, brief=False))
    orders = {variant: order for (where, variant), order in inference.orders.items() if where == test}
    if orders:
        cells = {variant: Cell(f"{order:.2f}", order) for variant, order in orders.items()}
        columns.append(Column(f"{test} {ORDER}", cells, brief=False))
    if numbers := inference.clusters.get(test):
        cells = {variant: Cell(str(number), float(number)) for variant, number in numbers.items()}
        columns.append(Column(f"{test} {CLUSTER}", cells, brief=test == study.tests[0]))
    return columns


def _difference(found: Contrast, p: float, digits: int) -> Cell:
    low, high = found.difference.shown_interval()
    value = found.difference.value
    shown = f"{value:+.{digits}f}{'*' if p < LEVEL else ''}"
    places = next((places for places in range(3, 6) if round(p, places) != LEVEL), 6)  # none that hides on which side p lies
    told = "" if math.isnan(p) else f" (p {'< 0.001' if p < 0.001 else f'{p:.{places}f}'})"
    interval = "" if math.isnan(low) else f" [{low:+.{digits}f}, {high:+.{digits}f}]"
    more = {} if math.isnan(p) else {"p": p}
    return Cell(
        f"{shown}{interval}{told}", value, more=more | ({"low": low, "high": high} if interval else {}), short=shown + told
    )


def _probability(found: Probability) -> Cell:
    text = write_estimate(found.value, found.low, found.high, 2)
    return Cell(text, found.value, more={"low": found.low, "high": found.high})
