"""Trained models in use: from lines of text to lines of text, or over the examples of a split."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnlab.attention import collect_head_weights, name_heads
from attnlab.data.batches import Batch, memory_errors, split_evaluation
from attnlab.data.examples import Examples
from attnlab.data.progress import progress
from attnlab.data.symbols import EOS, PAD, UNK
from attnlab.errors import UserError
from attnlab.evaluation.evidence import ExampleResult, ForcedDecoding, Prediction
from attnlab.evaluation.metric import Occasion
from attnlab.model import Seq2Seq
from attnlab.precision import widen
from attnlab.search import Ensemble, Hypothesis, Search, average
from attnlab.search.search import Model
from attnlab.tasks.task import Task

REMEDY = "make evaluation batches smaller or the beam narrower, or shorten the longest lines"
REMEDY_ALONE = "shorten this one, or leave it out"


def predict_nothing(index: int) -> Prediction:
    """Return what is predicted where there is no source, or where a search finds nothing."""
    return Prediction(index, "", [], [], torch.zeros(0, 0), 0.0, 0.0)


class Forced(NamedTuple):
    """What a model says of the given targets of a batch."""

    log_probabilities: Tensor
    """(labels, tokens): the output distribution at every real label of the batch, row after row."""
    weights: Tensor
    """(batch, target_len, source_len), as the decoder reports them."""


def force(model: Seq2Seq, batch: Batch) -> Forced:
    """Let a model write the targets of a batch."""
    memory, state = model.encode(batch.source, batch.source_lengths, batch.copy_ids)
    decoded = model.decode(batch.target[:, :-1], memory, state)
    scores = model.scores(decoded, memory, batch.positions)
    precise = widen(scores)
    return Forced(torch.log_softmax(precise, dim=-1), decoded.weights)


def require_lines(lines: object, name: str) -> None:
    """Refuse what is no list of lines of text.

    Raises:
        UserError: such as one text, whose characters would be taken for lines.
    """
    if isinstance(lines, str):
        raise UserError(f"{name} are a list of lines, not one text: write [text]")
    if not isinstance(lines, Sequence) or not all(isinstance(line, str) for line in lines):
        raise UserError(f"{name} are a list of lines, each of them text")


class Predictor:
    """One or several models of a task, and a search.

    Args:
        task: prepared, or with its state loaded.
        models: of the same target space; several are searched as an ensemble.
        search: finds predictions.
        batch_size: sources in a batch, fewer if they are very long.

    Raises:
        UserError: a search that ranks by an attention's weights, and a model without an attention.
    """

    def __init__(self, task: Task, models: Sequence[Seq2Seq], search: Search, *, batch_size: int = 64) -> None:
        self.task = task
        self.models = list(models)
        self.model: Model = self.models[0] if len(models) == 1 else Ensemble(self.models)
        self.search = search
        if search.reads_weights and not all(model.decoder.attention.context_size for model in self.models):
            raise UserError("a coverage penalty ranks by attention weights, of which this model has none: leave it at 0")
        self.batch_size = batch_size

    # lines of text

    def predict(self, sources: Sequence[str]) -> list[Prediction]:
        """Return the best prediction of each source, in the order of the sources.

        Args:
            sources: lines of text. What is nothing but white space is predicted as nothing, if the task takes it for a source.

        Raises:
            UserError: a source that is longer than the models can read, or none of this task.
        """
        return [predictions[0] for predictions in self.n_best(sources)]

    def n_best(self, sources: Sequence[str]) -> list[list[Prediction]]:
        """Return all predictions that the search keeps, best first; see :meth:`predict`."""
        examples = self.read_sources(sources)
        found: dict[int, list[Prediction]] = {}
        for batch in self.batches(examples):
            each = zip(batch.indices.tolist(), self.find_hypotheses(batch), strict=True)
            found |= {index: [self.task.read(one, examples, index) for one in hypotheses] for index, hypotheses in each}
        return [found.get(index) or [predict_nothing(index)] for index in range(len(examples))]

    def read_sources(self, sources: Sequence[str]) -> Examples:
        """Return lines of text as examples that the models can read; see :meth:`predict`."""
        require_lines(sources, "sources")
        examples: Examples = self.task.parse(sources)
        self.check_lengths(examples)
        return examples

    def force(self, sources: Sequence[str], targets: Sequence[str], *, heads: bool = False) -> list[ForcedDecoding]:
        """Let the models write given targets, in the order of the sources.

        Args:
            sources: lines of text.
            targets: as many.
            heads: return the weights of every head of every layer too.

        Raises:
            UserError: not as many, a source that is empty or too long for the models, or the heads of an ensemble.
        """
        require_lines(sources, "sources")
        require_lines(targets, "targets")
        if len(sources) != len(targets):
            raise UserError(f"{len(sources)} sources cannot be scored with {len(targets)} targets: one for each")
        examples = self.task.parse(sources, targets)
        self.check_lengths(examples)
        if not examples.has_source.all():
            raise UserError(f"source {int(examples.has_source.argmin()) + 1} is empty: it cannot be scored")
        return [one for one in self.force_examples(examples, heads=heads) if one is not None]

    # examples

    def force_examples(self, examples: Examples, *, heads: bool = False) -> list[ForcedDecoding | None]:
        """Let the models write the targets of all examples; None where the source is empty."""
        found: dict[int, ForcedDecoding] = {}
        for batch in self.batches(examples):
            found |= dict(zip(batch.indices.tolist(), self.force_batch(batch, examples, heads=heads), strict=True))
        return [found.get(index) for index in range(len(examples))]

    def examine(self, examples: Examples, occasion: Occasion) -> list[ExampleResult]:
        """Search for the target of every example, and let the models write the right one; in the order of the examples."""
        self.check_lengths(examples)
        results = {result.prediction.index: result for result in self.empty_results(examples)}
        with progress("predicting", len(examples)) as advance:
            for batch in self.batches(examples):
                found = self.examine_batch(batch, examples, occasion)
                results |= {result.prediction.index: result for result in found}
                advance(len(found))
        return [results[index] for index in range(len(examples))]

    @staticmethod
    def empty_results(examples: Examples) -> list[ExampleResult]:
        """Return what comes of the sources that are empty: nothing is predicted, and nothing can be forced."""
        empty = np.flatnonzero(~examples.has_source).tolist()
        return [ExampleResult(predict_nothing(index), None) for index in empty]

    def examine_batch(self, batch: Batch, examples: Examples, occasion: Occasion) -> list[ExampleResult]:
        """Search for the targets of a batch, and let the models write the right ones.

        Args:
            batch: of examples.
            examples: of the split.
            occasion: of the measurement, which decides whether hypotheses of the references' lengths are searched for too.
        """
        predictions: list[list[Prediction]] = [self.search_batch(batch, examples)]
        needed = {metric.computed_from for metric in self.task.metrics.values() if metric.is_due(occasion)}
        if "predictions of reference length" in needed:
            predictions.append(self.search_batch(batch, examples, target_lengths=batch.target_lengths - 1))
        forced = self.force_batch(batch, examples)
        return [ExampleResult(own[0], f, *own[1:]) for *own, f in zip(*predictions, forced, strict=True)]

    def search_batch(self, batch: Batch, examples: Examples, *, target_lengths: Tensor | None = None) -> list[Prediction]:
        """Return the best prediction of each source of a batch; see :meth:`Search.__call__` for the lengths of targets."""
        each = zip(batch.indices.tolist(), self.find_hypotheses(batch, target_lengths), strict=True)
        return [
            self.task.read(hypotheses[0], examples, index) if hypotheses else predict_nothing(index)
            for index, hypotheses in each
        ]

    def find_hypotheses(self, batch: Batch, target_lengths: Tensor | None = None) -> list[list[Hypothesis]]:
        """Return what the search keeps of each source of a batch, best first; see :meth:`Search.__call__`."""
        with memory_errors(lambda: batch.shape, REMEDY):
            return self.search(
                self.model,
                batch.source,
                batch.source_lengths,
                bos=batch.target[:, 0],
                eos=EOS,
                padding=PAD,
                copy_ids=batch.copy_ids,
                target_lengths=target_lengths,
            )

    @contextmanager
    def forcing(self, batch: Batch, *, heads: bool) -> Iterator[dict[str, list[Tensor]]]:
        """Guard the memory, and collect the weights of every head if they are wanted, while models write a batch's targets.

        Raises:
            UserError: they are wanted of an ensemble, or there is not enough memory for the batch.
        """
        if heads and len(self.models) > 1:
            raise UserError("heads are those of one model, not of an ensemble")
        with memory_errors(lambda: batch.shape, REMEDY if len(batch.source) > 1 else REMEDY_ALONE):
            if heads:
                with collect_head_weights(self.models[0].decoder) as collected:
                    yield collected
            else:
                yield {}

    @property
    def sums_to_one(self) -> bool:
        """Whether the weights of a step sum to one in every model."""
        return all(model.decoder.attention.sums_to_one for model in self.models)

    @property
    def attends(self) -> bool:
        """Whether any model has an attention."""
        return any(model.decoder.attention.context_size for model in self.models)

    @torch.inference_mode()
    def force_batch(self, batch: Batch, examples: Examples, *, heads: bool = False) -> list[ForcedDecoding]:
        """Let the models write the targets of a batch."""
        with self.forcing(batch, heads=heads) as collected:
            outputs = [force(model, batch) for model in self.models]
            log_probabilities, weights = average([p for p, _ in outputs], [w for _, w in outputs])
        labels = batch.real_labels
        counts = batch.real.sum(1).tolist()
        right = torch.split((log_probabilities.argmax(-1) == labels).cpu(), counts)
        own = torch.split(log_probabilities.gather(1, labels.unsqueeze(1)).squeeze(1).cpu(), counts)
        unknown = torch.split((labels == UNK).cpu(), counts)
        weights = weights.float().cpu()
        by_head = name_heads(collected)
        sums_to_one, attends = self.sums_to_one, self.attends  # which look at every module
        return [
            ForcedDecoding(
                examples.target_tokens(index),
                own[row].tolist(),
                right[row].tolist(),
                weights[row, :rows, :columns].clone(),  # no view: see unbatch
                examples.source_tokens(index),
                {name: part[row, :rows, :columns].clone() for name, part in by_head.items()},
                unknown[row].nonzero()[:, 0].tolist(),
                sums_to_one,
                attends,
            )
            for row, (index, rows, columns) in enumerate(
                zip(batch.indices.tolist(), counts, batch.source_lengths.tolist(), strict=True)
            )
        ]

    # lengths

    @property
    def max_source_length(self) -> int | None:
        """The longest source that every model can read, in tokens, its end element included, or None."""
        return min((m.max_source_length for m in self.models if m.max_source_length is not None), default=None)

    def check_lengths(self, examples: Examples, *, place: str = "source", first: int = 1) -> None:
        """Refuse a source that is longer than the models can read.

        Args:
            examples: whose sources are to be read.
            place: what the message calls a source.
            first: number of the first one, for the message.

        Raises:
            UserError: there is one; the longest is named.
        """
        limit, lengths = self.max_source_length, examples.source.lengths
        if limit is not None and len(lengths) and int(lengths.max()) > limit:
            number = int(lengths.argmax()) + first
            longest = f"{int(lengths.max())} tokens, its end symbol included"
            raise UserError(f"{place} {number} has {longest}, but the model reads {limit} at most")

    def check_lines(self, sources: Sequence[str], *, place: str = "source", first: int = 1) -> None:
        """Refuse a line that is none of this task, or longer than the models can read; see :meth:`check_lengths`."""
        self.check_lengths(self.task.parse(sources, first=first), place=place, first=first)

    def batches(self, examples: Examples, chosen: Sequence[int] | None = None) -> Iterator[Batch]:
        """Yield batches of sources of similar length, of all examples or of some, without those that are empty."""
        device = next(self.models[0].parameters()).device
        order = examples.sort_by_length(chosen)
        for rows in split_evaluation(order, examples.source.lengths, examples.target.lengths, self.batch_size):
            yield examples[rows].to(device)
