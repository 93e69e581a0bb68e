"""Metrics of forecasts, on standardised values, as the papers have them."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.metric import NOT_NEGATIVE, PERCENT, Occasion, Ratio, Statistics
from attnlab.evaluation.metrics import signature_of, statistics_of
from attnlab.tasks.forecasting.forecaster import Forecast


class ForecastMetric(Ratio):
    """A mean over all windows, all steps of the horizon and all series, each model being fed its own values.

    Values are comparable where horizon and series are the same, and the windows that are forecast.
    """

    higher_is_better: bool | None = False
    digits = 4
    occasion: ClassVar[Occasion] = "epoch"

    @abstractmethod
    def of(self, forecast: Forecast) -> NDArray[np.float64]:
        """Return what is averaged, (horizon, series)."""

    def applies(self, forecast: Forecast) -> bool:
        """Tell whether a forecast has what is needed."""
        return True

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        forecasts = [p if isinstance(p, Forecast) and self.applies(p) else None for p in evidence.predictions]

        def count(forecast: Forecast) -> tuple[float, float]:
            numbers = self.of(forecast)
            return float(numbers.sum()), float(numbers.size)

        return statistics_of(forecasts, count)

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return signature_of(facts, "horizon", "series")


class MeanSquaredError(ForecastMetric):
    """MSE = mean (y - ŷ)², ŷ being the point forecast, of quantiles the median."""

    label = "MSE"
    limits = NOT_NEGATIVE

    @override
    def of(self, forecast: Forecast) -> NDArray[np.float64]:
        return _error(forecast) ** 2


class MeanAbsoluteError(ForecastMetric):
    """MAE = mean |y - ŷ|, ŷ being the point forecast, of quantiles the median."""

    label = "MAE"
    limits = NOT_NEGATIVE

    @override
    def of(self, forecast: Forecast) -> NDArray[np.float64]:
        return np.abs(_error(forecast))


class ContinuousRankedProbabilityScore(ForecastMetric):
    """CRPS ≈ mean of 2 Q⁻¹ Σ_q max(q (y - ŷ_q), (q - 1) (y - ŷ_q)) over Q levels q of quantiles (after Gneiting and
    Raftery 2007).

    The more levels there are, and the more even ones, the closer it is. Of a point forecast it is the absolute error.
    """

    label = "CRPS"
    limits = NOT_NEGATIVE

    @override
    def of(self, forecast: Forecast) -> NDArray[np.float64]:
        levels = np.array(forecast.levels)
        error = forecast.truth[..., None].astype(np.float64) - forecast.quantiles
        found: NDArray[np.float64] = 2 * np.maximum(levels * error, (levels - 1) * error).mean(axis=-1)
        return found


class Coverage(ForecastMetric):
    """Share of the values between the lowest and the highest quantile, 1[ŷ_low ≤ y ≤ ŷ_high].

    It should be the difference of their levels: 80 % with the usual ones. None of point forecasts.
    """

    label = "coverage of the interval"
    unit = "%"
    scale = 100.0
    digits = 1
    higher_is_better = None
    limits = PERCENT

    @override
    def applies(self, forecast: Forecast) -> bool:
        return len(forecast.levels) > 1

    @override
    def of(self, forecast: Forecast) -> NDArray[np.float64]:
        low, high = forecast.quantiles[..., 0], forecast.quantiles[..., -1]
        return ((low <= forecast.truth) & (forecast.truth <= high)).astype(np.float64)


class IntervalWidth(Coverage):
    """Width of the interval between the lowest and the highest quantile, ŷ_high - ŷ_low: of two that cover alike the narrower
    is better. None of point forecasts.
    """

    label = "width of the interval"
    unit = ""
    scale = 1.0
    digits = 3
    limits = NOT_NEGATIVE

    @override
    def of(self, forecast: Forecast) -> NDArray[np.float64]:
        return (forecast.quantiles[..., -1] - forecast.quantiles[..., 0]).astype(np.float64)


def _error(forecast: Forecast) -> NDArray[np.float64]:
    return forecast.truth.astype(np.float64) - forecast.point
