"""``attnlab compare``."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_run_or_variant
from attnlab.commands._models import FILE, check_label, finished_runs, name_runs
from attnlab.commands._significance import significance_option
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError
from attnlab.studies.names import Significance

if TYPE_CHECKING:
    from attnlab.evaluation.metric import Metric, Statistics
    from attnlab.evaluation.significance.difference import Difference
    from attnlab.runs.evaluations import TestedSet
    from attnlab.runs.folder import RunFolder

Tested = Mapping[Path, Sequence["TestedSet"]]


@dataclass(frozen=True)
class Result:
    """What a system and the baseline differ by: the p, its correction, and the difference; with what else the test tells."""

    p: float
    corrected: float
    difference: "Difference"
    improvement: str = "-"


@click.command(short_help="Is one better than another? Significance tests.")
@click.argument("baseline", type=FILE, shell_complete=complete_run_or_variant)
@click.argument("systems", type=FILE, nargs=-1, required=True, metavar="SYSTEM...", shell_complete=complete_run_or_variant)
@click.option("--test", default="test", show_default=True, metavar="NAME", help="Test set.")
@click.option("--metric", metavar="NAME", help="What is compared.  [default: what chose the baseline's checkpoint]")
@click.option("--label", help="Compare what attnlab evaluate wrote under this label, and not each run's own test.")
@significance_option(default=None)
@click.option(
    "--samples",
    type=click.IntRange(100),
    default=10_000,
    show_default=True,
    help="Of trained models: exchanges, at least.",
)
@trust_option
def command(
    baseline: Path,
    systems: tuple[Path, ...],
    test: str,
    metric: str | None,
    label: str | None,
    significance: Significance | None,
    samples: int,
) -> int:
    """Is a SYSTEM better than the BASELINE? Tests on the same examples, with Holm's correction for all comparisons.

    Each is the folder of a run, or of a variant with its seeds, whose figures are the means over them. Variants with several
    seeds are tested over seeds and examples: the answer speaks of the variants. Of single runs, and with --significance
    models, examples alone are drawn: the answer speaks of these trained models, which have the same seeds then.
    """
    check_label(label)
    from attnlab.runs.evaluations import choose_metric, differing_settings, read_tested
    from attnlab.studies.calibration import tell_published
    from attnlab.studies.notes import differing_origins, differing_starts
    from attnlab.terminal import tell

    read = {folder: [read_tested(run, test, label) for run in finished_runs(folder)] for folder in (baseline, *systems)}
    name, measure = choose_metric(read[baseline][0].run, metric, label)
    tested, left_out = _leave_out(read, name)
    _check_comparable(tested, baseline, name)
    names = {str(folder): name for name, folder in name_runs((baseline, *systems)).items()}
    alone = [folder for folder, found in read.items() if len(found) == 1]
    if significance == "seeds" and alone:
        raise UserError(f"{alone[0]} is one run: a test over seeds needs two seeds at least; or --significance models")
    chosen = significance or ("models" if alone else "seeds")
    if chosen == "models":
        tested = _without_seeds(tested, {run.name for run in left_out})
        _check_seeds(tested, baseline)
        results, told = _compare_models(measure, name, tested, baseline, samples)
    else:
        if single := [folder for folder, found in tested.items() if len(found) == 1]:
            raise UserError(
                f"only one run of {single[0]} has a value of {measure.label}, and a test over seeds needs two: --significance "
                "models compares these trained models"
            )
        results, told = _compare_over_seeds(measure, name, tested, baseline)
    means = {str(folder): mean(one.value(name) for one in sets) for folder, sets in tested.items()}
    _show(measure, results, means, names, title=f"{test}, against {baseline}")
    counts = {folder: len(sets) for folder, sets in tested.items()}
    if max(counts.values()) > 1:
        one_count = len({*counts.values()}) == 1
        shown = f"{counts[baseline]}" if one_count else ", ".join(f"{count} ({folder})" for folder, count in counts.items())
        print(f"means over {shown} seeds")
    if left_out:
        seeds = ", with their seeds in all systems" if chosen == "models" else ""
        print(f"left out{seeds}, since their {measure.label} is no finite number: {', '.join(map(str, left_out))}")
    every = [one for sets in tested.values() for one in sets]
    for note in (
        *differing_origins([(one.run.read_config, one.origin) for one in every]),
        *differing_settings(every),
        *differing_starts({str(one.run.path): (one.run.read_config, one.run.read_starts()) for one in every}),
    ):
        tell(note)
    made = sum(not math.isnan(result.p) for result in results.values())
    print(f"{told}; p corrected by Holm over {made} comparison{'' if made == 1 else 's'}")
    if false := tell_published(chosen):
        print(false)
    return 0


def _leave_out(tested: Tested, metric: str) -> tuple[Tested, list[Path]]:
    """Leave out the runs whose value is no finite number, as the table of a study does, and name them."""
    known = {folder: [one for one in found if math.isfinite(one.value(metric))] for folder, found in tested.items()}
    for folder, found in known.items():
        if not found:
            raise UserError(f"{folder}: {metric} is no finite number of any run, and nothing can be compared")
    every = (one for found in tested.values() for one in found)
    return known, [one.run.path for one in every if not math.isfinite(one.value(metric))]


def _without_seeds(tested: Tested, seeds: Collection[str]) -> Tested:
    """Leave seeds out of all systems, since those of trained models are compared each with its own."""
    kept = {folder: [one for one in found if one.run.path.name not in seeds] for folder, found in tested.items()}
    if not all(kept.values()):
        raise UserError(f"no seed is left without {', '.join(sorted(seeds))}, where a system has no value: leave it out")
    return kept


def _compare_over_seeds(metric: "Metric", name: str, tested: Tested, baseline: Path) -> tuple[dict[str, Result], str]:
    from attnlab.evaluation.measurement import write_estimate
    from attnlab.evaluation.significance.multiplicity import holm
    from attnlab.evaluation.significance.sample import sample_models
    from attnlab.studies.contrasts import Use, contrast_systems, find_improvement

    rows, sample = _rows(tested), sample_models(metric, _statistics(tested, name))
    uses = {
        folder: [Use(row, *_identify(one.run)) for row, one in zip(rows[folder], found, strict=True)]
        for folder, found in tested.items()
    }
    found = {}
    for folder in tested:
        if folder != baseline:
            found[str(folder)] = contrast_systems(sample, uses[folder], uses[baseline])
    corrected = holm({system: contrast.p for system, contrast in found.items()})
    results = {}
    for system, contrast in found.items():
        probability = find_improvement(contrast, metric)
        shown = write_estimate(probability.value, probability.low, probability.high, 2) if probability else "-"
        results[system] = Result(contrast.p, corrected[system], contrast.difference, shown)
    fewer = "".join(
        f"; {folder} over the {found[str(folder)].seeds[0]} seeds that it has with {baseline}"
        for folder in tested
        if str(folder) in found and found[str(folder)].seeds != (len(tested[folder]), len(tested[baseline]))
    )
    return results, f"tested over seeds and examples: this speaks of the variants, whatever their seeds (Student's t){fewer}"


def _identify(run: "RunFolder") -> tuple[object, object]:
    """Return the seed of a run, and what identifies its training where that is known."""
    record = run.read_record()
    return run.path.name, record and record.training


def _compare_models(metric: "Metric", name: str, tested: Tested, baseline: Path, samples: int) -> tuple[dict[str, Result], str]:
    from attnlab.evaluation.significance.models import Contest, compare_models, estimate_difference
    from attnlab.evaluation.significance.sample import sample_models

    rows, statistics = _rows(tested), _statistics(tested, name)
    sample = sample_models(metric, statistics)
    models = {folder: [statistics[row] for row in own] for folder, own in rows.items()}
    others = [folder for folder in tested if folder != baseline]
    found = compare_models(
        [Contest(metric, models[baseline], {str(folder): models[folder] for folder in others})], samples=samples
    )
    results = {
        str(folder): Result(
            found[str(folder)].p,
            found[str(folder)].corrected,
            estimate_difference(sample, rows[folder], rows[baseline]),
        )
        for folder in others
    }
    most = max(result.samples for result in found.values())
    return results, (
        "tested over examples alone: this speaks of these trained models, and not of other seeds "
        f"(paired approximate randomization, {most} samples)"
    )


def _rows(tested: Tested) -> dict[Path, list[int]]:
    """Return the places of the runs of each system, one system after another."""
    places = iter(range(sum(map(len, tested.values()))))
    return {folder: [next(places) for _ in found] for folder, found in tested.items()}


def _statistics(tested: Tested, metric: str) -> "list[Statistics]":
    """Return what each block of examples adds in each run, in the order of :func:`_rows`."""
    from attnlab.runs.evaluations import sum_alike

    return sum_alike([one for sets in tested.values() for one in sets], metric)


def _check_seeds(tested: Tested, baseline: Path) -> None:
    """Refuse variants that have not the same seeds, each of which is compared with its own."""
    own = [one.run.path.name for one in tested[baseline]]
    for folder, found in tested.items():
        seeds = [one.run.path.name for one in found]
        runs_alone = [one.run.path for one in (tested[baseline][0], found[0])] == [baseline, folder]
        if seeds != own and not runs_alone:
            raise UserError(f"{folder} has {', '.join(seeds)}, but {baseline} {', '.join(own)}: compare the same seeds")


def _check_comparable(tested: Tested, baseline: Path, metric: str) -> None:
    """Refuse systems that were not tested on the same examples in the same way."""
    from attnlab.runs.evaluations import check_metric

    first = tested[baseline][0]
    for found in tested.values():
        for other in found:
            if other.references != first.references:
                raise UserError(
                    f"{other.run.path} was tested against other references than {first.run.path}: compare one test set, or let "
                    "attnlab report pair the seeds of a study each of which has data of its own"
                )
    check_metric([one for sets in tested.values() for one in sets], metric)


def _show(
    metric: "Metric", found: Mapping[str, Result], means: Mapping[str, float], names: Mapping[str, str], *, title: str
) -> None:
    from rich.table import Column, Table

    from attnlab.terminal import Terminal

    system = Column("system", overflow="fold")  # two names that are cut may look alike
    table = Table(system, metric.title, "difference", "95 % interval", "p", "p, corrected", "P(A > B)", title=title)
    for place, result in found.items():
        form = f"+.{metric.digits}f"
        low, high = result.difference.shown_interval()
        figures = (f"{means[place]:.{metric.digits}f}", format(result.difference.value, form))
        interval = "-" if math.isnan(low) else f"[{low:{form}}, {high:{form}}]"
        p_values = ("-" if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}" for p in (result.p, result.corrected))
        table.add_row(names[place], *figures, interval, *p_values, result.improvement)
    Terminal().print(table)
