"""What a metric is: declared once, and read by every table, chart, page, logger and command."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.errors import UserError, locate
from attnlab.evaluation.evidence import Evidence
from attnlab.source import is_users_own

Statistics = NDArray[np.float64]
"""(examples, k): what each example adds to a metric, in numbers that can be summed over examples."""

Origin = Literal["predictions", "predictions of reference length", "forced decoding", "attention", "alignments", "an aligner"]
"""What a metric is computed from; an aligner's links are compared with known ones as those of an attention are."""

Occasion = Literal["epoch", "test", "evaluation"]
PERCENT = (0.0, 100.0)
NOT_NEGATIVE = (0.0, math.inf)
"""Limits of a share in percent, and of what has none above."""

VALIDATION_LOSS = "val/loss"
"""What decides between equal values of what is monitored."""
OCCASIONS: tuple[Occasion, ...] = ("epoch", "test", "evaluation")
"""Each measures what those before it measure, and more."""


@contextmanager
def metric_errors(metric: "Metric") -> Iterator[None]:
    """Tell in one line what a metric of the user's own raises; what another one does is a bug.

    Raises:
        UserError: it raised something.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) or not is_users_own(type(metric)):
            raise
        raise UserError(f"the metric {type(metric).__name__} cannot be computed: {locate(error, metric)}") from error


class Metric(ABC):
    """A number about a test set that is a function of the sum of what each example adds to it.

    Exact match adds (right, 1) and divides; an F-score adds counts. That makes one implementation of confidence intervals,
    significance tests and quality by length serve every metric.

    Attributes:
        label: what tables and charts call it.
        unit: such as "%" or "nats a token"; empty where there is none.
        higher_is_better: which way is better; None where neither is, as for the entropy of attention: no value is then marked
            as the best.
        digits: decimal places in tables.
        limits: the least and the greatest value that there can be, beyond which no interval goes.
        computed_from: what it needs to be known; predictions of reference length take a search of their own.
        occasion: when it is measured: on the validation set after every epoch and in every test, in every test, or by
            ``attnlab evaluate`` alone, for what takes long.
        in_tests: whether one for ``attnlab evaluate`` alone is measured in every test all the same.
        runs_commands: whether measuring runs a command that its config names.
        is_smooth: whether one example more or less changes it a little; not so a count of sets that pass a threshold, of which
            the jackknife knows nothing.
    """

    label: str
    unit: ClassVar[str] = ""
    higher_is_better: bool | None = True
    digits: ClassVar[int] = 2
    limits: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    computed_from: ClassVar[Origin] = "predictions"
    occasion: ClassVar[Occasion] = "test"
    in_tests: bool = False
    runs_commands: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = True

    @property
    def sign(self) -> int:
        """What makes the larger of two values the better one: -1 where lower is better, else 1."""
        return -1 if self.higher_is_better is False else 1

    @property
    def title(self) -> str:
        """The label with the unit, as an axis has it."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @abstractmethod
    def statistics(self, evidence: Evidence) -> Statistics | None:
        """Return what each example adds, (examples, k); None where the evidence lacks what the metric needs."""

    @abstractmethod
    def value(self, total: NDArray[np.float64]) -> float:
        """Return the metric of the sum (k,) of what examples add; NaN where it has none."""

    def values(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the metric of each of several sums, (samples,) of (samples, k): but for rounding that of :meth:`value`, where
        that has one.

        A metric by which studies are ranked is worth an override without a loop: every paired test asks for thousands.
        """
        return np.fromiter((self.value(total) for total in totals), dtype=np.float64, count=len(totals))

    def shown_values(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the metric of each of several sums that are shown by themselves, NaN where :meth:`value` has none.

        A metric whose :meth:`values` go on there, as those of samples may have to, overrides this too.
        """
        return self.values(totals)

    def signature(self, facts: Mapping[str, Any]) -> str:
        """Return what must agree for two values to be compared, such as case and tokenizer; empty where all compare."""
        return ""

    def is_due(self, occasion: Occasion) -> bool:
        """Tell whether it is measured on an occasion."""
        return OCCASIONS.index(self.occasion) <= OCCASIONS.index(occasion) or (self.in_tests and occasion == "test")

    def check(self, facts: Sequence[Mapping[str, Any]]) -> None:  # noqa: B027
        """Try what measuring needs beside the evidence, such as a command, before anything that takes long.

        Args:
            facts: that the evidence will have, of each set that is to be measured.

        Raises:
            UserError: it is not there, or does not work.
        """


class Ratio(Metric):
    """A metric whose examples add to a numerator and to a denominator: Σ_i n_i / Σ_i d_i, times a scale.

    Attributes:
        scale: 100 for a metric in per cent.
    """

    scale: ClassVar[float] = 1.0

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        numerator, denominator = total.tolist()
        return self.scale * numerator / denominator if denominator else float("nan")

    @override
    def values(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        if type(self).value is not Ratio.value:  # a subclass that makes something else of the ratio
            return super().values(totals)
        return divide(totals, self.scale)


class Share(Ratio):
    """A ratio of counts, in percent."""

    unit = "%"
    scale = 100.0
    limits = PERCENT


def divide(totals: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return the first of each row over the second, times a scale; NaN where the second is 0."""
    found = np.full(len(totals), np.nan)
    np.divide(scale * totals[:, 0], totals[:, 1], out=found, where=totals[:, 1] != 0)
    return found
