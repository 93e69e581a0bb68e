"""Opening the models of finished runs."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from attnlab.config import trust as trust_all
from attnlab.data.files import expand_home
from attnlab.errors import UserError, brief, missing_folder
from attnlab.layers.networks import CPU_HAS_BFLOAT16
from attnlab.model import Seq2Seq
from attnlab.runs.assembly import build_model, build_search, build_task
from attnlab.runs.building import read_trusted_config, report_damage
from attnlab.runs.folder import RunFolder
from attnlab.runs.names import BEST, NAME_A_RUN, PRECISIONS, SHAPE, WEIGHTS
from attnlab.runs.weights import load_weights
from attnlab.search import Search
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.task import Task
from attnlab.training.process import prepare_process


def load(
    *runs: str | Path,
    search: Search | None = None,
    checkpoint: str = WEIGHTS,
    device: str | torch.device = "cpu",
    precision: str = "float32",
    batch_size: int = 64,
    trust: bool = False,
    to: str | None = None,
    **task_options: Any,
) -> Predictor:
    """Open trained models.

    Args:
        runs: folders of runs; of several the models are searched as an ensemble.
        search: finds predictions; None is what the first run was tested with.
        checkpoint: which weights: ``weights.safetensors``, those that the run was tested with, ``best.ckpt`` or ``last.ckpt``.
        device: where the models shall be.
        precision: of their weights and of what is computed from them: float32, or bfloat16, which is faster where the device
            has it, and rounds to three digits; log-probabilities are made and summed in float32 and more.
        batch_size: sources in a batch, fewer if they are very long.
        trust: also use classes that are not attnlab's, as the runs may name: their code is executed.
        to: the kind of target that lines of text get where the models have several, such as the target language.
        task_options: settings of the first run's task to be changed, such as ``replace_unknown=True``.

    Returns:
        What predicts with them; for translation a :class:`attnlab.tasks.translation.translator.Translator`.

    Raises:
        UserError: a folder that holds no finished run, a file in it that is damaged or not of this model, a run of another
            version of attnlab, one that names a class which is not trusted, runs whose targets are others than those of the
            first, no such kind of target, no such device, a batch of nothing, or a precision that is unknown, that the device
            lacks, or that is too coarse for what the models read.
    """
    if batch_size < 1:
        raise UserError(f"batch_size is a number of sources, 1 or more, not {batch_size}")
    with trust_all(None) if trust else nullcontext():
        predictor = _load(runs, search, checkpoint, _find_device(device), precision, batch_size, task_options)
    if to is not None:
        predictor.task.choose_target(to)
    return predictor


def _load(
    runs: Sequence[str | Path],
    search: Search | None,
    checkpoint: str,
    device: torch.device,
    precision: str,
    batch_size: int,
    task_options: Mapping[str, Any],
) -> Predictor:
    if not runs:
        raise UserError(NAME_A_RUN)
    folders = [RunFolder(expand_home(run)) for run in runs]
    for folder in folders:
        _require(folder, checkpoint)
    task = load_task(folders[0], **task_options)
    state = folders[0].read_task()["state"]
    models = []
    for folder in folders:
        if folder.read_task().get("state") != state:
            raise UserError(
                f"{folder.path} was trained on other data than {folders[0].path}, or reads them or is told the target language "
                "in another way: only models of the same data make an ensemble"
            )
        model = _load_model(folder, task, checkpoint)
        models.append(model.to(device, _dtype(precision, device, model)).eval())
    if search is not None and not isinstance(search, Search):
        raise UserError(f"search is a Search such as attnlab.search.BeamSearch(width=5), not {search!r}")
    with report_damage(folders[0].path):
        search = search or build_search(read_trusted_config(folders[0]))
    if models[0].needs_copy_ids:
        task.serve_copy_ids()
    prepare_process()
    return task.predictor(models, search, batch_size=batch_size)


def _find_device(name: str | torch.device) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()  # some, such as meta, hold no numbers
    except (RuntimeError, AssertionError, ImportError) as error:
        raise UserError(f"device {name}: {str(error).splitlines()[0]}: choose one that is here, such as cpu") from error
    return device


def load_task(folder: RunFolder, **options: Any) -> Task:
    """Make a run's task as it was after training, without reading its data.

    Args:
        folder: of a finished run.
        options: settings of the task to be changed; None leaves one as it is.

    Raises:
        UserError: no finished run there, or a file that is damaged.
    """
    config, state = read_trusted_config(folder), folder.read_task()
    changed = {name: value for name, value in options.items() if value is not None}
    with report_damage(folder.path):
        if unknown := changed.keys() - config["task"].keys():
            raise UserError(f"the task {state['task']} has no setting {sorted(unknown)[0]!r}")
        task = build_task({**config, "task": {**config["task"], **changed}})
    try:
        task.load_state(state["state"])
    except Exception as error:  # tokenizers raises nothing more special
        raise UserError(f"{folder.task_file} is damaged ({type(error).__name__}: {brief(error)})") from error
    return task


def _require(folder: RunFolder, checkpoint: str) -> None:
    if not folder.path.is_dir():
        what = f"{folder.path} is a file" if folder.path.exists() else missing_folder(folder.path)
        raise UserError(f"{what}: name the folder of a finished run, {SHAPE}")
    if not checkpoint or Path(checkpoint).name != checkpoint:
        raise UserError(f"a checkpoint is a file in the folder of the run, such as {BEST}, and not {checkpoint!r}")
    for path in (folder.config_file, folder.task_file, folder.path / checkpoint):
        if not path.is_file():
            models = (folder.weights_file, folder.best_checkpoint, folder.last_checkpoint)
            there = [model.name for model in models if model.is_file()]
            if folder.result_file.is_file() and not there:
                raise UserError(
                    f"{folder.path} holds results without a model, as attnlab unpack makes them: copy the "
                    "folder from where it was trained, or train it anew with resume=false"
                )
            chosen = path == folder.path / checkpoint and there
            seeds = sorted(seed for seed in folder.path.glob("seed=*") if RunFolder(seed).result_file.is_file())
            named = f"did you mean {seeds[0]}?" if seeds else f"name the folder of a finished run, {SHAPE}"
            hint = f"choose the checkpoint {there[0]}" if chosen else named
            raise UserError(f"{folder.path} holds no {path.name}: {hint}")


def _dtype(precision: str, device: torch.device, model: Seq2Seq) -> torch.dtype:
    if precision not in PRECISIONS:
        raise UserError(f"precision is {' or '.join(PRECISIONS)}, not {precision!r}")
    if precision != PRECISIONS[0]:
        if model.source_frontend.reads_numbers:
            raise UserError(f"the model reads numbers, for which {precision} is too coarse: use {PRECISIONS[0]}")
        if device.type == "cpu" and not CPU_HAS_BFLOAT16:
            raise UserError(f"this CPU has no {precision}, which would be slower than {PRECISIONS[0]}: use that")
    dtype: torch.dtype = getattr(torch, precision)
    return dtype


def _load_model(folder: RunFolder, task: Task, checkpoint: str) -> Seq2Seq:
    with report_damage(folder.path):
        model = build_model(read_trusted_config(folder), task)
    load_weights(folder.path / checkpoint, model)
    folder.verify(folder.path / checkpoint)
    return model
