import json
import random
import re
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from attnlab.errors import UserError
from attnlab.tasks.translation import Multi30k, tokenizers
from attnlab.tasks.translation.tokenizers import (
    BPETokenizer,
    SpacyTokenizer,
    SubwordTokenizer,
    Tokenizer,
    UnigramTokenizer,
    describe_spacy,
)
from attnlab.tasks.translation.vocabulary import UNK, Vocabulary
from conftest import CONF, options
from sentences import sentences

ENGLISH, GERMAN = sentences(400)
HELD_OUT = sentences(100, seed=2)


def tokenizer(name: str, language: str = "en", **changes: object) -> Tokenizer:
    config = OmegaConf.merge(OmegaConf.load(CONF / "tokenizer" / f"{name}.yaml"), changes)
    made: Tokenizer = instantiate(config)(language)
    return made


@pytest.mark.parametrize("name", options("tokenizer"))
class TestEveryTokenizer:
    def test_without_case_it_learns_and_reads_text_in_lower_case(self, name: str) -> None:
        folded, plain = tokenizer(name, lowercase=True), tokenizer(name)
        folded.fit([sentence.upper() for sentence in ENGLISH])
        plain.fit([sentence.lower() for sentence in ENGLISH])
        assert folded.state() == plain.state()
        assert folded.tokenize(HELD_OUT[0]) == plain.tokenize([sentence.lower() for sentence in HELD_OUT[0]])

    @pytest.mark.parametrize("lowercase", [False, True])
    def test_text_comes_back(self, name: str, lowercase: bool) -> None:
        for language, train, held_out in (("en", ENGLISH, HELD_OUT[0]), ("de", GERMAN, HELD_OUT[1])):
            made = tokenizer(name, language, lowercase=lowercase)
            made.fit(train)
            tokens = made.tokenize(held_out)
            assert [made.detokenize(sentence) for sentence in tokens] == [s.lower() if lowercase else s for s in held_out]
            assert all(type(token) is str and token for sentence in tokens for token in sentence)

    def test_state_is_json_and_enough(self, name: str) -> None:
        made, loaded = tokenizer(name), tokenizer(name)
        made.fit(ENGLISH)
        loaded.load_state(json.loads(json.dumps(made.state())))
        assert loaded.tokenize(HELD_OUT[0]) == made.tokenize(HELD_OUT[0])
        assert [loaded.detokenize(t) for t in made.tokenize(HELD_OUT[0])] == [
            made.detokenize(t) for t in made.tokenize(HELD_OUT[0])
        ]
        assert loaded.state() == made.state()

    def test_learning_is_deterministic(self, name: str) -> None:
        first, second = tokenizer(name), tokenizer(name)
        first.fit(ENGLISH)
        second.fit(ENGLISH)
        assert first.state() == second.state()

    def test_words_and_characters_never_seen(self, name: str) -> None:
        made = tokenizer(name)
        made.fit(ENGLISH)
        text = "The 火星 zebra sees ☃ it"
        (tokens,) = made.tokenize([text])
        assert made.detokenize(tokens) == text
        vocabulary = Vocabulary.build(made.tokenize(ENGLISH))
        ids = vocabulary.encode(tokens)
        assert UNK in ids
        assert set(ids) != {UNK}

    def test_empty_text_and_odd_spacing(self, name: str) -> None:
        made = tokenizer(name)
        made.fit([*ENGLISH, "", " "])
        assert made.tokenize(["", " \t", "the  tree\u00a0", "the tree"])[:2] == [[], []]
        assert made.detokenize([]) == ""
        assert made.tokenize([" the \t tree\u00a0"]) == made.tokenize(["the tree"])

    def test_description_tells_options_and_the_version_of_a_library(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        made = tokenizer(name)
        before = made.describe()
        assert before != tokenizer(name, "de").describe()
        assert before != tokenizer(name, lowercase=True).describe()
        made.fit(ENGLISH)
        made.tokenize(ENGLISH[:1])
        assert made.describe() == before
        monkeypatch.setattr(tokenizers, "version", lambda library: "0.0.0")
        assert (made.describe() == before) == (made.library is None)


def test_spacy_needs_a_language_that_it_knows() -> None:
    with pytest.raises(UserError, match="spaCy knows no language 'qq'"):
        SpacyTokenizer("qq").fit(["a"])


@pytest.mark.parametrize(("language", "told"), {"ja": "pip install 'attnlab[ja]', or", "vi": "installed: choose"}.items())
def test_a_language_whose_tokenizer_is_not_installed_is_told_with_its_extra(
    language: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise ImportError("support requires another package")

    monkeypatch.setattr("spacy.blank", fail)
    with pytest.raises(UserError, match=re.escape(told)):
        SpacyTokenizer(language).fit(["a"])


def test_a_tokenizer_that_does_not_work_is_told_before_the_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> None:
        raise RuntimeError("libmecab.so could not be found")

    monkeypatch.setattr("spacy.blank", lambda name: SimpleNamespace(tokenizer=fail))
    with pytest.raises(UserError, match=r"tokenizer of 'ko' does not work here: choose .* \(libmecab.so could not be"):
        SpacyTokenizer("ko").fit(["a"])


def test_straight_quotes_open_and_close_in_turn() -> None:
    made = SpacyTokenizer("en")
    made.fit(['A "dog" sees a "cat" here.', 'The "man" likes "women" too.'])
    text = 'My "child" draws "mice" again.'
    assert made.detokenize(made.tokenize([text])[0]) == text


@pytest.mark.parametrize(("language", "text"), [("es", "Vive en EE. UU. desde ayer."), ("ru", "Он читал, в т.ч. по-русски.")])
def test_a_token_may_hold_a_space(language: str, text: str) -> None:
    made, again = SpacyTokenizer(language), SpacyTokenizer(language)
    made.fit([text, "a b."])
    assert any(" " in token for token in made.tokenize([text])[0])
    again.load_state(json.loads(json.dumps(made.state())))
    assert again.detokenize(again.tokenize([text])[0]) == text


def test_unknown_characters_side_by_side_are_one_piece_of_byte_pairs() -> None:
    made = BPETokenizer("en")
    made.fit(ENGLISH)
    assert made.tokenize(["☃☃ it ☃"]) == [["▁", "☃☃", "▁it", "▁", "☃"]]


def test_unigram_learns_from_long_lines_too() -> None:
    made, line = UnigramTokenizer("en", vocab_size=60), " ".join(ENGLISH)
    made.fit([line])
    assert made.detokenize(made.tokenize([line])[0]) == line


@pytest.mark.parametrize("made", [BPETokenizer, UnigramTokenizer])
def test_vocabulary_size(made: type[SubwordTokenizer]) -> None:
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 8))) for _ in range(300)]
    text = [" ".join(draw.choices(words, k=8)) for _ in range(200)]
    counts = []
    for size in (40, 80):
        tokenizer = made("en", vocab_size=size)
        tokenizer.fit(text)
        pieces = [piece for sentence in tokenizer.tokenize(text) for piece in sentence]
        assert len(set(pieces)) <= size
        counts.append(len(pieces))
    assert counts[1] < counts[0]
    with pytest.raises(UserError, match=r"vocab_size must be 1 or more, not 0"):
        made("en", vocab_size=0)


