"""Forecasting: the last rows of a multivariate time series in, its next rows out."""

from attnlab.tasks.forecasting.controls import Control, LinearHead, RepeatHead
from attnlab.tasks.forecasting.forecaster import Forecast, Forecaster
from attnlab.tasks.forecasting.sources import Ett, Lags, SeriesFile, SeriesSource
from attnlab.tasks.forecasting.task import Forecasting

__all__ = [
    "Control",
    "Ett",
    "Forecast",
    "Forecaster",
    "Forecasting",
    "Lags",
    "LinearHead",
    "RepeatHead",
    "SeriesFile",
    "SeriesSource",
]
