"""The second task: what nothing but its own room knows."""

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.data import BatchOptions
from attnlab.data.symbols import BOS, EOS, RESERVED
from attnlab.errors import UserError
from attnlab.evaluation.evidence import ForcedDecoding
from attnlab.search import GreedySearch, Hypothesis
from attnlab.tasks.pointing import Delaunay, Pointing, Sort
from commands import OF_ANY_TASK, Cli, cli

__all__ = ["cli"]


def task(**options: object) -> Pointing:
    sizes = {"train_size": 40, "val_size": 5, "test_size": 6, "test_long_size": 7, **options}
    made = Pointing(Sort(**sizes), BatchOptions(), {})  # type: ignore[arg-type]
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


def test_problems_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = task(seed=7).examples("train")
    monkeypatch.setattr(Sort, "draw", None)
    again = task(seed=7).examples("train")
    assert again.sources == first.sources
    assert again.references == first.references
    with pytest.raises(TypeError):
        task(seed=8)


def test_numbers_are_written_exactly_and_shown_briefly() -> None:
    examples = task().parse(["0.12345678 1e-30 16777215 -0.1"])
    assert examples.sources == ["0.12345678 1e-30 1.6777215e+07 -0.1"]
    again = task().parse(examples.sources)
    assert torch.equal(again[[0]].source, examples[[0]].source)
    assert examples.source_tokens(0) == ["0.1235", "1e-30", "1.678e+07", "-0.1", "</s>"]


def test_no_line_is_no_example() -> None:
    assert len(task().parse([])) == 0
    assert task().parse([]).sources == []


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


class Nothing(GreedySearch):
    def __call__(self, model: object, source: object, lengths: torch.Tensor, **_: object) -> list[list[Hypothesis]]:
        return [[] for _ in lengths]


def test_where_a_search_finds_nothing_nothing_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = task()
    model = SimpleNamespace(parameters=lambda: iter([torch.zeros(1)]), max_source_length=None)
    predictor = made.predictor([model], Nothing())
    monkeypatch.setattr(predictor, "force_batch", lambda batch, examples: [None] * len(batch.indices))
    assert [(one.index, one.text) for one in predictor.predict(["0.5 0.1", "", "0.2"])] == [(0, ""), (1, ""), (2, "")]
    assert [one.prediction.text for one in predictor.examine(made.examples("val"), "test")] == [""] * 5
    assert predictor.predict([]) == []
    with pytest.raises(UserError, match=r"a list of lines, not one text: write \[text\]"):
        predictor.predict("0.5 0.1")


