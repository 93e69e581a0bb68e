"""A study of several tasks: attentions by tasks, each column with the metric that its own task ranks by."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import mean

from attnlab.evaluation.measurement import write_estimate
from attnlab.evaluation.metric import Metric
from attnlab.evaluation.significance.difference import LEVEL
from attnlab.evaluation.significance.multiplicity import holm
from attnlab.studies.calibration import tell_published
from attnlab.studies.collection import VARIANT, Study, chosen_variant
from attnlab.studies.comparability import is_comparable
from attnlab.studies.comparison import metric_column
from attnlab.studies.contrasts import Contrast, MeasuredVariants, Pair, compare, is_better, with_p
from attnlab.studies.inference import choose_significance, tell_test
from attnlab.studies.names import Significance
from attnlab.studies.notes import describe_tuning, doubts
from attnlab.studies.table import Cell, Comparison, Note
from attnlab.studies.verdicts import judge_claims


@dataclass(frozen=True)
class MatrixColumn:
    """One column: a study of its own, on the test set and by the metric that rank there.

    Attributes:
        study: the runs of the column.
        test: name of the test set.
        metric: that ranks.
        tested: the runs that were measured.
    """

    study: Study
    test: str
    metric: Metric
    tested: MeasuredVariants

    @property
    def means(self) -> dict[str, float]:
        """The mean over seeds of each row, the best first."""
        found = {row: mean(run.value for run in runs) for row, runs in self.tested.runs.items()}
        return dict(sorted(found.items(), key=lambda item: -self.metric.sign * item[1]))

    @property
    def has_ranks(self) -> bool:
        """Whether one value is better than another: not where neither way is better, nor of values that do not compare."""
        return self.metric.higher_is_better is not None and is_comparable(self.study, self.study.ranking[0], self.test)


def split_columns(study: Study) -> dict[str, Study]:
    """Return the study of each column of which anything is planned; its variants are called by their rows."""
    own = {run.folder.place: chosen_variant(run.overrides) for run in study.runs}
    found = {}
    for name, rows in (study.plan.columns or {}).items():
        by_variant = {variant: row for row, variant in rows.items()}
        variants = {
            _row(by_variant[chosen], label if study.axis == "variant" else f"{study.axis}={label}"): runs
            for label, runs in study.variants.items()
            if (chosen := own[runs[0].folder.place]) in by_variant
        }
        baseline = study.plan.baseline if study.plan.baseline in [*variants] else None  # a list asks for no hash
        if variants:
            ordered = {row: variants.pop(row) for row in rows if row in variants} | variants
            plan = replace(study.plan, columns=None, claims=[], metrics=None)
            found[name] = replace(study, plan=plan, column=name, variants=ordered, baseline=baseline)
    return found


def _row(row: str, label: str) -> str:
    """Return what a row is called; with a further axis its value is part of the name."""
    further = [part for part in label.split() if "=" in part and not part.startswith(VARIANT)]
    return " ".join([row, *further])


def compare_columns(study: Study) -> Comparison:
    """Put all columns of a study beside each other: means over seeds, and what does not differ significantly from the
    best of its column.

    Rows are ordered by their mean rank over all columns; the controls of single columns come last.
    """
    split = split_columns(study)
    columns = {name: made for name, own in split.items() if (made := _measure(own)) is not None}
    equals, significance, found = _find_equals(study, columns)
    shared = set.intersection(*({*rows} for rows in (study.plan.columns or {}).values()))
    rows = _order(columns, shared)
    header = ["variant", *(f"{name}: {one.metric.label}" for name, one in columns.items())]
    cells = {name: _cells(one, equals[name], shared) for name, one in columns.items()}
    return Comparison(
        study.name,
        header,
        [[Cell(row, row), *(cells[name].get(row, Cell("-")) for name in columns)] for row in rows],
        [*map(Note, [*_notes(columns, significance, found), *_doubts(split), *describe_tuning(study)])],
        study.pending,
        [*range(len(header))],
        judge_claims(study),
    )


def _doubts(split: Mapping[str, Study]) -> Iterator[str]:
    for name, own in split.items():
        yield from (f"{name}: {told}" for told in doubts(own))


def _measure(study: Study) -> MatrixColumn | None:
    if not study.tests:
        return None
    name, metric = study.ranking
    tested = MeasuredVariants.of_study(study, study.tests[0], name)
    return MatrixColumn(study, study.tests[0], metric, tested) if tested.runs else None


def _find_equals(
    study: Study, columns: Mapping[str, MatrixColumn]
) -> tuple[dict[str, set[str]], Significance, dict[Pair, Contrast | str]]:
    """Compare all rows with the best of their column.

    Returns:
        By column the best and those that a test did not find to be worse; the test that was made; what was found of each row,
        or why it was not tested.
    """
    sets = {name: one.tested for name, one in columns.items()}
    significance = choose_significance(study.plan.significance, sets)
    ranked = {name: one.means for name, one in columns.items() if one.has_ranks}
    pairs = [Pair(name, best, row) for name, means in ranked.items() for best, *others in [means] for row in others]
    found = compare(significance, sets, pairs)
    tested = with_p(found)
    p_values = holm({pair: made.p for pair, made in tested.items()})
    equals: dict[str, set[str]] = {name: set() for name in columns}
    for name, means in ranked.items():
        best = next(iter(means.values()))
        equals[name] = {row for row, value in means.items() if value == best}
    for pair, made in tested.items():
        if not is_better(made, columns[pair.test].metric, p_values[pair]):
            equals[pair.test].add(pair.other)
    return equals, significance, found


def _order(columns: Mapping[str, MatrixColumn], shared: set[str]) -> list[str]:
    ranks: dict[str, list[float]] = {}
    for means in (one.means for one in columns.values() if one.has_ranks):
        order = [value for row, value in means.items() if _is_shared(row, shared)]
        for row, value in means.items():
            if value in order:  # of equal values each has the mean of their ranks
                ranks.setdefault(row, []).append(order.index(value) + (order.count(value) - 1) / 2)
    known = dict.fromkeys(row for one in columns.values() for row in one.study.variants)
    most = max(map(len, ranks.values()), default=0)

    def place(row: str) -> tuple[bool, int, float]:
        """Rows that have a value in fewer columns come after all others."""
        found = ranks.get(row, [])
        return not _is_shared(row, shared), most - len(found), mean(found or [0.0])

    return sorted(known, key=place)


def _is_shared(row: str, shared: set[str]) -> bool:
    return row.partition(" ")[0] in shared


def _cells(one: MatrixColumn, equals: set[str], shared: set[str]) -> dict[str, Cell]:
    """Return the cells of a column, shaded from the worst to the best of the rows that all columns have."""
    means = one.means
    name = one.study.ranking[0]
    done = {row: one.study.finished_variants[row] for row in means}
    made = metric_column("", one.metric, done, lambda run: run.value(one.test, name)).cells
    losses = {row: -one.metric.sign * value for row, value in means.items()}
    bounds = [loss for row, loss in losses.items() if _is_shared(row, shared)] or [*losses.values()]
    span = max(bounds) - min(bounds) if one.has_ranks else 0.0
    shades = {row: min(1.0, max(0.0, (max(bounds) - loss) / span)) for row, loss in losses.items()} if span else {}
    cells = {}
    for row, cell in made.items():
        text = write_estimate(means[row], cell.more.get("low"), cell.more.get("high"), one.metric.digits)
        cells[row] = replace(cell, text=text, short=text, best=row in equals, shade=shades.get(row))
    return cells


def _notes(
    columns: Mapping[str, MatrixColumn], significance: Significance, found: Mapping[Pair, Contrast | str]
) -> Iterator[str]:
    for name, one in columns.items():
        metric = one.metric
        direction = {True: "higher is better", False: "lower is better", None: "neither way is better"}[metric.higher_is_better]
        apart = "" if one.has_ranks or metric.higher_is_better is None else "not comparable, and so not ranked or tested"
        yield f"{name}: {', '.join(filter(None, (metric.title, direction, f'on {one.test}', apart)))}"
    seeds = sorted({len(runs) for one in columns.values() for runs in one.tested.runs.values()})
    tested = with_p(found)
    count = len(tested)
    why = ", ".join(dict.fromkeys(told for told in found.values() if isinstance(told, str)))
    yield (
        f"bold: the best of its column, and what does not differ significantly from it, {tell_test(significance, seeds)}; "
        f"Holm-corrected over all {count} comparisons with the best, in all columns, p < {LEVEL}; that the best was chosen by "
        "the same values is not corrected for"
        if count
        else f"bold: the best of its column; nothing was tested ({why or 'there are not two rows that compare'})"
    )
    if count and (false := tell_published(significance)):
        yield false
    reasons = {pair: why if isinstance(why, str) else "too little varies" for pair, why in found.items() if pair not in tested}
    untested = [f"{pair.other} in {pair.test} ({why})" for pair, why in reasons.items()]
    if count and untested:
        yield f"neither bold nor found to be worse, since not tested: {', '.join(untested)}"
    yield "shade: where a value lies between the worst and the best of its column, controls of single columns left out"
    if any(count > 1 for count in seeds):
        yield "in [ ] stands Student's 95 % confidence interval of the mean over seeds, as far as the metric goes"
    yield "rows are ordered by their mean rank among those that all columns have, with controls of single columns below"
    yield "values of one column compare, those of two do not: each column has a report of its own"
