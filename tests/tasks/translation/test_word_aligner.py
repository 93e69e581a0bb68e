"""The statistical aligner of a corpus' words: what it learns from, where it is kept, and the silver links it makes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import UserError
from attnlab.evaluation.alignment import make_silver, score
from attnlab.tasks.translation import ParallelText, Translation, aligner, task
from attnlab.tasks.translation.aligner import WordAligner
from attnlab.tasks.translation.grammar import GrammarCorpus
from attnlab.tasks.translation.tokenizers import CharacterTokenizer, SpacyTokenizer
from sentences import MadeCorpus, prepared, translation

Make = Callable[..., Translation]


class UnlinkedCorpus(MadeCorpus):
    """Nobody has linked its words."""

    def fingerprint(self) -> str:
        return "made without links"

    def load(self) -> dict[str, ParallelText]:
        return {split: replace(text, alignments=None) for split, text in super().load().items()}


class FileLikeCorpus(UnlinkedCorpus):
    """Whoever links its words links those between white space."""

    may_link_words = False


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return partial(translation, tmp_path)


@pytest.mark.exhaustive
def test_it_finds_the_links_of_the_grammar(make: Make) -> None:
    sizes = {f"{name}_size": 1 for name in ("val", "test_long", "test_deep", "test_long_deep")}
    made = prepared(make(data=GrammarCorpus(train_size=800, test_size=60, **sizes), tokenizer=SpacyTokenizer))
    examples = made.examples("test")
    both = made.aligner_links(examples, range(60))
    gold = examples.text.alignments
    assert gold is not None
    forward, silver = [links for links, _ in both], [make_silver(*links) for links in both]
    assert score(forward, gold).aer < 0.35, "where the straight diagonal has .5"
    assert score([one.sure for one in silver], gold).precision > score([one.possible for one in silver], gold).precision


def test_all_runs_of_a_corpus_have_one(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = prepared(make(tokenizer=SpacyTokenizer))
    links = first.aligner_links(first.examples("first"), [3, 0])

    def fail(*_: object) -> None:
        raise AssertionError("it is there")

    monkeypatch.setattr(WordAligner, "train", fail)
    other = prepared(make(tokenizer=partial(CharacterTokenizer, lowercase=True)))
    assert other.aligner_links(other.examples("first"), [3, 0]) == links
    short = prepared(make(tokenizer=SpacyTokenizer, max_length=8))
    with pytest.raises(AssertionError, match="it is there"):
        short.aligner_links(short.examples("first"), [0])
    opened = make(tokenizer=SpacyTokenizer, max_length=8)
    opened.load_state(short.state())
    assert opened.examples("train").sources == short.examples("train").sources
    assert [path.parent.name for path in (tmp_path / "cache").glob("*/*") if "aligner" in path.parent.name] == ["aligners"]


def test_a_large_training_set_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [[letter] for letter in "abcdefg"]
    monkeypatch.setattr(aligner, "MOST", 3)
    known = WordAligner.train(words, words)
    assert sorted(known.vocabularies[0].tokens[-3:]) == ["a", "d", "g"]
    assert known.link([["A"], []], [["a"], ["a"]]) == [({(0, 0)}, {(0, 0)}), (set(), set())]
    with pytest.raises(UserError, match="nothing to learn"):
        WordAligner.train([[]], [["a"]])


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"tokenizer": SpacyTokenizer}, False),
        ({"data": FileLikeCorpus()}, False),
        ({"data": FileLikeCorpus(), "silver_links": True}, True),
    ],
)
def test_the_words_that_are_linked_are_of_one_version_of_spacy(
    changes: dict[str, Any], counts: bool, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = make(**changes).content
    monkeypatch.setattr(task, "describe_spacy", lambda languages: f"spacy 0 {languages}")
    assert (make(**changes).content != before) == counts


def test_an_aligner_is_of_the_packages_that_split_the_words(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    before = make()._locate_aligner()
    assert make()._locate_aligner() == before
    monkeypatch.setattr(task, "describe_spacy", lambda languages: "spacy 3, pyvi 0")
    assert make()._locate_aligner() != before


def test_silver_links_stand_in_where_nobody_linked_the_words(make: Make) -> None:
    plain = prepared(make(data=UnlinkedCorpus(), tokenizer=SpacyTokenizer))
    examples = plain.examples("first")
    assert plain.alignments(examples, [0], [None], 0) is plain.alignment_sizes(examples, [0]) is None
    assert not plain.has_silver_links(examples)

    def known(made: Translation) -> Any:
        return made.alignments(made.examples("first"), [2, 5], [None, None], 0)

    silver = prepared(make(data=UnlinkedCorpus(), tokenizer=SpacyTokenizer, silver_links=True))
    examples = silver.examples("first")
    assert silver.has_silver_links(examples)
    assert known(silver) == [(set(), make_silver(*both)) for both in silver.aligner_links(examples, [2, 5])]
    assert all(gold.sure for _, gold in known(silver))
    assert silver.alignment_sizes(examples, [2]) == [(len(examples.words[0][2]), len(examples.words[1][2]))]
    with pytest.raises(UserError, match="has no word alignments"):
        silver.serve_links()

    linked = prepared(make(silver_links=True))
    assert not linked.has_silver_links(linked.examples("first"))
    assert known(linked) == known(prepared(make())), "people's links come first"
