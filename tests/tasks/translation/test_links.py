"""Word alignments as links between tokens."""

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from attnlab.data import Batch
from attnlab.data.pharaoh import Gold, parse_links
from attnlab.errors import UserError
from attnlab.tasks.translation import ParallelText, TextFiles, Translation
from attnlab.tasks.translation.grammar import GrammarCorpus
from attnlab.tasks.translation.links import WORDS, link_tokens, token_spans
from attnlab.tasks.translation.tokenizers import CharacterTokenizer, SpacyTokenizer, Tokenizer, WhitespaceTokenizer
from conftest import CONF, options
from sentences import prepared, served, translation, write_pair

ENGLISH, GERMAN = "Don't use the kitchen table!", "Benutze den Küchentisch nicht!"
SPACY = Gold.all_sure([(0, 3), (1, 3), (2, 0), (3, 1), (4, 2), (5, 2), (6, 4)])
WHITESPACE = Gold.all_sure([(0, 3), (1, 0), (2, 1), (3, 2), (4, 2)])


def tokenizer(name: str, language: str, sentences: list[str], **changes: object) -> Tokenizer:
    config = OmegaConf.merge(OmegaConf.load(CONF / "tokenizer" / f"{name}.yaml"), changes)
    made: Tokenizer = instantiate(config)(language)
    made.fit(sentences)
    return made


def words(text: ParallelText) -> tuple[list[list[str]], list[list[str]]]:
    split = WORDS[text.words]
    return split("en").tokenize(text.source), split("de").tokenize(text.target)


def weights(text: ParallelText, source: list[str], target: list[str]) -> torch.Tensor:
    """(target tokens + 1, source tokens + 1) of the only pair."""
    found = link_tokens("train", text.alignments or [], words(text), ([source], [target]))
    return found.batch([0], len(target) + 1, len(source) + 1)[0]


def linked(text: ParallelText, source: list[str], target: list[str]) -> list[tuple[str, str]]:
    """Aligned target tokens with the tokens that they are linked to; neighbours with the same links, and pieces, as one."""
    merged: list[tuple[list[str], list[int]]] = []
    for token, row in zip([*target, "END"], weights(text, source, target), strict=True):
        links = row.nonzero().flatten().tolist()
        if merged and merged[-1][1] == links:
            merged[-1][0].append(token)
        else:
            merged.append(([token], links))
    spelled = ("".join(tokens).replace("▁", "") for tokens, _ in merged)
    return [
        (s, "".join(source[i] for i in links).replace("▁", "")) for s, (_, links) in zip(spelled, merged, strict=True) if links
    ]


FINE = [("Benutze", "use"), ("den", "the"), ("Küchentisch", "kitchentable"), ("nicht", "Don't"), ("!", "!")]
COARSE = [("Benutze", "use"), ("den", "the"), ("Küchentisch", "kitchentable!"), ("nicht!", "Don't")]
MIXED = [*COARSE[:3], ("nicht!", "Don'ttable!")]

EXPECTED = {  # from links of spaCy's words, and from links of words at white space
    "bpe": (FINE, COARSE),
    "characters": (FINE, COARSE),
    "spacy": (FINE, COARSE),
    "unigram": (FINE, COARSE),
    "whitespace": (MIXED, COARSE),
}


@pytest.mark.parametrize("name", options("tokenizer"))
@pytest.mark.parametrize("lowercase", [False, True])
def test_every_tokenizer(name: str, lowercase: bool) -> None:
    changes = {"lowercase": lowercase, **({"vocab_size": 32} if name in ("bpe", "unigram") else {})}
    source, target = (
        tokenizer(name, language, [sentence], **changes).tokenize([sentence])[0]
        for language, sentence in (("en", ENGLISH), ("de", GERMAN))
    )
    texts = (
        ParallelText([ENGLISH], [GERMAN], [SPACY]),
        ParallelText([ENGLISH], [GERMAN], [WHITESPACE], words="whitespace"),
    )
    for text, expected in zip(texts, EXPECTED[name], strict=True):
        cased = [(t.lower(), s.lower()) for t, s in expected] if lowercase else expected
        assert linked(text, source, target) == cased


def test_rows_are_spread_evenly() -> None:
    text = ParallelText([ENGLISH], [GERMAN], [Gold.all_sure(WHITESPACE.sure - {(0, 3)})], words="whitespace")
    source = ["▁Don", "'t", "▁use", "▁the", "▁", "kit", "chen", "▁table", "!"]
    target = ["▁Be", "nutze", "▁den", "▁Küchen", "tisch", "▁nicht", "!"]
    quarter = [0, 0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25, 0]
    use, the, nothing = [0, 0, 1, *[0] * 7], [0, 0, 0, 1, *[0] * 6], [0] * 10
    assert weights(text, source, target).tolist() == [use, use, the, quarter, quarter, nothing, nothing, nothing]


