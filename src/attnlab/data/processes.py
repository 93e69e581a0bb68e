"""Work on the parts of something, one after another or in several processes at once."""

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any, TypeVar

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")
REFUSALS = (OSError, RuntimeError)
"""What a system raises that starts no more processes, or no more threads."""

PATIENCE = 5.0
"""Seconds of work from which on it pays to start processes."""


def count_processes() -> int:
    """Return how many processes may work at once: as many as torch has threads, and no more than there are cores for them."""
    import torch  # not in every process that is started

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(torch.get_num_threads(), cores)


def map_in_order(function: Callable[[Item], Result], items: Sequence[Item], processes: int) -> Iterator[Result]:
    """Yield what a function returns for each item, in their order.

    The work begins in this process. When the time that it took foretells that the rest will take long, the rest is done in
    others, by the same function: what is yielded does not depend on it. Where they cannot be started, this process goes on.

    Args:
        function: which may be pickled or not.
        items: about equal amounts of work.
        processes: at most so many at once.
    """
    seconds = 0.0
    for done, item in enumerate(items):
        if processes > 1 and done and seconds / done * (len(items) - done) > PATIENCE and can_spawn(function):
            yield from _map_in_processes(function, items[done:], processes)
            return
        started = time.perf_counter()
        result = function(item)
        seconds += time.perf_counter() - started
        yield result


def can_spawn(function: Callable[..., Any]) -> bool:
    """Tell whether other processes can be given a function, which one of the user's may not be fit for."""
    if multiprocessing.current_process().daemon:
        return False
    try:
        pickle.dumps(function)
    except Exception as error:  # whatever an object of the user's raises
        log.debug("one process alone: %s", error)
        return False
    return True


def _map_in_processes(function: Callable[[Item], Result], items: Sequence[Item], processes: int) -> Iterator[Result]:
    waiting = deque(items)
    working: deque[tuple[Item, Future[Result]]] = deque()
    try:
        with _pool(function, processes) as pool:
            while waiting or working:
                while waiting and len(working) < 2 * processes:  # no more: what they return waits in memory
                    with _starting():
                        working.append((waiting[0], pool.submit(_work, waiting[0])))
                    waiting.popleft()
                result = working[0][1].result()
                working.popleft()
                yield result
    except BrokenProcessPool as error:
        refused = f"no others can be started ({error.__cause__})" if isinstance(error.__cause__, REFUSALS) else ""
        log.warning("going on in one process: %s", refused or "those that were started to help have ended")
        yield from map(function, [*(item for item, _ in working), *waiting])


@contextmanager
def _starting() -> Iterator[None]:
    """Tell what the system refuses to start from what the work itself raises."""
    try:
        yield
    except BrokenProcessPool:
        raise
    except REFUSALS as error:
        raise BrokenProcessPool from error


@contextmanager
def _pool(function: Callable[..., Any], processes: int) -> Iterator[ProcessPoolExecutor]:
    with _starting():
        # Spawned, not forked: this process may have threads, whose locks a fork would take along.
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (function,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_function: Callable[[Any], Any]


def _begin(function: Callable[[Any], Any]) -> None:
    """Prepare a process for its work; it ends with the one that started it, and not by the keyboard before that."""
    global _function
    _function = function
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # every core has a process already
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=follow_parent, args=(lambda: os._exit(1),), daemon=True).start()


def follow_parent(end: Callable[[], object]) -> None:
    """Wait for the process that started this one to die, and call what ends this one then."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    end()


def _work(item: Any) -> Any:
    return _function(item)


def is_first_process() -> bool:
    """Tell whether this process is the one of a distributed run that speaks for all; any other run has only that.

    Lightning counts the processes that it starts by ``LOCAL_RANK``, torchrun those of all nodes by ``RANK``.
    """
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))) == 0
