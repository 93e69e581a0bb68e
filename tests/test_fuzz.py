"""Random configs: each trains for a step, diverges, or ends in one line that says what is wrong; none hangs.

``ATTNLAB_FUZZ=2000 python -m pytest -m '' --dist load tests/test_fuzz.py`` tries as many, in two processes.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from commands import TINY, Cli, cli
from composing import composed
from conftest import CONF, options

__all__ = ["cli"]

TRIES = int(os.environ.get("ATTNLAB_FUZZ", "3"))
SERIES = 50
"""So many in one test, so that several processes share them."""
SECONDS = 60
STEP = ["trainer=debug", "logger=none", "trainer.limit_train_batches=1", "trainer.limit_val_batches=1"]
STEP += ["trainer.limit_test_batches=1", "callbacks.samples.examples=1"]

GROUPS = sorted({str(folder.relative_to(CONF)) for folder in CONF.rglob("*") if any(folder.glob("*.yaml"))})
LEFT_OUT = ("hydra", "logger", "trainer", "data", "task", "metrics")
"""Groups that need files or a server, or that the budget of a try is in."""
OWN = {override.partition("=")[0] for override in [*TINY, *STEP]} | {
    "cache_dir",  # any path is one
    "trainer.devices",  # starts processes
    "trainer.num_nodes",  # waits for them
    "trainer.default_root_dir",
    "batches.num_workers",  # starts processes
}
EDGES: dict[type, list[str]] = {
    bool: ["true", "false", "null", "2"],
    int: ["-1", "0", "1", "3", "1000000000000", "4294967296", "1.5", "null", "x"],
    float: ["-1", "0", "1", "0.5", "1e30", "-0.1", ".nan", ".inf", "-.inf", "null", "x"],
    str: ["''", "x", "null", "1", "[]", "../x", "'${x}'", "ä", "'a b'", "val/loss", "state"],
    list: ["[]", "[x]", "null", "3", "[1,1]", "[state,state]"],
    type(None): ["0", "1", "-1", "x", "0.5", "[]"],
}


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every key that holds a value, with the value."""
    if isinstance(node, dict):
        for key, item in node.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif not path.endswith("_"):
        yield path, node


CHOICES = [f"{group}={option}" for group in GROUPS if group.split("/")[0] not in LEFT_OUT for option in options(group)]
KEYS = {path: value for path, value in leaves(composed()) if path not in OWN and not path.startswith("hydra.")}
VALUES = [f"{path}={edge}" for path, value in KEYS.items() for edge in EDGES[type(value)]]

overrides = st.tuples(
    st.lists(st.sampled_from(CHOICES), max_size=4, unique_by=lambda choice: choice.partition("=")[0]),
    st.lists(st.sampled_from(VALUES), max_size=3, unique_by=lambda value: value.partition("=")[0]),
).map(lambda parts: [*parts[0], *parts[1]])


class HangError(BaseException):
    """A try took too long."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("series", range(-(-TRIES // SERIES)))
def test_any_config_trains_or_says_in_one_line_why_not(series: int, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    def hang(*_: object) -> None:
        raise HangError(f"more than {SECONDS} s")

    @seed(series)
    @settings(
        max_examples=min(SERIES, TRIES - series * SERIES),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=True,
    )
    @given(chosen=overrides)
    def attempt(chosen: list[str]) -> None:
        capsys.readouterr()
        before = signal.signal(signal.SIGALRM, hang)
        signal.alarm(SECONDS)
        try:
            status = cli("train", *STEP, *TINY, "threads=1", *chosen)
        except HangError as error:
            raise AssertionError(f"{chosen} took {error}") from error
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        told = capsys.readouterr().err
        if log := os.environ.get("ATTNLAB_FUZZ_LOG"):
            with Path(log).open("a", encoding="utf-8") as file:
                file.write(f"{status} {chosen} {told.splitlines()[-1] if told else ''}\n")
        assert "Traceback" not in told, f"{chosen}\n{told}"
        assert status in (0, 2) or "a lower learning rate or stronger clipping" in told, f"{chosen}\n{told}"
        if status:
            assert "attnlab: " in told.splitlines()[-1]

    attempt()
