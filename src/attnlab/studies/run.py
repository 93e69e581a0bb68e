"""One run: train, test on the best checkpoint, write down everything."""

import json
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import Logger
from lightning.pytorch.strategies.launchers import _MultiProcessingLauncher, _SubprocessScriptLauncher
from lightning.pytorch.utilities.exceptions import SIGTERMException
from omegaconf import DictConfig, OmegaConf

import attnlab
from attnlab.data.datamodule import ParallelDataModule
from attnlab.errors import StoppedError, UserError
from attnlab.model import Seq2Seq
from attnlab.studies.environment import environment
from attnlab.studies.identity import identity, telling, variant
from attnlab.studies.outcome import outcome, summary
from attnlab.studies.resuming import Begun, alone, begin, found, write_atomically
from attnlab.studies.translator import make_model, save_text
from attnlab.studies.wiring import blame, build, check
from attnlab.training import TranslationModule
from attnlab.training.auxiliary import AuxiliaryLoss
from attnlab.training.callbacks import Finite, Record, Resumption, Throughput
from attnlab.training.loggers import RunInfo
from attnlab.training.memory import keep_freed_memory

log = logging.getLogger(__name__)

GROUPS = (
    "data tokenizer encoder attention decoder output auxiliary optimizer scheduler search trainer callbacks logger "
    "model datamodule training study"
)
CONFIG_KEYS = {"name": str, "seed": int, "threads": int | None, "resume": bool, **dict.fromkeys(GROUPS.split(), Any)}


def execute(config: DictConfig, folder: Path, overrides: Sequence[str], *, in_sweep: bool = False) -> dict[str, Any]:
    """Carry out one run.

    Everything that can be wrong with the config, the files or the combination of components is found before the training
    starts. The folder then holds ``run.json``, ``config.yaml``, ``environment.json``, ``metrics.jsonl``, ``best.ckpt``,
    ``last.ckpt``, ``hypotheses/``, ``texts/``, ``heatmaps/``, ``attention.json`` and, written last and at once,
    ``result.json``. A run that was interrupted goes on from its last checkpoint; one that is done is not done again.

    Args:
        config: composed from ``conf/train.yaml``.
        folder: the run's own; what another run left there is set aside.
        overrides: what was asked for on the command line or by a sweep.
        in_sweep: this process' command is a sweep's, and cannot be started again for another device.

    Returns:
        What ``result.json`` holds.

    Raises:
        UserError: a mistake in the config or the files, or components that do not go together.
        BusyError: another process does this run.
        StoppedError: the run was asked to stop, and can go on.
    """
    check(config, CONFIG_KEYS)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    keep_freed_memory()
    data = build_data(config)
    model = build_model(config, data)
    serve_what_is_needed(data, model, auxiliary := build(config.auxiliary))
    module: TranslationModule = build(config.training)(
        model,
        data,
        build(config.search),
        config.seed,
        optimizer=build(config.optimizer),
        scheduler=build(config.scheduler),
        auxiliary=auxiliary,
    )
    with blame("optimizer or scheduler"):
        module.configure_optimizers()
    run = Begun(
        identity(config, data.fingerprint),
        config.name,
        variant(overrides),
        telling(overrides),
        config.seed,
        training=identity(config, data.fingerprint, leave_out=["search", "name"]),
        recipe=identity(config, data.fingerprint, leave_out=["seed", "name"]),
    )
    # The ranks of a distributed run that Lightning starts come here too, when the first has made the folder and holds its lock.
    if int(os.environ.get("LOCAL_RANK", "0")):
        return _carry_out(config, found(folder) or run, module, folder, in_sweep=in_sweep)
    with alone(folder):
        run, result = begin(folder, run, resume=config.resume)
        if result is not None:
            log.info("%s seed=%s: done before, in %s", run.variant, run.seed, folder)
            return result
        OmegaConf.save(OmegaConf.create(_resolved(config)), folder / "config.yaml")
        save_text(data, folder)
        (folder / "environment.json").write_text(json.dumps(environment(), indent=1), encoding="utf-8")
        going_on = f", going on from {folder}/last.ckpt" if run.restarts else f", in {folder}"
        log.info("%s seed=%s: %s parameters%s", run.variant, run.seed, f"{model.size:,}", going_on)
        return _carry_out(config, run, module, folder, in_sweep=in_sweep)


