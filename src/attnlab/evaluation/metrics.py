"""Metrics of any task: of predictions, of forced decoding, and of attention."""

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.pharaoh import Gold, Links
from attnlab.data.symbols import END
from attnlab.evaluation.alignment import AlignmentScore, best_links, count_links, diagonal_links, grow_diagonal_final
from attnlab.evaluation.evidence import Evidence, ForcedDecoding
from attnlab.evaluation.metric import NOT_NEGATIVE, PERCENT, Metric, Occasion, Origin, Ratio, Share, Statistics

T = TypeVar("T")
LinkKind = Literal["gold", "silver"]
FLOOR = 1e-12
"""Weights below it count as it in logarithms."""


def statistics_of(examples: Iterable[T | None], count: Callable[[T], tuple[float, ...]]) -> Statistics | None:
    """Count what each example adds.

    Args:
        examples: None where one adds nothing.
        count: of one.

    Returns:
        (examples, k); None where no example adds anything.
    """
    rows = [None if example is None else count(example) for example in examples]
    nothing = next(((0.0,) * len(row) for row in rows if row is not None), None)
    return None if nothing is None else np.array([nothing if row is None else row for row in rows], dtype=np.float64)


def signature_of(facts: Mapping[str, Any], *names: str) -> str:
    """Write down some facts, those that are known, as ``tokens:spacy-mixed-2154|head:generates``."""
    return "|".join(f"{name}:{facts[name]}" for name in names if facts.get(name))


def case_of(lowercase: object) -> str:
    """Return the case of texts in sacreBLEU's words, where all of them are in lower case or not."""
    return "lc" if lowercase else "mixed"


class ForcedDecodingRatio(Ratio):
    """A ratio over the tokens of the references, teacher-forced; the end symbol is a token too.

    Values are comparable where a token is the same, and where heads give the same tokens a probability: one that copies
    predicts tokens that others only know as unknown.
    """

    computed_from = "forced decoding"
    occasion: ClassVar[Occasion] = "epoch"

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return signature_of(facts, "tokens", "head")


class Loss(ForcedDecodingRatio):
    """Negative log-likelihood of the references, teacher-forced, in nats a token: -Σ_t log p(y_t | y_<t, x) / Σ 1."""

    label = "loss"
    unit = "nats a token"
    higher_is_better = False
    digits = 3
    limits = NOT_NEGATIVE

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        return statistics_of(evidence.forced, lambda forced: (-forced.log_probability, len(forced.tokens)))


GREATEST_LOSS = math.log(sys.float_info.max)
"""There is no float for the perplexity of a greater one."""


class Perplexity(Loss):
    """The exponential of :class:`Loss`: between how many equally probable tokens the model hesitates."""

    label = "perplexity"
    unit = ""
    digits = 2
    limits = (1.0, math.inf)

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        loss = super().value(total)
        return math.inf if loss > GREATEST_LOSS else math.exp(loss)


class TokenAccuracy(Share, ForcedDecodingRatio):
    """Share of the tokens of the references that the model finds the most probable, teacher-forced; among all tokens, those
    included that a search never writes.
    """

    label = "token accuracy"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        return statistics_of(evidence.forced, lambda forced: (sum(forced.right), len(forced.tokens)))


class ExactMatch(Share):
    """Share of the predictions that are the reference, white space aside, and case where the task writes lower case alone."""

    label = "exact match"
    occasion: ClassVar[Occasion] = "epoch"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        def plain(line: str) -> str:
            return " ".join((line.lower() if evidence.facts.get("lowercase") else line).split())

        pairs = zip(evidence.predictions, evidence.references, strict=True) if evidence.predictions else ()
        return statistics_of(pairs, lambda pair: (plain(pair[0].text) == plain(pair[1]), 1.0))

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return f"case:{case_of(facts['lowercase'])}" if "lowercase" in facts else ""


