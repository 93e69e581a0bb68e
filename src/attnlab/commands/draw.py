"""``attnlab draw``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_run
from attnlab.commands._io import check_output
from attnlab.commands._models import FILE, check_label, name_runs
from attnlab.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")


@click.command(short_help="Draw heatmaps, quality by length, or learning curves.")
@click.argument("what", type=click.Choice(["heatmaps", "lengths", "curves"]))
@click.argument("runs", nargs=-1, required=True, type=FILE, metavar="RUN...", shell_complete=complete_run)
@click.option("--output", type=FILE, required=True, metavar="FILE", help="Ending in .png, .svg or .pdf.")
@click.option("--source", metavar="TEXT", help="Of heatmaps: what the models read.")
@click.option("--target", metavar="TEXT", help="Of heatmaps: what they are made to write.  [default: what they predict]")
@click.option("--links", default="", metavar="'I-J ...'", help="Of heatmaps: known links of tokens from 0, ringed.")
@click.option("--test", default="test", show_default=True, metavar="NAME", help="Of lengths: the test set.")
@click.option("--label", help="Of lengths: of an evaluation.  [default: each run's own test]")
@click.option("--metric", metavar="NAME", help="Of lengths and curves.  [default: what chose the checkpoint of the first run]")
def command(
    what: str,
    runs: tuple[Path, ...],
    output: Path,
    source: str | None,
    target: str | None,
    links: str,
    test: str,
    label: str | None,
    metric: str | None,
) -> int:
    """Draw what trained models do, those of several runs together.

    heatmaps: attention on one example; lengths: a metric by the length of the source; curves: a metric by epoch.
    """
    if output.suffix not in ENDINGS:
        raise UserError(f"--output ends in .png, .svg or .pdf, not {output.suffix!r}")
    if what == "heatmaps" and not (source or "").strip():
        raise UserError("heatmaps are of one example: add --source TEXT")
    check_output(output)
    check_label(label)
    names = name_runs(runs)
    from attnlab.evaluation import plots

    if what == "heatmaps":
        figure = _heatmaps(names, str(source), target, links)
    elif what == "lengths":
        figure = _lengths(names, test, label, metric)
    else:
        figure = _curves(names, metric)
    plots.save(figure, output)
    print(f"written to {output}")
    return 0


def _heatmaps(names: Mapping[str, Path], source: str, target: str | None, links: str) -> "Figure":
    from attnlab.data.pharaoh import check_inside, parse_links
    from attnlab.evaluation.plots import plot_side_by_side
    from attnlab.runs.loading import load

    known = parse_links(links, place="--links").possible
    maps = {}
    for name, run in names.items():
        predictor = load(run)
        shown = predictor.force([source], [target])[0] if target else predictor.predict([source])[0]
        check_inside(known, len(shown.source), len(shown.tokens), place=f"--links, {run}")
        maps[name] = (shown.weights, shown.source, shown.tokens)
    return plot_side_by_side(maps, gold=known)


def _lengths(names: Mapping[str, Path], test: str, label: str | None, wanted: str | None) -> "Figure":
    from attnlab.commands._tested import choose_metric, read_tested
    from attnlab.evaluation.measurement import measure_by_length
    from attnlab.evaluation.plots import plot_by_length
    from attnlab.runs.folder import RunFolder

    folders = {name: RunFolder(run) for name, run in names.items()}
    name, metric = choose_metric(next(iter(folders.values())), wanted)
    tested = {label_of_run: read_tested(folder, test, label) for label_of_run, folder in folders.items()}
    buckets = {label_of_run: measure_by_length(metric, one.of(name), one.lengths) for label_of_run, one in tested.items()}
    return plot_by_length(buckets, metric.title, title=test)


def _curves(names: Mapping[str, Path], wanted: str | None) -> "Figure":
    from attnlab.evaluation.plots import plot_curves
    from attnlab.runs.folder import RunFolder
    from attnlab.runs.names import SHAPE

    folders = {name: RunFolder(run) for name, run in names.items()}
    records = {name: folder.read_curve() for name, folder in folders.items()}
    for folder, lines in zip(folders.values(), records.values(), strict=True):
        if not lines:
            raise UserError(f"{folder.path} holds no {folder.curve_file.name}: name the folder of a run, {SHAPE}")
    metric = wanted or str(next(iter(folders.values())).read_config().get("monitor"))
    for folder, lines in zip(folders.values(), records.values(), strict=True):
        known = sorted({name for line in lines for name in line} - {"epoch", "step"})
        if metric not in known:
            raise UserError(f"{folder.curve_file} has no metric {metric!r}: there is {', '.join(known)}")
    return plot_curves(records, metric)
