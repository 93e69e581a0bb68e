"""What is refused before a training: settings by which it would fail, or come to nothing, when it has begun."""

import logging
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.pytorch.accelerators import AcceleratorRegistry, CPUAccelerator
from lightning.pytorch.callbacks import Callback, Timer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.strategies.launchers import _MultiProcessingLauncher, _SubprocessScriptLauncher
from torch import nn

from attnlab.config import Factory, build, check_columns, library_errors
from attnlab.errors import UserError, nearest
from attnlab.model import Seq2Seq
from attnlab.source import is_users_own
from attnlab.tasks.task import Task
from attnlab.training import SequenceModule
from attnlab.training.module import TRAIN_LOSS, monitored_metric


def check_settings(config: Mapping[str, Any], task: Task) -> None:
    """Refuse what can be told of a run before its data are read.

    Args:
        config: of the run.
        task: that it is of, prepared or not.

    Raises:
        UserError: a monitored metric, a column, a schedule, an accelerator, a logger or a time that there is not.
    """
    monitored_metric(config["monitor"], task.metrics)
    _check_columns((config.get("study") or {}).get("metrics"), task)
    _check_duration(config)
    _check_logger(config["logger"])
    trainer = config["trainer"]
    named = trainer.get("accelerator")
    if isinstance(named, str) and named not in (known := {"auto", "gpu", *AcceleratorRegistry.available_accelerators()}):
        raise UserError(f"trainer.accelerator: there is no {named!r}, {nearest(named, known)}")
    with library_errors("trainer.max_time"):
        Timer(trainer.get("max_time"))


def _check_logger(node: object) -> None:
    """Refuse a logger of Lightning's that would be called with what attnlab's own are told of a run."""
    made = build(node, "logger") if isinstance(node, Mapping) and node.get("_partial_") else None
    if isinstance(made, Factory) and isinstance(made.func, type) and issubclass(made.func, Logger):
        name = made.func.__name__
        raise UserError(f"logger: {name} is a logger of Lightning's, which is not told of the run: leave out _partial_")


def check_module(config: Mapping[str, Any], module: SequenceModule) -> None:
    """Refuse what can be told of a run from its model and its batches.

    Raises:
        UserError: intervals of the validation or a precision that the run cannot have, or parameters that would not be trained.
    """
    _check_interval(config["trainer"], module)
    _check_precision(config, module.model)
    _check_registration(module.model)


def check_callbacks(callbacks: Sequence[Callback], module: SequenceModule) -> None:
    """Refuse a callback that waits for a value which nobody logs; a callback of the user's own may log any.

    Raises:
        UserError: there is one.
    """
    known = {TRAIN_LOSS, *module.statistics}
    for callback in callbacks:
        name = getattr(callback, "monitor", None)
        is_known = not isinstance(name, str) or name in known or name.startswith("train/")
        if not is_known and not any(is_users_own(type(other)) for other in callbacks):
            raise UserError(f"callbacks: {type(callback).__name__} monitors {name!r}: {nearest(name, known)}")


def _check_registration(model: Seq2Seq) -> None:
    """Refuse what a part keeps where torch does not find it: it is neither trained nor saved, and drawn anew when loaded."""
    known = {id(found) for found in (*model.modules(), *model.parameters(), *model.buffers())}

    def is_lost(value: object) -> bool:
        tensors = value.parameters() if isinstance(value, nn.Module) else [value] if isinstance(value, torch.Tensor) else []
        return id(value) not in known and any(tensor.requires_grad for tensor in tensors)

    for name, part in model.named_modules():
        for key, value in vars(part).items():
            held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else [value]
            if key not in INTERNAL and (lost := next(filter(is_lost, held), None)) is not None:
                raise UserError(
                    f"{name}: the {type(lost).__name__} in {type(part).__name__}.{key} would be neither trained nor saved: use "
                    "nn.Parameter, or nn.ModuleList and nn.ModuleDict in the place of a list and a dict"
                )


INTERNAL = vars(nn.Module()).keys()
"""In what torch keeps what it knows."""


def _check_columns(names: object, task: Task) -> None:
    """Refuse columns of a study's table that its runs would leave empty.

    Args:
        names: of metrics, as ``study.metrics`` has them.
        task: of the runs.

    Raises:
        UserError: no list of metrics, or one that no test measures.
    """
    check_columns(names, task.metrics)
    for name in names if isinstance(names, list) else ():
        if task.test_names and not task.metrics[name].is_due("test"):
            raise UserError(
                f"study.metrics has {name!r}, which attnlab evaluate alone measures: leave it out, or see whether "
                f"metrics.{name} can tell tests to"
            )


