"""From a resolved config to a task, a model and what trains it: the one place where a run's parts are wired to each other."""

import inspect
import json
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from torch import nn

from attnlab.attention.mechanism import AttentionMechanism
from attnlab.attention.validation import as_part
from attnlab.config import Factory, build, component_errors, library_errors, validate_kind, wrong_kind
from attnlab.data.batches import memory_errors
from attnlab.decoders.decoder import Decoder
from attnlab.encoders.encoder import Encoder
from attnlab.errors import UserError
from attnlab.heads.head import Head
from attnlab.model import Seq2Seq
from attnlab.search import Search
from attnlab.search.validation import validate_search
from attnlab.tasks.task import Task
from attnlab.tasks.validation import own_errors, validate_task
from attnlab.training import SequenceModule
from attnlab.training.auxiliary import AuxiliaryLoss
from attnlab.training.module import LONG
from attnlab.training.objective import Objective

log = logging.getLogger(__name__)

PARTS: dict[str, type[nn.Module]] = {"encoder": Encoder, "attention": AttentionMechanism, "decoder": Decoder, "head": Head}
"""The parts of a model, which are configured one by one."""
SAMPLE = 64
"""Examples by which it is told whether targets have several tokens."""


def build_task(config: Mapping[str, Any]) -> Task:
    """Make a run's task; every parameter that it takes is the config's node of that name.

    Raises:
        UserError: a mistake in the config.
    """
    make, nodes = _task_factory(config)
    parts = {name: build(node, name) if isinstance(node, Mapping) else node for name, node in nodes.items()}
    _check_kinds(make.func, parts)
    task: Task = make(**parts)
    return task


def prepare_task(config: Mapping[str, Any], task: Task) -> None:
    """Let the task of a run read its data, and try what a user's own promises.

    Raises:
        UserError: whatever is wrong with the data, or a promise that is not kept.
    """
    with component_errors("data"), own_errors(task, "prepare()"):
        task.prepare()
    with component_errors("task"):
        validate_task(task, lambda: build_task(config))


class TaskStore:
    """The tasks of several runs, each made once for all configs that make the same."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def find(self, config: Mapping[str, Any]) -> Task:
        """Return the task of a run; see :func:`build_task`."""
        parts = json.dumps({"task": config["task"], **_task_factory(config)[1]}, sort_keys=True)
        if parts not in self._tasks:
            self._tasks[parts] = build_task(config)
        return self._tasks[parts]


def _task_factory(config: Mapping[str, Any]) -> tuple[Factory, dict[str, Any]]:
    make: Factory = build(config["task"], "task")
    names = [name for name in inspect.signature(make.func).parameters if name in config and name not in make.keywords]
    return make, {name: config[name] for name in names}


def _check_kinds(made: Any, parts: Mapping[str, Any]) -> None:
    """Refuse a part of another kind than the task reads, such as the data of another task."""
    hints = get_type_hints(made.__init__)
    for name, part in parts.items():
        kind = hints.get(name)
        if inspect.isclass(kind) and not isinstance(part, kind):
            raise wrong_kind(name, made.__name__, kind, type(part))
        if get_origin(kind) is Mapping and inspect.isclass(each := get_args(kind)[1]):
            for key, item in part.items():
                validate_kind(item, f"{name}.{key}", each)


def build_model(config: Mapping[str, Any], task: Task) -> Seq2Seq:
    """Make a run's model, its sizes wired to each other and to the task's.

    Args:
        config: resolved.
        task: prepared, or with its state loaded.

    Raises:
        UserError: components that do not go together, or more parameters than there is memory for.
    """
    parts = {part: partial(_make_part, build(config[part], part), part, kind) for part, kind in PARTS.items()}
    make = build(config["model"], "model")
    with memory_errors(lambda: "the parameters of this model", "lower the sizes of its parts"):
        model: Seq2Seq = make(task.source_frontend, task.target_frontend, task.targets, config["seed"], **parts)
    return model


def _make_part(make: Callable[..., nn.Module], path: str, kind: type[nn.Module], *args: Any, **keywords: Any) -> nn.Module:
    """Make a part of the model, and refuse what is of another class."""
    part = make(*args, **keywords)
    with component_errors(path):
        return as_part(part, kind)


def build_module(config: Mapping[str, Any], task: Task, model: Seq2Seq) -> SequenceModule:
    """Make what trains a model, and let the task serve what the model and its losses read.

    Raises:
        UserError: components that do not go together, or a source that is longer than the model can read.
    """
    auxiliary = {name: build(node, f"auxiliary.{name}", AuxiliaryLoss) for name, node in config["auxiliary"].items()}
    objective = build(config["objective"], "objective", Objective)
    objective.auxiliary = auxiliary
    if model.needs_copy_ids:
        task.serve_copy_ids()
    if any(loss.needs_links for loss in auxiliary.values()):
        task.serve_links()
    _check_lengths(task, model)
    _check_decoder(task, model)
    with component_errors("objective"):
        objective.validate(model)
    module = SequenceModule(
        model,
        task,
        build_search(config),
        config["seed"],
        objective=objective,
        optimizer=build(config["optimizer"], "optimizer"),
        scheduler=build(config["scheduler"], "scheduler"),
    )
    with library_errors("optimizer or scheduler"):
        module.configure_optimizers()
    return module


def build_search(config: Mapping[str, Any]) -> Search:
    """Make the search of a config, and try one of a user's own.

    Raises:
        UserError: a mistake in its settings, or a promise that it does not keep.
    """
    search: Search = build(config["search"], "search", Search)
    with component_errors("search"):
        validate_search(search)
    return search


def _check_lengths(task: Task, model: Seq2Seq) -> None:
    """Refuse what the model cannot read or this machine not hold, and tell of what is very long, before the training."""
    limit = model.max_source_length
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for split in ("train", "val", *task.test_names):
        examples = task.examples(split)
        source, target = examples.source.lengths, examples.target.lengths
        place, longest = task.place(split, int(source.argmax())), int(source.max())
        if limit is not None and longest > limit:
            hint = ", or set a lower batches.max_length to leave out longer examples" if split == "train" else ""
            raise UserError(
                f"the attention looks at {limit} source positions at most, but the longest source of {split} has {longest} "
                f"tokens ({place}): raise max_length, of its score or of the encoder, to {longest}{hint}"
            )
        worst = int((source * target).argmax())
        told = _describe(task, split, worst)
        remedy = "set batches.max_length" if split == "train" else "shorten the line, or leave it out"
        if 4 * int(source[worst]) * int(target[worst]) > memory:
            raise UserError(f"{told}: the weights of an attention alone need more memory than there is: {remedy}")
        if int(np.maximum(source, target).max()) > LONG:
            told = _describe(task, split, int(np.maximum(source, target).argmax()))
            log.warning("%s is very long and may need more memory than there is: %s", told, remedy)


def _check_decoder(task: Task, model: Seq2Seq) -> None:
    """Tell where a decoder that answers with one token has more to write."""
    if model.decoder.reads_targets:
        return
    some = task.examples("train")[range(SAMPLE)[: len(task.examples("train"))]]
    if int((some.labels != task.targets.padding_id).sum(dim=1).max()) > 1:
        log.warning(
            "a %s does not read what it has written, and targets have several tokens here: unless its attention counts "
            "them or remembers, it writes the same token again and again: choose another decoder",
            type(model.decoder).__name__,
        )


def _describe(task: Task, split: str, index: int) -> str:
    examples = task.examples(split)
    source, target = int(examples.source.lengths[index]), int(examples.target.lengths[index])
    return f"{task.place(split, index)}: an example of {source:,} source by {target:,} target tokens"
