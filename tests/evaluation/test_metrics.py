"""Metrics of any task, on evidence whose numbers are known."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlab.data.pharaoh import Gold, Links
from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.metric import Metric
from attnlab.evaluation.metrics import (
    AlignerAlignment,
    AlignmentErrorRate,
    AlignmentPrecision,
    AlignmentRecall,
    BestAlignment,
    DiagonalAlignment,
    EndWeight,
    Entropy,
    ExactMatch,
    LargestWeight,
    Loss,
    Monotonicity,
    Perplexity,
    RelativeEntropy,
    SourceCoverage,
    SymmetrisedAlignment,
    TokenAccuracy,
)
from evaluation.made import evidence, forced, looking


def value(metric: Metric, found: Evidence) -> float:
    statistics = metric.statistics(found)
    assert statistics is not None
    assert (statistics.dtype, statistics.ndim) == (np.float64, 2)
    return metric.value(statistics.sum(axis=0))


def test_forced_decoding_is_averaged_over_all_tokens_with_the_end_symbols() -> None:
    found = evidence(forced=[forced("a b", [-1.0, -2.0, -0.5], [True, False, True]), None, forced("", [-0.5], [True])])
    assert value(Loss(), found) == pytest.approx(4.0 / 4)
    assert value(Perplexity(), found) == pytest.approx(math.e)
    assert value(TokenAccuracy(), found) == pytest.approx(75.0)
    statistics = Loss().statistics(found)
    assert statistics is not None
    assert statistics.tolist() == [[3.5, 3.0], [0.0, 0.0], [0.5, 1.0]], "an empty source adds nothing, and keeps its place"
    assert value(Perplexity(), evidence(forced=[forced("", [-1e9], [False])])) == math.inf


def test_what_cannot_be_measured_is_left_out() -> None:
    nothing = evidence(["a"], ["a"], forced=[None])
    for metric in (Loss(), Perplexity(), TokenAccuracy(), AlignmentErrorRate(), Entropy(), EndWeight()):
        assert metric.statistics(nothing) is None
    assert ExactMatch().statistics(evidence(forced=[forced("a", [0.0, 0.0], [True, True])])) is None
    without_attention = evidence(forced=[forced("a", [0.0, 0.0], [True, True], source="b")])
    assert Entropy().statistics(without_attention) is None
    assert math.isnan(Loss().value(np.zeros(2)))
    assert math.isnan(Perplexity().value(np.zeros(2)))


def test_exact_match_is_of_whole_lines() -> None:
    found = evidence(["3 1 2", "1 2", "A  b ", ""], ["3 1 2", "1 2 3", "a b", ""])
    assert value(ExactMatch(), found) == 50.0
    assert value(ExactMatch(), evidence(["A  b "], ["a b"], lowercase=True)) == 100.0
    assert value(ExactMatch(), evidence(["a b"], ["A b"], lowercase=True)) == 100.0


def test_alignments_are_scored_by_their_equations() -> None:
    gold = [Gold({(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)}), Gold({(0, 0)}, {(0, 0)})]
    found = evidence(alignments=list(zip([{(0, 0), (1, 2), (3, 3)}, set()], gold, strict=True)))
    assert value(AlignmentPrecision(), found) == pytest.approx(200 / 3)
    assert value(AlignmentRecall(), found) == pytest.approx(100 / 3)
    assert value(AlignmentErrorRate(), found) == pytest.approx(100 - 100 * (1 + 2) / (3 + 3))
    assert BestAlignment().statistics(found) is None, "of sequences of unknown length"
    sized = replace(found, alignment_sizes=[(4, 3), (2, 2)])
    assert value(BestAlignment(), sized) == pytest.approx(100 - 100 * (3 + 4) / (5 + 3))
    assert value(DiagonalAlignment(), sized) == pytest.approx(100 - 100 * (2 + 2) / (5 + 3))
    flat = replace(sized, alignments=[(set(), one) for one in gold])
    assert BestAlignment().statistics(flat) is None
    none_sure = evidence(alignments=[({(0, 0)}, Gold(set(), {(0, 0)}))])
    assert math.isnan(value(AlignmentErrorRate(), none_sure))
    assert value(AlignmentPrecision(), none_sure) == 100.0
    assert AlignmentPrecision().statistics(evidence(alignments=[(set(), one) for one in gold])) is None


def test_the_links_of_an_aligner_are_scored_where_an_attention_makes_some() -> None:
    gold = [Gold({(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)}), Gold({(0, 0)}, {(0, 0)})]
    found = evidence(alignments=list(zip([{(3, 3)}, set()], gold, strict=True)))
    assert AlignerAlignment().statistics(found) is None, "nothing was aligned"
    both: list[tuple[Links, Links]] = [({(0, 0), (1, 2)}, {(0, 0), (1, 1)}), ({(0, 0)}, set())]
    aligned = replace(found, aligned=both)
    assert value(AlignerAlignment(), aligned) == pytest.approx(100 - 100 * (2 + 3) / (3 + 3))
    assert value(SymmetrisedAlignment(), aligned) == 0.0
    assert AlignerAlignment().statistics(replace(aligned, alignments=[(set(), one) for one in gold])) is None


def test_silver_links_are_never_taken_for_gold() -> None:
    gold = Gold({(0, 0)}, {(0, 0)})
    known = evidence(alignments=[({(0, 0)}, gold)])
    sized = replace(known, alignment_sizes=[(1, 1)], aligned=[({(0, 0)}, {(0, 0)})])
    silver = replace(sized, silver=True)
    for kind in (AlignmentErrorRate, AlignmentPrecision, AlignmentRecall, BestAlignment, DiagonalAlignment):
        assert kind().statistics(silver) is None
        assert kind(links="silver").statistics(sized) is None
        assert value(kind(links="silver"), silver) == value(kind(), sized)
        assert kind(links="silver").label == f"{kind().label}, silver links"
    for anchor in (AlignerAlignment(), SymmetrisedAlignment()):
        assert anchor.statistics(silver) is None


def test_attention_on_one_position_and_on_all() -> None:
    source = ["a", "b", ",", "</s>"]
    sharp = evidence(forced=[looking(torch.tensor([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]), source)])
    assert value(Entropy(), sharp) == pytest.approx(0.0, abs=1e-9)
    assert value(LargestWeight(), sharp) == 1.0
    assert value(SourceCoverage(), sharp) == 1.0
    assert value(Monotonicity(), sharp) == 0.5
    assert value(EndWeight(), sharp) == 0.0
    staying = evidence(forced=[looking(torch.tensor([[0.9, 0.1, 0, 0], [0.8, 0, 0.2, 0]]), source)])
    assert value(SourceCoverage(), staying) == pytest.approx((1 + 0.1 + 0.2) / 3), "a position is looked at once at most"
    assert value(Monotonicity(), staying) == 1.0, "to stay is not to go back"

    surely = evidence(forced=[looking(torch.tensor([[0.999, 0.001, 0, 0]]), source)])
    assert value(Entropy(), surely) == pytest.approx(-0.999 * math.log(0.999) - 0.001 * math.log(0.001), rel=1e-4)

    flat = evidence(forced=[looking(torch.full((2, 4), 0.25), source)])
    assert value(Entropy(), flat) == pytest.approx(math.log(4))
    assert value(RelativeEntropy(), flat) == pytest.approx(1.0)
    assert value(SourceCoverage(), flat) == pytest.approx(0.5)
    assert value(EndWeight(), flat) == pytest.approx(0.25)
    assert Monotonicity().statistics(flat) is None
    shared = looking(torch.tensor([[0, 1.0, 0, 0], [0.5, 0, 0.5, 0], [0.25] * 4, [1.0, 0, 0, 0], [0, 1.0, 0, 0]]), source)
    assert value(Monotonicity(), evidence(forced=[shared])) == 0.5, "of three steps that look somewhere"


def test_entropy_is_of_distributions_alone() -> None:
    source, weights = ["a", "</s>"], torch.tensor([[0.5, 0.5]])
    whole, part = looking(weights, source), replace(looking(weights, source), sums_to_one=False)
    for metric in (Entropy(), RelativeEntropy()):
        assert metric.statistics(evidence(forced=[whole, None])) is not None
        assert metric.statistics(evidence(forced=[whole, part])) is None
    assert LargestWeight().statistics(evidence(forced=[part])) is not None


def test_examples_count_alike_whatever_batch_an_attention_looks_at_nothing_in() -> None:
    """Weights of a monotonic attention may all be zero in one batch and not in another."""
    source = ["a", "b", "</s>"]
    some, nothing = looking(torch.tensor([[0.25, 0.5, 0.0]]), source), looking(torch.zeros(2, 3), source)
    for metric in (LargestWeight(), SourceCoverage(), EndWeight()):
        apart = [metric.statistics(evidence(forced=[one])) for one in (some, nothing)]
        whole = metric.statistics(evidence(forced=[some, nothing]))
        assert whole is not None
        assert np.array_equal(whole, np.concatenate([rows for rows in apart if rows is not None]))
        assert metric.statistics(evidence(forced=[replace(nothing, attends=False)])) is None


def test_a_source_that_a_question_ends_has_no_end_symbol() -> None:
    asked = evidence(forced=[looking(torch.tensor([[0.25, 0.75, 0.0]]), ["mary left", "john came", "where is mary"])])
    assert EndWeight().statistics(asked) is None
    assert value(SourceCoverage(), asked) == 0.5


def test_averages_of_attention_are_over_tokens_of_all_examples() -> None:
    one, two = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]] * 3)
    found = evidence(forced=[looking(one, ["a", "</s>"]), None, looking(two, ["b", "</s>"])])
    assert value(LargestWeight(), found) == pytest.approx((1 + 3 * 0.5) / 4)
    alone = evidence(forced=[looking(torch.ones(2, 1), ["</s>"])])
    assert value(RelativeEntropy(), alone) == 0.0


def test_signatures_name_what_is_counted() -> None:
    words = {"tokens": "spacy-mixed-99", "head": "generates", "language": "de", "lowercase": True}
    for metric in (Loss(), Perplexity(), TokenAccuracy()):
        assert metric.signature(words) == "tokens:spacy-mixed-99|head:generates"
        assert metric.signature({**words, "tokens": "bpe-mixed-99"}) != metric.signature(words)
        assert metric.signature({**words, "head": "copies"}) != metric.signature(words)
        assert metric.signature({}) == ""
    assert Entropy().signature(words) == "tokens:spacy-mixed-99"
    assert AlignmentErrorRate().signature(words) == ""
    assert ExactMatch().signature(words) == "case:lc"
    assert ExactMatch().signature({"lowercase": False}) == "case:mixed"


def test_what_is_measured_after_every_epoch_is_measured_in_every_test() -> None:
    assert [Loss().is_due(occasion) for occasion in ("epoch", "test", "evaluation")] == [True, True, True]  # type: ignore[arg-type]
    assert [AlignmentRecall().is_due(occasion) for occasion in ("epoch", "test", "evaluation")] == [False, True, True]  # type: ignore[arg-type]
