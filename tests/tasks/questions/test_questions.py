"""Questions as a task: tensors, links and metrics by plain loops, and the task as a command runs it."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.data import BatchOptions
from attnlab.data.pharaoh import Gold
from attnlab.data.symbols import BOS, EOS, PAD, RESERVED, UNK
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Evidence, Prediction
from attnlab.evaluation.significance.sample import sample_models
from attnlab.runs.assembly import build_model, build_module, build_task
from attnlab.search import BeamSearch, GreedySearch, SamplingSearch, Search
from attnlab.tasks.questions import GeneratedStories, Questions
from attnlab.tasks.questions.answers import AnswerModel
from attnlab.tasks.questions.examples import StoryExamples, Vocabulary
from attnlab.tasks.questions.frontends import SentenceFrontend
from attnlab.tasks.questions.metrics import MeanError, SolvedTasks, SupportFound, TaskAccuracy
from attnlab.tasks.questions.stories import read_question
from commands import OF_ANY_TASK, Cli, cli
from composing import few_examples, settled

__all__ = ["cli"]

LINE = b"Mary went to the garden. John moved to the office. Where is Mary?\n"


def task(**options: Any) -> Questions:
    data = GeneratedStories(tasks=[1, 2, 3], train_size=400, val_size=9, test_size=8, test_long_size=7)
    return Questions(data, BatchOptions(), {}, **options)


@pytest.mark.parametrize("options", [{}, {"read": "words"}, {"entities": ["Mary", "john"]}], ids=str)
def test_sources_targets_and_links(options: dict[str, Any]) -> None:
    made = task(**options)
    made.serve_links()
    examples = made.examples("test_2x")
    words = {RESERVED + number: word for number, word in enumerate(made.vocabulary.words)}
    batch = examples[[4, 1]]
    assert batch.links is not None
    for row, index in enumerate((4, 1)):
        question = examples.questions[index]
        shown, length = examples.source_tokens(index), int(batch.source_lengths[row])
        assert len(shown) == length
        ids = batch.source[row, :length].tolist()
        if "read" in options:
            assert [words.get(one, "</s>") for one in ids] == shown
            read = [word for sentence in (*question.story, question.words) for word in sentence]
            assert shown == [*read, "</s>"]
        else:
            told = [" ".join(words[one] for one in element[1:] if one != PAD) for element in ids]
            assert [*told[:-1], f"{told[-1]} ?"] == shown
            entities = made.entities
            assert [element[0] for element in ids] == [3] * len(entities) + [1] * len(question.story) + [2]
            assert shown == [*entities, *map(" ".join, question.story), f"{' '.join(question.words)} ?"]
        linked = {place for place in range(length) if batch.links[row, 0, place]}
        assert linked == {place for support in question.supports for place in range(*examples.spans(index)[support])}
        for support in question.supports:
            assert " ".join(shown[slice(*examples.spans(index)[support])]) == " ".join(question.story[support])
        answer = RESERVED + made.vocabulary.answers.index(question.answer)
        assert batch.target[row].tolist() == [BOS, answer, EOS]
        assert batch.labels[row].tolist() == [answer, PAD]
        assert examples.target_tokens(index) == [question.answer]
        assert examples.lengths[index].tolist() == [len(question.story), 1]
    again = made.parse(examples.sources, examples.references)[[4, 1]]
    assert all(torch.equal(getattr(batch, name), getattr(again, name)) for name in ("source", "target", "labels"))


def test_what_training_lacks_is_unknown_and_state_brings_the_rest_back() -> None:
    made, other = task(), task()
    made.prepare()
    other.load_state(json.loads(json.dumps(made.state())))
    assert other.targets == made.targets
    batch = other.parse(["Zoe went to the garden. Where is Zoe?"], ["moon"])[[0]]
    assert batch.source[0, 0, 1] == batch.source[0, 1, 3] == UNK
    assert batch.labels[0, 0] == UNK
    with pytest.raises(UserError, match="source 1: a sentence of 9 words, and the longest of the data has 7"):
        other.parse(["a b c d e f g h i. Where is a?"])
    with pytest.raises(UserError, match="target 1: an answer is one word, not 'a b'"):
        other.parse(["a b. Where is a?"], ["a b"])
    with pytest.raises(UserError, match="target 1: an answer is one word, not ''"):
        other.parse(["a b. Where is a?"], [" "])


def test_there_is_room_for_the_longest_question_of_any_split() -> None:
    train, other = (read_question(line, "b", "") for line in ("A b. Who?", "C. Who is so long?"))
    assert Vocabulary.of([train], [other], ()) == (["a", "b", "who"], ["b"], 4)


def test_of_lines_of_text_nobody_knows_where_an_attention_should_look() -> None:
    made = task()
    examples = made.examples("test")
    again = made.parse(examples.sources, examples.references)
    assert made.alignments(again, [0, 1], [None, None], 0) is again.gold_links() is None
    assert made.alignments(examples, [0, 1], [None, None], 0) is not None


def test_a_trained_models_words_stay_whatever_its_data_become() -> None:
    made, other = task(), task()
    other.load_state(made.state())
    known = other.vocabulary
    sizes = {"train_size": 400, "val_size": 9, "test_size": 8, "test_long_size": 7}
    other.stories = GeneratedStories(tasks=[1, 2, 3], people=2, **sizes)
    assert other.stories.load()["train"] != made.stories.load()["train"]
    assert UNK in other.examples("test").source.padded(range(8))[0]
    assert other.vocabulary == known


def test_questions_that_stand_in_training_are_counted() -> None:
    made = task()
    assert [made.overlap(split) for split in ("val", "test", "test_2x")] == [0, 0, 0]
    first = made.examples("train").questions[0]
    made.examples("test").questions[:2] = [first, first._replace(answer="elsewhere")]
    assert made.overlap("test") == 2


@pytest.mark.parametrize("options", [{}, {"read": "words"}, {"entities": ["mary", "john"]}], ids=str)
def test_long_stories_go_from_training_alone(options: dict[str, Any]) -> None:
    """A story is as long as its source, the question or the end symbol not counted."""
    whole, data = task(**options), task().stories
    limit = 40 if "read" in options else 7
    short = Questions(data, BatchOptions(max_length=limit), {}, **options)
    kept = [
        q
        for q, length in zip(whole.examples("train").questions, whole.examples("train").source.lengths, strict=True)
        if length - 1 <= limit
    ]
    assert 0 < len(kept) < 400
    assert short.examples("train").questions == kept
    assert short.examples("test").questions == whole.examples("test").questions


def test_questions_about_one_story_are_one_block() -> None:
    lines = (
        "Mary went to the garden. Where is Mary?",
        "Mary went to the garden. John moved to the office. Where is John?",
        "Mary went to the garden. John moved to the office. Where is Mary?",
        "John moved to the office. Where is John?",
        "Mary went to the garden. Where is Mary?",
        "Mary went to the office. John went there. Where is John?",
    )
    made = task()
    made.prepare()
    questions = [read_question(line, "garden", "here") for line in lines]
    examples = StoryExamples(questions, made.vocabulary)
    assert examples.blocks.tolist() == [0, 0, 0, 1, 2, 3]
    assert StoryExamples([], made.vocabulary).blocks.tolist() == []
    asked = [questions[0], questions[1]._replace(task="another")]
    assert StoryExamples(asked, made.vocabulary).blocks.tolist() == [0, 1], "another task tells another story"
    generated = made.examples("test")
    assert len(set(generated.blocks.tolist())) == len(generated)


def test_a_long_sentence_is_told_by_its_line() -> None:
    made = task()
    long = f"Mary {'very ' * 40}went to the garden. Where is Mary?"
    with pytest.raises(UserError, match="source 42: a sentence of 45 words"):
        made.parse([LINE.decode().strip(), long], first=41)


def test_a_task_with_errors_of_five_per_cent_is_solved() -> None:
    shares = [(95, 100), (19, 20), (949, 1000), (951, 1000)]
    errors = np.array([100 * (1 - right / asked) for right, asked in shares])
    assert SolvedTasks().summary(errors) == 3


def test_how_far_a_count_of_solved_tasks_may_be_off_is_known_by_drawing_questions_again() -> None:
    """Without one question a task at its threshold is lost, or none: by that the jackknife knows a large variance, or none."""
    draw = np.random.default_rng(0)
    rights = [draw.random((20, 400)) < share for share in (0.95, 0.951)]
    statistics = []
    for right in rights:
        rows = np.zeros((8000, 40))
        rows[np.arange(8000), np.repeat(np.arange(20), 400)] = right.ravel()
        rows[np.arange(8000), 20 + np.repeat(np.arange(20), 400)] = 1.0
        statistics.append(rows)
    variances = np.diag(sample_models(SolvedTasks(), statistics).covariance)
    assert ((variances > 1) & (variances < 10)).all(), "of twenty tasks about half are solved, each by a coin"
    same = sample_models(SolvedTasks(), [statistics[0], statistics[0]])
    assert same.variance([0], [1]) == pytest.approx(0.0, abs=1e-9), "the same questions are drawn for all models"


def test_sentences_are_masked_sums() -> None:
    frontend = SentenceFrontend(9, 3, 5).double()
    assert frontend.masks is not None
    torch.nn.init.normal_(frontend.masks)
    source = torch.tensor([[[1, 4, 5, 6], [3, 7, 0, 0], [2, 8, 4, 0], [0, 0, 0, 0]]])
    found = frontend(source)[0]
    embedding = frontend.embedding.weight
    for place, (kind, *words) in enumerate(source[0].tolist()):
        expected = torch.zeros(5).double()
        for i, word in enumerate(words):
            mask = frontend.masks[kind - 1, i] if kind in (1, 2) else torch.ones(5).double()
            expected = expected + mask * (embedding[word] if word else 0.0)
        torch.testing.assert_close(found[place], expected, rtol=0, atol=1e-12)
    summed = SentenceFrontend(9, 3, 5, word_mask=False).double()
    torch.testing.assert_close(summed(source)[0, 0], summed.embedding.weight[4:7].sum(0), rtol=0, atol=1e-12)
    assert len(list(summed.parameters())) == 1


class Certain:
    """A model that finds the end, which is no answer, the most probable, then token 6, then 5."""

    def encode(self, source: torch.Tensor, lengths: torch.Tensor, copy_ids: torch.Tensor | None = None) -> Any:
        return torch.zeros(len(source), 1), torch.zeros(len(source), 1)

    def step(self, tokens: torch.Tensor, memory: Any, state: Any) -> Any:
        row = torch.tensor([0.0, 0.0, 0.0, 5.0, 1.0, 2.0, 3.0]).log_softmax(0)
        return row.expand(len(tokens), -1), torch.ones(len(tokens), 1), state


def test_any_search_finds_answers_of_one_token_and_their_probabilities() -> None:
    source, lengths = torch.zeros(2, 1).long(), torch.tensor([1, 1])
    expected = torch.tensor([0.0, 0.0, 0.0, 5.0, 1.0, 2.0, 3.0]).log_softmax(0)
    for search, count in ((GreedySearch(), 1), (BeamSearch(width=5), 3)):
        for found in search(AnswerModel(Certain()), source, lengths, bos=BOS, eos=EOS):
            assert [one.tokens for one in found] == [[6, EOS], [5, EOS], [4, EOS]][:count]
            for one in found:
                assert one.log_probability == pytest.approx(float(expected[one.tokens[0]]), abs=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize("search", [GreedySearch, BeamSearch, SamplingSearch])
def test_a_limit_of_one_token_leaves_room_for_the_answer_and_its_end(search: Callable[..., Search]) -> None:
    config = settled("task=questions", "data.train_size=20", "data.val_size=2", "data.test_size=2")
    task = build_task(config)
    task.prepare()
    model = build_model(config, task).eval()
    predictor = task.predictor([model], search(max_length_factor=0.0, max_length_offset=1))
    examples = task.examples("val")
    found = predictor.search_batch(examples[[0, 1]], examples)
    assert [len(one.text.split()) for one in found] == [1, 1]


def test_how_stories_are_read_is_part_of_a_tasks_state() -> None:
    small = ["task=questions", "data.train_size=20", "data.val_size=2", "data.test_size=2"]
    states = [build_task(settled(*small, *own)).state() for own in ([], ["task.read=words"], ["task.word_mask=false"])]
    assert len({str(state) for state in states}) == 3


def evidence(right: list[bool], tasks: list[int]) -> Evidence:
    predictions = [Prediction(i, "a", ["a"], ["s"], torch.zeros(1, 1), 0.0, 0.0) for i in range(len(right))]
    return Evidence(predictions, ["a" if one else "b" for one in right], [None] * len(right), annotations=tasks)


def test_metrics_by_task_are_those_of_a_plain_loop() -> None:
    generator = np.random.default_rng(0)
    tasks = generator.choice([1, 2, 7, 20], 400).tolist()
    right = [bool(generator.random() < (1.0 if one == 7 else 0.97 if one == 20 else 0.5)) for one in tasks]
    errors = {}
    for of in sorted(set(tasks)):
        own = [one for one, number in zip(right, tasks, strict=True) if number == of]
        errors[of] = 100 * (1 - sum(own) / len(own))
    given = evidence(right, tasks)
    for of, error in errors.items():
        rows = TaskAccuracy(task=of).statistics(given)
        assert rows is not None
        assert TaskAccuracy(task=of).value(rows.sum(0)) == pytest.approx(100 - error)
    for metric, value in ((MeanError(), sum(errors.values()) / 4), (SolvedTasks(), sum(e <= 5 for e in errors.values()))):
        rows = metric.statistics(given)
        assert rows is not None
        assert metric.value(rows.sum(0)) == pytest.approx(value)
        assert metric.statistics(replace(given, annotations=None)) is None
        assert metric.statistics(replace(given, annotations=[0] * 400)) is None
        other = metric.statistics(replace(given, annotations=[21 if one == 20 else -1 if one == 7 else one for one in tasks]))
        assert other is not None
        assert other.sum(axis=0)[20:].sum() == sum(one in (1, 2) for one in tasks), "bAbI has no other tasks"
    assert TaskAccuracy(task=3).statistics(given) is None
    rows = SolvedTasks().statistics(evidence([True] * 19 + [False], [4] * 20))
    assert rows is not None
    assert SolvedTasks().value(rows.sum(0)) == 1.0, "an error of 5 % is solved"


@pytest.mark.parametrize("options", [{}, {"read": "words"}, {"entities": ["mary"]}], ids=str)
def test_support_is_found_where_the_largest_weight_is_on_it(options: dict[str, Any]) -> None:
    made = task(**options)
    examples = made.examples("test")
    found: list[Any] = []
    expected = 0
    generator = np.random.default_rng(1)
    for index, question in enumerate(examples.questions):
        chosen = int(generator.integers(len(question.story)))
        expected += chosen in question.supports
        weights = torch.zeros(1, len(examples.source_tokens(index)))
        weights[0, slice(*examples.spans(index)[chosen])] = 0.1
        weights[0, -1] = 0.9  # the question does not count
        found.append(SimpleNamespace(weights=weights))
    alignments = made.alignments(examples, range(len(examples)), found, 0)
    metric = SupportFound()
    rows = metric.statistics(Evidence([], [], [], alignments=alignments))
    assert rows is not None
    assert rows.sum(0).tolist() == [expected, len(examples)]
    flat = made.alignments(examples, range(len(examples)), [None] * len(examples), 0)
    assert metric.statistics(Evidence([], [], [], alignments=flat)) is None


def test_questions_without_support_do_not_count_as_missed() -> None:
    alignments = [({(1, 0)}, Gold.all_sure({(1, 0)})), ({(2, 0)}, Gold(set(), set()))]
    rows = SupportFound().statistics(Evidence([], [], [], alignments=alignments))
    assert rows is not None
    assert rows.sum(0).tolist() == [1, 1]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["data.tasks=[4]"], "tasks are some of 1, 2 and 3, not [4]"),
        (["data.people=9"], "data.people must be a whole number, from 1 to 8, not 9"),
        (["data=sort"], "data: a Questions task reads Stories, not Sort: choose another data, or task=pointing"),
        (["task.read=letters"], "task.read must be sentences or words, not 'letters'"),
        (["task.read=words", "task.entities=[mary]"], "entities stand before sentences, not before words"),
        (["batches.max_length=1"], "max_length=1 leaves no training question: raise it"),
        (["task.entities=[mary,Mary]"], "entities are words, each of them once, and 'mary' is none or there twice"),
        (["task.entities=['the garden']"], "'the garden' is none or there twice"),
        (["task.entities=[mary,jon]"], "no story of the training tells of the entity 'jon': did you mean 'john'?"),
        (["data=babi", "data.root=."], "en-10k.train.txt.gz): the folder has those of questions=1k"),
        (["data=babi", "data.root=nowhere"], "root must be the folder with bAbI's files"),
        (["data=babi", "data.root=nowhere", "data.tasks=[0]"], "bAbI's tasks have the numbers 1 to 20: there is no task 0"),
        (["head=pointer_generator"], "the targets of the task questions are no copies of source tokens"),
        (["head=pointing"], "writes positions of the source, which the targets here are not"),
        (["decoder=entity"], "has an attention of its own, over its slots: choose none beside it"),
        (
            ["decoder=entity", "attention=none", "decoder.tied=true", "task.entities=[mary,john]"],
            "20 slots are tied to the entities that sources begin with, of which there are 2",
        ),
    ],
)
def test_mistakes_are_told_before_the_training(
    overrides: list[str], told: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "en-1k.train.txt").touch()
    small = [] if "data=babi" in overrides or "data=sort" in overrides else OF_ANY_TASK
    assert cli("train", "task=questions", *small, *overrides, "logger=none") == 2
    assert told in capsys.readouterr().err


@pytest.mark.few(1)
@pytest.mark.parametrize(("data", "expected"), [("task=questions", False), ("data=grammar", True)])
def test_a_decoder_that_writes_one_token_tells_of_longer_targets(
    data: str, expected: bool, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    config = settled(data, *few_examples(data), "decoder=answer", f"cache_dir={tmp_path}")
    task = build_task(config)
    task.prepare()
    build_module(config, task, build_model(config, task))
    assert ("does not read what it has written" in caplog.text) == expected


RUNS = [
    [],
    ["attention=none", "decoder=answer"],
    ["attention=dot", "task.read=words"],
    ["attention=uniform", "task.read=words"],
    ["attention=none", "decoder=entity", "decoder.slots=2", "decoder.tied=true", "task.entities=[mary,john]"],
]


@pytest.mark.parametrize("overrides", RUNS[:1] + [pytest.param(one, marks=pytest.mark.exhaustive) for one in RUNS[1:]], ids=str)
def test_a_run_answers_a_line(
    overrides: list[str], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("train", "task=questions", "data.tasks=[1,2]", *OF_ANY_TASK, *overrides, "logger=none") == 0
    (run,) = tmp_path.glob("runs/train/*/*")
    tests = json.loads((run / "result.json").read_text())["tests"]
    assert set(tests) == {"test", "test_2x", "test_4x"}
    measured = set(tests["test_4x"]["metrics"])
    assert {"exact", "mean_error", "solved", "task_1", "task_2"} <= measured
    assert ("support" in measured) == (not {"decoder=answer", "decoder=entity", "attention=uniform"} & {*overrides})
    assert "task_3" not in measured
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LINE), isatty=lambda: False))
    assert cli("translate", str(run)) == 0
    assert len(capsys.readouterr().out.split()) == 1
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"Where is Mary?\n"), isatty=lambda: False))
    assert cli("translate", str(run)) == 2
    assert "source 1: a story and a question are like" in capsys.readouterr().err
    (tmp_path / "source").write_bytes(LINE)
    (tmp_path / "target").write_text("garden\n")
    if "task.read=words" not in overrides:
        assert cli("align", str(run), "--files", "source", "target") == 2
        assert "the task questions has no words to align" in capsys.readouterr().err
