"""The grammar: properties of whole corpora."""

import hashlib
import json
import random
from collections import Counter

import pytest
import spacy
from sacremoses import MosesTokenizer

from attnlab.errors import UserError
from attnlab.tasks.translation.corpora import ParallelText
from attnlab.tasks.translation.grammar import GrammarCorpus, corpus, nominals, sampling
from attnlab.tasks.translation.grammar.derivation import nesting
from attnlab.tasks.translation.grammar.lexicon import CITIES, NAMES, NUMERALS, Lexicon, lexicon
from attnlab.tasks.translation.grammar.phrases import align
from attnlab.tasks.translation.grammar.sentences import Sentence

SMALL = {"train_size": 600, "val_size": 60, "test_size": 60, "test_long_size": 40, "test_deep_size": 10}
SMALL["test_long_deep_size"] = 12
MEDIUM = {"train_size": 4000, "val_size": 100, "test_size": 300, "test_long_size": 60, "test_deep_size": 20}
MEDIUM["test_long_deep_size"] = 20
LENGTHS = {"test_long": (21, 60), "test_deep": (12, 20), "test_long_deep": (21, 60)}
"""Tokens on either side, where they are not 3 to 20."""
WORDS = lexicon()


@pytest.fixture(scope="module")
def splits() -> dict[str, ParallelText]:
    return GrammarCorpus(**MEDIUM).load()


def words(sentences: list[str]) -> list[str]:
    spaced = " ".join(sentences)
    for mark in (",", ".", "?", "'s"):
        spaced = spaced.replace(mark, f" {mark}")
    return spaced.split()


@pytest.mark.exhaustive
def test_corpus_is_decided_by_its_seed_and_its_splits_do_not_overlap() -> None:
    first, again, other = (GrammarCorpus(seed=seed, **SMALL) for seed in (1, 1, 2))
    splits = first.load()
    assert splits == again.load()
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    assert splits["test"].source != other.load()["test"].source
    for texts in ([t.source for t in splits.values()], [t.target for t in splits.values()]):
        sentences = [sentence for text in texts for sentence in text]
        assert len(sentences) == len(set(sentences)) == sum(SMALL.values())


def test_no_sentence_of_training_becomes_one_of_another_split_by_replacing_one_word(splits: dict[str, ParallelText]) -> None:
    def blanks(sentence: str) -> set[tuple[str | None, ...]]:
        spelled = sentence.split()
        return {(*spelled[:place], None, *spelled[place + 1 :]) for place in range(len(spelled))}

    for side in ("source", "target"):
        others = [sentence for name, text in splits.items() if name != "train" for sentence in getattr(text, side)]
        known = set().union(*map(blanks, others))
        assert all(known.isdisjoint(blanks(sentence)) for sentence in getattr(splits["train"], side))


def test_corpus_is_the_same_everywhere() -> None:
    """Neither the process nor the version of Python matters. If this fails on purpose, raise GRAMMAR_VERSION."""
    splits = GrammarCorpus(**SMALL).load()
    content = json.dumps([[t.source, t.target, [sorted(gold.sure) for gold in t.alignments or ()]] for t in splits.values()])
    assert corpus.GRAMMAR_VERSION == 5
    assert hashlib.sha256(content.encode()).hexdigest() == "936ab93cd4a6de0cd196207cc06dcc3ec4b68e4cdcfe272f67c739125226ace3"


@pytest.mark.exhaustive
def test_size_of_training_does_not_change_the_tests() -> None:
    splits, larger = GrammarCorpus(**SMALL).load(), GrammarCorpus(**{**SMALL, "train_size": 700}).load()
    assert [splits[name] == larger[name] for name in splits] == [False, *[True] * 5]


