"""One run: train, test on the best checkpoint, write down everything."""

import logging
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import torch
from lightning import Callback, Trainer, seed_everything
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities.exceptions import SIGTERMException

import attnlab
from attnlab.config import Factory, build, library_errors, validate_kind, variant_name, variant_overrides
from attnlab.data.batches import memory_errors
from attnlab.data.processes import is_first_process
from attnlab.errors import PartnerError, StoppedError, UserError, refusal
from attnlab.runs.assembly import build_model, build_module, build_task, prepare_task
from attnlab.runs.checks import (
    check_callbacks,
    check_module,
    check_settings,
    check_trainer,
    cluster_plugins,
    silence_lightning,
)
from attnlab.runs.clearing import check_folder, remove_leftovers
from attnlab.runs.environment import environment
from attnlab.runs.evaluation import (
    REPORTED,
    TestEvaluation,
    check_metrics,
    choose_shifts,
    divide,
    evaluate,
    flatten_metrics,
    map_attention,
    write_test,
)
from attnlab.runs.folder import RunFolder
from attnlab.runs.identity import identify
from attnlab.runs.ranks import await_first, tell_others
from attnlab.runs.record import RunRecord, RunResult
from attnlab.runs.resume import begin_run, decide
from attnlab.runs.weights import load_weights, write_weights
from attnlab.tasks.task import Task
from attnlab.training import SequenceModule
from attnlab.training.arithmetic import choose_batches, count_multiply_adds
from attnlab.training.callbacks import LossGuard, MetricsRecorder, ProgressBar, RunContext, Throughput
from attnlab.training.checkpoints import WholeCheckpointIO
from attnlab.training.loggers import RunInfo, plain_logger
from attnlab.training.memory import PeakMemory
from attnlab.training.module import monitored_metric
from attnlab.training.process import prepare_process, share_threads
from attnlab.training.resumption import Resumption
from attnlab.training.sharding import shares_parameters

log = logging.getLogger(__name__)

LOST = re.compile(r"gloo.*(closed|reset) by peer|NCCL.*(remote process|connection closed)", re.IGNORECASE | re.DOTALL)
"""What is raised by which processes speak with each other, where one of them is gone."""
REPEATED = " (it did so before: resume=false trains it again)"
"""What is added to why a training diverged."""


def execute(config: Mapping[str, Any], path: Path, overrides: Sequence[str], *, base: str | None = None) -> RunResult:
    """Carry out one run.

    Everything that can be wrong with the config, the files or the combination of components is found before the training
    starts. A run that was interrupted goes on from its last checkpoint; one that is done is not done again.

    Args:
        config: checked and resolved.
        path: the run's own folder; what another run left there is set aside.
        overrides: what was asked for on the command line or by a sweep.
        base: of a run of a sweep, hash of the config that all its runs share; see :class:`attnlab.runs.record.RunRecord`.

    Returns:
        What ``result.json`` holds.

    Raises:
        UserError: a mistake in the config or the files, components that do not go together, or a file that cannot be written,
            as on a full disk.
        BusyError: another process does this run.
        StoppedError: the run was asked to stop, and can go on.
        FloatingPointError: the training diverged, now or before.
    """
    if not is_first_process():
        logging.getLogger("attnlab").setLevel(logging.ERROR)  # the first one warns
    with _system_errors(path):
        if config["threads"] is not None:
            torch.set_num_threads(config["threads"])
            if config["threads"] > (cores := os.cpu_count() or config["threads"]):
                log.warning("threads=%d, but there are %d processors: this many wait for each other", config["threads"], cores)
        prepare_process()
        task = build_task(config)
        if not config.get("test", True):  # nothing then reads a test set
            task.test_names = ()
        check_settings(config, task)
        prepare_task(config, task)
        model = build_model(config, task)
        module = build_module(config, task, model)
        check_module(config, module)
        folder = RunFolder(path)
        check_callbacks(build_callbacks(config, folder, task), module)  # before there is a folder
        record = make_record(config, task, overrides, base)
        # The other processes of a distributed run come here when the first has made the folder and holds its lock.
        if not is_first_process():
            if await_first(path):
                return folder.read_result()
            return _train_and_test(config, folder.read_record() or record, module, folder)
        with folder.lock():
            check_folder(folder)
            remove_leftovers(folder)
            resume = config["resume"]
            is_trial = not config.get("test", True)
            decision = decide(folder, record, resume=resume, keep_results=config["keep_results"], is_trial=is_trial)
            if decision.deed == "diverged":
                raise FloatingPointError(folder.divergence.removesuffix(REPEATED) + REPEATED)
            if decision.result is None:
                check_trainer(config, in_sweep=base is not None)  # whose process cannot be started again for another device
                measured = map(task.examples, [*task.measured_tests, "val"])
                check_metrics(task, measured, "test" if task.test_names else "epoch")
            record, result = begin_run(folder, record, decision, resume=resume)
            if result is not None:
                tell_others(path, is_done=True)
                log.info("%s seed=%s: done before, in %s", record.variant, record.seed, path)
                return result
            folder.write_config(config)
            folder.write_task({"version": attnlab.__version__, "task": task.name, "state": task.state()})
            tell_others(path, is_done=False)
            place = f", going on from {folder.last_checkpoint}" if record.restarts else f", in {path}"
            log.info("%s seed=%s: %s parameters%s", record.variant, record.seed, f"{model.size:,}", place)
            return _train_and_test(config, record, module, folder)


