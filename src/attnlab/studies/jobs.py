"""The runs of a sweep: each in a process of its own, so that whatever ends one, the others run on."""

import logging.config
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import traceback
from contextlib import ExitStack
from multiprocessing.connection import wait
from pathlib import Path
from statistics import mean
from typing import Any

from filelock import FileLock, Timeout
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from attnlab.errors import BusyError, StoppedError, UserError
from attnlab.studies.collection import Run, Study, collect, state

DONE, CRASHED, MISTAKEN, BUSY, STOPPED = 0, 1, 2, 75, 130
"""How a run's process ends."""


def job(config: DictConfig) -> float:
    """Carry out one run of a sweep; Hydra's launchers call it.

    A failure is written down in the run's folder, and is not raised: what ends a sweep differs from launcher to launcher.

    Returns:
        The best of what the run monitored on the validation set, for a sweeper that wants to know; NaN if it failed.

    Raises:
        KeyboardInterrupt: the sweep was asked to stop, and this run has stopped.
    """
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    logs = OmegaConf.to_container(hydra_config.job_logging, resolve=True)
    resolved = OmegaConf.to_container(config, resolve=True)
    told = _in_its_own_process(resolved, folder, list(hydra_config.overrides.task), logs)
    place = f"{folder.parent.name}/{folder.name}"
    if told == STOPPED:
        print(f"attnlab: {place}: stopped, with a checkpoint", flush=True)
    elif told == BUSY:
        print(f"attnlab: {place}: another process works on it", flush=True)
    elif told < 0:
        name = signal.Signals(-told).name
        hint = ": out of memory, or somebody's wish" if name == "SIGKILL" else ""
        (folder / "error.txt").write_text(f"killed by {name}{hint}\n", encoding="utf-8")
    if told in (CRASHED, MISTAKEN) or told < 0:
        *before, last = Run(folder, (), 0, "failed").error.strip().splitlines()
        print(*before, f"attnlab: {place}: {last}", sep="\n", file=sys.stderr, flush=True)
    print(f"attnlab: {progress(collect(folder.parents[1]))}", flush=True)
    best = Run(folder, (), 0, state(folder)).result.get("best") if told == DONE else None
    return float("nan") if best is None else float(best)


def _in_its_own_process(config: Any, folder: Path, overrides: list[str], logs: Any) -> int:
    """Run in a child, and return how it ended: an exit status, or minus the signal that killed it."""
    # A fork of this process would inherit threads that no longer run; the server imports what is heavy once for all runs.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["attnlab.studies.run"])
    # A child takes over the default method by its name, and that of joblib's workers is known to joblib alone.
    multiprocessing.set_start_method("forkserver", force=True)
    process = context.Process(target=_work, args=(config, folder, overrides, logs, dict(os.environ), os.getcwd()))
    process.start()
    while process.is_alive():
        try:
            process.join()
        except KeyboardInterrupt:  # it has reached the child too, which writes a checkpoint
            print(
                "attnlab: stopping as soon as a checkpoint is written; once more to stop at once", file=sys.stderr, flush=True
            )
            try:
                process.join()
            except KeyboardInterrupt:
                process.kill()
                process.join()
            raise
    assert process.exitcode is not None
    return int(process.exitcode)


def _work(config: Any, folder: Path, overrides: list[str], logs: Any, environment: dict[str, str], cwd: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    if "SLURM_JOB_ID" in os.environ:  # Lightning would take over from the launcher, and put a stopped run into the queue again
        os.environ["SLURM_JOB_NAME"] = "interactive"
    logging.config.dictConfig(logs)
    threading.Thread(target=_follow_parent, daemon=True).start()
    from attnlab.studies.run import execute

    try:
        with ExitStack() as stack:
            _take_gpu(stack)
            execute(OmegaConf.create(config), folder, overrides, in_sweep=True)
    except BusyError:
        sys.exit(BUSY)
    except (StoppedError, KeyboardInterrupt):
        sys.exit(STOPPED)
    except UserError as error:
        (folder / "error.txt").write_text(f"{error}\n", encoding="utf-8")
        sys.exit(MISTAKEN)
    except Exception:
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        sys.exit(CRASHED)


def _follow_parent() -> None:
    """Stop as if asked to when the sweep dies, lest the next one finds a run that nobody waits for."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def _take_gpu(stack: ExitStack) -> None:
    """Where there are several GPUs, take one that no other run of this machine has taken."""
    import torch

    count = torch.cuda.device_count()
    if count < 2:
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else [str(index) for index in range(count)]
    for name in names:
        try:
            stack.enter_context(FileLock(Path(tempfile.gettempdir(), f"attnlab-gpu-{name}.lock"), timeout=0))
        except Timeout:
            continue
        os.environ["CUDA_VISIBLE_DEVICES"] = name
        return
    os.environ["CUDA_VISIBLE_DEVICES"] = names[os.getpid() % len(names)]


def progress(study: Study) -> str:
    """Say in a line how far a study is: runs by state, the best so far on the validation set, and the time left."""
    done, running = study.count("done"), study.count("running")
    parts = [f"{done} of {len(study.runs)} done"]
    parts += [f"{study.count(s)} {s}" for s in ("running", "failed", "interrupted") if study.count(s)]
    finished = [(run, label) for label, runs in study.done().items() for run in runs]
    scored = [(run.result["best"], label, run) for run, label in finished if run.result.get("best") is not None]
    if scored:
        sign = -1 if any(word in str(scored[0][2].result["monitor"]) for word in ("loss", "perplexity")) else 1
        value, label, run = max(scored, key=lambda one: sign * one[0])
        parts.append(f"best {run.result['monitor']} {value:.2f} ({label}, seed {run.seed})")
    left = study.count("missing") + study.count("interrupted") + running
    if finished and left:
        seconds = mean(run.result["seconds"] for run, _ in finished) * left / max(1, running)
        parts.append(f"about {_spoken(seconds)} left")
    return ", ".join(parts)


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
