"""One process a run, on one host and on several that share a folder."""

import contextlib
import errno
import fcntl
import itertools
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from filelock import FileLock, Timeout

from attnlab.errors import BusyError, UserError

INTERVAL = 5.0
"""Seconds between two signs of life."""

PATIENCE = 4 * INTERVAL
"""Seconds without a sign of life after which the process of another host is taken for dead."""


class RunLock:
    """The lock of a run's folder: the system's own, and a sign of life for hosts that it does not reach.

    The system takes its lock from a process that dies. On some shared file systems it holds on one host alone, so that whoever
    holds it also writes every few seconds who he is, and a process of another host waits for that to stop.

    Args:
        path: the file that is locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.holder_file = path.with_name(f"{path.name}.holder")
        self.host = platform.node()

    @property
    def is_held(self) -> bool:
        """Whether a process works on the run."""
        try:
            with self.path.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that those who look do not see each other
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks, on which no run begins
            return False
        try:
            age = time.time() - self.holder_file.stat().st_mtime
        except OSError:
            return False
        return age < PATIENCE and self._other_host() is not None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock.

        Raises:
            BusyError: another process works on this run.
            UserError: the file system has no locks, or the folder cannot be written.
        """
        folder = self.path.parent
        # Whoever only looks whether a lock is held holds it for a moment.
        lock = FileLock(self.path, timeout=1.0, poll_interval=0.1, fallback_to_soft=False)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            raise BusyError(f"another process works on {folder}") from None
        except OSError as error:
            lacks = error.errno in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
            raise UserError(_without_locks(folder) if lacks else f"cannot write {folder}: {error.strerror}") from error
        try:
            with self._signs_of_life(self._find_dead()):
                yield
        finally:
            lock.release()

    def _other_host(self) -> str | None:
        """Return the host whose process gave the last sign of life; None if it is this one, or nobody did."""
        try:
            host = json.loads(self.holder_file.read_text(encoding="utf-8"))["host"]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return None if host == self.host else str(host)

    def _find_dead(self) -> bytes:
        """Return the last sign of a process that is dead; that of another host is waited for to change.

        Raises:
            BusyError: it does.
        """
        seen, host = self._sign(), self._other_host()
        if host is None:
            return seen
        # Its clock may be another one: what counts is whether anything changes here.
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            time.sleep(INTERVAL / 5)
            if (sign := self._sign()) != seen:
                if sign:
                    raise BusyError(f"a process on {host} works on {self.path.parent}")
                return sign
        return seen

    def _sign(self) -> bytes:
        try:
            return self.holder_file.read_bytes()  # opened anew: what a network file system remembers of a file is old
        except OSError:
            return b""

    @contextmanager
    def _signs_of_life(self, dead: bytes) -> Iterator[None]:
        ended = Event()

        def write() -> None:
            for count in itertools.count(1):
                if ended.wait(INTERVAL):
                    return
                with contextlib.suppress(OSError):  # a full disk is told of by those who write what matters
                    self.holder_file.write_text(self._sign_of_life(count), encoding="utf-8")

        writer = Thread(target=write, name="signs of life", daemon=True)
        try:
            if self._sign() == dead:  # and not that of a host that was faster
                self.holder_file.unlink(missing_ok=True)
            with self.holder_file.open("x", encoding="utf-8") as file:  # of two hosts at the same moment one succeeds
                file.write(self._sign_of_life(0))
        except FileExistsError:
            raise BusyError(f"a process on {self._other_host()} works on {self.path.parent}") from None
        except OSError as error:
            raise UserError(f"cannot write {self.holder_file}: {error.strerror}") from error
        writer.start()
        try:
            yield
        finally:
            ended.set()
            writer.join()
            with contextlib.suppress(OSError):
                self.holder_file.unlink(missing_ok=True)

    def _sign_of_life(self, count: int) -> str:
        return json.dumps({"host": self.host, "process": os.getpid(), "sign": count})


def _without_locks(path: Path) -> str:
    told = f"the file system of {path} has no locks (flock), without which two processes could do the same run"
    return f"{told}: run in a folder on a local disk, or have it mounted with locks"
