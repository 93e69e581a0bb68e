"""``attnlab compare``."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_run_or_variant
from attnlab.commands._models import FILE, check_distinct, check_label, finished_runs, name_runs
from attnlab.commands._significance import significance_option
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError
from attnlab.studies.names import Significance

if TYPE_CHECKING:
    from attnlab.evaluation.metric import Metric
    from attnlab.runs.tested import TestedSet
    from attnlab.studies.contrasts import Contrast, Reading

Tested = Mapping[Path, Sequence["TestedSet"]]


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
    from attnlab.runs.tested import check_metric, choose_metric, differing_settings, read_tested
    from attnlab.studies.calibration import tell_published
    from attnlab.studies.contrasts import PAIRS, with_p
    from attnlab.studies.inference import tell_test
    from attnlab.studies.notes import differing_origins, differing_starts
    from attnlab.terminal import tell

    read = {folder: [read_tested(run, test, label) for run in finished_runs(folder)] for folder in (baseline, *systems)}
    name, measure = choose_metric(read[baseline][0].run, metric, label)
    tested, left_out = _leave_out(read, name)
    check_metric([one for sets in tested.values() for one in sets], name)
    check_distinct((baseline, *systems))
    alone = [folder for folder, found in read.items() if len(found) == 1]
    if significance == "seeds" and alone:
        raise UserError(f"{alone[0]} is one run: a test over seeds needs two seeds at least; or --significance models")
    chosen = significance or ("models" if alone else "seeds")
    if chosen == "models":
        tested = _without_seeds(tested, {run.name for run in left_out})
        _check_seeds(tested, baseline)
    elif single := [folder for folder, found in tested.items() if len(found) == 1]:
        raise UserError(
            f"only one run of {single[0]} has a value of {measure.label}, and a test over seeds needs two: --significance "
            "models compares these trained models"
        )
    found = _compare(measure, name, tested, baseline, chosen, samples)
    _show(measure, name, tested, found, chosen, title=f"{test}, against {baseline}")
    counts = {folder: len(sets) for folder, sets in tested.items()}
    if max(counts.values()) > 1:
        one_count = len({*counts.values()}) == 1
        shown = f"{counts[baseline]}" if one_count else ", ".join(f"{count} ({folder})" for folder, count in counts.items())
        print(f"means over {shown} seeds")
    for folder, contrast in found.items():
        if contrast.seeds != (counts[folder], counts[baseline]):
            print(f"{folder} is compared over the {contrast.seeds[0]} seeds that it has with {baseline}")
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
    print(f"differences: {tell_test(chosen, {count for contrast in found.values() for count in contrast.seeds})}")
    for shared in dict.fromkeys(contrast.pairs_share for contrast in found.values()):
        if chosen == "seeds" and shared:
            print(PAIRS[shared])
    made = len(with_p(found))
    print(f"p corrected by Holm over {made} comparison{'' if made == 1 else 's'}")
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


def _compare(
    metric: "Metric", name: str, tested: Tested, baseline: Path, significance: Significance, samples: int
) -> "dict[Path, Contrast]":
    """Compare every system with the baseline.

    Raises:
        UserError: two that were not tested on the same examples.
    """
    from attnlab.studies.contrasts import Contrast, MeasuredVariants, Pair, compare

    # Each run of trained models is compared with one, and single runs may have any seeds.
    seeds = {
        folder: [*range(len(found))] if significance == "models" else [one.run.path.name for one in found]
        for folder, found in tested.items()
    }
    read = {
        str(folder): [_read(one, name, seed) for one, seed in zip(found, seeds[folder], strict=True)]
        for folder, found in tested.items()
    }
    pairs = {folder: Pair("", str(folder), str(baseline)) for folder in tested if folder != baseline}
    found = compare(significance, {"": MeasuredVariants(metric, read)}, [*pairs.values()], samples=samples)
    made = {}
    for folder, pair in pairs.items():
        contrast = found[pair]
        if not isinstance(contrast, Contrast):
            raise _refusal(tested[folder], tested[baseline])
        made[folder] = contrast
    return made


def _read(one: "TestedSet", metric: str, seed: object) -> "Reading":
    from attnlab.evaluation.resampling import number_blocks
    from attnlab.runs.files import BLOCK
    from attnlab.studies.contrasts import Reading

    record = one.run.read_record()
    blocks = number_blocks(one.statistics[BLOCK])
    return Reading(
        seed,
        record and record.training,
        one.signature(metric),
        one.references,
        blocks,
        one.of_examples(metric),
        one.value(metric),
    )


def _refusal(system: Sequence["TestedSet"], baseline: Sequence["TestedSet"]) -> UserError:
    for one in system:
        for other in baseline:
            if one.references != other.references:
                return UserError(
                    f"{one.run.path} was tested against other references than {other.run.path}: compare one test set, or "
                    "variants each of whose seeds has references of its own, the same in both"
                )
    return UserError(
        f"{system[0].run.path} and {baseline[0].run.path} were tested by versions that draw examples in other ways: evaluate "
        "both again (attnlab evaluate, and --label here)"
    )


def _check_seeds(tested: Tested, baseline: Path) -> None:
    """Refuse variants that have not the same seeds, each of which is compared with its own."""
    own = [one.run.path.name for one in tested[baseline]]
    for folder, found in tested.items():
        seeds = [one.run.path.name for one in found]
        runs_alone = [one.run.path for one in (tested[baseline][0], found[0])] == [baseline, folder]
        if seeds != own and not runs_alone:
            raise UserError(f"{folder} has {', '.join(seeds)}, but {baseline} {', '.join(own)}: compare the same seeds")


def _show(
    metric: "Metric",
    name: str,
    tested: Tested,
    found: "Mapping[Path, Contrast]",
    significance: Significance,
    *,
    title: str,
) -> None:
    from rich.table import Column, Table

    from attnlab.evaluation.measurement import write_estimate
    from attnlab.evaluation.significance.multiplicity import holm
    from attnlab.studies.contrasts import find_improvement
    from attnlab.terminal import Terminal

    names = {folder: name for name, folder in name_runs([*tested]).items()}
    corrected = holm({folder: contrast.p for folder, contrast in found.items()})
    system = Column("system", overflow="fold")  # two names that are cut may look alike
    table = Table(system, metric.title, "difference", "95 % interval", "p", "p, corrected", "P(A > B)", title=title)
    for folder, contrast in found.items():
        form = f"+.{metric.digits}f"
        low, high = contrast.difference.shown_interval()
        value = mean(one.value(name) for one in tested[folder])
        figures = (f"{value:.{metric.digits}f}", format(contrast.difference.value, form))
        interval = "-" if math.isnan(low) else f"[{low:{form}}, {high:{form}}]"
        p_values = ("-" if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}" for p in (contrast.p, corrected[folder]))
        probability = find_improvement(contrast, metric) if significance == "seeds" else None
        better = write_estimate(probability.value, probability.low, probability.high, 2) if probability else "-"
        table.add_row(names[folder], *figures, interval, *p_values, better)
    Terminal().print(table)
