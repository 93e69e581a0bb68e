"""What a task of a user's own promises, tried on a few examples before anything is trained."""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnlab.attention.trial import preserve_state
from attnlab.attention.validation import as_part
from attnlab.data.batches import Batch
from attnlab.data.examples import Examples
from attnlab.errors import UserError, attempt
from attnlab.evaluation.evidence import Prediction
from attnlab.heads import TargetSpace
from attnlab.hints import wrong_attribute
from attnlab.layers.frontend import Frontend, SourceFrontend, TargetFrontend
from attnlab.search import Hypothesis
from attnlab.source import is_users_own
from attnlab.tasks.task import Task

log = logging.getLogger(__name__)

SAMPLE = 64
"""Examples of a split that are looked at."""
SIZE = 8
"""Numbers of a vector that a frontend is asked for."""


def own_errors(task: Task, what: str) -> AbstractContextManager[None]:
    """Tell in one line what a task raises when it is asked, if it, or what its examples are made of, is a user's own."""
    own = [base for kind in (type(task), *task.parts) for base in kind.__mro__ if is_users_own(base)]
    return attempt(f"{what} of {type(task).__name__}", *own) if own else nullcontext()


def validate_task(task: Task, remake: Callable[[], Task]) -> None:
    """Try what a task promises, if the task, or what its examples are made of, is a user's own.

    Args:
        task: prepared.
        remake: makes the same task once more, not prepared, as for a trained model.

    Raises:
        UserError: a promise that is not kept.
    """
    if any(map(is_users_own, (type(task), *task.parts))):
        try_task(task, remake)


def try_task(task: Task, remake: Callable[[], Task]) -> None:
    """Try what a task promises; see :func:`validate_task`."""
    _check_attributes(task)
    splits = {split: _try_examples(task, split) for split in ("train", "val", *task.test_names)}
    with own_errors(task, "targets"):
        targets = task.targets
    if not isinstance(targets, TargetSpace):
        raise UserError(f"targets of {type(task).__name__} is {targets!r}: it is a TargetSpace")
    for split, examples in splits.items():
        _try_frontends(task, split, examples[_sample(examples)])
    fresh = _try_state(task, remake)
    if not targets.numbers:  # which no search over tokens finds
        _try_reading(task, fresh, splits["val"])
    for split, examples in splits.items():
        _try_knowledge(task, split, examples)


def _check_attributes(task: Task) -> None:
    name = type(task).__name__
    if told := wrong_attribute(task, Task):
        raise UserError(f"{name} has {told}")
    if reserved := [split for split in ("train", "val") if split in task.test_names]:
        raise UserError(f"{name} has the test set {reserved[0]!r}, as another split is called: give it another name")


def _sample(examples: Examples) -> list[int]:
    """Return the positions of examples that are looked at, from the first to the last."""
    return sorted({*np.linspace(0, len(examples) - 1, SAMPLE).astype(int).tolist()})


def _try_examples(task: Task, split: str) -> Examples:
    name = f"examples({split!r}) of {type(task).__name__}"
    with own_errors(task, f"examples({split!r})"):
        examples = task.examples(split)
        if not isinstance(examples, Examples):
            raise UserError(f"{name} gives {type(examples).__name__}: it returns what inherits from Examples")
        if not hasattr(examples, "source"):
            raise UserError(f"{type(examples).__name__} is not prepared: call super().__init__(source, target) in its own")
        of_tests = [] if split == "train" else ["lengths"]  # which of a large corpus take long, and nobody reads
        sides = {side: getattr(examples, side) for side in ["source", "target", "sources", "references", *of_tests]}
        counts = {side: len(values) for side, values in sides.items()}
    if len({*counts.values()}) > 1:
        told = ", ".join(f"{count} {side}" for side, count in counts.items())
        raise UserError(f"{name} has {told}: it has one of each for every example")
    if not len(examples):
        raise UserError(f"{name} has no example: a split has one at least")
    with own_errors(task, f"examples({split!r})"):
        _check_tokens(name, examples)
    return examples


def _check_tokens(name: str, examples: Examples) -> None:
    """Refuse lines and tokens that do not go with the tensors, which tables and pictures show beside each other."""
    for index in _sample(examples):
        place = f"{name}, example {index + 1},"
        lines = {"a source": examples.sources[index], "a reference": examples.references[index]}
        for what, line in lines.items():
            if not isinstance(line, str) or "\n" in line:
                raise UserError(f"{place} has {line!r} for {what}, which is a line of text")
        shown = {
            "source_tokens": (examples.source_tokens(index), int(examples.source.lengths[index])),
            "target_tokens": (examples.target_tokens(index), int(examples[[index]].real.sum())),
        }
        for method, (tokens, length) in shown.items():
            if not _is_text(tokens):
                raise UserError(f"{place} has {tokens!r} for {method}, which is a list of texts")
            if len(tokens) != length:
                raise UserError(f"{place} shows {len(tokens)} {method}, where the model has {length}: show each")
    if int(examples.source.lengths.max()) < 2:
        raise UserError(f"{name} has nothing but empty sources: a source ends with an end element, which counts too")
    if int(examples.target.lengths.min()) < 2:
        raise UserError(f"{name} has a target without anything to be predicted: a target begins with a start symbol")


