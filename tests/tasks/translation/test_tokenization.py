"""What is prepared a part at a time, in any number of processes, is what plain lists in memory would give."""

import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attnlab.data import lines, ondemand, processes
from attnlab.data.cache import load_or_make
from attnlab.data.symbols import BOS, EOS, RESERVED, SPECIAL, UNK
from attnlab.errors import UserError
from attnlab.tasks.translation import ParallelText, VocabularyOptions, encoding, tokenization
from attnlab.tasks.translation.copying import CopyIds
from attnlab.tasks.translation.encoding import format_unknown, parse_unknown
from attnlab.tasks.translation.grammar import GrammarCorpus
from attnlab.tasks.translation.links import WORDS, link_tokens
from attnlab.tasks.translation.tokenization import TokenizedCorpus, count_overlap, read_corpus, write_corpus
from attnlab.tasks.translation.tokenizers import (
    BPETokenizer,
    CharacterTokenizer,
    SpacyTokenizer,
    Tokenizer,
    UnigramTokenizer,
    WhitespaceTokenizer,
)
from attnlab.tasks.translation.vocabulary import Vocabulary
from conftest import exhaustive_but
from sentences import MadeCorpus, prepared, translation, write_pair

TOKENIZERS: dict[str, Any] = {
    "whitespace": WhitespaceTokenizer,
    "lowercase": partial(WhitespaceTokenizer, lowercase=True),
    "characters": CharacterTokenizer,
    "spacy": SpacyTokenizer,
    "bpe": partial(BPETokenizer, vocab_size=80),
    "unigram": partial(UnigramTokenizer, vocab_size=60),
}
OPTIONS: list[tuple[dict[str, Any], int | None]] = [
    ({}, None),
    ({"min_frequency": 40}, 14),
    ({"shared": True, "max_size": 30}, None),
    ({"shared": True}, 12),
]


class Special(MadeCorpus):
    """Also has a text that spells special symbols, and pairs of the test set that are in training."""

    def load(self) -> dict[str, ParallelText]:
        texts = super().load()
        val, first = texts["val"], texts["train"]
        source, target = [*val.source, "a </s> <unk>", ""], [*val.target, "<s> <pad> b", ""]
        second = ParallelText(first.source[:40], first.target[:40], None)
        links = val.alignments or []
        return {**texts, "val": ParallelText(source, target, [*links, *links[:2]]), "second": second}


def in_memory(
    corpus: MadeCorpus, tokenizers: tuple[Tokenizer, Tokenizer], options: VocabularyOptions, max_length: int | None
) -> tuple[dict[str, ParallelText], dict[str, tuple[list[list[int]], ...]], list[list[str]], list[dict[str, Any]]]:
    """The same by lists: text, ids, vocabularies and what the tokenizers learned."""
    text = corpus.load()
    train = text["train"]
    if options.shared and tokenizers[0].learns_pieces:
        tokenizers[0].fit([*train.source, *train.target])
        tokenizers[1].load_state(tokenizers[0].state())
    else:
        tokenizers[0].fit(list(train.source))
        tokenizers[1].fit(list(train.target))
    tokens = {name: [tokenizers[0].tokenize(own.source), tokenizers[1].tokenize(own.target)] for name, own in text.items()}
    if max_length is not None:
        kept = [i for i, pair in enumerate(zip(*tokens["train"], strict=True)) if max(map(len, pair)) <= max_length]
        assert 0 < len(kept) < len(train.source)
        tokens["train"] = [[side[i] for i in kept] for side in tokens["train"]]
        links = train.alignments and [train.alignments[i] for i in kept]
        text["train"] = ParallelText([train.source[i] for i in kept], [train.target[i] for i in kept], links, train.words)
    sides = [[*tokens["train"][0], *tokens["train"][1]]] * 2 if options.shared else tokens["train"]
    vocabularies = []
    for side in sides:
        counts = Counter(token for sentence in side for token in sentence if token not in SPECIAL)
        frequent = [token for token, count in counts.items() if count >= options.min_frequency]
        ranked = sorted(frequent, key=lambda token: (-counts[token], token))
        vocabularies.append([*SPECIAL, *ranked[: options.max_size]])
    ids, unknown = {}, {}
    numbers = [{token: i for i, token in enumerate(known) if i >= RESERVED} for known in vocabularies]
    for name, own in tokens.items():
        source, target = ([[of.get(t, UNK) for t in s] for s in side] for of, side in zip(numbers, own, strict=True))
        ids[name] = ([[*s, EOS] for s in source], [[BOS, *t, EOS] for t in target])
        unknown[name] = [[[t for t in s if t not in of] for s in side] for of, side in zip(numbers, own, strict=True)]
    return text, ids, unknown, vocabularies, [tokenizer.state() for tokenizer in tokenizers]