@contextmanager
def _system_errors(path: Path) -> Iterator[None]:
    """Tell in one line of a file that the operating system refuses to write or to open."""
    try:
        yield
    except OSError as error:
        if told := refusal(error, path):
            raise UserError(f"{told}; once that is mended, the same command goes on") from error
        raise


def make_record(config: Mapping[str, Any], task: Task, overrides: Sequence[str], base: str | None = None) -> RunRecord:
    """Return what a run of a config would be; see :func:`execute`.

    Raises:
        UserError: data that cannot be read.
    """
    return RunRecord(
        **identify(config, task)._asdict(),
        task=task.name,
        name=config["name"],
        variant=variant_name(overrides),
        overrides=variant_overrides(overrides),
        seed=config["seed"],
        base=base,
        logged_as=uuid4().hex[:16],
    )


def _train_and_test(config: Mapping[str, Any], record: RunRecord, module: SequenceModule, folder: RunFolder) -> RunResult:
    throughput, memory = Throughput(), PeakMemory()
    with _open_logger(config, record, module.task, folder) as logger, warnings.catch_warnings():
        silence_lightning()
        # Here and not earlier: what building drew must not shift the dropout masks of a variant.
        seed_everything(config["seed"], workers=True, verbose=False)
        trainer = _make_trainer(config, folder, module.task, throughput, memory, logger)
        if config["threads"] is None and trainer.strategy.root_device.type == "cpu":
            share_threads(trainer.num_devices)
        if trainer.is_global_zero:
            folder.add_start(environment(trainer.strategy.root_device, trainer.world_size, str(trainer.precision)))
        if not record.fit:
            _fit(trainer, module, record, folder, throughput, memory)
        begun, best = time.perf_counter(), record.fit["checkpoint"]
        checkpoint = folder.path / best if best else None
        with _stopping(folder):
            trainer.test(module, datamodule=module.data, ckpt_path=checkpoint, verbose=False, weights_only=True)
        if shares_parameters(trainer):
            module = _bring_together(config, module, checkpoint or folder.last_checkpoint)
        if not config["trainer"].get("placement"):  # the parts of such a model may have no place on one device
            module.to(trainer.strategy.root_device)  # Lightning has brought it to the CPU
        tests = _evaluate(module, folder) if trainer.is_global_zero else {}
        module.cpu()
        if trainer.is_global_zero:
            write_weights(folder.weights_file, module.model)
        seconds = record.fit["seconds"] + time.perf_counter() - begun
        result = _make_result(record, module, tests, memory.peaks, seconds=seconds)
        if isinstance(logger, Logger):
            logger.log_metrics({**flatten_metrics(tests), "parameters": module.model.size}, step=result.steps)
        if trainer.is_global_zero:
            folder.write_result(result)
    return result


