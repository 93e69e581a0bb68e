"""Beginning a run, or going on with one that was interrupted, and never mixing two of them."""

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from attnlab.errors import BusyError
from attnlab.studies.collection import LOCK

RECORD = "run.json"
TRAINED = ("best.ckpt", "last.ckpt", "metrics.jsonl")
KEPT = (".hydra", LOCK, "run.log", ".replaced")


@dataclass
class Begun:
    """``run.json``: what a folder's run is, written before it trains.

    Attributes:
        id: the run's identity.
        name: of the study or sweep.
        variant: what it is called there.
        overrides: what makes the variant.
        seed: of weights, batches and dropout.
        training: identity of its training, which runs that differ in their search alone share.
        recipe: identity of all but its seed, which the seeds of a variant share.
        restarts: how often it went on from a checkpoint.
        process: host and process that worked on it last.
        fitted: once it is trained, what the training came to; only the tests are left then.
    """

    id: str
    name: str
    variant: str
    overrides: list[str]
    seed: int
    training: str
    recipe: str
    restarts: int = 0
    process: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    fitted: dict[str, Any] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write the record."""
        write_atomically(folder / RECORD, json.dumps(asdict(self), indent=1))


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a run's lock; the system takes it from a process that dies.

    Raises:
        BusyError: another process works on this run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # Whoever only looks whether a lock is held holds it for a moment.
        with FileLock(folder / LOCK, timeout=1.0, poll_interval=0.1):
            yield
    except Timeout:
        raise BusyError(f"another process works on {folder}") from None


def begin(folder: Path, run: Begun, *, resume: bool) -> tuple[Begun, dict[str, Any] | None]:
    """Find out what is to be done in a run's folder, and make it ready for that.

    What another run left there, such as one of another config or of other data, goes to ``.replaced/`` beside the variants.

    Args:
        folder: the run's own, locked.
        run: what shall be run.
        resume: go on with what is there already, if it is the same run.

    Returns:
        The record of the run, and its result if it is done already.
    """
    there = found(folder)
    if there is not None and there.id == run.id and resume:
        (folder / "error.txt").unlink(missing_ok=True)
        try:
            return there, json.loads((folder / "result.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not written, or damaged
            (folder / "result.json").unlink(missing_ok=True)
        if (folder / "last.ckpt").is_file():
            there.restarts, there.process = there.restarts + 1, run.process
            there.save(folder)
            return there, None
    _set_aside(folder, there)
    if resume:
        _share_training(folder, run)
    run.save(folder)
    return run, None


def _share_training(folder: Path, run: Begun) -> None:
    """Take over what another run of the same name has trained, if only the search is to be another one."""
    for path in sorted(folder.parents[1].glob(f"*/*/{RECORD}")):
        other = found(path.parent)
        if other is not None and other.training == run.training and other.fitted and path.parent != folder:
            for name in TRAINED:
                if (path.parent / name).is_file():
                    shutil.copy2(path.parent / name, folder / name)
            run.fitted = other.fitted
            return


def found(folder: Path) -> Begun | None:
    """Return the record of the run that a folder holds, or None."""
    try:
        return Begun(**json.loads((folder / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _set_aside(folder: Path, there: Begun | None) -> None:
    """Empty a folder; what has cost training is kept elsewhere."""
    left = [path for path in folder.iterdir() if path.name not in KEPT]
    worth_keeping = any((folder / name).exists() for name in ("result.json", "last.ckpt"))
    if worth_keeping:
        base = folder.parents[1] / ".replaced" / folder.parent.name / f"{folder.name},{there.id if there else 'unknown'}"
        aside = next(path for n in range(1, 10**6) if not (path := base.with_name(f"{base.name},{n}")).exists())
        aside.mkdir(parents=True)
    for path in left:
        if worth_keeping:
            path.rename(aside / path.name)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that whoever reads it finds all of it or nothing."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
