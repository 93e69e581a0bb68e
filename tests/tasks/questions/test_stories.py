"""Stories: bAbI's format and its mistakes, generated ones by a plain loop, and the real ones where they are at hand."""

import gzip
import itertools
from collections import Counter
from pathlib import Path

import pytest

from attnlab.errors import UserError
from attnlab.tasks.questions import Babi, GeneratedStories, Question
from attnlab.tasks.questions.generator import DROPS, MOVES, TAKES
from attnlab.tasks.questions.stories import read_question, read_stories, write_question

TWO = """\
1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel went back to the hallway.
5 Where is John?\tHallway\t2
1 Sandra got the milk there.
2 What is Sandra carrying?\tmilk,apple\t1
"""


def test_stories_begin_where_numbers_begin_again_and_questions_are_no_sentences() -> None:
    first, second = read_stories([line.strip() for line in TWO.splitlines()], "file")
    assert [(len(q.story), q.answer, q.supports) for q in first] == [(2, "bathroom", (0,)), (3, "hallway", (1,))]
    assert first[1].story[2] == ("daniel", "went", "back", "to", "the", "hallway")
    assert first[1].words == ("where", "is", "john")
    assert second == [
        Question((("sandra", "got", "the", "milk", "there"),), ("what", "is", "sandra", "carrying"), "milk,apple", (0,), 0)
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 A b.\n2 Where is a?", "line 2: a question without an answer"),
        ("1 A b.\n2 Where is a?\t\t1", "line 2: a question without an answer"),
        ("1 A b.\n2 Where is a?\tb", "line 2: after the answer come"),
        (
            "1 A b.\n2 Where is a?\tin b\t1",
            "line 2: an answer is one word, or several with commas between them, and not 'in b'",
        ),
        ("1 A b.\n2 Where is a?\tb\t1 3", "line 2: the answer is supported by '3', which is the number of no sentence before"),
        ("1 A b.\n2 Is a?\tb\t1\n3 Is b?\tb\t2", "line 3: the answer is supported by '2', which"),
        ("1 A b.\n2 Where is a?\tb\tx", "line 2: the answer is supported by 'x', which"),
        ("1 A b.\n3 Where is a?\tb\t1", "line 2: numbered 3 after 1"),
        ("2 A b.", "line 1: numbered 2 after 0"),
        ("1 A b.\nC d.", "line 2: no numbered sentence"),
        (f"{'1' * 5000} A b.", "line 1: no numbered sentence"),
        ("1 A b.\n2", "line 2: no numbered sentence"),
        ("1 Where is a?\tb\t1", "line 1: a question before any sentence"),
        ("1 A b.\n2 ?\tb\t1", "line 2: a question without a word"),
        ("1 A b.\n2 .\n3 Where is a?\tb\t1", "line 2: a sentence without a word"),
        ("1 A b.\n2 C d.\n1 E f.\n2 Is e?\tf\t1", "line 1: the story that begins here has no question"),
        ("1 A b.\n2 Is a?\tb\t1\n1 E f.", "line 3: the story that begins here has no question"),
    ],
)
def test_what_is_no_story_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(UserError) as refusal:
        read_stories(text.splitlines(), "file")
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_lines_come_back_as_they_were_written() -> None:
    for question in GeneratedStories(tasks=[2], train_size=5).load()["train"]:
        line = write_question(question)
        again = read_question(line.upper(), question.answer, "source 1")
        assert (again.story, again.words) == (question.story, question.words)
    for wrong in ("", "where is mary ?", "mary went home ."):
        with pytest.raises(UserError, match="source 3: a story and a question are like"):
            read_question(wrong, "", "source 3")


def find(question: Question) -> tuple[str, set[int]]:
    """The answer and what it follows from, by going through the story sentence by sentence for the one who or what is asked."""
    verbs = {verb.split()[0]: kind for kind, verbs in (("move", MOVES), ("take", TAKES), ("drop", DROPS)) for verb in verbs}
    where: dict[str, list[tuple[str, int]]] = {}  # of people: places, and sentences
    trail: list[tuple[str, set[int]]] = []  # of the thing: places, and what the last step follows from
    holder, taken = "", -1
    for number, (person, verb, *_, last) in enumerate(question.story):
        kind = verbs[verb]
        if kind == "move":
            where.setdefault(person, []).append((last, number))
            if person == holder:
                (_, before), (_, now) = where[person][-2:]
                trail.append((last, {taken, before, now}))
        elif last == question.words[3 if len(question.words) > 3 else -1]:
            holder, taken = (person, number) if kind == "take" else ("", number)
            here, now = where[person][-1]
            trail.append((here, {number, now}))
    if len(question.words) == 3:
        place, moved = where[question.words[2]][-1]
        return place, {moved}
    if len(question.words) == 4:
        place, supports = trail[-1]
        return place, supports if len(supports) == 2 else {taken, max(supports)}
    steps = [(one, other) for one, other in itertools.pairwise(trail) if other[0] == question.words[-1] and len(other[1]) == 3]
    (earlier, _), (_, supports) = steps[-1]
    return earlier, supports


