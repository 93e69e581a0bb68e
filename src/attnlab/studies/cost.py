"""What a run costs, as tables and charts show it."""

from collections.abc import Callable
from dataclasses import dataclass

from attnlab.runs.record import RunResult


@dataclass(frozen=True)
class Cost:
    """One kind of cost.

    Attributes:
        label: what a table calls it.
        title: what an axis calls it.
        read: its amount.
        note: what a table says about it; empty where the label says it all.
        brief: whether a narrow table shows it.
    """

    label: str
    title: str
    read: Callable[[RunResult], float]
    note: str = ""
    brief: bool = False


COSTS = (
    Cost("training seconds", "training time (seconds)", lambda result: result.train_seconds),
    Cost("parameters", "parameters", lambda result: result.parameters),
    Cost(
        "tokens/s",
        "training speed (target tokens per second)",
        lambda result: result.train_tokens_per_second,
        note="tokens/s are target tokens in training, as each run's own tokenizer makes them",
    ),
    Cost(
        "seconds",
        "time of the whole run (seconds)",
        lambda result: result.seconds,
        note="seconds are a whole run's",
        brief=True,
    ),
)
"""A new one stands in every table and page."""
