"""What is measured, how rounds become a figure, and how contestants take turns."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Contestant = Callable[[], float]
"""Does its work once, and returns how much a second."""


@dataclass(frozen=True)
class Quantity:
    """What can be measured.

    Attributes:
        name: in ``history.jsonl``.
        label: in the table.
        unit: of its value; "" for a ratio.
    """

    name: str
    label: str
    unit: str = ""


@dataclass(frozen=True)
class Figure:
    """What was measured.

    Attributes:
        name: of the quantity.
        unit: of the value.
        value: the median of the rounds; None where it was not measured.
        low, high: the least and the greatest of the rounds.
        rounds: how many there were.
        command: that measures it again.
        note: what a reader must know, or why it was not measured.
    """

    name: str
    unit: str
    value: float | None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    command: str = ""
    note: str = ""

    @classmethod
    def of(cls, quantity: Quantity, values: Sequence[float], note: str = "") -> "Figure":
        """Return the median of some rounds."""
        low, high = min(values), max(values)
        return cls(quantity.name, quantity.unit, statistics.median(values), low, high, len(values), note=note)

    @classmethod
    def missing(cls, quantity: Quantity, reason: str) -> "Figure":
        """Return that it was not measured, and why."""
        return cls(quantity.name, quantity.unit, None, note=reason)


class Part(NamedTuple):
    """Quantities that are measured together.

    Attributes:
        quantities: what is measured.
        measure: measures it in a setting.
        devices: on which it can be.
        is_long: whether it is measured only if that is asked for.
        data: that it is measured on, if these are not the setting's.
    """

    quantities: Sequence[Quantity]
    measure: Callable[..., Iterator[Figure]]
    devices: Sequence[str] = ("cpu", "cuda")
    is_long: bool = False
    data: str | None = None


@dataclass
class Rounds:
    """What contestants did in rounds.

    Attributes:
        values: of each, one a round.
        failures: of those that could not do it, why.
    """

    values: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def figure(self, quantity: Quantity, name: str, note: str = "") -> Figure:
        """Return what one of them did."""
        if name in self.failures:
            return Figure.missing(quantity, self.failures[name])
        return Figure.of(quantity, self.values[name], note)

    def ratio(self, quantity: Quantity, name: str, other: str, factor: float = 1.0, note: str = "") -> Figure:
        """Return a factor times what one did by what another did in the same round."""
        for missing in (name, other):
            if missing in self.failures:
                return Figure.missing(quantity, self.failures[missing])
        pairs = zip(self.values[name], self.values[other], strict=True)
        return Figure.of(quantity, [factor * ours / theirs for ours, theirs in pairs], note)


def interleave(contestants: Mapping[str, Contestant], rounds: int) -> Rounds:
    """Let contestants take turns, after a round to warm up; every other round in the opposite order.

    One that raises is left out from then on.
    """
    found = Rounds({name: [] for name in contestants})
    for number in range(rounds + 1):
        order = list(contestants)
        for name in order if number % 2 else order[::-1]:
            if name in found.failures:
                continue
            try:
                value = contestants[name]()
            except Exception as error:
                found.failures[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
                continue
            if number:
                found.values[name].append(value)
    return found


def rate(work: Callable[[], float], synchronize: Callable[[], None] = lambda: None) -> float:
    """Return how much a second is done by work that returns how much it did."""
    synchronize()
    started = time.perf_counter()
    amount = work()
    synchronize()
    return amount / (time.perf_counter() - started)
