"""``attnlab calibrate``."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_study_folder
from attnlab.commands._io import check_output
from attnlab.commands._models import FILE
from attnlab.commands._significance import significance_option
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError, warn
from attnlab.studies.names import Significance

if TYPE_CHECKING:
    from attnlab.evaluation.metric import Metric
    from attnlab.studies.calibration import PairRate, Rate
    from attnlab.studies.collection import Study

MOST = "3,5,10"


@click.command(short_help="How often is a star of the comparison false? An A/A test.")
@click.argument("name", shell_complete=complete_study_folder)
@click.option("--metric", metavar="NAME", help="What is compared.  [default: the metric that ranks]")
@click.option("--seeds", default=MOST, show_default=True, metavar="N,...", help="Seeds of each of two groups.")
@click.option("--splits", type=click.IntRange(1), default=1000, show_default=True, help="Pairs of groups, at most.")
@significance_option(default="seeds")
@click.option(
    "--output",
    type=FILE,
    metavar="FILE",
    help="Write the figures as JSON, of each column of a study into a file of its own, FILE-COLUMN.",
)
@trust_option
def command(name: str, metric: str | None, seeds: str, splits: int, significance: Significance, output: Path | None) -> int:
    """Compare groups of runs of one and the same variant, as a table compares variants: every star is then a false one.

    Of the study in runs/NAME, or in the folder NAME, each variant with enough finished seeds is split into two groups at
    random, again and again. The share of splits that get a star is to be 5 %. From the same splits follows the smallest
    difference that gets a star in 80 of 100 cases with so many seeds. Then variants are compared with the baseline by
    some of their seeds, as often: the share of stars is the power of the test over seeds, if these variants differ.
    Each column of a study of several tasks is calibrated by itself.
    """
    sizes = _sizes(seeds)
    from attnlab.studies.collection import check_files, collect
    from attnlab.studies.folder import find_folder
    from attnlab.studies.matrix import split_columns

    study = check_files(collect(find_folder(name)))
    parts = [*split_columns(study).values()] if study.plan.columns else [study]
    files = [output.with_stem(f"{output.stem}-{own.column}") if output and own.column else output for own in parts]
    for file in files:
        check_output(file)
    refused = {}
    for own, file in zip(parts, files, strict=True):
        try:
            _calibrate(own, metric, sizes, splits, significance, file)
        except UserError as error:  # of one column nothing may be finished yet, or another metric measured
            refused[own.name] = error
    if len(refused) == len(parts):
        raise next(iter(refused.values()))
    for left_out, reason in refused.items():
        warn(f"{left_out} is left out: {reason}")
    return 0


def _calibrate(
    study: "Study", metric: str | None, sizes: Sequence[int], splits: int, significance: Significance, output: Path | None
) -> None:
    """Show, and write down where that is asked for, how often stars of the variants of one task are false."""
    from attnlab.studies.calibration import calibrate_study, compare_groups, write_rates

    rates = list(calibrate_study(study, metric, sizes, splits, significance))
    pairs = list(compare_groups(study, metric, sizes, splits)) if significance == "seeds" else []
    measure = study.known_metrics[metric] if metric else study.ranking[1]
    if output:
        write_rates(output, study.name, significance, measure.title, rates, pairs)
    _show_rates(study, measure, rates, significance)
    if pairs:
        _show_pairs(study, measure, pairs)


def _show_rates(study: "Study", measure: "Metric", rates: Sequence["Rate"], significance: Significance) -> None:
    from rich.table import Table

    from attnlab.terminal import Terminal

    title = f"{study.name}, {measure.title}: two groups of one variant, significance={significance}"
    table = Table(study.axis, "runs", "test", "sd", "seeds", "splits", "false stars", "smallest difference", title=title)
    for rate in rates:
        found, form = rate.found, f".{measure.digits}f"
        smallest = "-" if math.isnan(found.smallest) else format(found.smallest, form)
        figures = (format(rate.deviation, form), str(found.seeds), str(found.splits), f"{100 * found.rate:.1f} %", smallest)
        table.add_row(rate.variant, str(rate.runs), rate.test, *figures)
    Terminal().print(table)
    print("smallest difference: of the means over so many seeds, which would get a star in 80 of 100 cases before Holm's")
    print("correction, of two variants to which all examples are equally hard. Splits share runs: the rate varies more than as")
    print("many coins.")


def _show_pairs(study: "Study", measure: "Metric", pairs: Sequence["PairRate"]) -> None:
    from rich.table import Table

    from attnlab.terminal import Terminal

    title = f"{study.name}, {measure.title}: two variants"
    table = Table("variants", "test", "difference", "seeds", "groups", "stars", title=title)
    for pair in pairs:
        apart, share = format(pair.difference, f"+.{measure.digits}f"), f"{100 * pair.rate:.1f} %"
        table.add_row(f"{pair.one} - {pair.other}", pair.test, apart, str(pair.seeds), str(pair.groups), share)
    Terminal().print(table)
    print("stars: before Holm's correction. Groups share runs, so that the share is of these runs: of two variants that do not")
    print("differ it is 5 % in the mean over studies, and far from it in many.")


def _sizes(seeds: str) -> list[int]:
    sizes = [int(size) for size in seeds.split(",") if size.strip().isdecimal()]
    if len(sizes) != len(seeds.split(",")) or min(sizes, default=0) < 2:
        raise UserError(f"--seeds is a list of whole numbers from 2 on, such as {MOST}, not {seeds}")
    return list(dict.fromkeys(sizes))