def make(name: str) -> tuple[Tokenizer, Tokenizer]:
    return TOKENIZERS[name]("en"), TOKENIZERS[name]("de")


def write(folder: Path, *given: Any, **options: Any) -> TokenizedCorpus:
    return load_or_make(folder, make=lambda empty: write_corpus(*given, empty, **options), read=read_corpus)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every part be a few lines."""
    monkeypatch.setattr(lines, "PART", 1000)
    monkeypatch.setattr(lines, "MOST", 30)
    monkeypatch.setattr(tokenization, "PART", 11)
    monkeypatch.setattr(encoding, "TOKENS", 200)


def check(found: TokenizedCorpus, expected: tuple[Any, ...]) -> None:
    text, ids, unknown, vocabularies, states = expected
    assert list(found.text) == list(text)
    assert found.text == text
    for name, sides in ids.items():
        for ragged, sequences in zip(found.ids[name], sides, strict=True):
            assert [ragged[i].tolist() for i in range(len(ragged))] == sequences
            assert ragged.lengths.tolist() == list(map(len, sequences))
    assert {name: [list(side) for side in sides] for name, sides in found.unknown.items()} == unknown
    assert [vocabulary.tokens for vocabulary in found.vocabularies] == vocabularies
    assert list(found.tokenizer_states) == states
    train = set(zip(text["train"].source, text["train"].target, strict=True)) - {("", "")}
    pairs = {name: list(zip(own.source, own.target, strict=True)) for name, own in text.items() if name != "train"}
    assert found.overlap == {name: sum(pair in train for pair in own) for name, own in pairs.items()}


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize(("options", "max_length"), exhaustive_but([OPTIONS[1], OPTIONS[2]], OPTIONS))
@pytest.mark.usefixtures("small_parts")
def test_parts_give_what_lists_give(tmp_path: Path, name: str, options: dict[str, Any], max_length: int | None) -> None:
    per_word = {"characters": 5, "bpe": 3, "unigram": 3}.get(name, 1)
    settings = (VocabularyOptions(**options), None if max_length is None else max_length * per_word)
    found = write(tmp_path / "corpus", Special(), make(name), *settings)
    check(found, in_memory(Special(), make(name), *settings))
    assert found.overlap["second"] > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.usefixtures("small_parts")
def test_processes_give_what_one_gives(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.0)
    counted = []
    started = processes._pool
    monkeypatch.setattr(processes, "_pool", lambda *given: [counted.append(given), started(*given)][1])
    settings = (VocabularyOptions(min_frequency=3), None)
    found = write(tmp_path / "corpus", Special(), make(name), *settings, processes=2)
    check(found, in_memory(Special(), make(name), *settings))
    assert len(counted) == 1


def test_a_token_that_holds_what_stands_between_tokens_is_refused() -> None:
    assert parse_unknown(format_unknown(["a b", "\t", "[]"])) == ["a b", "\t", "[]"]
    assert parse_unknown(format_unknown([])) == []
    with pytest.raises(UserError, match=r"U\+001F: let the tokenizer split there"):
        format_unknown(["a", "b\x1fc"])


def test_text_that_spells_a_special_symbol_is_unknown() -> None:
    vocabulary = Vocabulary.build([[*SPECIAL, "a", "<2de>"]])
    assert vocabulary.tokens == [*SPECIAL, "<2de>", "a"]
    assert vocabulary.encode([*SPECIAL, "a"]) == [UNK] * len(SPECIAL) + [len(SPECIAL) + 1]


def test_a_pair_that_differs_is_no_overlap_even_where_hashes_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    known, own = (
        [("a", "c"), ("b", "d"), ("", ""), ("", "e"), ("f", "")],
        [("a", "c"), ("a", "d"), ("", ""), ("", "e"), ("f", "")],
    )
    texts = {split: ParallelText(*map(list, zip(*pairs, strict=True))) for split, pairs in (("train", known), ("val", own))}
    assert count_overlap(texts) == {"val": 3}
    monkeypatch.setattr(tokenization, "hash", lambda _: 0, raising=False)
    assert count_overlap(texts) == {"val": 3}


@pytest.mark.parametrize("tokenizer", [WhitespaceTokenizer, partial(BPETokenizer, vocab_size=60)])
def test_large_splits_serve_the_same_without_keeping_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: Any
) -> None:
    """Tokens, words, gold links and what can be copied, of a split that is too large to keep them."""
    corpus = GrammarCorpus(
        train_size=300, val_size=20, test_size=20, test_long_size=20, test_deep_size=9, test_long_deep_size=9, open_names=0.3
    )
    kept = prepared(translation(tmp_path, data=corpus, tokenizer=tokenizer, min_frequency=3))
    kept.serve_copy_ids()
    kept.serve_links()
    for module in (ondemand, sys.modules["attnlab.tasks.translation.pairs"]):
        monkeypatch.setattr(module, "KEPT", 10)
    made = prepared(translation(tmp_path, data=corpus, tokenizer=tokenizer, min_frequency=3))
    made.serve_copy_ids()
    made.serve_links()
    own, other = kept.examples("train"), made.examples("train")
    assert not isinstance(other.tokens[0], list)
    assert list(other.tokens[0]) == list(own.tokens[0])
    assert list(other.words[1]) == list(own.words[1])
    assert other.source_tokens(7) == own.source_tokens(7)
    assert list(other.extensions or ()) == list(own.extensions or ())
    made_copies = list[int]()
    plain = CopyIds.of
    monkeypatch.setattr(CopyIds, "of", lambda *sides: [made_copies.append(1), plain(*sides)][1])
    for indices in ([3, 200, 5], list(range(290, 300))):
        one, two = own[indices], other[indices]
        assert len(made_copies) == 1, "for the sources and for the labels"
        made_copies.clear()
        for field in ("source", "target", "labels", "copy_ids", "links"):
            assert getattr(one, field).equal(getattr(two, field)), field
    source, target = (WORDS["spacy"](language) for language in kept.languages)
    words = (source.tokenize(own.text.source), target.tokenize(own.text.target))
    expected = link_tokens(None, own.text.alignments or [], words, own.tokens)
    assert expected.batch([4, 9], 30, 40).equal(other.links.batch([4, 9], 30, 40))  # type: ignore[union-attr]
    copies = CopyIds.of(own.tokens[0], own.tokens[1], kept.vocabularies[1])
    assert copies.extensions == list(other.extensions or ())


PEAK = """
import sys
from pathlib import Path
from attnlab.tasks.translation import TextFiles, VocabularyOptions, encoding, tokenization
from attnlab.tasks.translation.tokenization import write_corpus
from attnlab.tasks.translation.tokenizers import WhitespaceTokenizer

