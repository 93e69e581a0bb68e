"""The memory that a process uses."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnlab.training.memory import (
    PRODUCT_CACHES,
    PeakMemory,
    largest,
    limit_product_caches,
    read_peak_memory,
    reset_peak_memory,
)

MIB = 1 << 20


FAULTS = """
import resource, torch
from attnlab.training.memory import keep_freed_memory

def faults():
    torch.ones(1 << 24)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(1 << 24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(), keep_freed_memory(), min(faults() for _ in range(3)))  # the heap's end may lie elsewhere at first
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="glibc is asked")
def test_a_freed_block_is_used_again() -> None:
    """In a process of its own: pytest may run tests in a thread, which has another heap."""
    given_back, told, kept = subprocess.check_output([sys.executable, "-c", FAULTS], text=True).split()
    assert told == "True"
    assert int(given_back) > 20 > int(kept)  # 32 pages even where each has 2 MiB


def test_what_the_user_set_for_the_caches_of_products_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, limited = PRODUCT_CACHES
    monkeypatch.setenv(kept, "5")
    monkeypatch.setenv(limited, "")  # is restored after the test
    monkeypatch.delenv(limited)
    limit_product_caches()
    assert {name: os.environ[name] for name in PRODUCT_CACHES} == {kept: "5", limited: PRODUCT_CACHES[limited]}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak can be reset on Linux alone")
def test_a_peak_is_that_since_the_last_reset() -> None:
    cpu = torch.device("cpu")
    reset_peak_memory(cpu)
    before = read_peak_memory()
    block = torch.ones(256 * MIB // 4)
    high = read_peak_memory()
    assert high >= before + 200 * MIB
    del block
    assert read_peak_memory() == pytest.approx(high, rel=0.01)
    reset_peak_memory(cpu)
    assert read_peak_memory() < high - 200 * MIB


def test_a_run_that_goes_on_keeps_the_largest_peak() -> None:
    trainer: Any = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device("cpu")))
    memory = PeakMemory()
    memory.setup(trainer, trainer, "fit")
    own = memory.state_dict()
    assert own.keys() == {"peak_memory"}
    memory.load_state_dict({"peak_memory": 1 << 60})
    assert memory.peaks == {"peak_memory": 1 << 60}
    memory.load_state_dict({"peak_memory": 1})
    assert memory.state_dict() == {"peak_memory": 1 << 60}
    assert largest({"a": 2, "b": 1}, {"b": 3}) == {"a": 2, "b": 3}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_it_is_what_torch_allocated_there() -> None:
    trainer: Any = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device("cuda")))
    memory = PeakMemory()
    memory.setup(trainer, trainer, "fit")
    block = torch.ones(64 * MIB // 4, device="cuda")
    assert 64 * MIB <= memory.peaks["peak_gpu_memory"] < 4096 * MIB
    del block
