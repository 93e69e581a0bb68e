"""The tuning of a study in its report: what was chosen, and what each budget of trials is worth."""

import math
from collections.abc import Iterator, Sequence

from attnlab.runs.record import metric_name
from attnlab.studies.collection import Study
from attnlab.studies.comparability import is_comparable
from attnlab.studies.table import TuningTable
from attnlab.studies.tuning.selection import Selection, TunedVariant, collect_trials, filter_trials, select_values

FEW = (1, 2, 4)
"""Numbers of seeds whose choice the report judges by the others."""


def read_selection(study: Study) -> Selection | None:
    """Return what the tuning of a study found so far; None where nothing is tuned, or no trial is finished."""
    variants, tune = {label: tuple(runs[0].overrides) for label, runs in study.variants.items()}, study.plan.tune
    if tune is None or (trials := collect_trials(study.folder)) is None:
        return None
    return select_values(filter_trials(trials, [*variants.values()]), tune, variants)


def tabulate(study: Study, selection: Selection) -> TuningTable:
    """Return the tuning of a study as a table: variants by their best score, what was chosen, and some budgets."""
    budgets = [2**power for power in range(selection.count.bit_length()) if 2**power < selection.count]
    digits = selection.metric.digits
    header = [study.axis, "rank", "chosen", f"best {selection.monitor} of {selection.count}"]
    header += [f"expected best of {budget}" for budget in budgets]
    few = [count for count in FEW if count < len(selection.seeds)]
    header += [f"held out, chosen by {count} seed{'s' if count > 1 else ''}" for count in few]
    rows: list[list[str]] = []
    ranked = selection.variants if _is_ranked(study, selection) else _in_order(study, selection)
    best = [variant.chosen.score for variant in ranked.values() if variant.chosen] if ranked is selection.variants else []
    for label, variant in ranked.items():
        chosen = variant.chosen
        told = " ".join(f"{key}={value}" for key, value in chosen.values.items()) if chosen else "-"
        scores = [chosen.score if chosen else math.nan, *(variant.expected[budget - 1] for budget in budgets)]
        scores += map(variant.expected_choice, few)
        shown = ["-" if math.isnan(score) else f"{score:.{digits}f}" for score in scores]
        rank = str(1 + best.index(chosen.score)) if chosen and best else "-"  # the best come first; equal ones have one rank
        rows.append([label, rank, told, *shown])
    return TuningTable(header, rows, list(_notes(study, selection)))


def list_trials(selection: Selection) -> tuple[list[str], list[list[float | str | None]]]:
    """Return a row for each trial of a variant that has them all: the values tried, the score, and whether it was chosen.

    Returns:
        Names of the columns, and the rows; the score of a training that diverged is None. Of several seeds each has a column.
    """
    seeds = selection.seeds if len(selection.seeds) > 1 else []
    variants = selection.variants.items()
    keys = list(dict.fromkeys(key for _, variant in variants for trial in variant.trials for key in trial.values))
    rows: list[list[float | str | None]] = [
        [
            label,
            trial.number,
            *(value if isinstance(value, int | float) else str(value) for value in map(trial.values.get, keys)),
            *map(_finite, [trial.score, *(trial.outcomes[one].score for one in seeds)]),
            str(trial is variant.chosen).lower(),
        ]
        for label, variant in variants
        for trial in variant.trials
    ]
    return ["variant", "trial", *keys, selection.monitor, *(f"{selection.monitor} seed={one}" for one in seeds), "chosen"], rows


def _finite(score: float) -> float | None:
    return score if math.isfinite(score) else None


def _name_seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _is_ranked(study: Study, selection: Selection) -> bool:
    """Tell whether the scores have one form, as the tests of finished runs have it: others make no order, nor do any before."""
    return bool(study.tests) and is_comparable(study, metric_name(selection.monitor))


def _in_order(study: Study, selection: Selection) -> dict[str, TunedVariant]:
    return {label: selection.variants[label] for label in study.variants if label in selection.variants}


def _notes(study: Study, selection: Selection) -> Iterator[str]:
    direction = "higher is better" if selection.metric.higher_is_better else "lower is better"
    count = f"{selection.count} trial{'s' if selection.count != 1 else ''}"
    yield (
        f"every variant had {count}, with the same values and {_name_seeds(selection.seeds)}, and was chosen for by "
        f"{selection.monitor} ({direction}{', the mean over seeds' if len(selection.seeds) > 1 else ''}); no trial was tested"
    )
    if not study.tests:
        yield f"no ranks yet: whether {selection.monitor} compares between these variants is known once a run is tested"
    elif not _is_ranked(study, selection):
        yield f"no ranks: {selection.monitor} does not compare between these variants"
    if selection.count > 1:
        yield (
            "expected best of n: the mean of the best score over all choices of n trials (Dodge et al. 2019; Tang et al. "
            f"2020); a rank holds for {_name_seeds(selection.seeds)} alone"
        )
    if len(selection.seeds) > 1:
        yield (
            "held out: the mean score on the validation set, with a seed that had no part in the choice, of the trial that "
            "one of the others chooses, or several by their mean; - where such a trial diverged with another seed"
        )
    yield from _ends(selection)
    for label, variant in selection.variants.items():
        diverged = sum(not math.isfinite(trial.score) for trial in variant.trials)
        if diverged:
            told = " with one of its seeds or more" if len(selection.seeds) > 1 else ""
            yield f"{label}: {diverged} of {count} diverged{told}, and count as worse than all others"
    for told in selection.pending:
        yield f"trial {told}"


def _ends(selection: Selection) -> Iterator[str]:
    """Tell which variants chose the smallest or the largest of the numbers that were tried: beyond it may be a better one."""
    variants = {label: (one.chosen.values, one.trials) for label, one in selection.variants.items() if one.chosen}
    for key in next((values for values, _ in variants.values()), {}):
        at_end: dict[float, list[str]] = {}
        for label, (values, trials) in variants.items():
            tried = sorted({trial.values[key] for trial in trials if isinstance(trial.values[key], int | float)})
            if len(tried) > 2 and values[key] in (tried[0], tried[-1]):
                at_end.setdefault(values[key], []).append(label)
        for value, labels in at_end.items():
            whose = "every variant" if len(labels) == len(variants) > 1 else ", ".join(labels)
            yield f"{key}={value}, chosen for {whose}, is an end of what was tried: a better value may lie beyond it"