def _is_text(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _try_frontends(task: Task, split: str, batch: Batch) -> None:
    vectors = _try_frontend(task, split, "source_frontend", SourceFrontend, batch.source)
    _try_frontend(task, split, "target_frontend", TargetFrontend, batch.target[:, :-1], vectors)


def _try_frontend(task: Task, split: str, method: str, kind: type[Frontend], elements: Tensor, *vectors: Tensor) -> Tensor:
    """Return the vectors that a frontend makes of elements; that of targets is given those of the sources too."""
    name = f"{method}() of {type(task).__name__}"
    with own_errors(task, f"{method}()"), torch.random.fork_rng(devices=[]):
        frontend = as_part(getattr(task, method)(SIZE), kind)
        _check_ids(name, split, frontend, elements)
        with preserve_state(frontend):
            made: Tensor = frontend(elements, *vectors)
    wanted = (*elements.shape[:2], frontend.size)
    if made.shape != wanted:
        raise UserError(f"{name} makes {tuple(made.shape)} of a batch, where its size says {wanted}")
    return made


def _check_ids(name: str, split: str, frontend: Frontend, elements: Tensor) -> None:
    count = frontend.input_size
    wrong = [] if count is None or frontend.reads_numbers else elements[(elements < 0) | (elements >= count)].tolist()
    if wrong:
        raise UserError(f"{split} has the id {wrong[0]}, and {name} embeds {count}, which count from 0")


def _try_state(task: Task, remake: Callable[[], Task]) -> Task:
    """Return a task that has learned from the state of another, and not from the data."""
    name = type(task).__name__
    with own_errors(task, "state()"):
        state = task.state()
    try:
        written = json.dumps(state)
    except (TypeError, ValueError) as error:
        raise UserError(f"state() of {name} cannot be written to a file ({error}): it returns plain containers") from error
    fresh = remake()
    with own_errors(task, "load_state()"):
        fresh.load_state(json.loads(written))
        if fresh.targets != task.targets:
            raise UserError(
                f"{name} has {fresh.targets} after load_state(), and had {task.targets}: let state() hold all that was learned"
            )
    return fresh


def _try_reading(task: Task, fresh: Task, examples: Examples) -> None:
    """Read right targets as if a search had found them, and lines of text as a trained model does."""
    name = type(task).__name__
    read = []
    for index in _sample(examples):
        if examples.source.lengths[index] < 2:
            continue
        batch = examples[[index]]
        tokens = batch.labels[0].tolist()
        weights = torch.full((len(tokens), batch.source.shape[1]), 1 / batch.source.shape[1])
        with own_errors(task, "read()"):
            found = task.read(Hypothesis(tokens, -1.0, -1.0, weights), examples, index)
            _check_prediction(name, found, index)
        with own_errors(task, "parse()"):
            parsed = fresh.parse([examples.sources[index]], [examples.references[index]])
            if not isinstance(parsed, Examples) or len(parsed) != 1:
                raise UserError(f"parse() of {name} makes {parsed!r} of one line: it returns Examples, one for each")
            fresh.parse([examples.sources[index]])
        read.append((found.text, examples.references[index]))
    if read and all(text != reference for text, reference in read):
        text, reference = read[0]
        log.warning(
            "read() of %s makes %r of the right target of an example whose reference is %r, and others likewise: no prediction "
            "would be counted as right",
            name,
            text,
            reference,
        )


def _check_prediction(name: str, found: object, index: int) -> None:
    if not isinstance(found, Prediction):
        raise UserError(f"read() of {name} gives {type(found).__name__}: it returns a Prediction")
    if found.index != index:
        raise UserError(f"read() of {name} gives a prediction of index {found.index}, which is {index}, as it was asked for")
    if not isinstance(found.text, str) or not _is_text(found.tokens) or not _is_text(found.source):
        raise UserError(f"read() of {name} gives a prediction whose text is no text, or whose tokens are no list of texts")
    if "\n" in found.text:
        raise UserError(f"read() of {name} gives {found.text!r}: a prediction is a line of a file, and has no other in it")
    shape = len(found.tokens), len(found.source)
    if tuple(found.weights.shape) != shape:
        raise UserError(
            f"read() of {name} gives weights {tuple(found.weights.shape)} for {shape[0]} tokens and {shape[1]} source tokens: "
            "cut off those of other tokens"
        )


def _try_knowledge(task: Task, split: str, examples: Examples) -> None:
    """Ask for what a task may know of its examples beside them."""
    name, indices = type(task).__name__, _sample(examples)
    asked: dict[str, Callable[[], Sequence[Any] | None]] = {
        "gold": lambda: task.gold(examples, indices),
        "alignment_sizes": lambda: task.alignment_sizes(examples, indices),
        "annotations": lambda: task.annotations(examples, indices),
    }
    for method, ask in asked.items():
        with own_errors(task, f"{method}()"):
            known = ask()
            if known is not None and len(known) != len(indices):
                raise UserError(f"{method}() of {name} gives {len(known)} for {len(indices)} examples: one for each")
    with own_errors(task, "divisions()"):
        for part, places in task.divisions(split).items():
            if len(task.examples(part)) != len(places):
                raise UserError(f"divisions({split!r}) of {name}: {part} has not as many examples as places")
    with own_errors(task, "gold_links()"):
        if task.knows_links and examples.gold_links() is None:
            raise UserError(f"{name} says knows_links, and gold_links() of {type(examples).__name__} gives none")
