"""Pictures of forecasts."""

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnlab.evaluation.plots import COLORS
from attnlab.tasks.forecasting.forecaster import Forecast

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 3
"""Series in one picture, the first ones."""


def draw_forecast(
    axes: "Axes", past: NDArray[np.float64], truth: NDArray[np.float64], forecast: Forecast, names: Sequence[str]
) -> None:
    """Draw what was read, what was forecast, with the lowest and the highest quantile, and what came; below, the weights.

    The weights of the attention are means over the horizon, one for each row that was read; without a context there are none.

    Args:
        axes: of one picture.
        past: (look_back, series).
        truth: (horizon, series).
        forecast: its ``point`` and ``quantiles`` in the units of the past.
        names: of the series.
    """
    before, after = np.arange(1 - len(past), 1), np.arange(1, len(truth) + 1)
    weights = forecast.weights.float().numpy().mean(axis=0)
    if weights.any():
        looked = axes.twinx()
        looked.bar(before, weights, width=1.0, color="0.8")
        looked.set_ylim(0, 4 * weights.max())
        looked.set_yticks([])
        looked.set_zorder(axes.get_zorder() - 1)
        axes.patch.set_visible(False)
    axes.axvline(0, color="0.6", linewidth=0.8)
    for series, color in zip(range(min(len(names), MOST)), cycle(COLORS)):
        joined = np.concatenate([past[-1:, series], truth[:, series]])
        axes.plot(before, past[:, series], color=color, linewidth=1.0)
        axes.plot([0, *after], joined, color=color, linewidth=1.0, linestyle=":")
        axes.plot(after, forecast.point[:, series], color=color, linewidth=2.0, label=names[series])
        if forecast.quantiles.shape[2] > 1:
            low, high = forecast.quantiles[:, series, 0], forecast.quantiles[:, series, -1]
            axes.fill_between(after, low, high, color=color, alpha=0.2, linewidth=0)
    if weights.any():
        bottom, top = axes.get_ylim()
        axes.set_ylim(bottom - 0.3 * (top - bottom), top)  # room for the bars
    axes.set_xlabel("rows from the last one that is read", fontsize="x-small")
    title = f"{MOST} of {len(names)} series" if len(names) > MOST else None
    axes.legend(fontsize="x-small", loc="best", title=title, title_fontsize="x-small")
