"""``attnlab draw``."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_run_or_variant
from attnlab.commands._given import is_given
from attnlab.commands._io import check_output
from attnlab.commands._models import FILE, check_label, finished_runs, list_seeds, name_runs
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError, warn
from attnlab.runs.names import SHAPE
from attnlab.runs.waiting import choose_wait_policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from attnlab.evaluation.evidence import ForcedDecoding, Prediction
    from attnlab.runs.tested import TestedSet

ENDINGS = (".png", ".svg", ".pdf")


@click.command(short_help="Draw heatmaps, curves, quality by length, predictions.")
@click.argument("what", type=click.Choice(["heatmaps", "lengths", "curves", "predictions"]))
@click.argument("runs", nargs=-1, required=True, type=FILE, metavar="RUN...", shell_complete=complete_run_or_variant)
@click.option("--output", type=FILE, required=True, metavar="FILE", help="Ending in .png, .svg or .pdf.")
@click.option("--source", metavar="TEXT", help="Of heatmaps and predictions: what the models read.")
@click.option("--target", metavar="TEXT", help="Of heatmaps: what they are made to write.  [default: what they predict]")
@click.option("--links", default="", metavar="I-J ...", help="Of heatmaps: known links of tokens from 0, ringed.")
@click.option("--layer", type=click.IntRange(min=0), metavar="N", help="Of heatmaps: the heads of one layer, from 0.")
@click.option("--head", type=click.IntRange(min=0), metavar="N", help="Of heatmaps: one head of each layer, from 0.")
@click.option("--test", default="test", show_default=True, metavar="NAME", help="Of lengths and predictions: the test set.")
@click.option("--examples", type=click.IntRange(1, 20), default=4, show_default=True, help="Of predictions: how many.")
@click.option("--label", help="Of lengths: of an evaluation.  [default: each run's own test]")
@click.option(
    "--metric",
    metavar="NAME",
    help="Of lengths and curves.  [default: what chose the checkpoint of the first run]",
)
@click.option(
    "--to", multiple=True, metavar="LANGUAGE", help="Of heatmaps: what a run with several target languages is to write."
)
@trust_option
def command(
    what: str,
    runs: tuple[Path, ...],
    output: Path,
    source: str | None,
    target: str | None,
    links: str,
    layer: int | None,
    head: int | None,
    test: str,
    examples: int,
    label: str | None,
    metric: str | None,
    to: tuple[str, ...],
) -> int:
    """Draw what trained models do, those of several runs together.

    heatmaps: attention on one example; lengths: a metric by the length of the source; curves: a metric by epoch; predictions:
    of the first examples of a test set, in tasks that can be drawn: points, forecasts. Each RUN is the folder of a run, or of a
    variant: lengths and curves are then the means over its seeds, heatmaps and predictions those of the first.
    """
    if output.suffix not in ENDINGS:
        raise UserError(f"--output ends in .png, .svg or .pdf, not {output.suffix!r}")
    if what == "heatmaps" and not (source or "").strip():
        raise UserError("heatmaps are of one example: add --source TEXT" if source is None else "--source is empty")
    _check_options(what)
    check_output(output)
    check_label(label)
    choose_wait_policy()
    from attnlab.data.pharaoh import LINK

    # The shell hands on --links 0-0 2-1 without quotes as a link and a run.
    more = [run for run in runs if links and LINK.fullmatch(str(run)) and not run.exists()]
    links = " ".join([links, *map(str, more)])
    if len(more) == len(runs):
        raise UserError(f"name a run beside the links: its folder, {SHAPE}")
    names = name_runs([run for run in runs if run not in more])
    from attnlab.evaluation import plots

    if what == "heatmaps":
        figure = _heatmaps(names, str(source), target, links, to, layer, head)
    elif what == "lengths":
        figure = _lengths(names, test, label, metric)
    elif what == "predictions":
        figure = _predictions(names, test, examples, source)
    else:
        figure = _curves(names, metric)
    plots.save(figure, output)
    print(f"written to {output}")
    return 0


OPTIONS = {
    "heatmaps": ("source", "target", "links", "layer", "head", "to"),
    "lengths": ("test", "label", "metric"),
    "curves": ("metric",),
    "predictions": ("test", "examples", "source"),
}
"""Which of the options that are about a picture each has."""


def _check_options(what: str) -> None:
    for name in (name for own in OPTIONS.values() for name in own):
        if name not in OPTIONS[what] and is_given(name):
            raise UserError(f"--{name} is not of {what}, but of {', '.join(k for k, own in OPTIONS.items() if name in own)}")


def _heatmaps(
    names: Mapping[str, Path],
    source: str,
    target: str | None,
    links: str,
    to: Sequence[str],
    layer: int | None,
    head: int | None,
) -> "Figure":
    from attnlab.attention import choose_heads
    from attnlab.data.pharaoh import check_inside, parse_links
    from attnlab.evaluation.plots import plot_side_by_side
    from attnlab.runs.loading import load

    known = parse_links(links, place="--links").possible
    if target is not None and not target.strip():
        raise UserError("--target is empty: leave it out to see what the models predict")
    languages: Sequence[str | None] = to or [None]
    maps: dict[str, tuple[Tensor, list[str], list[str]]] = {}
    for name, folder in names.items():
        run = _first_seed(folder)
        predictor = load(run)
        if not predictor.attends:
            raise UserError(f"{run} has no attention that could be drawn")
        for language in languages:
            if language is not None:
                predictor.task.choose_target(language)
            titles = [*([name] if len(names) > 1 else []), *([language] if language and len(to) > 1 else [])]
            shown: Prediction | ForcedDecoding
            if layer is None and head is None:
                shown = predictor.force([source], [target])[0] if target else predictor.predict([source])[0]
                panels = {": ".join(titles) or name: shown.weights}
            else:
                written = target or predictor.task.target_line(predictor.predict([source])[0])
                try:
                    shown = forced = predictor.force([source], [written], heads=True)[0]
                except UserError as error:
                    if target:
                        raise
                    told = f"heads are drawn while a model writes what it predicted as a given target, and {error}"
                    raise UserError(f"{run}: {told}; leave out --layer and --head") from error
                chosen = choose_heads(forced.heads, layer, head)
                if not chosen:
                    raise UserError(f"{run} has no such layer or head: there is {'; '.join(forced.heads)}")
                panels = {": ".join([*titles, one]): forced.heads[one] for one in chosen}
            check_inside(known, len(shown.source), len(shown.tokens), place=f"--links, {run}")
            maps |= {title: (weights, shown.source, shown.tokens) for title, weights in panels.items()}
    return plot_side_by_side(maps, gold=known)


def _first_seed(folder: Path) -> Path:
    seeds = list_seeds(folder, lambda run: run.config_file.is_file())
    return seeds[0].path if seeds else folder


def _predictions(names: Mapping[str, Path], test: str, count: int, source: str | None) -> "Figure":
    from attnlab.evaluation.plots import Illustration, Illustrator, plot_predictions
    from attnlab.runs.loading import load

    rows: dict[str, list[Illustration]] = {}
    first: tuple[str, list[str]] | None = None
    for name, folder in names.items():
        predictor = load(_first_seed(folder))
        task = predictor.task
        if not isinstance(task, Illustrator):
            raise UserError(
                f"predictions of the task {task.name} have no picture: draw heatmaps, lengths or curves of {folder}"
            )
        sources, references = [source] if source else [], list[str | None]([None])
        if not source:
            examples = task.examples(test)
            sources, references = list(examples.sources[:count]), list(examples.references[:count])
            first = first or (name, sources)
            if sources != first[1]:
                raise UserError(f"{test} of {name} has other examples than that of {first[0]}: draw each by itself")
        found = predictor.predict(sources)
        each = zip(sources, found, references, strict=True)
        rows[name] = [Illustration(task, line, one, reference) for line, one, reference in each]
    return plot_predictions(rows)


def _lengths(names: Mapping[str, Path], test: str, label: str | None, wanted: str | None) -> "Figure":
    from attnlab.evaluation.measurement import Bucket, LengthBuckets
    from attnlab.evaluation.plots import plot_by_length
    from attnlab.runs.tested import check_metric, choose_metric, read_tested

    seeds = {name: [read_tested(run, test, label) for run in finished_runs(folder)] for name, folder in names.items()}
    every = [one for sets in seeds.values() for one in sets]
    metric_name, metric = choose_metric(every[0].run, wanted, label)
    check_metric(every, metric_name)
    for note in _differences(every):
        warn(note)
    buckets, units = {}, dict[str, None]()
    for name, sets in seeds.items():
        by_low: dict[int, list[Bucket]] = {}
        for tested in sets:
            for bucket in LengthBuckets(tested.lengths).measure(metric, tested.of_examples(metric_name)):
                units[tested.unit] = None
                by_low.setdefault(bucket.low, []).append(bucket)
        buckets[name] = [
            Bucket(low, max(one.high for one in found), found[0].examples, mean(one.value for one in found))
            for low, found in sorted(by_low.items())
        ]
    return plot_by_length(buckets, metric.title, " or ".join(units), title=test)


def _differences(tested: Sequence["TestedSet"]) -> Iterator[str]:
    """Tell in what test sets differ that are drawn together; the seeds of a study may have data of their own."""
    from attnlab.runs.tested import differing_settings
    from attnlab.studies.notes import differing_origins

    made = [{kind: value for kind, value in one.origin.items() if kind != "data"} for one in tested]
    yield from differing_origins([(one.run.read_config, own) for one, own in zip(tested, made, strict=True)])
    yield from differing_settings(tested)
    for seed in dict.fromkeys(one.run.path.name for one in tested):
        if len({one.references for one in tested if one.run.path.name == seed}) > 1:
            yield f"not comparable: the runs of {seed} were tested on different examples"


def _curves(names: Mapping[str, Path], wanted: str | None) -> "Figure":
    from attnlab.evaluation.plots import plot_curves
    from attnlab.runs.folder import RunFolder

    seeds = {
        name: list_seeds(folder, lambda run: run.curve_file.is_file()) or [RunFolder(folder)] for name, folder in names.items()
    }
    curves = {run: run.read_curve() for runs in seeds.values() for run in runs}
    for run, lines in curves.items():
        if not lines:
            raise UserError(f"{run.path} holds no {run.curve_file.name}: name the folder of a run, {SHAPE}")
    metric = wanted or str(next(iter(curves)).read_config().get("monitor"))
    if not any(metric in line for lines in curves.values() for line in lines):
        metric = metric if "/" in metric else f"val/{metric}"
    for run, lines in curves.items():
        known = sorted({name for line in lines for name in line} - {"epoch", "step"})
        if metric not in known:
            raise UserError(f"{run.curve_file} has no metric {metric!r}: there is {', '.join(known)}")
    return plot_curves({name: _average([curves[run] for run in runs], metric) for name, runs in seeds.items()}, metric)


def _average(curves: Sequence[Sequence[Mapping[str, float]]], metric: str) -> list[dict[str, float]]:
    """Return the means over runs of a metric after each epoch."""
    values: dict[float, list[float]] = {}
    for line in (line for curve in curves for line in curve if metric in line):
        values.setdefault(line["epoch"], []).append(line[metric])
    return [{"epoch": epoch, metric: mean(found)} for epoch, found in sorted(values.items())]
