"""The C library's allocator, told how training uses memory."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt(3)."""


def keep_freed_memory() -> bool:
    """Let the process keep large blocks that it frees, for the next training step to use again.

    A step at 8,000 words allocates and frees several times 50 MB for the logits. By default glibc gives each of them back to
    the kernel, which then fills every page with zeros again when it is next touched.

    Returns:
        Whether there was a glibc to tell.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    largest = 2**31 - 1
    return bool(mallopt(M_MMAP_THRESHOLD, 2**30)) and bool(mallopt(M_TRIM_THRESHOLD, largest))
