"""One run of a study, read from its folder alone. Torch is not imported."""

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.errors import UserError
from attnlab.evaluation.evidence import EXAMPLE
from attnlab.evaluation.measurement import LengthBuckets
from attnlab.evaluation.metric import Statistics
from attnlab.runs.files import BLOCK, LENGTHS
from attnlab.runs.folder import RunFolder, State
from attnlab.runs.record import ProbeRecord, RunRecord, RunResult

Columns = tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]
"""The numbers of examples, none where they are not known, their sources and their references."""


@dataclass(frozen=True)
class Run:
    """One run of a study.

    Attributes:
        folder: its own.
        overrides: what makes its variant.
        seed: of weights, batches and dropout.
        state: how far it was when it was looked at.
        damage: of a damaged one, what of it cannot be read; none of its files is then.
    """

    folder: RunFolder
    overrides: tuple[str, ...]
    seed: int
    state: State
    damage: str = ""
    _probes: dict[str, ProbeRecord | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _buckets: dict[str, LengthBuckets] = field(default_factory=dict, init=False, repr=False, compare=False)
    _statistics: dict[str, dict[str, NDArray[np.float64]]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _orders: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def is_done(self) -> bool:
        """Whether it has a result."""
        return self.state == "done"

    @property
    def is_to_come(self) -> bool:
        """Whether nothing is known of it yet, as of one that is running or missing."""
        return self.state not in ("done", "failed", "damaged")

    @cached_property
    def record(self) -> RunRecord | None:
        """What it is; None where this version cannot read that."""
        return self.folder.read_record()

    @cached_property
    def result(self) -> RunResult:
        """What it came to, for a run that is done."""
        return self.folder.read_result()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config; empty for a run that has not come so far."""
        return self.folder.read_config() if self.folder.config_file.is_file() and not self.damage else {}

    @cached_property
    def curve(self) -> list[dict[str, float]]:
        """The metrics of every epoch so far."""
        return [] if self.damage else self.folder.read_curve()

    @cached_property
    def attention(self) -> list[dict[str, Any]]:
        """What the attention looks at while a few given targets are read."""
        return [] if self.damage else self.folder.read_attention()

    @cached_property
    def starts(self) -> list[dict[str, Any]]:
        """Time, versions, commit and hardware of every start, the newest last."""
        return [] if self.damage else self.folder.read_starts()

    @property
    def error(self) -> str:
        """The traceback, or the one line, of a run that failed or is damaged."""
        return self.damage or self.folder.read_error()

    @property
    def has_failed(self) -> bool:
        """Whether the last attempt at it failed; a run that was finished before is done nevertheless."""
        return self.state in ("failed", "done") and self.folder.error_file.is_file()

    @property
    def pending(self) -> str:
        """How far a run is that is not done, in a line."""
        return f"{self.state}: {self.folder.place}{f' ({self.damage})' if self.damage else ''}"

    def check(self) -> "Run":
        """Compare all files with what the run wrote, and read those that a report reads where that is not known of all.

        Returns:
            The run itself or, if a file cannot be read or is another, the run as damaged.
        """
        try:
            if self.is_done and self.folder.is_whole():
                return self
            _ = self.config, self.curve, self.attention, self.starts, self.error
            if self.state == "interrupted" and self.folder.result_file.is_file():  # by its state, it is no result
                _ = self.result
            for test, found in self.result.tests.items() if self.is_done else ():
                _ = self.predictions(test), self.sources(test), self.references(test), self._read(test)
                _ = [self.value(test, metric) for metric in found["metrics"]]
            if self.is_done:
                self.folder.verify()
        except UserError as error:
            return replace(self, state="damaged", damage=str(error))
        except (ValueError, LookupError, TypeError, AttributeError):
            return replace(self, state="damaged", damage=f"{self.folder.result_file} is damaged")
        return self

    def value(self, test: str, metric: str) -> float | None:
        """Return a metric of a test set; None where it was not measured, or is no number."""
        value = self.result.metric(test, metric)
        return None if value is None or not math.isfinite(value) else value

    def probe(self, test: str) -> ProbeRecord | None:
        """Return what experiments on the attention found on a test set; None where nobody made any of what the run is now."""
        if test not in self._probes:
            found = self.folder.read_probe(test)
            self._probes[test] = found if found and found.id == self.result.id else None
        return self._probes[test]

    def statistics(self, test: str, metric: str) -> Statistics | None:
        """Return what each example of a test set adds to a metric; None where that is not known."""
        return self._read(test).get(metric)

    def blocks(self, test: str) -> NDArray[np.float64]:
        """Return the block of each example of a test set whose statistics are known."""
        return self._read(test)[BLOCK]

    def length_buckets(self, test: str) -> LengthBuckets:
        """Return the buckets of source length of a test set whose statistics are known."""
        if test not in self._buckets:
            self._buckets[test] = _length_buckets(tuple(self._read(test)[LENGTHS].tolist()))
        return self._buckets[test]

    def _read(self, test: str) -> dict[str, NDArray[np.float64]]:
        if test not in self._statistics:
            self._statistics[test] = self.folder.read_statistics(test)
        return self._statistics[test]

    def predictions(self, test: str) -> list[str]:
        """Return the predictions of a test set, a line an example."""
        return self.folder.read_hypotheses(test)

    def sources(self, test: str) -> list[str]:
        """Return the sources of a test set."""
        return self.folder.read_sources(test)

    def references(self, test: str) -> list[str]:
        """Return the references of a test set."""
        return self.folder.read_references(test)

    def examples(self, test: str) -> list[tuple[int, str, str]]:
        """Return the number, from 1, the source and the reference of each example of a test set that the run was tested on.

        It is by these that examples of several runs are the same, and never by where they stand in a file.
        """
        return _join(self._columns(test))

    def _columns(self, test: str) -> Columns:
        numbers = self._read(test).get(EXAMPLE, np.empty(0))
        return tuple(map(int, numbers.tolist())), tuple(self.sources(test)), tuple(self.references(test))

    def example_order(self, test: str) -> tuple[str, tuple[int, ...]]:
        """Return a hash of the examples of a test set, the same in any order, and the places that bring them into one."""
        if test not in self._orders:
            self._orders[test] = _order(self._columns(test))
        return self._orders[test]


@lru_cache(maxsize=128)  # the same object for runs with the same lengths, whose buckets are measured together
def _length_buckets(lengths: tuple[float, ...]) -> LengthBuckets:
    return LengthBuckets(lengths)


def _join(columns: Columns) -> list[tuple[int, str, str]]:
    numbers, sources, references = columns
    return list(zip(numbers or range(1, len(sources) + 1), sources, references, strict=False))


@lru_cache(maxsize=8)  # most runs of a study have the same test sets, each of which need not be sorted again
def _order(columns: Columns) -> tuple[str, tuple[int, ...]]:
    examples = _join(columns)
    order = sorted(range(len(examples)), key=lambda place: (examples[place][1:], examples[place][0]))
    texts = json.dumps([examples[place][1:] for place in order])
    return hashlib.sha256(texts.encode()).hexdigest(), tuple(order)
