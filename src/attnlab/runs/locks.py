"""One process a run, on one host and on several that share a folder."""

import errno
import fcntl
import os
import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, SoftFileLease, Timeout

from attnlab.errors import BusyError, UserError

INTERVAL = 5.0
"""Seconds between two signs of life."""

PATIENCE = 4 * INTERVAL
"""Seconds without a sign of life after which the process of another host is taken for dead."""


class RunLock:
    """The lock of a run's folder: the system's own, and a lease for hosts that it does not reach.

    The system takes its lock from a process that dies. On some shared file systems it holds on one host alone, so that whoever
    holds it also has a lease, which is renewed every few seconds, and a process of another host waits for that to stop.

    Args:
        path: the file that is locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lease_file = path.with_name(f"{path.name}.lease")

    @property
    def is_held(self) -> bool:
        """Whether a process works on the run. One of another host is known by its clock, which is taken to agree with ours."""
        try:
            with self.path.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that those who look do not see each other
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks, on which no run begins
            return False
        return time.time() - self._renewal() < PATIENCE and self._other_host() is not None

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
        lease = SoftFileLease(self.lease_file, lease_duration=PATIENCE, heartbeat_interval=INTERVAL)
        seen = self._renewal()
        with ExitStack() as held:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                held.enter_context(lock)
                renewed = lease.acquire(PATIENCE + INTERVAL, INTERVAL / 5, cancel_check=lambda: self._renewal() > seen)
                held.enter_context(renewed)
            except Timeout:
                if not lock.is_locked:
                    raise BusyError(f"another process works on {folder}") from None
                host = self._other_host()
                raise BusyError(
                    f"a process on {host or 'another host'} works on {folder}; if none does, delete {self.lease_file.name}"
                ) from None
            except OSError as error:
                lacks = error.errno in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
                raise UserError(_without_locks(folder) if lacks else f"cannot write {folder}: {error.strerror}") from error
            yield

    def _other_host(self) -> str | None:
        """Return the host that has the lease; None if it is this one, or none has it."""
        owner = SoftFileLease(self.lease_file, lease_duration=PATIENCE).owner
        host = None if owner is None else owner.hostname.partition("?")[0]  # what follows names the processes of a container
        return None if host == platform.node() else host

    def _renewal(self) -> float:
        """Return when the lease was renewed last; 0 if none has it."""
        try:
            with self.lease_file.open("rb") as lease:  # opened, since what a network file system remembers of a file is old
                return os.fstat(lease.fileno()).st_mtime
        except OSError:
            return 0.0


def _without_locks(path: Path) -> str:
    told = f"the file system of {path} has no locks (flock), without which two processes could do the same run"
    return f"{told}: run in a folder on a local disk, or have it mounted with locks"
