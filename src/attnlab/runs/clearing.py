"""What lies in the folder that a run is given, and what of it may go."""

import shutil
from pathlib import Path

from attnlab.data.replacement import LEFTOVER
from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from attnlab.runs.record import RunRecord
from attnlab.training.checkpoints import earlier_checkpoint
from attnlab.training.loggers import FOLDERS

REPLACED = ".replaced"
"""Folder beside the variants for runs that another one took the place of."""


def last_checkpoints(folder: RunFolder) -> tuple[Path, Path]:
    """Return where the checkpoints are that a training is gone on from, the newest first."""
    return folder.last_checkpoint, earlier_checkpoint(folder.last_checkpoint)


def find_foreign_files(folder: RunFolder) -> list[str]:
    """Return the names of what lies in a folder that holds no run.

    One whose record cannot be read may be another tool's: it holds a run if there is a result or a checkpoint too, or nothing
    but what runs write.
    """
    if not folder.path.is_dir() or _has_costly_files(folder) or folder.read_record() is not None:
        return []
    if folder.record_file.exists():
        return _find_unknown_files(folder)
    held = {path.name for path in folder.path.iterdir() if not LEFTOVER.fullmatch(path.name)}
    return sorted(held - {*folder.files_to_keep, folder.error_file.name})


def check_folder(folder: RunFolder) -> None:
    """Refuse a folder that holds something else than a run; to be called before anything in it is changed.

    Raises:
        UserError: it does.
    """
    if foreign := find_foreign_files(folder):
        names = ", ".join(foreign[:3])
        raise UserError(f"{folder.path} is no folder of a run, and holds {names}: choose another one, or empty it")


def _find_unknown_files(folder: RunFolder) -> list[str]:
    """Return the names of what no run writes by itself."""
    known = folder.own_names | {*FOLDERS} | {path.name for path in last_checkpoints(folder)}
    return sorted(path.name for path in folder.path.iterdir() if path.name not in known and not LEFTOVER.fullmatch(path.name))


def _has_costly_files(folder: RunFolder) -> bool:
    """Tell whether something is there that has cost training."""
    costly = folder.result_file, folder.best_checkpoint, *last_checkpoints(folder)
    return any(path.exists() for path in costly)


def remove_leftovers(folder: RunFolder) -> None:
    """Remove what writers that were killed left beside their files; nobody else writes while the lock is held."""
    for path in [*folder.path.glob("*.tmp"), *folder.path.glob("*/*.tmp")]:
        is_written = path.parent in (folder.evaluations, folder.probes)  # which is done without the lock
        if LEFTOVER.fullmatch(path.name) and path.is_file() and not is_written:
            path.unlink(missing_ok=True)


def is_unused(folder: RunFolder) -> bool:
    """Tell whether no run was ever begun in the folder that a command was to begin one in."""
    return {path.name for path in folder.path.iterdir()} <= set(folder.files_to_keep)


def remove_unused(folder: RunFolder, made: Path) -> None:
    """Remove a folder in which no run was begun, and those above it that are empty then, as far as the command made them.

    Args:
        folder: of the run.
        made: the outermost folder that the command made.

    Raises:
        BusyError: another process begins a run here.
    """
    with folder.lock():
        shutil.rmtree(folder.path)
    for parent in folder.path.absolute().parents:
        if not parent.is_relative_to(made) or any(parent.iterdir()):
            break
        parent.rmdir()


def set_aside(folder: RunFolder, previous: RunRecord | None) -> Path | None:
    """Empty a folder; what has cost training, or may be no run's, is kept elsewhere, and it is returned where.

    Raises:
        UserError: the folder is none of a run.
    """
    check_folder(folder)
    left = [path for path in folder.path.iterdir() if path.name not in folder.files_to_keep]
    is_unread = previous is None and folder.record_file.exists()
    worth_keeping = _has_costly_files(folder) or is_unread or bool(_find_unknown_files(folder))
    variant, seed = folder.path.absolute().parts[-2:]
    base = folder.study / REPLACED / variant / f"{seed},{previous.id if previous else 'unknown'}"
    places = (base.with_name(f"{base.name},{n}") for n in range(1, 10**6))
    # One without a record is of a stop while it was filled.
    place = next(path for path in places if not path.exists() or (previous and not (path / folder.record_file.name).exists()))
    aside = place if worth_keeping or place.exists() else None
    if aside:
        aside.mkdir(parents=True, exist_ok=True)
    for path in sorted(left, key=folder.record_file.__eq__):  # it goes last: what is left after a stop is still a run's
        if aside and path.is_dir() and (aside / path.name).exists():
            shutil.copytree(path, aside / path.name, dirs_exist_ok=True)
            shutil.rmtree(path)
        elif aside:
            shutil.move(path, aside / path.name)  # the folder may be a link to another disk
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return aside
