import gc
import os
import re
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.training.process import prepare_process

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"


SOMEBODYS = re.compile(r"COLUMNS|LINES|FORCE_COLOR|WANDB_.*|SLURM_.*")
"""Variables of a terminal, an account or a job."""


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test depends on what is somebody's own, or changes it: terminal, W&B account, job of SLURM, caches in the home."""
    folder = tmp_path_factory.getbasetemp()
    own = {"ATTNLAB_CACHE": "cache", "WANDB_DATA_DIR": "wandb", "JUPYTER_RUNTIME_DIR": "jupyter"}
    with pytest.MonkeyPatch.context() as patch:
        for name in filter(SOMEBODYS.fullmatch, [*os.environ]):
            patch.delenv(name)
        for name, place in own.items():
            patch.setenv(name, str(folder / place))
        patch.setenv("WANDB_MODE", "offline")
        yield


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """No test depends on how many threads there are."""
    torch.set_num_threads(1)


def options(group: str) -> list[str]:
    """Names of the options of a config group, found by listing conf/: a new one is tested without anyone remembering."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def exhaustive_but(kept: Container[Any], values: Iterable[Any]) -> list[Any]:
    """Parameters of a test, of which ``make test`` takes those that are kept, and ``make test-all`` all."""
    return [value if value in kept else _exhaustive(value) for value in values]


def _exhaustive(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.exhaustive)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test that is marked ``few``, ``make test`` takes so many, spread over all; ``make test-all`` all."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("exhaustive"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for alike in cases.values():
        count = alike[0].get_closest_marker("few").args[0]  # type: ignore[union-attr]
        kept = {number * len(alike) // count for number in range(count)}
        for number, item in enumerate(alike):
            if number not in kept:
                item.add_marker("exhaustive")


def pytest_collection_finish() -> None:
    """Spare what was imported the search for garbage, which tests that compose configs would start again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """Where a test runs: always on the CPU, and on a GPU too where there is one, in full float32."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)  # as torch has it, and afterwards again
    prepare_process()
    made = torch.device(request.param)
    if made.type == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return made


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Real corpora, where they are at hand."""
    root = Path(os.environ.get("ATTNLAB_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not root.is_dir():
        pytest.skip("no real corpora here; set ATTNLAB_TEST_DATA")
    return root