def _carry_out(config: DictConfig, run: Begun, module: TranslationModule, folder: Path, *, in_sweep: bool) -> dict[str, Any]:
    callbacks = build_callbacks(config, folder)
    throughput = Throughput()
    info = RunInfo(run.id, run.name, f"{run.variant}/s{run.seed}", folder, {**_resolved(config), "variant": run.variant})
    session: AbstractContextManager[Logger | bool] = build(config.logger)(info)
    with session as logger, warnings.catch_warnings():
        _silence()
        # Here and not earlier: what building drew must not shift the dropout masks of a variant.
        seed_everything(config.seed, workers=True, verbose=False)
        with blame("trainer"):
            trainer: Trainer = build(config.trainer)(
                logger=logger,
                callbacks=[*callbacks, throughput, Finite(), Record(folder), Resumption(folder, config.seed)],
                default_root_dir=folder,
            )
        _check_launcher(trainer, in_sweep=in_sweep)
        if not run.fitted:
            checkpoint = next((c for c in callbacks if isinstance(c, ModelCheckpoint)), None)
            try:
                trainer.fit(
                    module,
                    datamodule=module.data,
                    ckpt_path=folder / "last.ckpt" if run.restarts else None,
                    weights_only=True,
                )
            except SIGTERMException:
                raise StoppedError(f"stopped; the same command goes on from {folder}/last.ckpt") from None
            run.fitted = {
                "epochs": trainer.current_epoch,
                "steps": trainer.global_step,
                "monitor": checkpoint.monitor if checkpoint else None,
                "best": float(checkpoint.best_model_score) if checkpoint and checkpoint.best_model_score is not None else None,
                "train_seconds": throughput.seconds,
                "train_tokens_per_second": throughput.rate * trainer.world_size,
                "checkpoint": Path(checkpoint.best_model_path).name if checkpoint and checkpoint.best_model_path else None,
            }
            if trainer.is_global_zero:
                run.save(folder)
        best = run.fitted["checkpoint"]
        trainer.test(
            module, datamodule=module.data, ckpt_path=folder / best if best else None, verbose=False, weights_only=True
        )
        tests = outcome(module, folder, write=trainer.is_global_zero)
        result = {
            **asdict(run),
            **run.fitted,
            "version": attnlab.__version__,
            "data": module.data.fingerprint,
            "parameters": module.model.size,
            "seconds": throughput.wall,
            "tests": tests,
        }
        for name in ("fitted", "process"):
            del result[name]
        if isinstance(logger, Logger):
            logger.log_metrics({**summary(tests), "parameters": module.model.size}, step=run.fitted["steps"])
        if trainer.is_global_zero:
            write_atomically(folder / "result.json", json.dumps(result, indent=1))
    return result


def _check_launcher(trainer: Trainer, *, in_sweep: bool) -> None:
    """Refuse ways to use several devices that lose the results, or would start a whole sweep again."""
    if isinstance(trainer.strategy.launcher, _MultiProcessingLauncher):
        raise UserError("a spawned or forked process gives nothing back but the weights: use trainer.strategy=ddp")
    if in_sweep and isinstance(trainer.strategy.launcher, _SubprocessScriptLauncher):
        raise UserError(
            "a run over several devices would start the whole sweep again in every process: add trainer.devices=1, or run the "
            "variants one by one, without -m"
        )


def _resolved(config: DictConfig) -> dict[str, Any]:
    resolved = OmegaConf.to_container(config, resolve=True)
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


def build_data(config: DictConfig) -> ParallelDataModule:
    """Make the data module and prepare its cache.

    Raises:
        UserError: a mistake in the config or the files.
    """
    data: ParallelDataModule = build(config.datamodule)(
        corpus=build(config.data), tokenizer=build(config.tokenizer), seed=config.seed
    )
    data.prepare_data()
    data.setup("fit")
    return data


def build_model(config: DictConfig, data: ParallelDataModule) -> Seq2Seq:
    """Make the model, its sizes wired to each other and to the vocabularies.

    Raises:
        UserError: components that do not go together.
    """
    return make_model(config, len(data.source_vocabulary), len(data.target_vocabulary))


def serve_what_is_needed(data: ParallelDataModule, model: Seq2Seq, auxiliary: Mapping[str, AuxiliaryLoss]) -> None:
    """Let the batches hold all that the model and the losses read.

    Raises:
        UserError: a loss needs word alignments that the corpus lacks, or a sentence is longer than the model can read.
    """
    data.serve_copies = model.copies
    if any(loss.needs_links for loss in auxiliary.values()):
        data.require_links()
    limit = model.max_source_length
    for split, longest in data.longest_source.items():
        if limit is not None and longest > limit:
            raise UserError(
                f"the attention looks at {limit} source positions at most, but the longest sentence of {split} has {longest} "
                f"tokens: raise the max_length of its location score to {longest}"
                + (f", or datamodule.max_length={limit - 1} to leave out longer pairs" if split == "train" else "")
            )


def build_callbacks(config: DictConfig, folder: Path) -> list[Callback]:
    """Make the callbacks; one whose node says ``_partial_`` is given the run's folder."""
    made = []
    for node in config.callbacks.values():
        callback = build(node)
        made.append(callback(folder) if node.get("_partial_") else callback)
    if config.trainer.enable_progress_bar:
        made.append(RichProgressBar(leave=False))
    return made


def _silence() -> None:
    """Keep Lightning from advising what was decided on purpose."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    warnings.filterwarnings("ignore", ".*srun. command is available.*")  # SLURM may be there for others
    warnings.filterwarnings("ignore", ".*exists and is not empty.*")
    warnings.filterwarnings("ignore", ".*sync_dist=True.*")  # torchmetrics has brought the processes together already
    warnings.filterwarnings("ignore", ".*smaller than the logging interval.*")
    warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)  # Lightning's own use of torch
