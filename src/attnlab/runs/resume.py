"""Beginning a run, or going on with one that was interrupted, and never mixing two of them."""

import shutil

from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from attnlab.runs.record import RunRecord, RunResult

REPLACED = ".replaced"
"""Folder beside the variants for runs that another one took the place of."""


def begin_run(folder: RunFolder, record: RunRecord, *, resume: bool, keep_results: bool) -> tuple[RunRecord, RunResult | None]:
    """Find out what is to be done in a run's folder, and make it ready for that.

    What another run left there, such as one of another config, of other data or of other code, is set aside.

    Args:
        folder: the run's own, locked.
        record: of what shall be run.
        resume: go on with what is there already, if it is the same run.
        keep_results: take over the results of a run that differs in its code alone.

    Returns:
        The record of the run, and its result if it is done already.
    """
    previous = folder.read_record()
    if previous is not None and resume and is_current(previous, record, keep_results=keep_results):
        folder.error_file.unlink(missing_ok=True)
        result = _read_result(folder)
        if result is not None:
            _accept_code(folder, previous, record.code)
            return previous, result
        if folder.last_checkpoint.is_file() and previous.id == record.id:
            previous.restarts, previous.process = previous.restarts + 1, record.process
            folder.write_record(previous)
            return previous, None
    _set_aside(folder, previous)
    if resume:
        _share_training(folder, record)
    folder.write_record(record)
    return record, None


def is_current(previous: RunRecord, record: RunRecord, *, keep_results: bool) -> bool:
    """Tell whether what a folder holds is the run that is asked for, or may stand for it."""
    if previous.id == record.id:
        return True
    return previous.settings == record.settings and (keep_results or record.code in previous.accepted_code)


def _read_result(folder: RunFolder) -> RunResult | None:
    try:
        return folder.read_result()
    except UserError:  # not written, or damaged
        folder.result_file.unlink(missing_ok=True)
        return None


def _accept_code(folder: RunFolder, previous: RunRecord, code: str) -> None:
    """Note for which other code the results stand; for none, once the code is what it was."""
    accepted = [] if previous.code == code else [*(c for c in previous.accepted_code if c != code), code]
    if accepted != previous.accepted_code:
        previous.accepted_code = accepted
        folder.write_record(previous)


def _share_training(folder: RunFolder, record: RunRecord) -> None:
    """Take over what another run of the same name has trained, if only the search is to be another one."""
    for path in sorted(folder.study.glob(f"*/*/{folder.record_file.name}")):
        other = RunFolder(path.parent)
        trained = other.read_record()
        if trained is None or trained.training != record.training or not trained.fit or path.parent == folder.path.absolute():
            continue
        for source, target in zip(other.files_of_training, folder.files_of_training, strict=True):
            if source.is_file():
                shutil.copy2(source, target)
        record.fit = trained.fit
        return


def _set_aside(folder: RunFolder, previous: RunRecord | None) -> None:
    """Empty a folder; what has cost training is kept elsewhere."""
    left = [path for path in folder.path.iterdir() if path.name not in folder.files_to_keep]
    worth_keeping = folder.result_file.exists() or folder.last_checkpoint.exists()
    if worth_keeping:
        variant, seed = folder.path.absolute().parts[-2:]
        base = folder.study / REPLACED / variant / f"{seed},{previous.id if previous else 'unknown'}"
        aside = next(path for n in range(1, 10**6) if not (path := base.with_name(f"{base.name},{n}")).exists())
        aside.mkdir(parents=True)
    for path in left:
        if worth_keeping:
            path.rename(aside / path.name)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
