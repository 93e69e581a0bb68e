"""The second task: what nothing but its own room knows."""

from pathlib import Path

import numpy as np
import pytest
import torch

from attnlab.data import BatchOptions
from attnlab.data.symbols import BOS, EOS, RESERVED
from attnlab.errors import UserError
from attnlab.evaluation.evidence import ForcedDecoding
from attnlab.search import Hypothesis
from attnlab.tasks.pointing import Pointing, Sort


def task(**options: object) -> Pointing:
    sizes = {"train_size": 40, "val_size": 5, "test_size": 6, "test_long_size": 7, **options}
    made = Pointing(Sort(**sizes), BatchOptions(), {}, 1)  # type: ignore[arg-type]
    made.prepare()
    return made


def test_answers_are_the_order_of_the_numbers_and_lengths_are_those_asked_for() -> None:
    made = task(min_length=2, max_length=4, max_length_long=9)
    for split, size, low, high in (("train", 40, 2, 4), ("val", 5, 2, 4), ("test", 6, 2, 4), ("test_long", 7, 5, 9)):
        examples = made.examples(split)
        assert len(examples) == size
        for problem in examples.problems:
            assert low <= len(problem.elements) <= high
            numbers = problem.elements[:, 0]
            assert len(set(numbers.tolist())) == len(numbers)
            assert (np.diff(numbers[problem.answer]) > 0).all()
    lines = made.examples("test").sources
    assert lines == task(min_length=2, max_length=4, max_length_long=9).examples("test").sources
    assert lines != task(min_length=2, max_length=4, max_length_long=9, seed=2).examples("test").sources


def test_lines_come_back_as_they_were_written() -> None:
    examples = task().examples("test_long")
    again = task().parse(examples.sources, examples.references)
    assert again.sources == examples.sources
    assert again.references == examples.references
    one, other = examples[[3, 0]], again[[3, 0]]
    for name in ("source", "target", "labels", "source_lengths", "target_lengths"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


def test_tensors_end_with_an_end_element_and_an_end_symbol() -> None:
    examples = task().parse(["0.5 0.25 0.75"], ["1 0 2"])
    batch = examples[[0]]
    assert batch.source.tolist() == [[[0.5, 0.0], [0.25, 0.0], [0.75, 0.0], [0.0, 1.0]]]
    assert batch.target.tolist() == [[BOS, RESERVED + 1, RESERVED, RESERVED + 2, EOS]]
    assert batch.labels.tolist() == [batch.target[0, 1:].tolist()]
    assert examples.source_tokens(0) == ["0.5", "0.25", "0.75", "</s>"]
    assert examples.target_tokens(0) == ["0.25", "0.5", "0.75", "</s>"]
    assert examples.gold_links().batch([0], 4, 4)[0].tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_a_hypothesis_is_read_as_positions() -> None:
    made = task()
    examples = made.parse(["0.5 0.25 0.75"])
    found = made.read(Hypothesis([RESERVED + 2, RESERVED, EOS], -1.0, -0.5, torch.zeros(3, 4)), examples, 0)
    assert (found.text, found.tokens) == ("2 0", ["0.75", "0.5", "</s>"])
    cut_short = made.read(Hypothesis([RESERVED, EOS, EOS], -1.0, -0.5, torch.zeros(3, 4)), examples, 0)
    assert cut_short.text == "0"
    assert len(cut_short.tokens) == 2


@pytest.mark.parametrize("reading", [0, 1])
def test_links_are_where_the_weights_are_largest(reading: int) -> None:
    made = task()
    examples = made.parse(["0.5 0.25 0.75"], ["1 0 2"])
    rows = [1, 0, 2, 3] if reading == 0 else [3, 1, 0, 2]
    weights = torch.eye(4)[rows]
    forced = ForcedDecoding(examples.target_tokens(0), [0.0] * 4, [True] * 4, 0, weights, examples.source_tokens(0))
    ((links, gold),) = made.alignments(examples, [0], [forced], reading) or []
    assert links == gold.sure == {(1, 0), (0, 1), (2, 2)}


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("0.5 x", None, "source 1: 'x' is no number"),
        ("0.5 nan", None, "source 1: 'nan' is no finite number"),
        ("0.5,0.1", None, "source 1: '0.5,0.1' is no element of 1 numbers"),
        ("0.5 0.1", "0 2", "target 1: '2' is no position of one of 2 elements"),
        ("0.5 0.1", "-1", "target 1: '-1' is no position"),
    ],
)
def test_lines_that_are_no_problems_are_refused(source: str, target: str | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        task().parse([source], None if target is None else [target])


@pytest.mark.parametrize("options", [{"train_size": 0}, {"min_length": 9}, {"max_length_long": 8}, {"min_length": 0}])
def test_sizes_that_leave_nothing_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(UserError):
        Sort(**options)


def test_long_problems_go_from_training_alone() -> None:
    made = Pointing(Sort(train_size=50, val_size=20), BatchOptions(max_length=4), {}, 1)
    assert max(len(problem.elements) for problem in made.examples("train").problems) == 4
    assert max(len(problem.elements) for problem in made.examples("val").problems) > 4
    with pytest.raises(UserError, match="max_length=1 leaves no training problem"):
        Pointing(Sort(train_size=50), BatchOptions(max_length=1), {}, 1).prepare()


def test_content_is_what_decides_the_problems(tmp_path: Path) -> None:
    assert task().content == task().content
    assert len({task().content, task(seed=2).content, task(max_length=7).content, task(train_size=41).content}) == 4
