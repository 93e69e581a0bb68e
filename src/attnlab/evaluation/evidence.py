"""Evidence: what a model made of a test set, from which every metric is computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from attnlab.data.pharaoh import Gold, Links

if TYPE_CHECKING:  # a report imports this, and no torch, which takes seconds
    from torch import Tensor

EXAMPLE = "example"
"""The column and key of an example's number, from 1: its place in the test set or, of lines of text, the line's."""


@dataclass(frozen=True)
class Prediction:
    """What a search found for one source.

    Attributes:
        index: position of the source among the examples, from 0.
        text: the prediction as a line of text, in the form of the references.
        tokens: tokens of the prediction, ending with the end symbol where the task has one.
        source: source tokens as the model read them, likewise.
        weights: attention weights (len(tokens), len(source)), on the CPU.
        log_probability: Σ_t log p(y_t | y_<t, x), the end symbol included, in nats.
        score: what the search ranked by.
    """

    index: int
    text: str
    tokens: list[str]
    source: list[str]
    weights: "Tensor"
    log_probability: float
    score: float

    @property
    def number(self) -> int:
        """The number of the example, from 1; see :data:`EXAMPLE`."""
        return self.index + 1


@dataclass(frozen=True)
class ForcedDecoding:
    """A given target, as a model sees it when it is made to write it.

    Attributes:
        tokens: of the target, ending with the end symbol where the task has one.
        log_probabilities: log p(y_t | y_<t, x) of each, in nats.
        right: for each token, whether it is the most probable one.
        weights: attention weights (len(tokens), len(source)), on the CPU.
        source: source tokens, likewise.
        heads: where asked for, the weights of each head by name, such as "layers.0.attention, head 1".
        unknown: places of the tokens that the model knows as the unknown one alone, whose probability is that of all of them.
        sums_to_one: whether the weights of every token sum to one, as the attention has it.
        attends: whether there is an attention; without one all weights are zero.
    """

    tokens: list[str]
    log_probabilities: list[float]
    right: list[bool]
    weights: "Tensor"
    source: list[str]
    heads: "dict[str, Tensor]" = field(default_factory=dict)
    unknown: Sequence[int] = ()
    sums_to_one: bool = True
    attends: bool = True

    @property
    def log_probability(self) -> float:
        """Of the whole target, the end symbol included."""
        return sum(self.log_probabilities)


@dataclass(frozen=True)
class ExampleResult:
    """One example of a test set, after a model has searched for its target and was made to write it.

    Attributes:
        prediction: the best hypothesis.
        forced: forced decoding of the reference; None where the source is empty.
        of_reference_length: the best hypothesis of exactly as many tokens as the reference; None where nobody asked for it.
    """

    prediction: Prediction
    forced: ForcedDecoding | None
    of_reference_length: Prediction | None = None


def take_division(results: Sequence[ExampleResult], places: range) -> list[ExampleResult]:
    """Return the results of some neighbouring examples, which count from the first of them.

    Args:
        results: of a split, or of some of its examples.
        places: of the neighbours in the split.
    """

    def move(prediction: Prediction) -> Prediction:
        return replace(prediction, index=prediction.index - places.start)

    return [
        ExampleResult(move(one.prediction), one.forced, one.of_reference_length and move(one.of_reference_length))
        for one in results
        if one.prediction.index in places
    ]


@dataclass(frozen=True)
class Evidence:
    """All that is known of a test set, or of a batch of it, after a model has seen it; one item an example.

    Attributes:
        predictions: the best hypotheses.
        references: the right targets, as lines of text.
        forced: forced decoding of the references; None for an empty source.
        facts: what the task says of its predictions, such as their language and whether they are in lower case.
        alignments: the links that the attention makes, and those that are known; None where they are not known or not asked
            for.
        alignment_sizes: how many source and target words each of these has.
        aligned: the links of a statistical aligner of the training set, in both directions; None where there is none, or it was
            not asked for.
        silver: whether the links that are known are an aligner's own, and not people's.
        annotations: what else the task's corpus knows of each example, for metrics of the task; None where it knows nothing.
        of_reference_length: the best hypotheses of the references' lengths in tokens; None where nobody asked for them.
        sources: as lines of text; None where nobody asked for them, as during the training.
    """

    predictions: Sequence[Prediction]
    references: Sequence[str]
    forced: Sequence[ForcedDecoding | None]
    facts: Mapping[str, str | bool] = field(default_factory=dict)
    alignments: Sequence[tuple[Links, Gold]] | None = None
    alignment_sizes: Sequence[tuple[int, int]] | None = None
    aligned: Sequence[tuple[Links, Links]] | None = None
    silver: bool = False
    annotations: Sequence[Any] | None = None
    of_reference_length: Sequence[Prediction] | None = None
    sources: Sequence[str] | None = None
