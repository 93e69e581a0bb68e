"""Beginning a run, or going on with one that was interrupted, and never mixing two of them."""

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnlab.data.replacement import replacement
from attnlab.runs.clearing import REPLACED, last_checkpoints, set_aside
from attnlab.runs.digests import DamagedFileError
from attnlab.runs.folder import RunFolder
from attnlab.runs.record import RunRecord, RunResult
from attnlab.training.checkpoints import is_whole

log = logging.getLogger(__name__)

OTHER_SETTINGS = "is another one, by its config, data or version"
OTHER_CODE = "was made by other code"
DAMAGED = "is damaged, and has no checkpoint to go on from that is whole"


@dataclass(frozen=True)
class Decision:
    """What is to be done in a run's folder.

    Attributes:
        deed: nothing, since the run is "done", or since other code did it and its results are "kept", or since a trial has
            "diverged"; "resume" goes on with what is there; "begin" sets that aside.
        previous: what is there; None where that is no run, or none that this version can read.
        result: of a run that is done or kept.
        reason: why a run that is there is set aside.
        checkpoint: of a training that is gone on with, the last one that is whole.
    """

    deed: Literal["done", "kept", "diverged", "resume", "begin"]
    previous: RunRecord | None
    result: RunResult | None = None
    reason: str = ""
    checkpoint: Path | None = None


def decide(folder: RunFolder, record: RunRecord, *, resume: bool, keep_results: bool, is_trial: bool = False) -> Decision:
    """Decide what is to be done in a run's folder, and change nothing in it.

    Args:
        folder: the run's own.
        record: of what shall be run.
        resume: go on with what is there already, if it is the same run.
        keep_results: take over the results of a run that differs in its code alone.
        is_trial: of a tuning, whose worst outcome is that it diverges.

    Raises:
        UserError: a result that cannot be read, although it may be whole.
    """
    previous = folder.read_record()
    if previous is None:
        return Decision("begin", None)
    if not resume:
        return Decision("begin", previous, reason="is not to be gone on with")
    is_same = previous.id == record.id
    is_accepted = previous.settings == record.settings and (keep_results or record.code in previous.accepted_code)
    if (is_same or is_accepted) and (result := _read_result(folder)) is not None:
        return Decision("done" if is_same else "kept", previous, result)
    if is_same and is_trial and folder.divergence:
        return Decision("diverged", previous)
    if is_same:
        checkpoint = None if previous.fit else _find_checkpoint(folder)
        if checkpoint or _is_trained(folder, previous):
            return Decision("resume", previous, checkpoint=checkpoint)
        has_trained = previous.fit or any(path.exists() for path in last_checkpoints(folder))
        return Decision("begin", previous, reason=DAMAGED if has_trained else "")
    return Decision("begin", previous, reason=OTHER_CODE if previous.settings == record.settings else OTHER_SETTINGS)


def begin_run(folder: RunFolder, record: RunRecord, decision: Decision, *, resume: bool) -> tuple[RunRecord, RunResult | None]:
    """Make a run's folder ready for what is to be done in it.

    What another run left there, such as one of another config, of other data or of other code, is set aside.

    Args:
        folder: the run's own, locked.
        record: of what shall be run.
        decision: of :func:`decide`.
        resume: as it was decided with.

    Returns:
        The record of the run, and its result if it is done already.
    """
    previous = decision.previous
    if previous is None or decision.deed == "begin":
        if decision.reason == DAMAGED:
            log.warning("%s %s: the training starts anew", folder.path, DAMAGED)
        if aside := set_aside(folder, previous):
            log.info("%s %s: what was there is in %s now", folder.path, decision.reason, aside)
        folder.write_record(record)  # first: whoever is stopped while a training is taken over leaves the folder of a run
        if resume and _share_training(folder, record):
            folder.write_record(record)
        return record, None
    folder.error_file.unlink(missing_ok=True)
    if decision.result is not None:
        _renew(folder, previous, record)
        return previous, decision.result
    if decision.checkpoint is not None and decision.checkpoint != folder.last_checkpoint:
        log.warning("%s is damaged or gone: going on from the one before it", folder.last_checkpoint)
        # In its place: the next one that is written moves what lies there to where this one was.
        decision.checkpoint.replace(folder.last_checkpoint)
    folder.result_file.unlink(missing_ok=True)  # before the digests, without which nobody would see that it is damaged
    folder.digests_file.unlink(missing_ok=True)
    previous.restarts, previous.process = previous.restarts + 1, record.process
    previous.base = record.base or previous.base
    folder.write_record(previous)
    return previous, None


def _is_trained(folder: RunFolder, record: RunRecord) -> bool:
    """Tell whether what a run's training left is there, and whole."""
    checkpoint = record.fit.get("checkpoint")
    is_there = checkpoint is not None and is_whole(folder.path / checkpoint)
    # Nothing but a training can write these anew.
    return is_there and {folder.record_file, folder.curve_file}.isdisjoint(folder.altered_files())


def _find_checkpoint(folder: RunFolder) -> Path | None:
    """Return the checkpoint that a training can go on from; None where there is none that is whole."""
    best = folder.best_checkpoint
    if best.exists() and not is_whole(best):  # it may stay the best one, which the tests are to be made with
        return None
    return next((path for path in last_checkpoints(folder) if is_whole(path)), None)


def _read_result(folder: RunFolder) -> RunResult | None:
    """Return the result, or None where there is none, or it or what came with it is damaged and will be written anew."""
    try:
        if not folder.result_file.is_file():
            return None
        folder.verify()
        return folder.read_result()
    except DamagedFileError:
        return None


def _renew(folder: RunFolder, previous: RunRecord, asked: RunRecord) -> None:
    """Note of a finished run for which other code its results stand, none once the code is what it was, and which study it is
    of now.
    """
    others = [code for code in previous.accepted_code if code != asked.code]
    accepted = [] if previous.code == asked.code else [*others, asked.code]
    base = asked.base or previous.base
    has_digests = folder.digests_file.is_file()
    if (accepted, base) != (previous.accepted_code, previous.base):
        previous.accepted_code, previous.base = accepted, base
        if has_digests:  # whoever is stopped before there are new ones leaves those of all other files
            folder.write_digests(without=[folder.record_file])
        folder.write_record(previous)
    if has_digests and not folder.is_vouched_for:
        folder.write_digests()


def _share_training(folder: RunFolder, record: RunRecord) -> bool:
    """Take over what another run of the same name has trained, one that was set aside included, if only the search or metrics
    are to be others; tell whether.
    """
    forms = ("*/*", f"{REPLACED}/*/*") if folder.is_of_study else ()
    for path in (path for form in forms for path in sorted(folder.study.glob(f"{form}/{folder.record_file.name}"))):
        other = RunFolder(path.parent)
        trained = other.read_record()
        if trained is None or trained.training != record.training or path.parent == folder.path.absolute():
            continue
        if not _is_trained(other, trained):
            continue
        names = dict.fromkeys([trained.fit["checkpoint"], *(file.name for file in other.files_of_training)])
        for name in sorted(names, key=folder.last_checkpoint.name.__eq__):  # it comes last: without it nothing is gone on with
            source, target = other.path / name, folder.path / name
            if source.is_file() and source != target:  # one that is kept elsewhere is named in full
                target.parent.mkdir(parents=True, exist_ok=True)
                with replacement(target) as temporary:
                    shutil.copy2(source, temporary)
        record.fit = trained.fit
        return True
    return False
