"""Generated problems of symbols: each answer and each link by its definition, splits, and the task as a command runs it."""

import io
import itertools
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.config import build
from attnlab.data import BatchOptions
from attnlab.data.symbols import EOS, RESERVED, UNK
from attnlab.errors import UserError
from attnlab.search import Hypothesis
from attnlab.tasks.diagnostics import Copy, Diagnostics, Induction, Recall, Reverse, SelectiveCopy, SymbolProblems
from attnlab.tasks.diagnostics.problems import SymbolProblem
from commands import OF_ANY_TASK, Cli, cli
from composing import composed
from conftest import CONF, options

__all__ = ["cli"]

NAMES = [name for name in options("data") if ".diagnostics." in (CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8")]
SIZES = ["data.train_size=60", "data.val_size=9", "data.test_size=8", "data.test_long_size=7"]


def problems(name: str, *overrides: str) -> SymbolProblems:
    made = build(composed("task=diagnostics", f"data={name}", *SIZES, *overrides)["data"], "data")
    assert isinstance(made, SymbolProblems)
    return made


def task(name: str, *overrides: str) -> Diagnostics:
    return Diagnostics(problems(name, *overrides), BatchOptions(), {})


@dataclass(frozen=True, kw_only=True)
class Drawn(SymbolProblems):
    """Draws whatever it is told to."""

    made: Any = None

    def draw(self, generator: np.random.Generator, length: int) -> SymbolProblem:
        drawn: SymbolProblem = self.made(length)
        return drawn


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda n: ([0] * n, [0], [0]), "Drawn draws a tuple, not a SymbolProblem"),
        (lambda n: SymbolProblem([], [0], [0]), "Drawn draws a problem without a source"),
        (lambda n: SymbolProblem([0] * n, [], []), "Drawn draws a problem without an answer"),
        (lambda n: SymbolProblem([0] * n, [26], [0]), "Drawn draws the symbol 26: there are 26, which count from 0"),
        (lambda n: SymbolProblem([-1] * n, [0], [0]), "Drawn draws the symbol -1"),
        (lambda n: SymbolProblem([0] * n, [0, 0], [0]), "Drawn draws 1 origins for 2 symbols of an answer"),
        (lambda n: SymbolProblem([0] * n, [0], [n]), "and the source has . symbols, from 0 on"),
        (lambda n: 1 // 0, r"a problem of Drawn cannot be computed: ZeroDivisionError: .* \(test_diagnostics.py, line \d+\)"),
    ],
)
def test_a_problem_that_nothing_could_learn_is_refused(made: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Drawn(min_length=3, max_length=9, made=made).load()


def words(data: SymbolProblems, symbols: list[int]) -> list[str]:
    return [data.names[symbol] for symbol in symbols]


def expected(name: str, source: list[str], *, write_keys: bool = True) -> tuple[list[str], list[int]]:
    """The answer to a source and where each symbol of it is, by a plain loop."""
    places = list(range(len(source)))
    if name == "reverse":
        places.reverse()
    elif name == "sort_symbols":
        for end in range(len(places), 0, -1):  # bubble sort, which leaves equal ones as they are
            for place in range(end - 1):
                one, other = (int(source[places[at]].removeprefix("s")) for at in (place, place + 1))
                if one > other:
                    places[place], places[place + 1] = places[place + 1], places[place]
    elif name == "selective_copy":
        places = [place for place in places if source[place] != "_"]
    elif name == "recall":
        asked = [place for place, word in enumerate(source) if word.startswith("k") and word in source[:place]]
        places = []
        for place in asked:
            places += [place] * write_keys + [source.index(source[place]) + 1]
    elif name == "induction":
        places = [source.index("?") + 1]
    else:
        assert name == "copy"
    return [source[place] for place in places], places


@pytest.mark.parametrize("name", NAMES)
def test_answers_and_links_are_those_of_the_definition(name: str) -> None:
    data = problems(name)
    loaded = data.load()
    assert {split: len(found) for split, found in loaded.items()} == {
        **{"train": 60, "val": 9, "test": 8},
        **{"test_2x": 7, "test_4x": 7},
    }
    for split, found in loaded.items():
        _, low, high = data.splits[split]
        for problem in found:
            answer, places = expected(name, words(data, problem.source))
            assert (words(data, problem.answer), problem.origins) == (answer, places)
            assert low <= data.length(problem) <= high
    assert data.load() == loaded
    assert problems(name, "data.seed=2").load() != loaded
    assert problems(name, "data.seed=2").fingerprint() != data.fingerprint() == problems(name).fingerprint()


def test_lengths_of_the_long_tests_are_up_to_two_and_four_times_as_long() -> None:
    assert Copy(min_length=2, max_length=5, train_size=4, val_size=3, test_size=2, test_long_size=1).splits == {
        **{"train": (4, 2, 5), "val": (3, 2, 5), "test": (2, 2, 5)},
        **{"test_2x": (1, 6, 10), "test_4x": (1, 11, 20)},
    }


def test_validation_can_have_longer_problems_than_training() -> None:
    usual, longer = Copy(train_size=60, val_size=200), Copy(train_size=60, val_size=200, val_max_length=20)
    assert longer.splits == {**usual.splits, "val": (200, 3, 20)}
    drawn, as_usual = longer.load(), usual.load()
    assert {longer.length(problem) for problem in drawn.pop("val")} == set(range(3, 21))
    assert drawn == {name: problems for name, problems in as_usual.items() if name != "val"}
    assert Copy(val_max_length=None).splits == Copy().splits
    with pytest.raises(UserError, match="val_max_length is 9, less than max_length, 10: raise it"):
        Copy(val_max_length=9)


@pytest.mark.parametrize("name", NAMES)
def test_no_test_problem_is_one_of_training(name: str) -> None:
    loaded = problems(name, "data.symbols=64" if name == "recall" else "data.symbols=4", "data.train_size=200").load()
    train = {tuple(problem.source) for problem in loaded.pop("train")}
    assert not train & {tuple(problem.source) for problem in itertools.chain(*loaded.values())}


def test_too_few_different_problems_are_told() -> None:
    with pytest.raises(UserError, match="nearly all problems of 1 symbols are in the training set: raise min_length"):
        Copy(symbols=2, min_length=1, max_length=1, train_size=100).load()


def test_recall_writes_values_alone_on_request() -> None:
    data = problems("recall", "data.write_keys=false")
    for problem in data.load()["train"]:
        answer, places = expected("recall", words(data, problem.source), write_keys=False)
        assert (words(data, problem.answer), problem.origins) == (answer, places)
        assert data.length(problem) == len(answer)


def test_recall_asks_most_queries_soon_and_each_key_once() -> None:
    data = Recall(min_length=8, train_size=200, blanks=3)
    places = []
    for problem in data.load()["train"]:
        pairs, queries = problem.source[:16], problem.source[16:]
        assert len(queries) == 8 * 4
        asked = [symbol for symbol in queries if symbol]
        assert sorted(asked) == sorted(pairs[::2])
        assert len(set(pairs)) == 16
        places += [place for place, symbol in enumerate(queries) if symbol]
    first, second = np.histogram(places, bins=[0, 16, 32])[0]
    assert first > 1.5 * second
    even = Recall(min_length=8, train_size=200, blanks=3, power=1.0).load()["train"]
    assert abs(np.mean([np.flatnonzero(problem.source[16:]).mean() for problem in even]) - 15.5) < 1.0


@pytest.mark.parametrize("name", NAMES)
def test_lines_come_back_as_they_were_written(name: str) -> None:
    one = task(name)
    one.serve_copy_ids()
    examples = one.examples("test_2x")
    again = one.parse(examples.sources, examples.references)
    batch, other = examples[[3, 0]], again[[3, 0]]
    for field in ("source", "target", "labels", "source_lengths", "target_lengths", "copy_ids"):
        assert torch.equal(getattr(batch, field), getattr(other, field)), field
    assert again.source_tokens(3) == [*examples.sources[3].split(), "</s>"]
    assert again.target_tokens(3) == [*examples.references[3].split(), "</s>"]
    assert int(batch.source.max()) < one.targets.size


def test_lengths_are_those_that_are_drawn() -> None:
    for name, unit in (("recall", "pairs"), ("selective_copy", "symbols"), ("induction", "symbols")):
        made = task(name)
        for split in ("test", "test_4x"):
            _, low, high = made.problems.splits[split]
            examples = made.examples(split)
            assert examples.unit == unit
            assert ((low <= examples.lengths[:, 0]) & (examples.lengths[:, 0] <= high)).all()
            without_answers = made.parse(examples.sources)
            assert (without_answers.lengths[:, 0] == examples.lengths[:, 0]).all()


def test_batches_have_the_links_of_their_problems() -> None:
    made = Diagnostics(SelectiveCopy(train_size=5, val_size=1, test_size=1), BatchOptions(), {})
    made.serve_links()
    examples = made.examples("train")
    links = examples[[2]].links
    assert links is not None
    (row,), problem = links, examples.problems[2]
    for t, origin in enumerate(problem.origins):
        assert row[t].nonzero().flatten().tolist() == [origin]
        assert examples.source.values[examples.source.offsets[2] + origin] == RESERVED + problem.answer[t]
    assert not row[len(problem.origins) :].any()


def test_an_attention_that_looks_where_the_symbols_are_from_has_no_error() -> None:
    made = task("recall")
    examples = made.examples("test")
    made.serve_links()
    forced = [examples[[index]] for index in range(len(examples))]
    decodings: list[Any] = [
        type("Forced", (), {"weights": GoldWeights.of(examples.problems[index], batch.source.shape[1])})
        for index, batch in enumerate(forced)
    ]
    found = made.alignments(examples, range(len(examples)), decodings, 0)
    assert found is not None
    assert all(links == gold.sure for links, gold in found)


def test_of_lines_of_text_nobody_knows_where_an_attention_should_look() -> None:
    made = task("recall")
    examples = made.examples("test")
    again = made.parse(examples.sources, examples.references)
    assert made.alignments(again, [0, 1], [None, None], 0) is again.gold_links() is None
    assert made.alignments(examples, [0, 1], [None, None], 0) is not None


class GoldWeights:
    @staticmethod
    def of(problem: SymbolProblem, source_len: int) -> torch.Tensor:
        weights = torch.zeros(len(problem.answer) + 1, source_len)
        weights[torch.arange(len(problem.answer)), torch.tensor(problem.origins)] = 1.0
        weights[-1, -1] = 1.0
        return weights


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["data.min_length=11"], "data: min_length is 11, but max_length 10: lower the one or raise the other"),
        (["data=recall", "data.symbols=63"], "data: the longest test has 32 pairs, which need 64 symbols"),
        (["data.symbols=0"], "data.symbols must be a whole number, 1 or more, not 0"),
        (["data=selective_copy", "data.blanks=-1"], "data.blanks must be a whole number, from 0 to 1000, not -1"),
        (["data=sort"], "data: a Diagnostics task reads SymbolProblems, not Sort: choose another data, or task=pointing"),
        (["batches.max_length=1"], "max_length=1 leaves no training problem: raise it"),
        (["decoder=answer", "objective.teacher_forcing.ratio=0.5"], "objective: no previous token is read here"),
    ],
)
def test_mistakes_are_told_before_the_training(
    overrides: list[str], told: str, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", "task=diagnostics", *overrides, "logger=none") == 2
    assert told in capsys.readouterr().err


@pytest.mark.exhaustive
@pytest.mark.parametrize("reader", ["attention.query=[state,embedding]", "head=pointer_generator"])
def test_tokens_that_another_part_than_the_decoder_reads_may_be_its_own(reader: str, cli: Cli) -> None:
    overrides = ["decoder=answer", reader, "objective.teacher_forcing.ratio=0.5", "trainer.limit_train_batches=1"]
    assert cli("train", "task=diagnostics", *overrides, "trainer.max_epochs=1", "logger=none", "test=false") == 0


@pytest.mark.exhaustive
def test_a_run_answers_lines_and_says_what_is_no_symbol(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = cli("train", "task=diagnostics", "data=induction", "head=pointer_generator", *OF_ANY_TASK, "logger=none")
    assert trained == 0
    (run,) = tmp_path.glob("runs/train/*/*")
    result = json.loads((run / "result.json").read_text())
    assert set(result["tests"]) == {"test", "test_2x", "test_4x"}
    assert {"exact", "accuracy", "aer"} <= set(result["tests"]["test_4x"]["metrics"])
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"? s1 s2 ?\ns3 ? s4 ?\n"), isatty=lambda: False))
    assert cli("translate", str(run)) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"? s1 t2 ?\n"), isatty=lambda: False))
    assert cli("translate", str(run)) == 2
    assert "source 1: there is no symbol 't2': the symbols are ?, s0, s1, …, s25" in capsys.readouterr().err


def test_copied_symbols_have_the_ids_of_what_they_copy() -> None:
    made = Diagnostics(Induction(train_size=3, val_size=1, test_size=1), BatchOptions(), {})
    made.serve_copy_ids()
    batch = made.examples("train")[[0, 1, 2]]
    assert batch.copy_ids is not None
    assert torch.equal(batch.copy_ids, batch.source)
    assert (batch.source[torch.arange(3), batch.source_lengths - 1] == EOS).all()


def test_what_no_text_contains_keeps_its_row_of_weights_and_makes_an_answer_wrong() -> None:
    made = Diagnostics(Reverse(train_size=3, val_size=1, test_size=1), BatchOptions(), {})
    examples = made.parse(["s1 s0"], ["s0 s1"])
    weights = torch.eye(4)
    ids = [RESERVED, UNK, RESERVED + 1, EOS]
    found = made.read(Hypothesis(ids, -1.0, -1.0, weights), examples, 0)
    assert found.text == "s0 <unk> s1" != examples.references[0]
    assert found.tokens == ["s0", "<unk>", "s1", "</s>"]
    assert torch.equal(found.weights, weights[:, :3])
    assert made.parse(["s1 s0"], [made.target_line(found)]).references == ["s0 s1"]
