"""Parameters that processes share out, by Lightning's FSDP."""

from collections.abc import Iterator
from contextlib import contextmanager

from lightning import Trainer
from lightning.pytorch.strategies import FSDPStrategy
from torch.distributed.fsdp import FullyShardedDataParallel


def shares_parameters(trainer: Trainer) -> bool:
    """Return whether each process has a share of the parameters alone."""
    return isinstance(trainer.strategy, FSDPStrategy)


@contextmanager
def whole_parameters(trainer: Trainer) -> Iterator[None]:
    """Bring shared parameters together, so that a process can use the model by itself; all processes must come here."""
    if not shares_parameters(trainer):
        yield
        return
    assert trainer.model is not None
    with FullyShardedDataParallel.summon_full_params(trainer.model, writeback=False):
        yield