def test_a_piece_over_two_words_has_the_links_of_both() -> None:
    text = ParallelText(["a b c"], ["x y z"], [Gold.all_sure([(0, 0), (1, 1), (2, 2)])], words="whitespace")
    assert weights(text, ["a", "bc"], ["xy", "z"]).tolist() == [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 0]]


def test_sentences_stand_in_the_order_asked_for_and_are_padded() -> None:
    text = ParallelText(
        ["a", "b c", ""],
        ["x y", "z", ""],
        [Gold.all_sure(pair) for pair in ([(0, 1)], [(0, 0), (1, 0)], [])],
        words="whitespace",
    )
    found = link_tokens("val", text.alignments or [], words(text), words(text))
    assert found.batch([2, 1, 0], 3, 3).tolist() == [
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0.5, 0.5, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [1, 0, 0], [0, 0, 0]],
    ]


def test_words_that_are_pieces_already() -> None:
    """Aligners are often run on text that is in pieces, where a mark of a space may stand alone."""
    text = ParallelText(["▁ a ▁b"], ["▁x ▁ y"], [Gold.all_sure([(0, 1), (1, 2), (2, 0)])], words="whitespace")
    assert weights(text, ["▁", "a", "▁b"], ["▁x", "▁", "y"])[:3, :3].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_words_of_links_end_at_ascii_white_space() -> None:
    """As in the aligners that number them: a no-break space is part of a word, which tokens end at."""
    gold = [Gold.all_sure([(0, 0), (1, 1), (2, 2)])]
    text = ParallelText(["in 10\u00a0000 cash"], ["in 10\u202f000 bar"], gold, words="whitespace")
    found = weights(text, ["in", "10", "000", "cash"], ["in", "10", "000", "bar"])
    assert found[:4, :4].tolist() == [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]


def test_a_word_without_a_letter_has_no_tokens() -> None:
    assert token_spans(["▁", "a", " ", "b"], ["▁", "A", "b"]) == [(1, 1), (1, 2), (2, 2), (2, 3)]
    text = ParallelText(["▁ a b"], ["x y"], [Gold.all_sure([(0, 0), (1, 1)])], words="whitespace")
    assert weights(text, ["a", "b"], ["x", "y"])[:2, :2].tolist() == [[0, 0], [1, 0]]


def test_tokens_that_do_not_spell_the_text_have_no_links(caplog: pytest.LogCaptureFixture) -> None:
    sides = ["İzmir is", "Rome is", "ΟΔΟΣ is"], ["İzmir ist", "Rom ist", "ΟΔΟΣ ist"]  # a lower-case "İ" is two characters
    text = ParallelText(*sides, [Gold.all_sure([(0, 0), (1, 1)])] * 3, words="whitespace")
    tokens = [CharacterTokenizer("en", lowercase=True).tokenize(side) for side in sides]
    found = link_tokens("train", text.alignments or [], words(text), (tokens[0], tokens[1]))
    assert "1 of 3 pairs of train have no links" in caplog.text
    assert [bool(links.any()) for links in found.batch([0, 1, 2], 20, 20)] == [False, True, True]
    caplog.clear()
    assert link_tokens("train", text.alignments or [], words(text), words(text)).batch([0], 4, 4).sum() == 2
    assert not caplog.text


Make = Callable[..., Translation]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    corpus = GrammarCorpus(
        train_size=200, val_size=20, test_size=20, test_long_size=20, test_deep_size=9, test_long_deep_size=9, open_names=0.3
    )
    return partial(translation, tmp_path, data=corpus)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", options("tokenizer"))
def test_pieces_merged_back_have_the_links_of_the_grammar(name: str, make: Make) -> None:
    config = OmegaConf.load(CONF / "tokenizer" / f"{name}.yaml")
    data = prepared(make(tokenizer=instantiate(config, **({"vocab_size": 200} if "vocab_size" in config else {}))))
    data.serve_links()
    text = data.examples("test_long").text
    batch = data.examples("test_long")[range(20)]
    assert batch.links is not None
    assert batch.links.shape == (20, batch.target.shape[1] - 1, batch.source.shape[1])
    torch.testing.assert_close(batch.links.sum(-1), (batch.links > 0).any(-1).float())
    assert text.alignments is not None
    tokenizers = data.tokenizers
    splitters = SpacyTokenizer("en"), SpacyTokenizer("de")
    for row, sentences in enumerate(zip(text.source, text.target, strict=True)):
        tokens = [t.tokenize([s])[0] for t, s in zip(tokenizers, sentences, strict=True)]
        owners = [
            owned(side, splitter.tokenize([s])[0]) for side, s, splitter in zip(tokens, sentences, splitters, strict=True)
        ]
        assert not batch.links[row, len(tokens[1]) :].any()
        linked = set(map(tuple, batch.links[row].nonzero().tolist()))
        gold = text.alignments[row].sure
        assert linked == {
            (t, s)
            for t, target_words in enumerate(owners[1])
            for s, source_words in enumerate(owners[0])
            if gold & {(i, j) for i in source_words for j in target_words}
        }