def assert_possible(question: Question) -> None:
    """Nobody takes what is elsewhere or in other hands, nobody drops what is not theirs, and nobody goes where they are."""
    kinds = {verb.split()[0]: kind for kind, verbs in (("move", MOVES), ("take", TAKES), ("drop", DROPS)) for verb in verbs}
    where: dict[str, str] = {}
    lying: dict[str, str | None] = {}  # nowhere, while it is in somebody's hands
    holders: dict[str, str] = {}
    for person, verb, *_, last in question.story:
        if kinds[verb] == "move":
            assert where.get(person) != last
            where[person] = last
        elif kinds[verb] == "take":
            assert lying.get(last, where[person]) == where[person]
            lying[last], holders[last] = None, person
        else:
            assert holders.pop(last) == person
            lying[last] = where[person]


@pytest.mark.parametrize("task", [1, 2, 3])
def test_generated_answers_follow_from_their_supports(task: int) -> None:
    data = GeneratedStories(tasks=[task], train_size=150, val_size=20, test_size=20, test_long_size=20)
    loaded = data.load()
    assert {split: len(found) for split, found in loaded.items()} == {
        **{"train": 150, "val": 20, "test": 20, "test_2x": 20, "test_4x": 20}
    }
    for split, found in loaded.items():
        _, low, high = data.splits[split]
        for question in found:
            assert low <= len(question.story) <= high
            assert_possible(question)
            assert (question.answer, set(question.supports)) == find(question)
            assert len(question.supports) == question.task == task
    train = {(question.story, question.words) for question in loaded["train"]}
    assert not train & {(q.story, q.words) for split, found in loaded.items() if split != "train" for q in found}
    assert data.load() == loaded


def test_generated_stories_are_as_their_options_say() -> None:
    short = GeneratedStories(min_length=2, max_length=5, train_size=4, val_size=3, test_size=2, test_long_size=1)
    assert short.splits == {
        **{"train": (4, 2, 5), "val": (3, 2, 5), "test": (2, 2, 5)},
        **{"test_2x": (1, 6, 10), "test_4x": (1, 11, 20)},
    }
    assert short.test_names == ("test", "test_2x", "test_4x")
    longer = GeneratedStories(max_length=15, val_max_length=19, train_size=4, val_size=200)
    assert longer.splits == GeneratedStories(max_length=15, train_size=4).splits | {"val": (200, 4, 19)}
    assert {len(question.story) for question in longer.load()["val"]} == set(range(4, 20))
    with pytest.raises(UserError, match="val_max_length is 11, less than max_length, 12: raise it"):
        GeneratedStories(val_max_length=11)
    mixed = GeneratedStories(tasks=[3, 1], train_size=60, people=2, places=3)
    train = mixed.load()["train"]
    assert {question.task for question in train} == {1, 3}
    assert {sentence[0] for question in train for sentence in question.story} == {"mary", "john"}
    assert GeneratedStories(seed=2).fingerprint() != GeneratedStories().fingerprint() == GeneratedStories().fingerprint()
    with pytest.raises(UserError, match=r"tasks are some of 1, 2 and 3, not \[4\]"):
        GeneratedStories(tasks=[4])
    with pytest.raises(UserError, match="min_length is 13, but max_length 12"):
        GeneratedStories(min_length=13)
    with pytest.raises(UserError, match="a question of task 3 needs 3 sentences: raise min_length, which is 2"):
        GeneratedStories(tasks=[3], min_length=2)
    with pytest.raises(UserError, match="nearly all stories of 1 sentences"):
        GeneratedStories(min_length=1, max_length=1, people=1, places=2, train_size=200).load()
    with pytest.raises(UserError, match="hardly any story of 3 sentences has a question of task 3: raise min_length, or lower"):
        GeneratedStories(tasks=[3], min_length=3, max_length=3, people=8, train_size=300).load()