def _check_interval(trainer: Mapping[str, Any], module: SequenceModule) -> None:
    """Refuse a training that ends before its first validation, or an interval between validations that no epoch is long enough
    for: in the midst of a run Lightning would.
    """
    interval, limit = trainer.get("val_check_interval") or 1.0, trainer.get("limit_train_batches")
    batches = len(module.data.train_dataloader())
    loaders = {"train": [batches], "val": [len(module.data.val_dataloader())], "test": map(len, module.data.test_dataloader())}
    for stage, counts in loaders.items():
        share = trainer.get(f"limit_{stage}_batches")
        if isinstance(share, float) and any(int(share * count) < 1 for count in counts):
            raise UserError(
                f"trainer.limit_{stage}_batches={share} is a share of the batches, and of some set less than one batch: name "
                "a number of batches, as 1, or a larger share"
            )
    if limit is not None:
        batches = min(batches, limit) if isinstance(limit, int) else int(batches * limit)
    every = trainer.get("check_val_every_n_epoch", 1)
    if isinstance(interval, int) and every is not None and interval > batches:
        raise UserError(
            f"trainer.val_check_interval={interval} is more than the {batches} batches of an epoch: lower it, or add "
            "trainer.check_val_every_n_epoch=null to count over epochs"
        )
    within = interval if isinstance(interval, int) else max(int(interval * batches), 1)
    whole, rest = divmod(within + ((every or 1) - 1) * batches, max(batches, 1))
    accumulated = trainer.get("accumulate_grad_batches") or 1
    steps = whole * math.ceil(batches / accumulated) + rest // accumulated
    ends = {"max_steps": steps, "max_epochs": whole + bool(rest)}
    for name, least in ends.items():
        given = trainer.get(name)
        if given is not None and 0 <= given < least:
            raise UserError(
                f"trainer.{name}={given} ends the training before its first validation, which chooses the checkpoint: set it "
                f"to {least} or more, or validate earlier (trainer.val_check_interval)"
            )


def _check_precision(config: Mapping[str, Any], model: Seq2Seq) -> None:
    """Refuse a precision that the model's numbers or the optimizer do not bear."""
    settings = config["trainer"]
    precision = str(settings.get("precision") or "32-true")  # Lightning's own default
    if model.source_frontend.reads_numbers and not precision.startswith("32"):
        raise UserError(f"the model reads numbers of single precision, and trainer.precision={precision}: set it to 32-true")
    if precision in ("16", "16-mixed") and settings.get("gradient_clip_val") and config["optimizer"].get("fused"):
        raise UserError(
            f"trainer.precision={precision} scales gradients, which are not clipped before a fused optimizer: add "
            "optimizer.fused=false, or take bf16-mixed"
        )


def _check_duration(config: Mapping[str, Any]) -> None:
    """Refuse a schedule that counts steps and is as long as there are epochs, its default."""
    schedule = config["scheduler"]
    duration = schedule.get("duration")
    if schedule.get("interval") == "step" and duration is not None and duration == config["trainer"].get("max_epochs"):
        raise UserError("scheduler.duration is the number of epochs, but scheduler.interval=step: name a number of steps")


def check_trainer(config: Mapping[str, Any], *, in_sweep: bool) -> None:
    """Refuse what Lightning refuses, as a device that there is not, before the run has a folder; and ways to use several
    devices that lose the results, or would start a whole sweep again.
    """
    named = config["trainer"].get("accelerator")
    kinds = ("cuda", "mps") if named == "gpu" else (named,)
    is_named = isinstance(named, str) and named != "auto"  # and neither left out nor a class of one's own
    if is_named and not any(AcceleratorRegistry[kind]["accelerator"].is_available() for kind in kinds):
        raise UserError(f"trainer.accelerator={named}: there is none here; trainer=default takes what is there")
    with warnings.catch_warnings(), library_errors("trainer"):
        silence_lightning()
        trainer = build(config["trainer"], "trainer")(logger=False, plugins=cluster_plugins())
    launcher, cores = trainer.strategy.launcher, os.cpu_count() or 1
    if isinstance(trainer.accelerator, CPUAccelerator) and trainer.num_devices > cores:  # each of them a process
        raise UserError(f"trainer.devices={trainer.num_devices} starts as many processes on {cores} cores: lower it to {cores}")
    if isinstance(launcher, _MultiProcessingLauncher):
        raise UserError("a spawned or forked process gives nothing back but the weights: use trainer.strategy=ddp")
    if in_sweep and isinstance(launcher, _SubprocessScriptLauncher):
        raise UserError(
            "a run over several devices would start the whole sweep again in every process: add trainer.devices=1, or run the "
            "variants one by one, without -m"
        )


def cluster_plugins() -> list[ClusterEnvironment]:
    """Let a job of SLURM start the processes of a run as any other command does, and not once for each of the job's tasks.

    Lightning would ask for as many tasks as devices, also of a run on one of them, and put a stopped run into the queue again
    by itself.
    """
    return [LightningEnvironment()] if SLURMEnvironment.detect() and not TorchElasticEnvironment.detect() else []


def silence_lightning() -> None:
    """Keep Lightning from advising what was decided on purpose."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    warnings.filterwarnings("ignore", ".*srun. command is available.*")  # SLURM may be there for others
    warnings.filterwarnings("ignore", ".*exists and is not empty.*")
    warnings.filterwarnings("ignore", ".*dirpath has changed.*")  # of a training that another run shares
    warnings.filterwarnings("ignore", ".*sync_dist=True.*")  # torchmetrics has brought the processes together already
    warnings.filterwarnings("ignore", ".*smaller than the logging interval.*")
    warnings.filterwarnings("ignore", ".*across ranks is zero.*")  # a trial of a tuning has no test set
    warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)  # Lightning's own use of torch
    warnings.filterwarnings("ignore", "RNN module weights are not part.*")  # which torch cannot change where they are bfloat16