def owned(tokens: list[str], words: list[str]) -> list[set[int]]:
    """For each token the words that it shares a character with, found one character at a time."""
    owner = iter([i for i, word in enumerate(words) for _ in word])
    return [{next(owner) for character in token if character != "▁"} for token in tokens]


def same(one: Batch, other: Batch) -> bool:
    fields = ("source", "source_lengths", "target", "target_lengths", "indices")
    return all(torch.equal(getattr(one, field), getattr(other, field)) for field in fields)


def test_nothing_is_made_unless_asked_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    data, other = prepared(make(tokenizer=SpacyTokenizer)), prepared(make(tokenizer=SpacyTokenizer))
    other.serve_links()
    other.serve_copy_ids()
    pairs = list(zip(served(data).train_dataloader(), served(other).train_dataloader(), strict=True))
    assert all(same(*pair) for pair in pairs)
    assert all(plain.links is None and plain.copy_ids is None for plain, _ in pairs)
    assert all(full.links is not None and full.copy_ids is not None for _, full in pairs)

    def fail(*_: object) -> None:
        raise AssertionError("made for nothing")

    monkeypatch.setattr(SpacyTokenizer, "tokenize", fail)
    assert len(list(served(data).train_dataloader())) == len(
        list(served(other).train_dataloader())
    )  # the second made them once already


def test_workers_serve_the_same(make: Make) -> None:
    batches: list[list[Batch]] = []
    for workers in (0, 1):
        data = prepared(make(tokenizer=SpacyTokenizer, num_workers=workers))
        data.serve_links()
        data.serve_copy_ids()
        batches.append(list(served(data).train_dataloader()))
        dataset = pickle.loads(pickle.dumps(data.examples("train")))  # as where processes are spawned
        batches.append([dataset[batch.indices.tolist()] for batch in batches[-1]])
    for one, *others in zip(*batches, strict=True):
        for other in others:
            assert same(one, other)
            assert torch.equal(one.links, other.links)
            assert torch.equal(one.copy_ids, other.copy_ids)
            assert torch.equal(one.labels, other.labels)


def test_possible_links_stay_possible(make: Make, tmp_path: Path) -> None:
    """As in ``attnlab align --gold``: a file of links has one error rate."""
    write_pair(tmp_path / "text", "a b\nc\n", "x y\nz\n")
    (tmp_path / "text.align").write_text("0-0 1p1\n0-0\n")
    prefix = f"{tmp_path}/text"
    corpus = TextFiles(prefix, prefix, {"test": prefix}, source="en", target="de", alignments="align")
    for _ in range(2):  # made, and from the cache
        data = prepared(make(tokenizer=WhitespaceTokenizer, data=corpus))
        found = data.alignments(data.examples("test"), [0, 1], [None, None], 0)
        assert found == [(set(), parse_links("0-0 1p1")), (set(), parse_links("0-0"))]
    data.serve_links()
    links = data.examples("train")[[0]].links
    assert links is not None
    assert links[0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]], "possible links are learned too"


def test_splits_without_alignments(make: Make, tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        write_pair(tmp_path / split, "a b\nc d\n", "x y\nz\n")
    for split in ("train", "test"):
        (tmp_path / f"{split}.align").write_text("0-1 1-0\n0-0\n")
    files: dict[str, Any] = {"val": f"{tmp_path}/val", "tests": {"test": f"{tmp_path}/test"}, "source": "en", "target": "de"}
    corpus = TextFiles(f"{tmp_path}/train", **files, alignments="align")
    data = prepared(make(tokenizer=WhitespaceTokenizer, data=corpus))
    data.serve_links()
    assert data.examples("val")[[0, 1]].links is None
    for split in ("train", "test"):
        links = data.examples(split)[[1, 0]].links
        assert links is not None
        assert links.tolist() == [[[1, 0, 0], [0, 0, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 0], [0, 0, 0]]]
    moved = data.examples("train")[[0]].to(torch.device("meta"))
    assert moved.links is not None
    assert moved.links.device.type == "meta"

    data = prepared(make(tokenizer=WhitespaceTokenizer, data=TextFiles(f"{tmp_path}/train", **files)))
    with pytest.raises(UserError, match="TextFiles has no word alignments"):
        data.serve_links()
    assert data.examples("train").links is None
