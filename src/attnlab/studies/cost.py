"""What a run costs, as tables and charts show it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from attnlab.runs.record import RunResult


@dataclass(frozen=True)
class Cost:
    """One kind of cost.

    Attributes:
        label: what a table calls it.
        title: what an axis calls it.
        read: its amount; None where it is not known, as of a run from before it was measured.
        note: what a table says about it; empty where the label says it all.
        brief: whether a narrow table shows it.
    """

    label: str
    title: str
    read: Callable[[RunResult], float | None]
    note: str = ""
    brief: bool = False


def _mebibytes(size: int | None) -> float | None:
    return None if size is None else size / 2**20


def known_costs(results: Iterable[RunResult]) -> list[Cost]:
    """Return the kinds of cost that any of some runs knows."""
    found = list(results)
    return [cost for cost in COSTS if any(cost.read(result) is not None for result in found)]


COSTS = (
    Cost("training seconds", "training time (seconds)", lambda result: result.train_seconds),
    Cost("parameters", "parameters", lambda result: result.parameters),
    Cost(
        "multiply-adds",
        "multiply-adds a target token",
        lambda result: result.multiply_adds,
        note=(
            "multiply-adds are those a target token in forced decoding, padding included: of products of matrices and of "
            "convolutions (torch's FlopCounterMode), without element-wise arithmetic, normalizers and lookups"
        ),
    ),
    Cost(
        "tokens/s",
        "training speed (target tokens per second)",
        lambda result: result.train_tokens_per_second,
        note="tokens/s are target tokens in training, as each run's own tokenizer makes them",
    ),
    Cost(
        "MiB",
        "peak memory (MiB)",
        lambda result: _mebibytes(result.peak_memory),
        note="MiB are the largest resident set of a run's process, Python and torch included",
    ),
    Cost(
        "GPU MiB",
        "peak memory of the GPU (MiB)",
        lambda result: _mebibytes(result.peak_gpu_memory),
        note="GPU MiB are what torch had allocated there at most",
    ),
    Cost(
        "seconds",
        "time of the whole run (seconds)",
        lambda result: result.seconds,
        note="seconds are a whole run's",
        brief=True,
    ),
)
"""A new one stands in every table and page of runs that know it."""
