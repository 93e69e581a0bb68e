"""A trained model in a folder to be shared: what it takes to open it, and a card that tells what it is."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.config import WITHOUT_EFFECT, without_keys
from attnlab.data.files import expand_home
from attnlab.data.replacement import write_atomically
from attnlab.errors import UserError
from attnlab.runs.assembly import build_task, prepare_task
from attnlab.runs.building import read_trusted_config, report_damage
from attnlab.runs.folder import RunFolder
from attnlab.runs.loading import load, load_task
from attnlab.runs.names import SHAPE
from attnlab.runs.sharing.card import write_card
from attnlab.runs.sharing.paths import shorten_paths


def export(run: Path, target: Path, *, licence: str | None = None) -> RunFolder:
    """Put the model of a finished run into a folder to be shared, which commands and :func:`load` open like the run itself.

    Its config lacks what decides no number (:data:`WITHOUT_EFFECT`), and the folders of this machine; see
    :func:`shorten_paths`.

    Args:
        run: folder of a finished run.
        target: the new folder; an empty one may be there.
        licence: that the model is given under, as its card tells it; None tells none.

    Raises:
        UserError: no finished run, a damaged or an exported one, one that names a class which is not trusted, a folder that
            is not empty or lies in the run's own, or one that cannot be written.
    """
    folder = RunFolder(expand_home(run))
    target = expand_home(target)
    _check_run(folder)
    _check_target(target, folder)
    predictor = load(folder.path)
    recorded = read_trusted_config(folder)
    config = shorten_paths(without_keys(recorded, WITHOUT_EFFECT))
    name = Path(os.path.abspath(target)).name
    card = write_card(folder, predictor, config, name=name, licence=licence, counts=_count_examples(folder, recorded))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as scratch:
            made = RunFolder(Path(scratch, name))
            _copy_model(folder, made, config, card)
            load_task(made)  # of which nothing may need what was left out
            made.path.rename(target)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
    return RunFolder(target)


def _check_run(folder: RunFolder) -> None:
    if folder.is_exported:
        raise UserError(f"{folder.path} was exported itself: copy it, or name the run that it was made of")
    if folder.result_file.is_file():
        folder.verify()
    state = folder.state
    if state == "missing":
        raise UserError(f"{folder.path} holds no run: name the folder of a finished run, {SHAPE}")
    if state != "done":
        raise UserError(f"{folder.path} holds a run that is not finished ({state}): the command that began it goes on")


def _check_target(target: Path, folder: RunFolder) -> None:
    if target.resolve().is_relative_to(folder.path.resolve()):
        raise UserError(f"{target} lies in the folder of the run: name one elsewhere")
    if target.is_dir() and not target.is_symlink():
        if any(target.iterdir()):
            raise UserError(f"{target} is not empty: name a new folder")
    elif target.exists() or target.is_symlink():
        raise UserError(f"{target} is there, and no empty folder: name a new one")


def _copy_model(folder: RunFolder, made: RunFolder, config: Mapping[str, Any], card: str) -> None:
    made.path.mkdir()
    for path in (folder.weights_file, folder.task_file, folder.result_file):
        shutil.copyfile(path, made.path / path.name)
    made.write_config(config)
    write_atomically(made.card_file, card)  # which may be edited later, and has no digest
    made.write_digests()


def _count_examples(folder: RunFolder, config: Mapping[str, Any]) -> dict[str, int]:
    """Count what a run was trained and chosen by, which its files do not tell; nothing where its data is no longer there."""
    try:
        with report_damage(folder.path):
            task = build_task(config)
            if task.data_fingerprint != folder.read_result().data:
                return {}
            prepare_task(config, task)
            return {split: len(task.examples(split)) for split in ("train", "val")}
    except UserError:
        return {}