def test_a_test_set_is_the_same_without_the_sets_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, drawn = GrammarCorpus(**SMALL).load(), []
    draw = GrammarCorpus._draw
    monkeypatch.setattr(GrammarCorpus, "_draw", lambda own, name, *rest: drawn.append(name) or draw(own, name, *rest))
    splits = GrammarCorpus(**SMALL).open()
    assert ([*splits], drawn) == ([*whole], [])
    assert splits["test"] == whole["test"]
    assert drawn == ["val", "test"]
    assert "train_long" not in splits
    assert {**splits} == whole
    assert drawn == ["val", *GrammarCorpus.test_names, "train"]


@pytest.mark.exhaustive
def test_translation_is_a_function_in_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few words, sentences recur in all constructions."""
    nouns = {"man", "girl", "woman", "dog", "mouse", "apple", "book", "hat", "bag", "car", "table", "house", "garden"}
    verbs = {"sleep", "arrive", "see", "love", "eat", "know", "help", "give", "wait", "go", "say", "ask", "try", "forget"}
    few = Lexicon(
        {kind: [n for n in found if n.singular in nouns] for kind, found in WORDS.nouns.items()},
        {kind: list({a.rank: a for a in found}.values()) for kind, found in WORDS.adjectives.items()},
        [v for v in WORDS.verbs if v.base in verbs],
        WORDS.times[-6:-4],
    )
    monkeypatch.setattr(nominals, "NAMES", {"f": ("Anna",), "m": ("Paul",)})
    monkeypatch.setattr(nominals, "NUMERALS", NUMERALS[:1])
    monkeypatch.setattr(nominals, "NUMBERS", ())
    sampler = sampling.Sampler(random.Random(1), depths=[0, 0, 1, 2], open_names=0.0, joints=0.1)
    sampler.words = few
    translations: tuple[dict[str, str], dict[str, str]] = {}, {}
    recurring = 0
    for _ in range(15_000):
        sentence = sampler.sentence()
        pair = [" ".join(w.form for w in sentence.say(language)) for language in ("en", "de")]
        for (source, target), known in zip((pair, pair[::-1]), translations, strict=True):
            recurring += source in known
            assert known.setdefault(source, target) == target, source
    assert recurring > 500


def test_lengths_are_spread(splits: dict[str, ParallelText]) -> None:
    for name, text in splits.items():
        if name == "test_deep":
            continue
        low, high = LENGTHS.get(name, (3, 20))
        third = (high - low + 1) / 3
        for side in (text.source, text.target):
            counts = Counter(int((len(words([sentence])) - low) // third) for sentence in side)
            assert set(counts) == {0, 1, 2}
            assert min(counts.values()) > len(side) / 5


def drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How deeply clauses nest in the sentences of a split."""
    said: dict[str, Sentence] = {}

    class Noted(sampling.Sampler):
        def sentence(self) -> Sentence:
            sentence = super().sentence()
            said[" ".join(word.form for word in sentence.english())] = sentence
            return sentence

    monkeypatch.setattr(corpus, "Sampler", Noted)
    split = GrammarCorpus(**SMALL)._draw(name, set(), set())
    return [nesting(said[" ".join(words([source]))]) for source in split.source]


