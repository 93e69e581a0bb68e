"""Figures: quality by the length of the source, learning curves, and the same example under several attentions."""

import logging
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import cycle
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from attnlab.errors import UserError
from attnlab.evaluation.fonts import set_fonts
from attnlab.evaluation.heatmaps import LEAST_ROWS, draw, label_height
from attnlab.evaluation.measurement import Bucket

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch import Tensor

    from attnlab.evaluation.evidence import Prediction

log = logging.getLogger(__name__)

COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
"""Okabe and Ito's, told apart by readers with any kind of colour vision."""
MARKERS = "os^Dv*"
"""Six beside seven colours: of 42 lines no two have both in common."""


def save(figure: Figure, path: Path) -> None:
    """Write a figure as the ending of the path says; in SVG text stays text, which a viewer draws with its own fonts.

    Raises:
        UserError: the file cannot be written, or has more pixels than there is memory for.
    """
    fonts = set_fonts(figure)
    with mpl.rc_context({"svg.fonttype": "none", "font.family": fonts}), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            figure.savefig(path, dpi=150)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from error
        except (MemoryError, ValueError) as error:
            if isinstance(error, ValueError) and "too large" not in str(error):
                raise
            raise UserError(f"{path}: the picture would be too large: draw less") from error
    missing = [warning for warning in told if "missing from font" in str(warning.message)]
    for warning in told:
        if warning not in missing:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if missing and path.suffix != ".svg":
        _tell_of_letters()


@cache  # and so once, however many pictures there are
def _tell_of_letters() -> None:
    log.warning("no installed font has all letters of a picture: write SVG, or install the Noto fonts of the script")


def plot_by_length(buckets: Mapping[str, Sequence[Bucket]], metric: str, unit: str, title: str) -> Figure:
    """Draw a metric by source length, a line for each system: the classic figure that shows what attention is for.

    Args:
        buckets: of each system, as :func:`attnlab.evaluation.measurement.LengthBuckets` makes them.
        metric: what it is called.
        unit: what lengths are counted in, such as "words".
        title: above the figure.
    """
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    longest: dict[int, int] = {}
    for bucket in sorted((bucket for found in buckets.values() for bucket in found), key=lambda bucket: bucket.low):
        longest[bucket.low] = max(bucket.high, longest.get(bucket.low, 0))
    places = {low: place for place, low in enumerate(longest)}
    for (name, found), color, marker in zip(buckets.items(), cycle(COLORS), cycle(MARKERS)):
        axes.plot([places[b.low] for b in found], [b.value for b in found], color=color, marker=marker, label=name)
    axes.set_xticks(list(places.values()), [f"{low}-{high}" for low, high in longest.items()])
    axes.set_xlabel(f"source length in {unit}")
    axes.set_ylabel(metric)
    axes.set_ylim(bottom=min([0.0, *(b.value for found in buckets.values() for b in found if isfinite(b.value))]))
    axes.set_title(title, parse_math=False)
    _finish(axes)
    return figure


def plot_curves(records: Mapping[str, Sequence[Mapping[str, float]]], metric: str) -> Figure:
    """Draw a metric by epoch, a line for each run.

    Args:
        records: of each run a mapping for each epoch: ``epoch``, counted from 0, and metrics by name.
        metric: such as ``val/loss``.
    """
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for (name, lines), color, marker in zip(records.items(), cycle(COLORS), cycle(MARKERS)):
        known = [(line["epoch"] + 1, line[metric]) for line in lines if metric in line]
        axes.plot([epoch for epoch, _ in known], [value for _, value in known], color=color, marker=marker, label=name)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel(metric)
    _finish(axes)
    return figure


def _finish(axes: Any) -> None:
    axes.grid(color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    for label in axes.legend(frameon=False, fontsize="small").get_texts():
        label.set_parse_math(False)


@runtime_checkable
class Illustrator(Protocol):
    """A task whose predictions can be drawn.

    Attributes:
        picture_size: of one picture, width and height in inches.
    """

    picture_size: tuple[float, float]

    def draw_prediction(self, axes: "Axes", source: str, prediction: "Prediction", reference: str | None = None) -> None:
        """Draw what was predicted for a line of text, and what is right, a line too, where that is known."""


class Illustration(NamedTuple):
    """A prediction that is to be drawn."""

    task: Illustrator
    source: str
    prediction: "Prediction"
    reference: str | None


def plot_predictions(rows: Mapping[str, Sequence[Illustration]]) -> Figure:
    """Draw predictions of several systems, one below the other, an example in each column.

    Args:
        rows: of each system, the same examples.
    """
    columns = max(map(len, rows.values()))
    width, height = map(max, zip(*(one.task.picture_size for found in rows.values() for one in found), strict=True))
    figure = Figure(figsize=(width * columns, height * len(rows)), layout="constrained")
    for line, (name, found) in zip(figure.subplots(len(rows), columns, squeeze=False), rows.items(), strict=True):
        for axes, one in zip(line, found, strict=True):
            one.task.draw_prediction(axes, one.source, one.prediction, one.reference)
            axes.tick_params(labelsize="x-small")
        line[0].set_title(name, loc="left", fontsize="small", parse_math=False)
    return figure


def plot_side_by_side(
    maps: "Mapping[str, tuple[Tensor, Sequence[str], Sequence[str]]]",
    *,
    gold: Collection[tuple[int, int]] = (),
) -> Figure:
    """Draw the attention of several systems on one example beside each other.

    Args:
        maps: of each system its weights (hypothesis length, source length), source tokens and hypothesis tokens.
        gold: known links (source position, hypothesis position), marked by a ring; for a hypothesis that is given.
    """
    rows = max(len(hypothesis) for _, _, hypothesis in maps.values())
    columns = max(len(source) for _, source, _ in maps.values())
    width = (1.6 + 0.32 * columns) * len(maps) + 0.8
    height = 2.0 + 0.27 * max(rows, LEAST_ROWS) + max(label_height(source) for _, source, _ in maps.values())
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    images: list[AxesImage] = []
    for axes, (name, (weights, source, hypothesis)) in zip(panels, maps.items(), strict=True):
        images.append(draw(axes, weights, source, hypothesis, gold=gold))
        axes.set_title(name, fontsize="medium", parse_math=False)
    widest = min(images, key=lambda image: image.get_clim()[0])  # of weights some of which are negative, if there are any
    figure.colorbar(widest, ax=list(panels), label="attention weight", shrink=0.8)
    return figure
