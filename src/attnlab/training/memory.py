"""The memory that a process uses: the C library's allocator is told how, and the peak is measured."""

import ctypes
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Parameters of glibc's mallopt(3)."""
PRODUCT_CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "16"}
"""Variables that oneDNN and its wrapper in torch read."""


def keep_freed_memory() -> bool:
    """Let the process keep large blocks that it frees, for the next step of training or search to use again.

    A step of training at 8,000 words allocates and frees several times 50 MB for the logits. By default glibc gives each of
    them back to the kernel, which then fills every page with zeros again when it is next touched.

    Returns:
        Whether there was a glibc to tell.
    """
    mallopt = getattr(_libc(), "mallopt", None)
    if mallopt is None:
        return False
    # By number: older versions refuse a threshold above 32 MiB.
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))


def limit_product_caches() -> None:
    """Let torch keep few of the products of matrices that it has prepared for a shape, unless the environment says how many.

    In bfloat16 on a CPU, oneDNN prepares a product for each new shape, and batches have ever new shapes: the thousand products
    that are kept by default grow to gigabytes. To be called before the first product, which reads the environment.
    """
    for name, count in PRODUCT_CACHES.items():
        os.environ.setdefault(name, count)


def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


def read_status(field: str) -> int:
    """Return a size that Linux knows of this process, in bytes, such as VmRSS.

    Raises:
        OSError: there is no such file here.
        LookupError: there is no such field.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    sizes = {line.partition(":")[0]: line.split() for line in lines}
    return 1024 * int(sizes[field][1])


def reset_peak_memory(device: torch.device) -> None:
    """Let the peak begin anew, where the system can: what an earlier run of this process needed is none of the next one's."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    if trim := getattr(_libc(), "malloc_trim", None):
        trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # proc(5): resets VmHWM


def read_peak_memory() -> int:
    """Return the largest resident set of this process so far, in bytes."""
    try:
        return read_status("VmHWM")
    except (OSError, LookupError):
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class PeakMemory(Callback):
    """Notes the largest resident set of the process and, on a GPU, what torch had allocated there at most, in bytes.

    Of a training that goes on from a checkpoint it is the largest of all its processes, as far as checkpoints were written.
    Under several processes at once it is that of the first one.
    """

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._device: torch.device | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Let the peak begin anew with the run, and not again with its test."""
        if self._device is None:
            self._device = trainer.strategy.root_device
            reset_peak_memory(self._device)

    @property
    def peaks(self) -> dict[str, int]:
        """The peak by where it is, under the names that a result has for them: of the host, and of a GPU where there is one."""
        found = {"peak_memory": read_peak_memory()}
        if self._device and self._device.type == "cuda":
            found["peak_gpu_memory"] = torch.cuda.max_memory_allocated(self._device)
        return largest(self._before, found)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return dict(self.peaks)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what was needed before the checkpoint."""
        self._before = largest(self._before, state_dict)


def largest(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Return the larger of two sizes under every name that either has."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
