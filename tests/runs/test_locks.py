"""The lock of a run where two hosts share its folder, and the system's own lock does not reach from one to the other."""

import fcntl
import json
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from attnlab.errors import BusyError
from attnlab.runs import locks
from attnlab.runs.locks import RunLock


@pytest.fixture(autouse=True)
def hosts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *arguments: None)
    monkeypatch.setattr(locks, "INTERVAL", 0.05)
    monkeypatch.setattr(locks, "PATIENCE", 1.0)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[RunLock, RunLock]:
    here, there = RunLock(tmp_path / ".lock"), RunLock(tmp_path / ".lock")
    there.host = "there"
    return here, there


def test_a_process_of_another_host_that_lives_is_busy(pair: tuple[RunLock, RunLock]) -> None:
    here, there = pair
    with there.hold():
        assert here.is_held
        with pytest.raises(BusyError, match="a process on there works on"), here.hold():
            pass
        assert there.holder_file.is_file(), "whoever is refused takes nothing away"
    assert not here.is_held
    with here.hold():
        assert there.is_held


def test_a_process_of_another_host_that_died_is_waited_for_once(pair: tuple[RunLock, RunLock]) -> None:
    here, there = pair
    there.holder_file.write_text('{"host": "there", "process": 1, "sign": 3}')
    begun = time.monotonic()
    with here.hold():
        assert time.monotonic() - begun >= 1.0
        assert there.is_held
    here.holder_file.write_text(json.dumps({"host": here.host, "process": 1, "sign": 3}))
    begun = time.monotonic()
    with here.hold():
        assert time.monotonic() - begun < 1.0, "of this host the system knows who is alive"


@pytest.mark.parametrize("left", [None, '{"host": "elsewhere", "process": 1, "sign": 3}'], ids=["nothing", "a dead one's sign"])
def test_of_two_hosts_that_begin_at_the_same_moment_one_does(
    left: str | None, pair: tuple[RunLock, RunLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked before either writes its sign."""
    here, there = pair
    if left:
        here.holder_file.write_text(left)
    look = here._find_dead
    with ExitStack() as other:

        def look_and_lose() -> bytes:
            seen = look()
            other.enter_context(there.hold())
            return seen

        monkeypatch.setattr(here, "_find_dead", look_and_lose)
        with pytest.raises(BusyError, match="a process on there"), here.hold():
            pass
        assert there.holder_file.is_file(), "whoever is refused takes nothing away"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"sign": 1}'])
def test_a_sign_that_says_nothing_holds_nobody_up(content: str, pair: tuple[RunLock, RunLock]) -> None:
    pair[0].holder_file.write_text(content)
    with pair[0].hold():
        assert pair[0].holder_file.is_file()
    assert not pair[0].holder_file.exists()
