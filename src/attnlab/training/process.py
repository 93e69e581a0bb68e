"""What a process is told before it trains or searches, and when it may ask others of the same training."""

import torch
from lightning import Trainer

from attnlab.training.memory import keep_freed_memory, limit_product_caches

BATCHES_BETWEEN = 20
"""Batches from one question, for whose answer a device is waited for, to the next."""


def is_time_to_ask(trainer: Trainer, batch_idx: int) -> bool:
    """Tell whether the processes of a training speak with each other after this batch; one alone has nobody to wait for."""
    return trainer.world_size == 1 or batch_idx % BATCHES_BETWEEN == 0 or trainer.is_last_batch


def prepare_process() -> None:
    """Let the process keep memory that it frees, keep few prepared products of matrices, and compute float32 in float32.

    On a GPU cuDNN would compute recurrent networks and convolutions in TF32, which keeps 10 bits of a number's digits where
    float32 has 23. torch computes all other products in float32, so that variants of a study would differ in that too.
    """
    keep_freed_memory()
    limit_product_caches()
    torch.backends.cudnn.allow_tf32 = False


def share_threads(processes: int) -> None:
    """Compute with this process' share of the threads, of several that train on the processors of one machine."""
    torch.set_num_threads(max(torch.get_num_threads() // processes, 1))