def _bring_together(config: Mapping[str, Any], module: SequenceModule, checkpoint: Path) -> SequenceModule:
    """Return what a process has a share of as it is in the checkpoint, with the results that it has found."""
    whole = build_module(config, module.task, build_model(config, module.task))
    load_weights(checkpoint, whole.model)
    whole.results = module.results
    return whole


def _open_logger(
    config: Mapping[str, Any], record: RunRecord, task: Task, folder: RunFolder
) -> AbstractContextManager[Logger | bool]:
    better = {
        f"val/{name}": metric.higher_is_better
        for name, metric in task.metrics.items()
        if metric.is_due("epoch") and metric.higher_is_better is not None
    }
    settings = {**config, "variant": record.variant}
    info = RunInfo(
        record.logged_as or record.id, record.name, f"{record.variant}/s{record.seed}", folder.path, settings, better
    )
    made = build(config["logger"], "logger")
    if isinstance(made, Logger):
        return plain_logger(made, info)
    if not callable(made):
        raise UserError(f"logger: {type(made).__name__} is no logger of Lightning's: let its class inherit from Logger")
    session: AbstractContextManager[Logger | bool] = made(info)
    return session


def _make_trainer(
    config: Mapping[str, Any],
    folder: RunFolder,
    task: Task,
    throughput: Throughput,
    memory: PeakMemory,
    logger: Logger | bool,
) -> Trainer:
    recorder = MetricsRecorder(folder.curve_file, throughput)
    own = [throughput, memory, LossGuard(), recorder, Resumption(folder.last_checkpoint, config["seed"])]
    with library_errors("trainer"):
        trainer: Trainer = build(config["trainer"], "trainer")(
            logger=logger,
            callbacks=[*build_callbacks(config, folder, task), *own],
            default_root_dir=folder.path,
            plugins=[WholeCheckpointIO(folder.last_checkpoint), *cluster_plugins()],
        )
    return trainer


def build_callbacks(config: Mapping[str, Any], folder: RunFolder, task: Task) -> list[Callback]:
    """Make the callbacks; one whose node says ``_partial_`` is given what it may need to know of the run."""
    monitor = config["monitor"]
    mode: Literal["min", "max"] = "max" if monitored_metric(monitor, task.metrics).higher_is_better else "min"
    context = RunContext(folder.path, folder.heatmaps, folder.best_checkpoint, folder.last_checkpoint, monitor, mode)
    callbacks = []
    for name, node in config["callbacks"].items():
        made = build(node, f"callbacks.{name}")
        if isinstance(made, Factory):
            made = made(context)
        validate_kind(made, f"callbacks.{name}", Callback)
        callbacks.append(made)
    if config["trainer"].get("enable_progress_bar") is not False:  # which Lightning's own default shows too
        callbacks.append(ProgressBar())
    return callbacks


