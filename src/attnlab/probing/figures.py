"""The figures that a probe finds, each a metric with what every example adds to it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.measurement import bootstrap_interval
from attnlab.evaluation.metric import Metric, Ratio, Statistics
from attnlab.evaluation.metrics import Loss, TokenAccuracy
from attnlab.evaluation.resampling import sum_blocks


class ProbeMetric(Ratio):
    """A metric that a probe counts itself: no evidence of a test set has anything of it."""

    higher_is_better = None
    digits = 3

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        return None


class TotalVariation(ProbeMetric):
    """½ Σ_w |p_t(w) - p'_t(w)| between the output distributions before and after a change, averaged over target tokens; from 0
    to 1 (Jain and Wallace 2019, section 4).
    """

    label = "TVD"


class RankCorrelation(ProbeMetric):
    """Kendall's τ_b of two importances of the source tokens, averaged over target tokens; from -1 to 1.

    A target token for which one of the two is the same for all source tokens has no τ, and does not count.
    """

    label = "τ"


class LossChange(ProbeMetric):
    """How much the negative log-likelihood of a token grows by a change, in nats."""

    label = "Δloss"
    unit = "nats a token"


LOSS, ACCURACY, VARIATION, CORRELATION, CHANGE = Loss(), TokenAccuracy(), TotalVariation(), RankCorrelation(), LossChange()
"""All that is measured."""


@dataclass(frozen=True)
class Figure:
    """What was found of all examples.

    Attributes:
        subject: what was done to the weights, or what was compared with them.
        metric: by which it was measured.
        statistics: what each block of examples adds, (blocks, 2).
    """

    subject: str
    metric: Metric
    statistics: Statistics

    @property
    def label(self) -> str:
        """What a table calls it."""
        return f"{self.subject} {self.metric.label}"

    @property
    def value(self) -> float:
        """The metric of all examples; NaN where it has none."""
        return self.metric.value(self.statistics.sum(axis=0))

    def interval(self, samples: int) -> tuple[float | None, float | None]:
        """Return the 95 % confidence interval by a bootstrap over examples; (None, None) where there is none."""
        return bootstrap_interval(self.metric, self.statistics, samples) if samples > 1 else (None, None)


class Tally:
    """Collects what examples add to figures, batch by batch."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[str, Metric]] = {}
        self._parts: dict[str, list[Statistics]] = {}

    def add(self, name: str, subject: str, metric: Metric, rows: Statistics | Sequence[tuple[float, float]]) -> None:
        """Add the rows (examples, 2) of a batch to the figure of a name."""
        self._kinds[name] = subject, metric
        self._parts.setdefault(name, []).append(np.asarray(rows, dtype=np.float64).reshape(-1, 2))

    def figures(self, order: Sequence[int] | slice = slice(None), blocks: NDArray[np.int64] | None = None) -> dict[str, Figure]:
        """Return all figures by name.

        Args:
            order: of the examples, as places in the order in which they came, which is the same for all figures.
            blocks: of the examples in that order; see :attr:`attnlab.data.examples.Examples.blocks`.
        """
        rows = {name: np.concatenate(parts)[order] for name, parts in self._parts.items()}
        return {name: Figure(*kind, sum_blocks(rows[name], blocks)) for name, kind in self._kinds.items()}
