"""Loggers: where curves, tables and pictures go. Each is a context that knows whether the run inside it crashed."""

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.error import HTTPError
from urllib.request import urlopen

from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger
from lightning.pytorch.loggers.csv_logs import ExperimentWriter

from attnlab.data.processes import is_first_process
from attnlab.errors import UserError, brief

if TYPE_CHECKING:
    import wandb


Mode = Literal["offline", "online", "disabled", "shared", "dryrun", "run"]


@dataclass(frozen=True)
class RunInfo:
    """What a logger needs to know of a run; one whose config says ``_partial_`` is given it.

    Attributes:
        id: what names it and no other training, the same when it goes on.
        group: what it is compared within.
        name: what it is called there.
        folder: where it writes.
        config: its resolved config, as plain containers.
        higher_is_better: of each metric of the validation set, which way is better.
    """

    id: str
    group: str
    name: str
    folder: Path
    config: Mapping[str, Any]
    higher_is_better: Mapping[str, bool]


CSV, TENSORBOARD = "csv", "tensorboard"
FOLDERS = ("wandb", CSV, TENSORBOARD)
"""Folders that the loggers write below that of a run."""

PATIENCE = 10.0
"""Seconds for a server of Weights & Biases to answer at all."""


@contextmanager
def wandb_session(*, mode: str | None, **settings: Any) -> Iterator["wandb.Run"]:
    """Open a run at Weights & Biases, and tell it how what is done within ended; its own context would print a traceback.

    Args:
        mode: see :func:`wandb_logger`.
        settings: further arguments of ``wandb.init``.

    Raises:
        UserError: it is to be online, and there is no key or no answer.
    """
    import wandb

    if mode in ("online", "shared"):
        _check_server(_address())
    try:
        run = wandb.init(
            mode=mode,  # type: ignore[arg-type]
            resume="allow",
            settings=wandb.Settings(silent=True, console="off"),
            reinit="finish_previous",
            **settings,
        )
    except wandb.errors.Error as error:
        remedy = "run wandb login or set WANDB_API_KEY, or log with mode=offline"
        raise UserError(f"Weights & Biases refuses ({brief(error)}): {remedy}") from error
    try:
        yield run
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish(exit_code=0)


def _address() -> str:
    import wandb

    return str(wandb.setup().settings.base_url)


def _check_server(address: str) -> None:
    """Refuse a server that does not answer; W&B itself would ask again for a minute and a half.

    Raises:
        UserError: it does not.
    """
    try:
        urlopen(address, timeout=PATIENCE).close()
    except HTTPError:  # an answer
        pass
    except OSError as error:
        reason = getattr(error, "reason", error)
        if not isinstance(reason, ssl.SSLCertVerificationError):  # W&B may know other certificates
            remedy = "log with mode=offline, and wandb sync later"
            raise UserError(f"Weights & Biases does not answer at {address} ({brief(reason)}): {remedy}") from error


@contextmanager
def wandb_logger(
    run: RunInfo,
    *,
    project: str,
    entity: str | None = None,
    mode: Mode = "offline",
    tags: Sequence[str] = (),
) -> Iterator[Logger | bool]:
    """Log to Weights & Biases: one W&B run for each run, offline unless told otherwise.

    Args:
        run: what is logged.
        project: W&B project.
        entity: W&B user or team; the account's default if it is None.
        mode: as of ``wandb.init``.
        tags: labels of the run.
    """
    if not is_first_process():  # the other processes of a distributed run log nothing
        yield False
        return
    with wandb_session(
        mode=mode,
        project=project,
        entity=entity,
        tags=list(tags),
        id=run.id,
        group=run.group,
        name=run.name,
        job_type="train",
        dir=run.folder,
        config=dict(run.config),
    ) as wandb_run:
        wandb_run.define_metric("epoch")
        wandb_run.define_metric("*", step_metric="trainer/global_step")
        for metric, higher in run.higher_is_better.items():
            wandb_run.define_metric(metric, summary="max" if higher else "min", step_metric="trainer/global_step")
        yield WandbLogger(experiment=wandb_run)


@contextmanager
def csv_logger(run: RunInfo) -> Iterator[Logger]:
    """Log to ``csv/metrics.csv`` in the run's folder; what an earlier start wrote there is ``metrics.N.csv`` from then on."""
    written = run.folder / CSV / ExperimentWriter.NAME_METRICS_FILE
    if written.is_file() and is_first_process():  # which Lightning would remove
        names = (f"{written.stem}.{number}{written.suffix}" for number in count(1))
        written.rename(next(path for name in names if not (path := written.with_name(name)).exists()))
    logger = CSVLogger(run.folder, name=CSV, version="")
    try:
        yield logger
    finally:
        logger.save()  # Lightning's does when a stage ends, after which the measures of the tests come


@contextmanager
def tensorboard_logger(run: RunInfo) -> Iterator[Logger]:
    """Log to ``tensorboard/`` in the run's folder, with the config as hyperparameters beside the metrics of validation."""
    from torch.utils.tensorboard.summary import hparams

    logger = TensorBoardLogger(run.folder, name=TENSORBOARD, version="", default_hp_metric=False)
    if is_first_process():
        # Lightning writes them only with values of metrics, which would be points of the curves.
        for summary in hparams(dict(_flatten(run.config)), dict.fromkeys(run.higher_is_better)):  # type: ignore[no-untyped-call]
            logger.experiment.file_writer.add_summary(summary)
    try:
        yield logger
    finally:
        logger.finalize("success")  # Lightning does when a stage ends, after which the measures of the tests come


def _flatten(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str | float]]:
    """Yield a config's keys as paths, such as ``encoder/hidden_size``, with what TensorBoard takes for values."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{path}{key}/")
        else:
            yield f"{path}{key}", value if isinstance(value, (bool, int, float)) else str(value)


@contextmanager
def no_logger(run: RunInfo) -> Iterator[bool]:
    """Log nowhere; the run's folder still holds every metric of every epoch, and the result."""
    yield False


@contextmanager
def plain_logger(logger: Logger, run: RunInfo) -> Iterator[Logger]:
    """Log to a logger of Lightning's own, which was made from its ``_target_`` alone, and tell it how the run ended."""
    logger.log_hyperparams(dict(run.config))
    try:
        yield logger
    except BaseException:
        logger.finalize("failed")
        raise
    logger.finalize("success")
