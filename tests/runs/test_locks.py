"""The lock of a run where two hosts share its folder, and the system's own lock does not reach from one to the other."""

import fcntl
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from attnlab.errors import BusyError
from attnlab.runs import locks
from attnlab.runs.locks import RunLock
from studies.sweeps import wait_for


@pytest.fixture(autouse=True)
def hosts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *arguments: None)
    monkeypatch.setattr(locks, "INTERVAL", 0.1)
    monkeypatch.setattr(locks, "PATIENCE", 1.0)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than filelock waits before it takes a file that says nothing for one that nobody will finish, or a busy machine."""
    monkeypatch.setattr(locks, "PATIENCE", 6.0)


@pytest.fixture
def lock(tmp_path: Path) -> RunLock:
    return RunLock(tmp_path / ".lock")


def record(host: str, process: int, start: str = "") -> str:
    """What filelock writes of the process that has a lease."""
    return f"filelock/2\npid={process}\nhost={host}\nmode=lease\ntoken=a\nduration={locks.PATIENCE!r}\n{start}"


@contextmanager
def process_on(host: str, lock: RunLock) -> Iterator[None]:
    """A process of another host, which holds the lock as long as this lasts."""
    ended = Event()
    lock.path.touch()
    lock.lease_file.write_text(record(host, os.getpid()))

    def renew() -> None:
        while not ended.wait(0.1):
            os.utime(lock.lease_file)

    process = Thread(target=renew)
    process.start()
    yield
    ended.set()
    process.join()
    lock.lease_file.unlink()


@pytest.mark.usefixtures("patience")
def test_a_process_of_another_host_that_lives_is_busy(lock: RunLock) -> None:
    with process_on("there", lock):
        assert lock.is_held
        begun = time.monotonic()
        with pytest.raises(BusyError, match="a process on there works on"), lock.hold():
            pass
        assert time.monotonic() - begun < 5.0, "its next sign of life tells enough"
        assert lock.lease_file.read_text() == record("there", os.getpid()), "whoever is refused takes nothing away"
    assert not lock.is_held


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("host", "age", "is_held"),
    [("there", 0, True), ("there", 3600, False), (f"{platform.node()}?pid=1", 0, False)],
    ids=["alive", "silent", "of this host"],
)
def test_a_lease_tells_only_of_another_hosts_process_that_was_alive_lately(
    host: str, age: int, is_held: bool, lock: RunLock
) -> None:
    """After a question mark stand the processes of a container, which is no other host."""
    lock.path.touch()
    lock.lease_file.write_text(record(host, 1))
    os.utime(lock.lease_file, (time.time() - age,) * 2)
    assert lock.is_held == is_held


def test_a_process_of_another_host_that_died_is_waited_for_once(lock: RunLock) -> None:
    lock.lease_file.write_text(record("there", os.getpid()))
    begun = time.monotonic()
    with lock.hold():
        assert time.monotonic() - begun >= 1.0
    assert not lock.lease_file.exists()


@pytest.mark.usefixtures("patience")
def test_of_this_host_the_system_knows_who_is_alive(lock: RunLock) -> None:
    with lock.hold():
        left = lock.lease_file.read_text()
    lock.lease_file.write_text(left.replace("start=", "start=9"))  # the number of a process that died is another's now
    assert not lock.is_held
    begun = time.monotonic()
    with lock.hold():
        assert time.monotonic() - begun < 5.0


def test_a_lease_is_renewed(lock: RunLock) -> None:
    with lock.hold():
        first = lock.lease_file.stat().st_mtime
        wait_for(lambda: lock.lease_file.stat().st_mtime > first)


@pytest.mark.parametrize("left", ["", "elsewhere"], ids=["nothing", "a dead one's lease"])
def test_of_two_hosts_that_begin_at_the_same_moment_one_does(left: str, lock: RunLock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked before either has the lease."""
    if left:
        lock.lease_file.write_text(record(left, 1))
    look = lock._renewal

    def look_and_lose() -> float:
        seen = look()
        monkeypatch.setattr(lock, "_renewal", look)
        lock.lease_file.write_text(record("there", os.getpid()))
        return seen

    monkeypatch.setattr(lock, "_renewal", look_and_lose)
    with pytest.raises(BusyError, match="a process on there"), lock.hold():
        pass
    assert lock.lease_file.is_file(), "whoever is refused takes nothing away"


@pytest.mark.exhaustive
@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("content", ["{", "filelock/2\n", "filelock/2\nhost=there\n", "\xff"])
def test_a_lease_that_says_nothing_holds_nobody_up(content: str, lock: RunLock) -> None:
    lock.lease_file.write_text(content, encoding="latin-1")
    with lock.hold():
        assert lock.lease_file.is_file()
    assert not lock.lease_file.exists()


@pytest.mark.exhaustive
@pytest.mark.usefixtures("patience")
def test_an_empty_lease_is_told_of(lock: RunLock) -> None:
    """A host that lost its power leaves one, and so does a process that is just about to write it."""
    lock.lease_file.touch()
    with pytest.raises(BusyError, match=r"if none does, delete \.lock\.lease"), lock.hold():
        pass
