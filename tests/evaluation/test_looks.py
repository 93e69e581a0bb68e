"""Numbers about attention weights, on weights whose numbers are known."""

import math

import pytest
import torch

from attnlab.evaluation.looks import looks


def test_of_one_position_and_of_all() -> None:
    source = ["a", "b", ",", "</s>"]
    sharp = torch.tensor([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]])
    found = looks([(sharp, source)])
    assert found.entropy == pytest.approx(0.0, abs=1e-9)
    assert found.sharpness == 1.0
    assert found.coverage == 1.0
    assert found.monotonicity == 0.5
    assert found.punctuation == pytest.approx(1 / 3)
    assert found.end == 0.0

    flat = torch.full((2, 4), 0.25)
    found = looks([(flat, source)])
    assert found.entropy == pytest.approx(math.log(4))
    assert found.relative_entropy == pytest.approx(1.0)
    assert found.coverage == pytest.approx(0.5)
    assert found.end == pytest.approx(0.25)


def test_averages_are_over_tokens_of_all_sentences() -> None:
    one, two = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]] * 3)
    assert looks([(one, ["a", "</s>"]), (two, ["b", "</s>"])]).sharpness == pytest.approx((1 + 3 * 0.5) / 4)


def test_marks_are_marks_with_or_without_what_stands_for_white_space() -> None:
    source = ["▁.", "▁", "▁▁", ",»", "a.", "</s>"]
    for position, punctuation in enumerate([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]):
        weights = torch.nn.functional.one_hot(torch.tensor([position]), len(source)).float()
        assert looks([(weights, source)]).punctuation == punctuation
