"""Evaluating a trained model, at the end of its run or after the fact: one piece of code for both."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from attnlab.config import component_errors
from attnlab.data.examples import Examples
from attnlab.data.symbols import without_end
from attnlab.errors import UserError, locate
from attnlab.evaluation.alignment import score
from attnlab.evaluation.evidence import EXAMPLE, ExampleResult, ForcedDecoding, Prediction, take_division
from attnlab.evaluation.measurement import Measurement, measure
from attnlab.evaluation.metric import Metric, Occasion, Statistics
from attnlab.runs.files import BESIDE, write_lines, write_statistics
from attnlab.runs.folder import RunFolder
from attnlab.source import is_users_own
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.task import Task
from attnlab.training.module import collect_evidence

log = logging.getLogger(__name__)

T = TypeVar("T")
Forced = TypeVar("Forced", ForcedDecoding, ForcedDecoding | None)

SHIFTS = (0, 1)
"""Row t of the weights is read as about token t, or as about the token before."""

SHOWN = 6
"""Examples whose attention is kept for pictures, the first of the first test set that are short enough to read."""


@dataclass(frozen=True)
class TestEvaluation:
    """What came of one test set.

    Attributes:
        measurements: of every metric that could be measured.
        statistics: what each example adds to each metric.
        lengths: of each source.
        unit: that these are counted in.
        numbers: of each example in the test set, from 1.
        blocks: of each example; see :attr:`attnlab.data.examples.Examples.blocks`.
        hypotheses: lines of text.
        shift: how the rows of the attention were read; None where there are no gold links.
    """

    measurements: dict[str, Measurement]
    statistics: dict[str, Statistics]
    lengths: list[int]
    unit: str
    numbers: list[int]
    blocks: list[int] | None
    hypotheses: list[str]
    shift: int | None

    def record(self) -> dict[str, Any]:
        """Return what a result holds of a test set."""
        content: dict[str, Any] = {
            "examples": len(self.hypotheses),
            "length_unit": self.unit,
            "metrics": {name: asdict(measurement) for name, measurement in self.measurements.items()},
        }
        return content if self.shift is None else {**content, "shift": self.shift}


def check_metrics(task: Task, sets: Iterable[Examples], occasion: Occasion) -> None:
    """Try what the metrics of an occasion need beside the evidence; to be called before anything that takes long.

    Args:
        task: whose metrics they are.
        sets: that they are to measure.
        occasion: on which they do.

    Raises:
        UserError: it is not there, or does not work.
    """
    sets = [*sets]
    facts = [{**task.facts, **examples.facts} for examples in sets]
    for name, metric in task.metrics.items():
        if metric.is_due(occasion):
            with component_errors(f"metrics.{name}"):
                if name in BESIDE:
                    raise UserError("what is written of single examples has a column of this name: choose another")
                if not isinstance(getattr(metric, "label", None), str):
                    raise UserError(f'{type(metric).__name__} has no label, which tables call it by: set label = "..." in it')
                metric.check(facts)
                if metric.computed_from == "predictions" and is_users_own(type(metric)):
                    _try_metric(metric, task, sets[0])


def _try_metric(metric: Metric, task: Task, examples: Examples) -> None:
    """Let a metric measure predictions that are right, that are those of other examples, and that are nothing.

    Raises:
        UserError: it fails, or gives what cannot be summed.
    """
    indices = range(min(2, len(examples)))
    right = [(examples.references[index], examples.target_tokens(index)) for index in indices]
    nothing = [] if task.targets.numbers else [[("", list[str]())] * len(indices)]
    for written in (right, right[::-1], *nothing):
        results = []
        for index, (text, target) in zip(indices, written, strict=True):
            source = examples.source_tokens(index)
            weights = torch.full((len(target), len(source)), 1 / max(1, len(source)))
            results.append(ExampleResult(Prediction(index, text, target, source, weights, -1.0, -1.0), None))
        _try_measuring(metric, task, examples, results)


def _try_measuring(metric: Metric, task: Task, examples: Examples, results: Sequence[ExampleResult]) -> None:
    kind, indices = type(metric), range(len(results))
    known = {"annotations": task.annotations(examples, indices), "sources": [examples.sources[index] for index in indices]}
    try:
        rows = metric.statistics(collect_evidence(task, examples, results, **known))
        if rows is not None:
            float(metric.value(rows.sum(axis=0)))
    except (Exception, SystemExit) as error:
        raise UserError(f"{kind.__name__} cannot measure predictions: {locate(error, metric)}") from error
    if rows is not None and (rows.ndim != 2 or len(rows) != len(results) or not np.isfinite(rows).all()):
        raise UserError(
            f"{kind.__name__} gives {rows.shape} for {len(results)} examples: what each of them adds is a row of finite numbers"
        )


def evaluate(
    task: Task,
    examples: Examples,
    results: Sequence[ExampleResult],
    *,
    occasion: Occasion,
    shift: int | None = None,
    samples: int = 1,
) -> TestEvaluation:
    """Measure every metric of a test set that a model has seen.

    Args:
        task: whose test set it is.
        examples: of the test set.
        results: of these examples, or of some of them.
        occasion: of the measurement, which decides which metrics are measured.
        shift: of the attention's rows; see :func:`choose_shifts`.
        samples: of the bootstrap for confidence intervals; 1 makes none.
    """
    indices = [result.prediction.index for result in results]
    forced = [result.forced for result in results]
    attends = any(one is not None and one.attends for one in forced)
    known = partial(task.alignments, examples, indices, forced, shift or 0)
    alignments = _look_up(known, occasion) if attends else None
    sizes = None if alignments is None else task.alignment_sizes(examples, indices)
    silver = alignments is not None and task.has_silver_links(examples)
    asked = any(metric.computed_from == "an aligner" and metric.is_due(occasion) for metric in task.metrics.values())
    linked = any(links for links, _ in alignments or ())
    learned = partial(task.aligner_links, examples, indices)
    aligned = _look_up(learned, occasion) if asked and linked and not silver else None
    evidence = collect_evidence(
        task,
        examples,
        results,
        alignments=alignments,
        alignment_sizes=sizes,
        aligned=aligned,
        silver=silver,
        annotations=task.annotations(examples, indices),
        sources=[examples.sources[index] for index in indices],
    )
    blocks = None if examples.blocks is None else examples.blocks[indices].tolist()
    measurements, statistics = measure(task.metrics, evidence, occasion, samples=samples, blocks=blocks)
    return TestEvaluation(
        measurements,
        statistics,
        examples.lengths[indices, 0].tolist(),
        examples.unit,
        [result.prediction.number for result in results],
        blocks,
        [result.prediction.text for result in results],
        None if alignments is None else shift or 0,
    )


def _look_up(links: Callable[[], T | None], occasion: Occasion) -> T | None:
    """Return links that an aligner may have to learn first; None where an evaluation, whose search is over, cannot have them.

    Raises:
        UserError: a run's own test cannot have them, such as from a training set that is gone.
    """
    try:
        return links()
    except UserError as error:
        if occasion != "evaluation":
            raise
        told = "mend that, and evaluate again under another --label, to have it measured"
        log.warning("what is compared with the links of an aligner is not measured: %s; %s", error, told)
        return None


def divide(task: Task, test: str, results: Sequence[ExampleResult]) -> dict[str, list[ExampleResult]]:
    """Return the results of a test set and of each of its divisions, by name."""
    parts = {name: take_division(results, places) for name, places in task.divisions(test).items()}
    return {test: list(results), **parts}


REPORTED = "the attention that is reported"


def choose_shifts(predictor: Predictor, *, heads: bool = False) -> dict[str, int]:
    """Choose how the rows of the attention that is reported and, if asked for, of every head are read, by its name.

    Returns:
        The shifts that agree best with the gold links of the validation set; empty if none of these is sure.

    Raises:
        UserError: the validation set cannot be read.
    """
    task = predictor.task
    examples = task.examples("val")
    indices = range(len(examples))
    known = task.alignments(examples, indices, [None] * len(indices), 0)
    if not any(gold.sure for _, gold in known or ()):
        return {}
    forced = predictor.force_examples(examples, heads=heads)

    def error_rate(decodings: Sequence[ForcedDecoding | None], shift: int) -> float:
        alignments = task.alignments(examples, indices, decodings, shift)
        assert alignments is not None, "there are gold links"
        return score(*zip(*alignments, strict=True)).aer

    return {
        name: min(SHIFTS, key=lambda shift: error_rate(decodings, shift)) for name, decodings in split_by_head(forced).items()
    }


def split_by_head(forced: Sequence[Forced]) -> dict[str, list[Forced]]:
    """Return forced decodings with the weights that are reported and, where they were asked for, with those of each head."""
    names = next((one.heads for one in forced if one is not None), {})
    by_head = {name: [one and replace(one, weights=one.heads[name]) for one in forced] for name in names}
    return {REPORTED: list(forced), **by_head}


def write_test(folder: RunFolder, name: str, examples: Examples, evaluation: TestEvaluation) -> None:
    """Write what a run made of a test set, and what it should have made: a line, and a row, for each example that it saw."""
    write_lines(folder.hypotheses_file(name), evaluation.hypotheses)
    write_lines(folder.sources_file(name), [examples.sources[number - 1] for number in evaluation.numbers])
    write_lines(folder.references_file(name), [examples.references[number - 1] for number in evaluation.numbers])
    places = evaluation.lengths, evaluation.numbers, evaluation.blocks
    write_statistics(folder.statistics_file(name), evaluation.statistics, *places)


def map_attention(predictor: Predictor, test: str) -> list[dict[str, Any]]:
    """Return what the attention looks at while the right targets of some examples are written, and the gold links if known.

    The first examples of the test set, or of each of its divisions, whose lines of text are short enough to be read: the same
    ones whatever the tokens of a model are. One of which it has no token is left out.
    """
    examples = predictor.task.examples(test)
    divisions = list(predictor.task.divisions(test).values()) or [range(len(examples))]
    short = (examples.lengths.min(axis=1) > 0) & (examples.lengths.max(axis=1) <= predictor.task.shown_length)
    each = -(-SHOWN // len(divisions))
    first = (places.start + np.flatnonzero(short[places.start : places.stop])[:each] for places in divisions)
    sides = (examples.source_tokens, examples.target_tokens)
    chosen = [index for places in first for index in places.tolist() if all(without_end(side(index)) for side in sides)]
    if not chosen:
        return []
    device = next(predictor.models[0].parameters()).device
    forced = predictor.force_batch(examples[chosen].to(device), examples)
    gold = examples.gold_links()
    maps = []
    for index, one in zip(chosen, forced, strict=True):
        shown = {
            "test": test,
            EXAMPLE: index + 1,
            "lines": [examples.sources[index], examples.references[index]],
            "source": one.source,
            "target": one.tokens,
            "weights": [[round(weight, 4) for weight in row] for row in one.weights.tolist()],
        }
        if gold is not None:
            links = gold.batch([index], *one.weights.shape)[0].nonzero().tolist()
            shown["links"] = [[column, row] for row, column in links]
        maps.append(shown)
    return maps


def flatten_metrics(tests: Mapping[str, TestEvaluation]) -> dict[str, float]:
    """Return the metrics of all test sets under flat names, such as ``test/loss``, for loggers."""
    return {f"{test}/{name}": m.value for test, found in tests.items() for name, m in found.measurements.items()}
