"""``attnlab compare``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_run_or_variant
from attnlab.commands._models import FILE, check_label
from attnlab.commands._tested import TestedSet, choose_metric, read_tested
from attnlab.errors import UserError

if TYPE_CHECKING:
    from attnlab.evaluation.metric import Metric
    from attnlab.evaluation.significance import Difference
    from attnlab.runs.folder import RunFolder


@click.command(short_help="Is one better than another? Paired significance tests.")
@click.argument("baseline", type=FILE, shell_complete=complete_run_or_variant)
@click.argument("systems", type=FILE, nargs=-1, required=True, metavar="SYSTEM...", shell_complete=complete_run_or_variant)
@click.option("--test", default="test", show_default=True, metavar="NAME", help="Test set.")
@click.option("--metric", metavar="NAME", help="What is compared.  [default: what chose the baseline's checkpoint]")
@click.option("--label", help="Compare what attnlab evaluate wrote under this label, and not each run's own test.")
@click.option("--samples", type=click.IntRange(100), default=10_000, show_default=True, help="Exchanges.")
def command(
    baseline: Path,
    systems: tuple[Path, ...],
    test: str,
    metric: str | None,
    label: str | None,
    samples: int,
) -> int:
    """Is a SYSTEM better than the BASELINE? Paired tests on the same examples, with Holm's correction for all comparisons.

    Each is the folder of a run, or of a variant over the same seeds.
    """
    check_label(label)
    tested = {folder: [read_tested(run, test, label) for run in _seeds(folder)] for folder in (baseline, *systems)}
    name, measure = choose_metric(tested[baseline][0].run, metric)
    _check_comparable(tested, baseline, name)
    import numpy as np

    from attnlab.evaluation.significance import compare_systems

    joined = {folder: np.concatenate([one.of(name) for one in found]) for folder, found in tested.items()}
    found = compare_systems(measure, joined[baseline], {str(folder): joined[folder] for folder in systems}, samples=samples)
    _show(measure, found, title=f"{test}, against {baseline}")
    print(f"paired approximate randomization, {samples} samples; p corrected by Holm over {len(found)} comparisons")
    return 0


def _seeds(folder: Path) -> list["RunFolder"]:
    """Return the finished runs of a folder: the run that it is, or the seeds of a variant."""
    from attnlab.runs.folder import RunFolder

    own = RunFolder(folder)
    runs = [own] if own.result_file.is_file() else [RunFolder(path) for path in sorted(folder.glob("seed=*"))]
    finished = [run for run in runs if run.result_file.is_file()]
    if not finished:
        raise UserError(f"{folder} holds no finished run")
    return finished


def _check_comparable(tested: Mapping[Path, Sequence[TestedSet]], baseline: Path, metric: str) -> None:
    """Refuse systems that were not tested on the same examples in the same way."""
    first = tested[baseline][0]
    own = [one.run.path.name for one in tested[baseline]]
    for folder, found in tested.items():
        seeds = [one.run.path.name for one in found]
        runs_alone = [one.run.path for one in (first, found[0])] == [baseline, folder]
        if seeds != own and not runs_alone:
            raise UserError(f"{folder} has {', '.join(seeds)}, but {baseline} {', '.join(own)}: compare the same seeds")
        for other in found:
            if other.references != first.references:
                raise UserError(
                    f"{other.run.path} was tested against other references than {first.run.path}: compare one test set"
                )
            other.of(metric)
            signatures = [one.measured[metric].get("signature") or "none" for one in (other, first)]
            if signatures[0] != signatures[1]:
                told = f"{signatures[0]}, and {first.run.path}: {signatures[1]}"
                raise UserError(f"{metric} is not the same metric in {other.run.path}: {told}")


def _show(metric: "Metric", found: Mapping[str, "Difference"], *, title: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("system", escape(metric.title), "difference", "p", "p, corrected", title=escape(title))
    for name, result in found.items():
        figures = (f"{result.value:.{metric.digits}f}", f"{result.difference:+.{metric.digits}f}")
        table.add_row(escape(name), *figures, f"{result.p:.4f}", f"{result.corrected:.4f}")
    Console().print(table)
