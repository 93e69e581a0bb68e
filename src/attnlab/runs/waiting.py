"""How threads of OpenMP wait for each other: decided before torch is loaded, which is when the decision is read."""

import os
import time
from pathlib import Path

POLICY = "OMP_WAIT_POLICY"
VARIABLES = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""By which a user decides it; see the manuals of GNU's and LLVM's OpenMP."""

STATISTICS = Path("/proc/stat")
SECONDS = 0.1
"""For which the processors are watched; the statistics count hundredths."""

BUSY = 0.25
"""Processors that others keep busy, from which on waiting threads leave theirs to them."""


def choose_wait_policy(*, beside_others: bool = False) -> None:
    """Let waiting threads sleep where others need the processors; where nobody does, they spin, which is OpenMP's default.

    Spinning is quicker alone, by what it costs to wake a thread, and much slower beside others, whose work it delays until all
    wait for each other. No number depends on it. What the environment says already stays. It is too late for a
    process that has loaded torch, and not for those that it starts afterwards, as a sweep does whose models were built here.

    Args:
        beside_others: that others will run beside this process is known.
    """
    if any(name in os.environ for name in VARIABLES):
        return
    if beside_others or busy_processors() >= BUSY:
        os.environ[POLICY] = "PASSIVE"


def busy_processors(statistics: Path = STATISTICS, seconds: float = SECONDS) -> float:
    """Watch the processors that this process may use while it sleeps, and return how many were busy; 0 where nothing tells.

    Args:
        statistics: in the form of Linux's ``/proc/stat``, with a line a processor.
        seconds: of watching.
    """
    try:
        before = _times(statistics)
        time.sleep(seconds)
        after = _times(statistics)
        spent = {name: (busy - before[name][0], total - before[name][1]) for name, (busy, total) in after.items()}
    except (OSError, ValueError, IndexError, KeyError, AttributeError):
        return 0.0
    return sum(busy / total for busy, total in spent.values() if total)


def _times(statistics: Path) -> dict[str, tuple[int, int]]:
    """Return busy and all time of each processor since the machine was started; idle are the fourth and the fifth field."""
    usable = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    fields = (line.split() for line in statistics.read_text().splitlines())
    times = {name: [int(number) for number in numbers[:8]] for name, *numbers in fields if name in usable}
    return {name: (sum(spent) - spent[3] - spent[4], sum(spent)) for name, spent in times.items()}
