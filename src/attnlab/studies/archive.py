"""The finished runs of a study in one file, which counts as done where it is unpacked."""

import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from filelock import FileLock
from typing_extensions import override

from attnlab.config import path_part
from attnlab.data.progress import progress
from attnlab.data.replacement import replacement
from attnlab.errors import BusyError, UserError, brief, no_folder, refusal
from attnlab.runs.clearing import set_aside
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import name_study
from attnlab.studies.folder import TUNING, StudyFolder

MOST_TIMES, ALWAYS = 1000, 2**26
"""An archive may grow this many times or to this many bytes; the same texts in every run pack very well."""
MOST_AT_ONCE = 2**16
"""Bytes that tarfile may read at once: it copies files in parts, and reads a header whole before anybody sees it."""


class Packed(NamedTuple):
    """What an archive holds.

    Attributes:
        runs: of the study.
        trials: of its tuning.
    """

    runs: list[RunFolder]
    trials: list[RunFolder]


class Unpacked(NamedTuple):
    """What came of an archive.

    Attributes:
        study: that it is of.
        added: runs that were not there.
        known: runs that were there already, and were left as they are.
        trials: of its tuning, that were not there.
    """

    study: StudyFolder
    added: list[RunFolder]
    known: list[RunFolder]
    trials: list[RunFolder]


def pack(study: StudyFolder, target: Path) -> Packed:
    """Write the finished runs of a study and of its tuning into one file: all that reports and comparisons read, and no model.

    A trial that diverged is finished too: nobody need train it again.

    The same runs make the same bytes.

    Args:
        study: with runs.
        target: the file.

    Raises:
        UserError: neither a run nor a trial is finished and whole, or the file cannot be written.
    """
    path_part(study.name)  # by which it is unpacked
    packed = Packed([*filter(_is_whole, study.runs)], [*filter(_is_settled, study.tuning.runs)])
    if not any(packed):
        meant = name_study(study.path)
        raise UserError(f"there is nothing to pack: no run in {study.path} is finished and whole{meant and f': {meant}'}")
    with tempfile.TemporaryDirectory() as scratch:
        copy = StudyFolder(Path(scratch, study.name))
        for own, other, runs in ((study, copy, packed.runs), (study.tuning, copy.tuning, packed.trials)):
            for run in runs:
                run.copy_results(other.run(run.place))
            plan = own.read_plan()
            if plan:
                other.write_plan(plan)
        files = [path for path in copy.path.rglob("*") if path.is_file()]
        try:
            with (
                replacement(target) as temporary,
                tarfile.open(temporary, "w:xz") as archive,
                progress("packing", len(files)) as advance,
            ):
                for path in sorted(files, key=lambda path: (path.name, path)):  # what is alike in all runs stands together
                    archive.add(path, path.relative_to(scratch).as_posix(), filter=_without_origin)
                    advance(1)
        except OSError as error:
            raise UserError(f"cannot write {target}: {error.strerror}") from error
    return packed


def _is_whole(run: RunFolder) -> bool:
    return run.state == "done" and run.is_whole()


def _is_settled(run: RunFolder) -> bool:
    """Tell whether nothing is left to be done for a trial: it is finished and whole, or its training diverged."""
    return _is_whole(run) or (run.state == "failed" and bool(run.divergence))


def _without_origin(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


def unpack(path: Path, root: Path) -> Unpacked:
    """Put the runs of an archive into a folder of studies, where they count as done.

    Args:
        path: of the archive.
        root: the folder, ``runs``.

    Raises:
        UserError: no archive of :func:`pack`, or one that is damaged.
    """
    if not path.is_file():
        raise UserError(f"{path} is a folder: name an archive" if path.is_dir() else f"there is no file {path}")
    try:
        with _Contents(path) as contents, tarfile.open(fileobj=contents, mode="r:") as archive:
            members = list(_check_members(archive, path))
            name = path_part(PurePosixPath(members[0].name).parts[0])
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=root, prefix=".unpack-") as scratch:
                archive.extractall(scratch, members, filter="data")
                found, study = StudyFolder(Path(scratch, name)), StudyFolder(root / name)
                damaged = [run for run in found.runs if not _is_whole(run)]
                for run in [*damaged, *(run for run in found.tuning.runs if not _is_settled(run))]:
                    raise UserError(f"{path} is damaged: {run.place} is not what a run wrote")
                if not (found.runs or found.tuning.runs):
                    raise UserError(f"{path} holds no run: name an archive that attnlab pack wrote")
                if study.path.is_file():
                    raise no_folder(study.path)
                trials, _ = _move(found.tuning, study.tuning)
                return Unpacked(study, *_move(found, study), trials)
    except (OSError, EOFError, LookupError, tarfile.TarError, lzma.LZMAError) as error:
        if isinstance(error, OSError) and (told := refusal(error, root)):
            raise told from error
        reason = "" if isinstance(error, tarfile.ReadError) else f" ({brief(error)})"  # that is one for each way to pack
        raise UserError(f"cannot unpack {path}, which is no archive of attnlab pack or a damaged one{reason}") from error


class _Contents(lzma.LZMAFile):
    """What an archive holds, of which no more is read at once than a header of :func:`pack` has, or a part of a file."""

    @override
    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= MOST_AT_ONCE:
            raise tarfile.ReadError("a header is too long")
        return super().read(size)


def _check_members(archive: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield what an archive holds, which is files of one study alone."""
    left = max(MOST_TIMES * path.stat().st_size, ALWAYS)
    studies = set()
    for member in archive:
        left -= abs(member.size) + tarfile.BLOCKSIZE  # a negative one has tarfile read the same header for ever
        member.mtime = 0
        parts = PurePosixPath(member.name).parts
        studies.add(parts[0])
        depth = len(parts) - (parts[1:2] == (TUNING,))
        is_written = member.isfile() and member.size >= 0 and member.name.isprintable()
        if left < 0 or not is_written or ".." in parts or depth not in (2, 4, 5) or len(studies) > 1:
            raise UserError(f"{path} holds {member.name!r}, which attnlab pack does not write: nothing is unpacked")
        yield member


def _fill(own: RunFolder, run: RunFolder) -> None:
    """Move what an archive has of a run into its folder, which is locked."""
    set_aside(own, own.read_record())
    # Whatever is moved when this is stopped is an interrupted run's, which the next one sets aside.
    last = {run.result_file, run.error_file}
    for path in sorted(run.path.iterdir(), key=lambda path: (path in last, path != run.record_file)):
        shutil.move(path, own.path / path.name)  # the study's folder may be a link to another disk


def _move(found: StudyFolder, study: StudyFolder) -> tuple[list[RunFolder], list[RunFolder]]:
    """Move runs to their study, and return those that were moved, and those that are done or at work there already; what was
    interrupted or has failed there is set aside.
    """
    added: list[RunFolder] = []
    known: list[RunFolder] = []
    for run in found.runs:
        own = study.run(run.place)
        try:
            with own.lock():
                is_new = not (own.has_result or (own.divergence and run.divergence))
                if is_new:
                    _fill(own, run)
        except BusyError:
            is_new = False
        (added if is_new else known).append(own)
    if plan := found.read_plan():
        with FileLock(study.lock_file):  # a sweep may be planning just now
            if not study.plan_file.exists():
                study.write_plan(plan)
    return added, known
