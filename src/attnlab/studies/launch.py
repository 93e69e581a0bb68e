"""Carrying out runs: one here, or a study's, each in a process of its own, so that whatever ends one, the others run on."""

import logging.config
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import mean
from types import MappingProxyType
from typing import Any, NamedTuple

from filelock import FileLock

from attnlab.config import ComposedConfig, HydraJob, resolve, run_hydra, settle, targets, trust, with_values
from attnlab.data.processes import follow_parent, is_first_process
from attnlab.errors import BusyError, PartnerError, StoppedError, UserError, escape_output, printable, warn
from attnlab.runs.folder import RunFolder, State
from attnlab.runs.names import DIVERGED
from attnlab.runs.record import RunResult, metric_name
from attnlab.runs.waiting import choose_wait_policy
from attnlab.studies.collection import Study, collect
from attnlab.studies.plan import Plan
from attnlab.studies.settings import check_single, read_settings
from attnlab.terminal import tell

DONE, CRASHED, MISTAKEN, TOLD, BUSY, STOPPED = 0, 1, 2, 3, 75, 130
"""How a run's process ends."""


def run_single(job: HydraJob) -> RunResult:
    """Carry out one run in this process; a failure is written down in its folder, if the run was begun.

    Returns:
        What the run came to.

    Raises:
        UserError: a mistake in its config or its files.
        BusyError: another process works on it.
        StoppedError: it was asked to stop.
    """
    choose_wait_policy()
    from attnlab.runs.clearing import is_unused, remove_unused
    from attnlab.runs.execution import execute  # torch and Lightning: seconds

    logging.raiseExceptions = False  # a log that cannot be written is no reason for a traceback a line
    try:
        config = settle(job.config)
        if config.get("study"):  # what a report of this one run could not read
            check_single(read_settings(config["study"], config["metrics"]))
        return execute(config, job.folder, job.overrides)
    except (BusyError, PartnerError, StoppedError):
        raise
    except UserError as error:
        folder = RunFolder(job.folder)
        try:
            not_begun = is_unused(folder)
            if not_begun and job.made:
                remove_unused(folder, job.made)
        except (OSError, UserError, BusyError):
            not_begun = False
        if not (not_begun or folder.is_finished):  # of a finished run it says nothing that the command was mistaken
            _note(folder, f"{error}\n")
        raise
    except Exception as error:
        _note(RunFolder(job.folder), _describe(error))
        raise


def _describe(error: Exception) -> str:
    """Return what is kept of why a run failed: the whole traceback, unless its training diverged, which is no bug."""
    return f"{DIVERGED}: {error}\n" if isinstance(error, FloatingPointError) else traceback.format_exc()


def _note(folder: RunFolder, text: str) -> bool:
    """Write down how a run failed, where there is a folder of it, and no other process works on it."""
    from attnlab.runs.clearing import find_foreign_files

    try:
        if (folder.is_locked and is_first_process()) or find_foreign_files(folder):  # the lock is the first one's for all
            return False
        folder.write_error(text)
    except OSError:
        return False
    return True


