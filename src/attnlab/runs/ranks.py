"""What the other processes of a distributed run must know of the first.

Lightning starts them when the first has decided what becomes of the run; torchrun starts all at once.
"""

from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment

PATIENCE = timedelta(days=1)
"""For the first process, which may have to prepare data; one that fails ends the others."""
DONE, BEGUN = "done", "begun"


def tell_others(path: Path, *, is_done: bool) -> None:
    """Tell the processes that torchrun started whether a run is done already or begins.

    Args:
        path: the run's folder, as all of them were given it.
        is_done: whether there is nothing to be done.
    """
    if store := _store():
        store.set(_key(path), DONE if is_done else BEGUN)


def await_first(path: Path) -> bool:
    """Wait until the first process has decided what becomes of a run; return whether it is done already."""
    store = _store()
    if store is None:
        return False
    store.wait([_key(path)], PATIENCE)
    return bool(store.get(_key(path)) == DONE.encode())


def _key(path: Path) -> str:
    return f"attnlab {path}"


@cache
def _store() -> Any:
    """Return the store that the processes of torchrun share; None for those of anybody else."""
    if not TorchElasticEnvironment.detect():
        return None
    from torch.distributed.rendezvous import rendezvous  # which not every build of torch has

    return next(rendezvous("env://"))[0]