def test_length_and_depth_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long sentences are no deeper nested than training is, and deep ones one level deeper, whether short or long."""
    depths = {name: Counter(drawn(name, monkeypatch)) for name in ("train", "test_long", "test_deep", "test_long_deep")}
    assert set(depths["train"]) == set(depths["test_long"]) == {0, 1, 2}
    assert set(depths["test_deep"]) == set(depths["test_long_deep"]) == {3}


def test_vocabulary_can_be_learnt(splits: dict[str, ParallelText]) -> None:
    for side in ("source", "target"):
        known = Counter(words(getattr(splits["train"], side)))
        assert 500 < len(known) < 900
        for name in ("val", *GrammarCorpus.test_names):
            tested = words(getattr(splits[name], side))
            assert sum(known[w] == 0 for w in tested) < 0.003 * len(tested)


def test_lengths_tokens_and_alignments() -> None:
    """Tokens are those of spaCy and of Moses; every word is aligned except English "do" and commas."""
    english, german = spacy.blank("en").tokenizer, spacy.blank("de").tokenizer
    moses = [MosesTokenizer(lang=language) for language in ("en", "de")]
    for name, text in GrammarCorpus(open_names=0.2, **SMALL).load().items():
        low, high = LENGTHS.get(name, (3, 20))
        assert text.alignments is not None
        for source, target, (links, _) in zip(text.source, text.target, text.alignments, strict=True):
            tokens = [[t.text for t in english(source)], [t.text for t in german(target)]]
            assert tokens == [m.tokenize(s, escape=False) for m, s in zip(moses, (source, target), strict=True)]
            assert all(low <= len(side) <= high for side in tokens)
            assert all(0 <= i < len(tokens[0]) and 0 <= j < len(tokens[1]) for i, j in links)
            linked = [{link[side] for link in links} for side in (0, 1)]
            unaligned = [[t for i, t in enumerate(side) if i not in linked[s]] for s, side in enumerate(tokens)]
            assert set(map(str.lower, unaligned[0])) <= {"do", "does", "did", ","}, source
            assert set(unaligned[1]) <= {","}, target
            assert (len(tokens[0]) - 1, len(tokens[1]) - 1) in links


def test_names_and_numbers_are_copied(splits: dict[str, ParallelText]) -> None:
    names = {name for known in NAMES.values() for name in known} | set(CITIES)
    copied = Counter()
    for text in splits.values():
        assert text.alignments is not None
        for source, target, (links, _) in zip(text.source, text.target, text.alignments, strict=True):
            sides = words([source]), words([target])
            for i, j in links:
                if sides[0][i] in names or sides[0][i].isdigit():
                    genitive = "s" if sides[0][i + 1] == "'s" else ""
                    assert sides[1][j] == sides[0][i] + genitive
                    copied[sides[0][i]] += 1
    assert names <= set(copied)
    assert sum(count for word, count in copied.items() if word.isdigit()) > 300


@pytest.mark.exhaustive
def test_swapping_the_languages_swaps_the_pairs() -> None:
    sampler, mirrored = (sampling.Sampler(random.Random(7), depths=range(3), open_names=0.1, joints=0.2) for _ in range(2))
    for _ in range(200):
        sentence, same = sampler.sentence(), mirrored.sentence()
        flipped = align(same.say("de"), same.say("en"))
        assert sorted((t, s) for s, t in flipped) == align(sentence.say("en"), sentence.say("de"))
    text = GrammarCorpus(source="de", target="en", **SMALL).load()["test_long"]
    assert text.alignments is not None
    known = {w for side in WORDS.nouns.values() for n in side for w in (n.de_singular, n.de_plural)}
    assert known & set(words(text.source))
    assert all(21 <= len(words([s])) <= 60 for s in (*text.source, *text.target))


def test_more_sentences_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PATIENCE", 50)
    monkeypatch.setitem(corpus.SHAPES, "val", corpus.LIKE_TRAINING._replace(lengths=(1, 2)))
    with pytest.raises(UserError, match=r"found 0 of 60 distinct sentences of 1 to 2 words for val: lower val_size"):
        GrammarCorpus(**SMALL).load()


@pytest.mark.exhaustive
def test_invented_names_are_copied() -> None:
    text = GrammarCorpus(**{**SMALL, "open_names": 1.0}).load()["train"]  # type: ignore[arg-type]
    known = set(words(GrammarCorpus(**SMALL).load()["train"].source))
    both = set(words(text.source)) & set(words(text.target))
    assert len(both - known) > 150


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "fr"}, "speaks en and de"),
        ({"source": "de", "target": "de"}, "speaks en and de"),
        ({"val_size": 0}, "val_size must be 1 or more"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": 3}, "max_depth must be 1 to 2, not 3"),
        ({"open_names": 1.5}, "open_names must be a probability from 0 to 1, not 1.5"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        GrammarCorpus(**options)  # type: ignore[arg-type]