def run_study(plan: Plan, hashes: Mapping[str, str]) -> None:
    """Let Hydra's sweeper and launcher carry out the runs of a study, as far as they are not done.

    Args:
        plan: of the study.
        hashes: see :func:`run_in_study`.

    Raises:
        UserError: a config that does not compose.
        KeyboardInterrupt: the study was asked to stop, and its runs have stopped.
    """
    plan.save()
    values = {run.folder: dict(run.values) for run in plan.runs if run.values}
    # All runs are read for it, which after every run would take time with the square of their number.
    progress = max(1, len(plan.runs) // 100)
    owner = Owner(socket.gethostname(), os.getpid())
    work = partial(
        run_in_study, owner=owner, values=values, progress=progress, base=plan.base, hashes=hashes, varied=plan.varied
    )
    run_hydra(["--multirun", "--config-dir", str(plan.root), *plan.arguments], plan.config_name, work)


class Owner(NamedTuple):
    """The process of a study, which a launcher's worker may outlive.

    Attributes:
        host: that it is on.
        process: its number there.
    """

    host: str
    process: int

    def is_gone(self) -> bool:
        """Tell whether it died; never of one on another host, nor to a job of SLURM, which is meant to go on without it."""
        if self.process == os.getpid() or self.host != socket.gethostname() or "SLURM_JOB_ID" in os.environ:
            return False
        if self.process == _PARENT:
            return os.getppid() != _PARENT
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # of another user
            pass
        return False


_PARENT = os.getppid()


def run_in_study(
    job: HydraJob,
    owner: Owner,
    values: Mapping[str, Mapping[str, Any]],
    progress: int,
    base: str = "",
    hashes: Mapping[str, str] = MappingProxyType({}),
    varied: Collection[str] = (),
) -> float:
    """Carry out one run of a study; Hydra's launchers call it.

    A failure is written down in the run's folder, and is not raised: what ends a sweep differs from launcher to launcher. Once
    the study's process is gone, the run is stopped, and the worker of a launcher that called this ends.

    Args:
        job: the run.
        owner: the process of the study.
        values: by the folder of a run below that of the study, what it is given beside its overrides.
        progress: after how many runs the study's progress is told.
        base: hash of the config that all runs share.
        hashes: by folder too, of the configs that the sweep began with: launchers compose each when its turn comes.
        varied: keys that these hashes know nothing of.

    Returns:
        The best of what the run monitored on the validation set, for a sweeper that wants to know; NaN if it failed.

    Raises:
        KeyboardInterrupt: the study was asked to stop, and this run has stopped.
    """
    folder = RunFolder(job.folder)
    own: list[Any] = []
    try:
        if hashes.get(folder.place) not in (None, ComposedConfig(job.config).digest(varied)):
            raise UserError("a config was edited since the sweep began: this run would be another one; start the sweep again")
        config = resolve(with_values(job.config, values.get(folder.place, {})))
        own += targets(config)
        status = _run_in_process(config, job, owner, base)
    except (UserError, OSError) as error:
        status = MISTAKEN if _note(folder, f"{error}\n") else TOLD
        if status == TOLD:
            warn(f"{folder.place}: {error}")
    if status == STOPPED:
        tell(f"attnlab: {folder.place}: stopped, with a checkpoint")
    elif status == BUSY:
        tell(f"attnlab: {folder.place}: another process works on it")
    elif status < 0:
        name = signal.Signals(-status).name if -status in {*signal.Signals} else f"signal {-status}"
        hint = ": out of memory, or stopped by somebody" if name == "SIGKILL" else ""
        _note(folder, f"killed by {name}{hint}\n")
    if status in (CRASHED, MISTAKEN) or status < 0:
        *before, last = folder.read_error().strip().splitlines() or [f"ended with status {status}, and did not say why"]
        told = f"attnlab: {folder.place}: {folder.divergence or last}"
        print(printable("\n".join([*before, told])), file=sys.stderr, flush=True)
    if (job.number + 1) % progress == 0:
        with trust(own):
            tell(f"attnlab: {describe_progress(folder.study)}")
    best = folder.read_result().best if status == DONE else None
    return float("nan") if best is None else best


def _run_in_process(config: Mapping[str, Any], job: HydraJob, owner: Owner, base: str) -> int:
    """Run in a child, and return how it ended: an exit status, or minus the signal that killed it."""
    if owner.is_gone():
        os._exit(STOPPED)
    choose_wait_policy(beside_others=owner.process != os.getpid())  # a launcher's worker has others beside it
    # A fork of this process would inherit threads that no longer run; the server imports what is heavy once for all runs.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["attnlab.runs.preload"])
    # A child takes over the default method by its name, and that of joblib's workers is known to joblib alone.
    multiprocessing.set_start_method("forkserver", force=True)
    arguments = (config, job.folder, job.overrides, base, job.logging, dict(os.environ), os.getcwd())
    process = context.Process(target=_work, args=arguments)
    process.start()
    while process.is_alive():
        try:
            process.join(timeout=1.0)
            if owner.is_gone():
                process.terminate()
                process.join()
                os._exit(STOPPED)  # the launcher would begin the next run
        except KeyboardInterrupt:  # it has reached the child too, which writes a checkpoint
            warn("stopping as soon as a checkpoint is written; once more to stop at once")
            try:
                process.join()
            except KeyboardInterrupt:
                process.kill()
                process.join()
            raise
    assert process.exitcode is not None
    return int(process.exitcode)


def _work(
    config: Mapping[str, Any],
    path: Path,
    overrides: Sequence[str],
    base: str,
    logs: dict[str, Any],
    environment: Mapping[str, str],
    directory: str,
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    escape_output()
    logging.config.dictConfig(logs)
    logging.raiseExceptions = False  # a log that cannot be written is no reason for a traceback a line
    threading.Thread(target=follow_parent, args=(_stop,), daemon=True).start()
    from attnlab.runs.execution import execute

    folder = RunFolder(path)
    try:
        with ExitStack() as stack:
            _take_gpu(stack, config["trainer"])
            execute(settle(config), path, overrides, base=base)
    except BusyError:
        sys.exit(BUSY)
    except (StoppedError, KeyboardInterrupt):
        sys.exit(STOPPED)
    except UserError as error:
        if _note(folder, f"{error}\n"):
            sys.exit(MISTAKEN)
        warn(f"{folder.place}: {error}")
        sys.exit(TOLD)
    except Exception as error:
        if _note(folder, _describe(error)):
            sys.exit(CRASHED)
        traceback.print_exception(error)
        sys.exit(TOLD)


def _stop() -> None:
    """Stop as if asked to: a run that nobody waits for would be in the way of the next command."""
    os.kill(os.getpid(), signal.SIGTERM)


def _take_gpu(stack: ExitStack, trainer: Mapping[str, Any]) -> None:
    """Where there are several GPUs, take one that no other run of this machine has taken; a placement names its own."""
    import torch

    count = torch.cuda.device_count()
    if count < 2 or trainer.get("placement"):
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(index) for index in range(count)]
    for name in names:
        try:  # a mode that is given is that of the file whatever the umask says: other users take GPUs by the same files
            stack.enter_context(FileLock(Path(tempfile.gettempdir(), f"attnlab-gpu-{name}.lock"), timeout=0, mode=0o666))
        except OSError:  # it is taken, or belongs to another user, or there are no locks
            continue
        os.environ["CUDA_VISIBLE_DEVICES"] = name
        return
    os.environ["CUDA_VISIBLE_DEVICES"] = names[os.getpid() % len(names)]


def describe_progress(folder: Path) -> str:
    """Say in a line how far the study in a folder is, or why that is not known: it is no reason to end a sweep."""
    try:
        return _in_a_line(collect(folder))
    except Exception as error:
        return f"progress unknown: {type(error).__name__}: {' '.join(str(error).split())}"


def _in_a_line(study: Study) -> str:
    """Tell runs by state, the best so far on the validation set, and the time left."""
    parts = [f"{study.count('done')} of {len(study.runs)} done"]
    told: tuple[State, ...] = ("running", "failed", "damaged", "interrupted")
    parts += [f"{study.count(state)} {state}" for state in told if study.count(state)]
    if best := _best(study):
        parts.append(best)
    running = study.count("running")
    left = study.count("missing") + study.count("interrupted") + running
    if study.finished_runs and left:
        seconds = mean(run.result.seconds for run in study.finished_runs) * left / max(1, running)
        parts.append(f"about {_in_words(seconds)} left")
    return ", ".join(parts)


def _best(study: Study) -> str:
    """Name the run with the best checkpoint; empty where runs keep none, or do not choose them by one metric that is known."""
    scores = [(run.result.best, label, run) for label, runs in study.finished_variants.items() for run in runs]
    known = [(value, label, run) for value, label, run in scores if value is not None]
    monitors = {run.result.monitor for _, _, run in known}
    if len(monitors) != 1:
        return ""
    monitor = str(monitors.pop())
    if (metric := study.find_metric(metric_name(monitor))) is None:
        return ""
    value, label, run = (max if metric.higher_is_better else min)(known, key=lambda score: score[0])
    return f"best {monitor} {value:.{metric.digits}f} ({label}, seed {run.seed})"


def _in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
