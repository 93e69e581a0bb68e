"""``attnlab calibrate``."""

import math
from pathlib import Path

import click

from attnlab.commands._complete import complete_study_folder
from attnlab.commands._significance import significance_option
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError
from attnlab.studies.names import Significance

MOST = "3,5,10"


@click.command(short_help="How often is a star of the comparison false? An A/A test.")
@click.argument("name", shell_complete=complete_study_folder)
@click.option("--metric", metavar="NAME", help="What is compared.  [default: the metric that ranks]")
@click.option("--seeds", default=MOST, show_default=True, metavar="N,...", help="Seeds of each of two groups.")
@click.option("--splits", type=click.IntRange(1), default=1000, show_default=True, help="Pairs of groups, at most.")
@significance_option(default="seeds")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the figures as JSON.")
@trust_option
def command(name: str, metric: str | None, seeds: str, splits: int, significance: Significance, output: Path | None) -> int:
    """Compare groups of runs of one and the same variant, as a table compares variants: every star is then a false one.

    Of the study in runs/NAME, or in the folder NAME, each variant with enough finished seeds is split into two groups at
    random, again and again. The share of splits that get a star is to be 5 %. From the same splits follows the smallest
    difference that gets a star in 80 of 100 cases with so many seeds.
    """
    sizes = _sizes(seeds)
    from rich.table import Table

    from attnlab.studies.calibration import calibrate_study, write_rates
    from attnlab.studies.collection import check_files, collect
    from attnlab.studies.folder import find_folder
    from attnlab.terminal import Terminal

    study = check_files(collect(find_folder(name)))
    rates = list(calibrate_study(study, metric, sizes, splits, significance))
    measure = study.known_metrics[metric] if metric else study.ranking[1]
    if output:
        write_rates(output, study.name, significance, measure.title, rates)
    title = f"{study.name}, {measure.title}: two groups of one variant, significance={significance}"
    table = Table(study.axis, "runs", "test", "sd", "seeds", "splits", "false stars", "smallest difference", title=title)
    for rate in rates:
        found, form = rate.found, f".{measure.digits}f"
        smallest = "-" if math.isnan(found.smallest) else format(found.smallest, form)
        figures = (format(rate.deviation, form), str(found.seeds), str(found.splits), f"{100 * found.rate:.1f} %", smallest)
        table.add_row(rate.variant, str(rate.runs), rate.test, *figures)
    Terminal().print(table)
    print("smallest difference: of the means over so many seeds, which would get a star in 80 of 100 cases,")
    print("of two variants to which all examples are equally hard. Splits share runs: the rate varies more than as many coins.")
    return 0


def _sizes(seeds: str) -> list[int]:
    sizes = [int(size) for size in seeds.split(",") if size.strip().isdecimal()]
    if len(sizes) != len(seeds.split(",")) or min(sizes, default=0) < 2:
        raise UserError(f"--seeds is a list of whole numbers from 2 on, such as {MOST}, not {seeds}")
    return sizes