class AlignmentMetric(Metric):
    """A score of the links that the attention makes under forced decoding; none where it makes no link at all.

    Args:
        links: what it is scored by: gold, links that people made or that a grammar knows, or silver, those of an aligner. A
            metric is of one of them, and says which if it is silver.
    """

    unit = "%"
    computed_from: ClassVar[Origin] = "alignments"
    limits = PERCENT

    def __init__(self, *, links: LinkKind = "gold") -> None:
        self.is_silver = links == "silver"
        if self.is_silver:
            self.label = f"{self.label}, silver links"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        alignments = evidence.alignments or ()
        if self.is_silver != evidence.silver:
            return None
        if not any(links for links, _ in alignments):  # a flat attention makes no link: it is neither precise nor wrong
            return None
        return statistics_of(alignments, lambda pair: count_links(*pair))

    @override
    def shown_values(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        values = self.values(totals)
        values[totals[:, 2] == 0] = np.nan  # no link is made, as in a whole set
        return values


class AlignmentErrorRate(AlignmentMetric):
    """1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|) for links A, sure links S and possible links P (Och and Ney 2003, section 5)."""

    label = "AER"
    higher_is_better: bool | None = False

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        return 100.0 * AlignmentScore.of_counts(total).aer


class AlignmentAnchor(AlignmentErrorRate):
    """The error rate of links that no attention makes, on examples on which an attention makes some: what an AER is compared
    with.
    """

    higher_is_better = None

    @staticmethod
    @abstractmethod
    def links_of(evidence: Evidence) -> Iterable[Links] | None:
        """Return the links of each example; None where what they are made of is not known."""

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        links = self.links_of(evidence)
        if links is None or super().statistics(evidence) is None:
            return None
        pairs = zip(links, evidence.alignments or (), strict=True)
        return statistics_of(pairs, lambda pair: count_links(pair[0], pair[1][1]))


def _links_by_size(make: Callable[[Gold, int, int], Links], evidence: Evidence) -> Iterable[Links] | None:
    if evidence.alignment_sizes is None:
        return None
    pairs = zip(evidence.alignments or (), evidence.alignment_sizes, strict=True)
    return (make(gold, *size) for (_, gold), size in pairs)


class BestAlignment(AlignmentAnchor):
    """The lowest AER that links can have of which each target word has one, as it has where its largest weight is that of one
    source word alone.
    """

    label = "AER, best possible"
    links_of = staticmethod(partial(_links_by_size, best_links))


class DiagonalAlignment(AlignmentAnchor):
    """AER of the straight diagonal, target word t of n linked to source word ⌊(t + ½) m / n⌋ of m, both from 0."""

    label = "AER, diagonal"
    links_of = staticmethod(partial(_links_by_size, diagonal_links))


class AlignerAlignment(AlignmentAnchor):
    """AER of a statistical aligner of the same training pairs, a link or none for each target word (Dyer et al. 2013).

    See :class:`attnlab.evaluation.aligner.DiagonalAligner`. It is not scored by silver links, which are its own.
    """

    label = "AER, aligner"
    computed_from = "an aligner"

    def __init__(self) -> None:
        super().__init__(links="gold")

    @staticmethod
    @override
    def links_of(evidence: Evidence) -> Iterable[Links] | None:
        return None if evidence.aligned is None else (forward for forward, _ in evidence.aligned)


class SymmetrisedAlignment(AlignerAlignment):
    """AER of that aligner in both directions, put together by growing along the diagonal, and then by what links words of which
    neither has a link yet (Koehn et al. 2003, section 4.5); see :func:`attnlab.evaluation.alignment.grow_diagonal_final`.
    """

    label = "AER, aligner both ways"

    @staticmethod
    @override
    def links_of(evidence: Evidence) -> Iterable[Links] | None:
        return None if evidence.aligned is None else (grow_diagonal_final(*both) for both in evidence.aligned)


class AlignmentPrecision(AlignmentMetric):
    """Share of the links that are possible, |A ∩ P| / |A|."""

    label = "alignment precision"

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        return 100.0 * AlignmentScore.of_counts(total).precision


class AlignmentRecall(AlignmentMetric):
    """Share of the sure links that were found, |A ∩ S| / |S|."""

    label = "alignment recall"

    @override
    def value(self, total: NDArray[np.float64]) -> float:
        return 100.0 * AlignmentScore.of_counts(total).recall


class AttentionMetric(Ratio):
    """An average over attention weights a_tj, those of a model that is made to write the references.

    A subclass says what the weights of one example add. A model without attention has none of these metrics.
    """

    higher_is_better = None
    digits = 3
    computed_from = "attention"
    occasion: ClassVar[Occasion] = "epoch"

    @abstractmethod
    def count(self, weights: NDArray[np.float64], source: list[str]) -> tuple[float, float]:
        """Return what one example adds to the numerator and to the denominator.

        Args:
            weights: (target_len, source_len), both with the end symbol.
            source: its tokens, the last being the end symbol, or a question about the others.
        """

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        # Whether weights are zero does not tell: those of a monotonic attention may be in all examples of a batch.
        if not any(forced is not None and forced.attends for forced in evidence.forced):
            return None

        def count(forced: ForcedDecoding) -> tuple[float, float]:
            return self.count(forced.weights.double().numpy(), forced.source) if forced.weights.numel() else (0.0, 0.0)

        return statistics_of(evidence.forced, count)

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return signature_of(facts, "tokens")


class Entropy(AttentionMetric):
    """-Σ_j a_tj log a_tj, averaged over target tokens: 0 is one position alone. Not of weights that need not sum to one."""

    label = "entropy"
    unit = "nats"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        are_distributions = all(forced.sums_to_one for forced in evidence.forced if forced is not None)
        return super().statistics(evidence) if are_distributions else None

    @override
    def count(self, weights: NDArray[np.float64], source: list[str]) -> tuple[float, float]:
        return _entropy(weights), len(weights)


class RelativeEntropy(Entropy):
    """Entropy over that of a uniform attention, log J for J source tokens; from 0 to 1, averaged over target tokens.

    An attention that may not look at all of them cannot reach 1, such as that of a decoder of answers, whose last token is the
    question.
    """

    label = "relative entropy"
    unit = ""

    @override
    def count(self, weights: NDArray[np.float64], source: list[str]) -> tuple[float, float]:
        return _entropy(weights) / math.log(len(source)) if len(source) > 1 else 0.0, len(weights)


def _entropy(weights: NDArray[np.float64]) -> float:
    return float(-(weights * np.log(weights.clip(min=FLOOR))).sum())


class LargestWeight(AttentionMetric):
    """max_j a_tj, averaged over target tokens: how sharp the attention is."""

    label = "largest weight"

    @override
    def count(self, weights: NDArray[np.float64], source: list[str]) -> tuple[float, float]:
        return float(weights.max(axis=1).sum()), len(weights)


class SourceCoverage(AttentionMetric):
    """min(Σ_t a_tj, 1), averaged over source tokens but the last (an end symbol or a question): what was looked at."""

    label = "source coverage"

    @override
    def count(self, weights: NDArray[np.float64], source: list[str]) -> tuple[float, float]:
        return float(weights[:, :-1].sum(axis=0).clip(max=1.0).sum()), len(source) - 1


class Monotonicity(AttentionMetric):
    """Share of steps whose most looked-at position is not to the left of that of the step before.

    A step whose largest weight several positions share looks at none of them most: it is left out. An attention that is flat
    everywhere has no value.
    """

    label = "monotonicity"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        found = super().statistics(evidence)
        return found if found is not None and found[:, 1].any() else None

    @override
    def count(self, weights: NDArray[np.float64], source: list[str]) -> tuple[float, float]:
        clear = (weights == weights.max(axis=1, keepdims=True)).sum(axis=1) == 1
        best = weights[clear].argmax(axis=1)
        return float((best[1:] >= best[:-1]).sum()), max(0, len(best) - 1)


class EndWeight(AttentionMetric):
    """Weight on the source's end symbol, averaged over target tokens; none where a question ends the source."""

    label = "weight on the end symbol"

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        ends = any(forced is not None and forced.source[-1:] == [END] for forced in evidence.forced)
        return super().statistics(evidence) if ends else None

    @override
    def count(self, weights: NDArray[np.float64], source: list[str]) -> tuple[float, float]:
        return float(weights[:, -1].sum()), len(weights)
