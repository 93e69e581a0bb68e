"""A training beside other processes."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Figure, Part, Quantity, interleave
from benchmarks.setting import Setting
from benchmarks.workers import Worker, training_worker

THREADS = {"all threads": None, "threads=1": 1}
BUSY = {name: Quantity(f"beside a busy process, {name}", f"speed beside one busy process / alone, {name}") for name in THREADS}
TWO = {
    name: Quantity(f"two at once, {name}", f"time of two trainings one after the other / at once, {name}") for name in THREADS
}


def measure_rate(worker: Worker) -> float:
    """Return its speed."""
    return float(worker.ask("train")["rate"])


@contextmanager
def busy_process() -> Iterator[None]:
    """A process that counts on one core meanwhile."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def beside_busy(worker: Worker) -> float:
    """Return its speed while another process keeps one core busy."""
    with busy_process():
        return measure_rate(worker)


def one_after_other(workers: Sequence[Worker]) -> float:
    """Return the speed of some, in trainings a second, one after the other."""
    return len(workers) / sum(float(worker.ask("train")["seconds"]) for worker in workers)


def at_once(workers: Sequence[Worker]) -> float:
    """Return the speed of some, in trainings a second, at once."""
    for worker in workers:
        worker.start("train")
    return len(workers) / max(float(worker.answer()["seconds"]) for worker in workers)


def measure(setting: Setting) -> Iterator[Figure]:
    """Let the four ways take turns on half the batches, for each number of threads.

    Processes that train beside others were started beside a busy one.
    """
    setting = replace(setting, batches=max(1, setting.batches // 2))
    for name, threads in THREADS.items():
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            first, second = _two_workers(stack, setting, threads, folder / "alone")
            with busy_process():  # threads wait as suits the machine at the start
                third, fourth = _two_workers(stack, setting, threads, folder / "beside")
            ways: dict[str, Callable[[], float]] = {
                "alone": lambda w=first: measure_rate(w),  # type: ignore[misc]
                "busy": lambda w=third: beside_busy(w),  # type: ignore[misc]
                "after": lambda w=(first, second): one_after_other(w),  # type: ignore[misc]
                "at once": lambda w=(third, fourth): at_once(w),  # type: ignore[misc]
            }
            rounds = interleave(ways, setting.rounds)
            counted = f"{first.greeting['threads']} threads each"
        yield rounds.ratio(BUSY[name], "busy", "alone", note=counted)
        yield rounds.ratio(TWO[name], "at once", "after", note=counted)


def _two_workers(stack: ExitStack, setting: Setting, threads: int | None, folder: Path) -> tuple[Worker, Worker]:
    folder.mkdir()
    first, second = (stack.enter_context(training_worker(setting, threads, folder / f"{n}.log")) for n in range(2))
    return first, second


PART = Part([*BUSY.values(), *TWO.values()], measure, devices=("cpu",))
