"""``attnlab compare``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_run_or_variant
from attnlab.commands._models import FILE, check_label, finished_runs
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError

if TYPE_CHECKING:
    from attnlab.evaluation.metric import Metric
    from attnlab.evaluation.significance import Difference
    from attnlab.runs.evaluations import TestedSet


@click.command(short_help="Is one better than another? Paired significance tests.")
@click.argument("baseline", type=FILE, shell_complete=complete_run_or_variant)
@click.argument("systems", type=FILE, nargs=-1, required=True, metavar="SYSTEM...", shell_complete=complete_run_or_variant)
@click.option("--test", default="test", show_default=True, metavar="NAME", help="Test set.")
@click.option("--metric", metavar="NAME", help="What is compared.  [default: what chose the baseline's checkpoint]")
@click.option("--label", help="Compare what attnlab evaluate wrote under this label, and not each run's own test.")
@click.option("--samples", type=click.IntRange(100), default=10_000, show_default=True, help="Exchanges.")
@trust_option
def command(
    baseline: Path,
    systems: tuple[Path, ...],
    test: str,
    metric: str | None,
    label: str | None,
    samples: int,
) -> int:
    """Is a SYSTEM better than the BASELINE? Paired tests on the same examples, with Holm's correction for all comparisons.

    Each is the folder of a run, or of a variant over the same seeds, whose figures are the means over them.
    """
    check_label(label)
    from attnlab.runs.evaluations import choose_metric, read_tested
    from attnlab.studies.notes import differing_origins, differing_starts

    tested = {folder: [read_tested(run, test, label) for run in finished_runs(folder)] for folder in (baseline, *systems)}
    name, measure = choose_metric(tested[baseline][0].run, metric)
    _check_comparable(tested, baseline, name)
    import numpy as np

    from attnlab.evaluation.significance import compare_systems

    joined = {folder: np.concatenate([one.of(name) for one in found]) for folder, found in tested.items()}
    found = compare_systems(measure, joined[baseline], {str(folder): joined[folder] for folder in systems}, samples=samples)
    means = {str(folder): mean(float(one.measured[name]["value"]) for one in sets) for folder, sets in tested.items()}
    _show(measure, found, means, str(baseline), title=f"{test}, against {baseline}")
    if len(tested[baseline]) > 1:
        print(f"means over {len(tested[baseline])} seeds; p of all their examples")
    for note in differing_origins([(one.run.read_config(), one.origin) for sets in tested.values() for one in sets]):
        print(note)
    runs = [one.run for sets in tested.values() for one in sets]
    for note in differing_starts({str(run.path): (run.read_config(), run.read_starts()) for run in runs}):
        print(note)
    print(f"paired approximate randomization, {samples} samples; p corrected by Holm over {len(found)} comparisons")
    return 0


def _check_comparable(tested: Mapping[Path, Sequence["TestedSet"]], baseline: Path, metric: str) -> None:
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


def _show(
    metric: "Metric", found: Mapping[str, "Difference"], means: Mapping[str, float], baseline: str, *, title: str
) -> None:
    from rich.table import Table

    from attnlab.commands._terminal import Terminal

    table = Table("system", metric.title, "difference", "p", "p, corrected", title=title)
    for name, result in found.items():
        figures = (f"{means[name]:.{metric.digits}f}", f"{means[name] - means[baseline]:+.{metric.digits}f}")
        table.add_row(name, *figures, f"{result.p:.4f}", f"{result.corrected:.4f}")
    Terminal().print(table)
