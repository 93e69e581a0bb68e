"""Pictures of attention."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from attnlab.errors import printable

if TYPE_CHECKING:
    from torch import Tensor


USUAL = 16
"""Letters of a label that every picture has room for."""


LEAST_ROWS = 5
"""As high as the labels beside a picture are long; fewer rows are higher instead."""


def label_height(source: Sequence[str]) -> float:
    """Return what the labels of the columns need beside the usual, in inches: a source token may be long."""
    return 0.09 * max([0, *(len(token) - USUAL for token in source)])


def draw(
    axes: Axes, weights: "Tensor", source: Sequence[str], hypothesis: Sequence[str], *, gold: Collection[tuple[int, int]] = ()
) -> AxesImage:
    """Draw one heatmap into axes, with a ring around each known link (source place, hypothesis place)."""
    rows, columns = len(hypothesis), len(source)
    shown = np.asarray(weights.float())[:rows, :columns]
    colours, lowest = ("RdBu", -1.0) if (shown < 0).any() else ("Blues", 0.0)
    image = axes.imshow(shown, cmap=colours, vmin=lowest, vmax=1.0, aspect="auto")
    # A token with two dollar signs is no formula, and a control character in it is none that an SVG may hold.
    axes.set_xticks(range(columns), map(printable, source), rotation=90, parse_math=False)
    axes.set_yticks(range(rows), map(printable, hypothesis), parse_math=False)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("source")
    axes.set_ylabel("hypothesis")
    axes.tick_params(length=0)
    axes.add_line(_grid(rows, columns))
    inside = [(s, h) for s, h in gold if s < columns and h < rows]
    if inside:
        x, y = zip(*inside, strict=True)
        axes.scatter(x, y, s=60, facecolors="none", edgecolors="tab:orange", linewidths=1.4)
    return image


def _grid(rows: int, columns: int) -> Line2D:
    """Return the lines between cells as one, which is drawn in a fraction of the time of a tick for each."""
    across = [([-0.5, columns - 0.5, np.nan], [row - 0.5] * 3) for row in range(rows + 1)]
    down = [([column - 0.5] * 3, [-0.5, rows - 0.5, np.nan]) for column in range(columns + 1)]
    x, y = np.array([*across, *down]).transpose(1, 0, 2).reshape(2, -1)
    return Line2D(x, y, color="0.9", linewidth=0.5, zorder=1.5)