tokenization.SAMPLE, encoding.TOKENS = 2**20, 2**16
prefix, folder = sys.argv[1:]
corpus = TextFiles(prefix, prefix + "-val", {"test": prefix + "-val"}, source="en", target="de", alignments="align")
write_corpus(corpus, (WhitespaceTokenizer("en"), WhitespaceTokenizer("de")), VocabularyOptions(), 18, Path(folder))
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.exhaustive
def test_memory_does_not_grow_with_the_number_of_pairs(tmp_path: Path) -> None:
    """But for a few bytes a pair: of 200,000 more, whose text and links are 25 MB on disk, and far more as strings."""
    peaks = []
    for count in (50_000, 250_000):
        prefix, folder = tmp_path / f"train{count}", tmp_path / f"made{count}"
        sides = ([" ".join(f"{word}{n * k % 977}" for k in range(1, 8 + n % 13)) for n in range(count)] for word in "ab")
        write_pair(prefix, *("\n".join(side) + "\n" for side in sides))
        write_pair(Path(f"{prefix}-val"), "a b\n", "c d\n")
        (tmp_path / f"train{count}.align").write_text("0-0 1-1 2-2 3-3\n" * count)
        folder.mkdir()
        command = [sys.executable, "-c", PEAK, str(prefix), str(folder)]
        peaks.append(1024 * int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    text = sum(path.stat().st_size for path in (tmp_path / "made250000").glob("train.*.txt"))
    assert text > 30e6
    assert peaks[1] - peaks[0] < 64 * 200_000