class TestBabi:
    def test_files_of_single_tasks(self, tmp_path: Path) -> None:
        for task in (1, 2):
            for split, count in (("train", 10), ("test", 2)):
                (tmp_path / f"qa{task}_name_{split}.txt").write_text(TWO * count)
        (tmp_path / "qa2_name_test.txt").rename(tmp_path / "plain")
        (tmp_path / "qa2_name_test.txt.gz").write_bytes(gzip.compress((tmp_path / "plain").read_bytes()))
        loaded = Babi(str(tmp_path), tasks=[1, 2]).load()
        counts = {split: Counter(question.task for question in found) for split, found in loaded.items()}
        assert counts["train"] + counts["val"] == {1: 30, 2: 30}
        assert counts["test"] == {1: 6, 2: 6}
        assert all(2 <= count <= 4 for count in counts["val"].values())  # two stories of one or two questions
        (tmp_path / "qa1_name_train.txt.gz").write_bytes(gzip.compress((tmp_path / "qa1_name_train.txt").read_bytes()))
        again = Babi(str(tmp_path), tasks=[1, 2]).load()
        assert again == loaded, "a file and its packed copy are one"
        only = Babi(str(tmp_path), tasks=[2])
        assert {question.task for found in only.load().values() for question in found} == {2}
        before = only.fingerprint()
        (tmp_path / "qa2_name_train.txt").write_text(TWO * 11)
        assert only.fingerprint() != before
        with pytest.raises(UserError, match=r"has of task 3 no story for the test: leave it out"):
            Babi(str(tmp_path), tasks=[1, 3]).load()

    def test_stories_that_are_held_out_are_drawn_by_the_seed(self, tmp_path: Path) -> None:
        names = [f"p{number}" for number in range(20)]
        for split, own in (("train", names), ("test", ["mary"])):
            text = "".join(f"1 {name} left.\n2 Is {name} in?\tno\t1\n3 Is {name} out?\tyes\t1\n" for name in own)
            (tmp_path / f"qa1_name_{split}.txt").write_text(text)
        held_out = []
        for seed in (1, 1, 2):
            loaded = Babi(str(tmp_path), tasks=[1], val_share=0.4, seed=seed).load()
            train, val = ([question.words[1] for question in loaded[split]] for split in ("train", "val"))
            assert sorted([*train, *val]) == sorted(2 * names)
            assert set(val).isdisjoint(train)
            held_out.append(set(val))
        assert held_out[0] == held_out[1] != held_out[2]
        assert {*names[:8]} not in held_out

    def test_mistakes(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="there is no task 21"):
            Babi(tasks=[21])
        with pytest.raises(UserError, match=r"en-10k\.train\.txt.*root must be the folder with bAbI's files"):
            Babi(str(tmp_path)).load()
        (tmp_path / "en-1k.test.txt").write_text(TWO)
        (tmp_path / "en-1k.train.txt").write_bytes(TWO.replace("milk", "café").encode("latin-1"))
        with pytest.raises(UserError, match=r"en-1k\.train\.txt, line 6: not UTF-8"):
            Babi(str(tmp_path), questions="1k").load()
        (tmp_path / "en-1k.train.txt").write_text("1 A b.\n2 Shall a b?\tb\t1\n")
        with pytest.raises(UserError, match=r"'shall a b\?' is worded as no task of bAbI"):
            Babi(str(tmp_path), questions="1k").load()

    def test_questions_of_the_other_collection_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "qa1_name_train.txt").write_text(TWO * 333 + "1 Mary left.\n2 Where is Mary? \toutside\t1\n")
        (tmp_path / "qa1_name_test.txt").write_text(TWO)
        assert Babi(str(tmp_path), tasks=[1], questions="1k").load()
        with pytest.raises(UserError, match=r"has 1,000 questions of task 1 for training: set questions=1k"):
            Babi(str(tmp_path), tasks=[1]).load()

    def test_a_download_that_fails_says_what_to_do(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path))
        with pytest.raises(UserError, match=r"cannot download .*unpack bAbI's archive elsewhere and name as root its folder"):
            Babi(base_url="http://127.0.0.1:9/").fingerprint()

    @pytest.mark.exhaustive
    def test_the_real_tasks_are_told_by_their_wording(self, data_root: Path) -> None:
        if not (data_root / "babi").is_dir():
            pytest.skip("no bAbI here")
        loaded = Babi(str(data_root / "babi"), questions="1k").load()
        for splits in (("train", "val"), ("test",)):
            counts = Counter(question.task for split in splits for question in loaded[split])
            assert counts == dict.fromkeys(range(1, 21), 1000)
        assert 1800 < len(loaded["val"]) < 2200