def _fit(
    trainer: Trainer,
    module: SequenceModule,
    record: RunRecord,
    folder: RunFolder,
    throughput: Throughput,
    memory: PeakMemory,
) -> None:
    last = folder.last_checkpoint if record.restarts else None
    remedy = "lower batches.size, or leave out long examples with batches.max_length"
    with _stopping(folder), memory_errors(lambda: module.shape, remedy):
        trainer.fit(module, datamodule=module.data, ckpt_path=last, weights_only=True)
        callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
        asked = trainer.received_sigterm or any(one.asked for one in callbacks if isinstance(one, Resumption))
        if trainer.strategy.reduce_boolean_decision(asked, all=False):  # behind the last batch, where Lightning looks no more
            raise SIGTERMException
    kept = next((c for c in trainer.callbacks if isinstance(c, ModelCheckpoint)), None)  # type: ignore[attr-defined]
    chosen = Path(kept.best_model_path) if kept and kept.best_model_path else folder.last_checkpoint
    checkpoint = _locate(chosen, folder) if chosen != folder.last_checkpoint or chosen.is_file() else None
    if kept and not kept.best_model_path:
        raise UserError(
            "the training ended before its first validation, which chooses the checkpoint: raise trainer.max_time, or validate "
            "earlier (trainer.val_check_interval)"
        )
    record.fit = {
        "epochs": trainer.current_epoch,
        "steps": trainer.global_step,
        "monitor": kept.monitor if kept else None,
        "best": float(kept.best_model_score) if kept and kept.best_model_score is not None else None,
        "train_seconds": throughput.seconds,
        "train_tokens_per_second": throughput.rate * trainer.world_size,
        "seconds": throughput.wall,
        **memory.peaks,
        "checkpoint": checkpoint,
    }
    if trainer.is_global_zero:
        folder.write_record(record)


@contextmanager
def _stopping(folder: RunFolder) -> Iterator[None]:
    """Tell of a run that was asked to stop that it can go on, and of what Lightning refuses when it has begun."""
    try:
        yield
    except RuntimeError as error:
        if not LOST.search(str(error)):
            raise
        raise PartnerError("another process of this run has ended: it has told why, or was killed") from error
    except MisconfigurationException as error:
        raise UserError(f"the trainer refuses: {' '.join(str(error).split())}") from error
    except SystemExit as error:
        # Lightning makes of an interrupt that is no signal to it an exit without a word.
        if not isinstance(error, SIGTERMException) and not isinstance(error.__context__, KeyboardInterrupt):
            raise
        raise StoppedError(f"stopped; the same command goes on from {folder.last_checkpoint}") from None


def _locate(checkpoint: Path, folder: RunFolder) -> str:
    """Return where a checkpoint is, seen from the run's folder; one that is kept elsewhere is named in full."""
    path, own = checkpoint.resolve(), folder.path.resolve()
    if not path.is_file():
        raise UserError(f"{path}, the best checkpoint, is gone: train the run again with resume=false")
    return str(path.relative_to(own) if path.is_relative_to(own) else path)


def _evaluate(module: SequenceModule, folder: RunFolder) -> dict[str, TestEvaluation]:
    """Measure every test set and write down what was found: a deed of the first of several processes, which has all results."""
    task, predictor = module.task, module.predictor
    module.eval()
    has_maps = predictor.attends and bool(task.test_names)
    shift = choose_shifts(predictor).get(REPORTED) if has_maps else None
    tests = {}
    measured = {name: own for test, results in module.results.items() for name, own in divide(task, test, results).items()}
    for name, results in measured.items():
        examples = task.examples(name)
        tests[name] = evaluate(task, examples, results, occasion="test", shift=shift)
        write_test(folder, name, examples, tests[name])
    if has_maps:
        folder.write_attention(map_attention(predictor, task.test_names[0]))
    return tests


def _make_result(
    record: RunRecord,
    module: SequenceModule,
    tests: Mapping[str, TestEvaluation],
    peaks: Mapping[str, int],
    *,
    seconds: float,
) -> RunResult:
    fit = {name: value for name, value in record.fit.items() if name != "checkpoint"}
    fit |= {name: max(size, fit.get(name, 0)) for name, size in peaks.items()}  # tests have a peak of their own
    batches = choose_batches(module.task.examples("val"))
    return RunResult(
        id=record.id,
        version=attnlab.__version__,
        code=record.code,
        data=module.task.data_fingerprint,
        parameters=module.model.size,
        restarts=record.restarts,
        tests={
            name: {**test.record(), **({"overlap": shared} if (shared := module.task.overlap(name)) else {})}
            for name, test in tests.items()
        },
        multiply_adds=count_multiply_adds(module.model.float().eval(), batches) if batches else None,
        **{**fit, "seconds": seconds},
    )