@pytest.mark.parametrize("shift", [0, 1])
def test_links_are_where_the_weights_are_largest(shift: int) -> None:
    made = task()
    examples = made.parse(["0.5 0.25 0.75"], ["1 0 2"])
    rows = [1, 0, 2, 3] if shift == 0 else [3, 1, 0, 2]
    weights = torch.eye(4)[rows]
    forced = ForcedDecoding(examples.target_tokens(0), [0.0] * 4, [True] * 4, weights, examples.source_tokens(0))
    ((links, gold),) = made.alignments(examples, [0], [forced], shift) or []
    assert links == gold.sure == {(1, 0), (0, 1), (2, 2)}


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("0.5 x", None, "source 1: 'x' is no number"),
        ("0.5 nan", None, "source 1: 'nan' is no finite number"),
        ("0.5 1e39", None, "source 1: '1e39' is no finite number"),
        ("0.5 1_0", None, "source 1: '1_0' is no number"),
        ("0.5 ٣", None, "source 1: '٣' is no number"),
        ("0.5 0.1", "9" * 5000, "target 1: '9+' is no position"),
        ("0.5,0.1", None, "source 1: '0.5,0.1' is no element of 1 numbers"),
        ("0.5 0.1", "0 2", "target 1: '2' is no position of one of 2 elements"),
        ("0.5 0.1", "-1", "target 1: '-1' is no position"),
    ],
)
def test_lines_that_are_no_problems_are_refused(source: str, target: str | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        task().parse([source], None if target is None else [target])
    with pytest.raises(UserError, match=message.replace(" 1: ", " 41: ", 1)):
        task().parse([source], None if target is None else [target], first=41)


@pytest.mark.parametrize("options", [{"min_length": 9}, {"max_length_long": 8}, {"min_length": 1}])
def test_sizes_that_leave_nothing_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(UserError):
        Sort(**options)


def test_long_problems_go_from_training_alone() -> None:
    made = Pointing(Sort(train_size=50, val_size=20), BatchOptions(max_length=4), {})
    assert max(len(problem.elements) for problem in made.examples("train").problems) == 4
    assert max(len(problem.elements) for problem in made.examples("val").problems) > 4
    with pytest.raises(UserError, match="max_length=1 leaves no training problem"):
        Pointing(Sort(train_size=50), BatchOptions(max_length=1), {}).prepare()


def test_problems_with_long_answers_go_from_training_too() -> None:
    """Three corners a triangle: the answer is longer than the problem."""
    data = Delaunay(train_size=50, val_size=1, test_size=1, test_lengths=())
    whole, short = (Pointing(data, BatchOptions(max_length=limit), {}).examples("train") for limit in (None, 12))
    kept = [problem.answer for problem in whole.problems if len(problem.elements) <= 12 and len(problem.answer) <= 12]
    assert 0 < len(kept) < len(whole)
    assert [problem.answer for problem in short.problems] == kept


def test_content_is_what_decides_the_problems(tmp_path: Path) -> None:
    assert task().content == task().content
    assert len({task().content, task(seed=2).content, task(max_length=7).content, task(train_size=41).content}) == 4


def test_content_knows_the_options_of_problems_of_ones_own() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Steps(Sort):
        step: int = 1

    def content(**options: int) -> str:
        return Pointing(Steps(**options), BatchOptions(), {}).content

    assert content() == content(step=1) != content(step=2)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data=sort"], "data: a Translation task reads Corpus, not Sort: choose another data, or task=pointing"),
        (["task=pointing", "data=grammar"], "data: a Pointing task reads Problems, not GrammarCorpus"),
        (["task=pointing", "tokenizer=bpe"], "there is no tokenizer to choose in this task"),
        (["task=pointing", "head=vocabulary"], "positions of the source, which a VocabularyHead does not write"),
        (["task=pointing", "head=pointer_generator"], "positions of the source"),
        (
            ["head=pointing", "data.train_size=50"],
            "a PointingHead writes positions of the source, which the targets here are not",
        ),
        (
            ["task=pointing", "attention/score@head.score=location"],
            "head: a Location score does not look at keys, but positions to point at need",
        ),
        (["task=pointing", "objective.label_smoothing=0.1"], "label smoothing"),
        (
            ["task=pointing", "trainer.precision=64-true"],
            "and trainer.precision=64-true: set it to 32-true",
        ),
        (["task=pointing", "model.tied_embeddings=target"], "leave them untied"),
        (["task=pointing", "data.min_length=9"], "min_length <= max_length"),
        (["task=pointing", "data.train_size=0"], "data.train_size must be a whole number, 1 or more, not 0"),
        (["task=pointing", "data=convex_hull", "data.min_length=2"], "data.min_length must be a whole number, from 3 to 1000"),
        (["task=pointing", "data=convex_hull", "data.test_lengths=[2]"], "data.test_lengths must be a list, each"),
        (["task=pointing", "data=convex_hull", "data.test_lengths=[7,7]"], "test_lengths has a number of points twice"),
        (["task=pointing", "data=delaunay", "data.max_length=4"], "3 <= min_length <= max_length must hold: they are 5 and 4"),
        (["task=pointing", "data=tsp", "data.max_length=13"], "data.max_length must be a whole number, from 3 to 12, not 13"),
    ],
)
def test_what_does_not_go_with_the_task_is_told_in_one_line(
    arguments: list[str], message: str, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", *arguments, "logger=none") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.exhaustive
def test_the_same_commands_train_report_evaluate_predict_and_draw(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = [f"data.{name}_size={size}" for name, size in (("train", 300), ("val", 20), ("test", 20), ("test_long", 10))]
    small = ["model.embedding_size=16", "encoder.hidden_size=8", "decoder.hidden_size=16", "data.max_length=3"]
    quiet = ["logger=none", "trainer.enable_progress_bar=false", "threads=1"]
    budget = ["batches.size=20", "optimizer.lr=0.02", "trainer.max_epochs=4"]
    command = ["train", "-m", "task=pointing", "name=points", "attention=none,dot", *sizes, *small, *budget, *quiet]
    assert cli(*command) == 0
    table = (tmp_path / "runs" / "points" / "comparison.md").read_text()
    assert "test correct" in table
    assert "test AER" in table
    assert "BLEU" not in table.partition("\n- ")[0], "but for what false stars were counted on"
    (run,) = map(str, tmp_path.glob("runs/points/*dot*/seed=1"))
    lines = (Path(run) / "hypotheses" / "test.txt").read_text().splitlines()
    right = (Path(run) / "texts" / "test.target.txt").read_text().splitlines()
    found = json.loads((Path(run) / "result.json").read_text())["tests"]["test"]["metrics"]["exact"]["value"]
    assert found == pytest.approx(100 * sum(a == b for a, b in zip(lines, right, strict=True)) / 20)
    assert list((Path(run) / "heatmaps").glob("*.png"))
    assert cli("evaluate", run, "--bootstrap", "50", "search=greedy", "--label", "greedy") == 0
    assert "exact match" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0.5 0.25 0.75\n\n0.1 0.2 0.3\n")))
    assert cli("translate", run) == 0
    answers = capsys.readouterr().out.split("\n")
    assert answers[1] == answers[3] == ""
    assert [sorted(answer.split()) for answer in answers if answer] == [["0", "1", "2"]] * 2, "every element is visited once"
    assert cli("draw", "heatmaps", run, "--source", "0.5 0.25 0.75", "--target", "1 0 2", "--output", "h.svg") == 0
    assert cli("draw", "lengths", run, "--output", "l.svg") == 0
    assert cli("draw", "curves", run, "--output", "c.svg") == 0
    assert cli("draw", "predictions", run, "--output", "p.svg") == 2
    assert "a problem of sort has no points" in capsys.readouterr().err
    assert cli(*command, "--dry-run") == 0
    assert "done" in capsys.readouterr().out


@pytest.mark.exhaustive
def test_hulls_are_measured_and_drawn(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "task=pointing", "data=convex_hull", "attention=none", "data.test_lengths=[6]", *OF_ANY_TASK]
    assert cli(*command, "logger=none") == 0
    (run,) = map(str, tmp_path.glob("runs/train/*/seed=1"))
    tests = json.loads((Path(run) / "result.json").read_text())["tests"]
    assert {"correct", "simple", "accuracy"} <= set(tests["test_6"]["metrics"])
    assert not {"tour_excess", "triangles"} & set(tests["test"]["metrics"])
    hypotheses = [line.split() for line in (Path(run) / "hypotheses" / "test_6.txt").read_text().splitlines()]
    assert all(3 <= len(line) == len(set(line)) <= 6 for line in hypotheses)
    capsys.readouterr()
    assert cli("draw", "predictions", run, "--test", "test_6", "--examples", "2", "--output", "p.svg") == 0
    assert cli("draw", "predictions", run, "--source", "0,0 1,0 0,1 0.2,0.2", "--output", "q.png") == 0
    assert (tmp_path / "p.svg").stat().st_size > 1000 < (tmp_path / "q.png").stat().st_size
    assert cli("draw", "predictions", run, "--test", "test_7", "--output", "p.svg") == 2
    assert "no test set 'test_7': there is train, val, test, test_6" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0,0 1,0 0,1\n0,0 1,1\n")))
    assert cli("translate", run) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "source 2 has too few elements (2): a problem of convex_hull has 3 or more" in line