def test_unigram_needs_room_for_the_alphabet() -> None:
    with pytest.raises(UserError, match="SentencePiece cannot learn 5 pieces"):
        UnigramTokenizer("en", vocab_size=5).fit(ENGLISH)


def test_special_symbols_in_a_text_stay_text() -> None:
    vocabulary = Vocabulary.build([["<s>", "a", "</s>", "<pad>", "<unk>", "a", "b"]])
    assert vocabulary.tokens == ["<pad>", "<unk>", "<s>", "</s>", "a", "b"]
    assert vocabulary.encode(["a", "</s>", "<pad>", "c"]) == [4, UNK, UNK, UNK]
    assert vocabulary.decode([2, 5, 4, 1, 0, 3, 5]) == ["b", "a", "<unk>"]


def test_vocabulary_limits() -> None:
    text = [["c", "b", "a"], ["b", "a", "d"], ["b"]]
    assert Vocabulary.build(text).tokens[4:] == ["b", "a", "c", "d"]
    counts = Counter(chain.from_iterable(text)).items()
    assert Vocabulary.of_counts(counts, min_frequency=2).tokens[4:] == ["b", "a"]
    assert len(Vocabulary.of_counts(counts, max_size=3)) == 7
    assert Vocabulary.of_counts(counts, max_size=2, symbols=("<2de>",)).tokens[4:] == ["<2de>", "b", "a"]


def test_heavy_libraries_are_imported_when_used() -> None:
    heavy = {"spacy", "tokenizers", "sentencepiece", "sacremoses", "pooch", "requests"}
    code = f"import sys, attnlab.data, attnlab.tasks.translation.tokenizers; print(*({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("language", ["de", "fr"])
def test_real_sentences_come_back(data_root: Path, language: str) -> None:
    """Where to put spaces is learned from the training text; Moses' rules restore 92 to 99.9 % of these sentences."""
    splits = Multi30k(str(data_root / "multi30k"), target=language).load()
    made = SpacyTokenizer(language)
    made.fit(splits["train"].target)
    restored = SpacyTokenizer(language)
    restored.load_state(made.state())
    for split in ("val", "test_2016_flickr", "test_2017_flickr"):
        text = [" ".join(sentence.split()) for sentence in splits[split].target]
        back = [restored.detokenize(tokens) for tokens in restored.tokenize(text)]
        assert sum(a == b for a, b in zip(text, back, strict=True)) >= 0.995 * len(text)


def test_packages_that_spacy_splits_a_language_by_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [SimpleNamespace(name="pyvi", version="0.1.1")]
    monkeypatch.setattr(tokenizers, "distributions", lambda name: found if name == "pyvi" else [])
    assert SpacyTokenizer("vi").describe().endswith("['pyvi 0.1.1']")
    assert describe_spacy(["en", "vi"]) == f"{describe_spacy(['en'])} pyvi 0.1.1"
