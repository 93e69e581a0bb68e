"""Corpora after tokenization, as they are kept on disk."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from typing_extensions import override

from attnlab.data.pharaoh import Gold, parse_links
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, EOS, RESERVED
from attnlab.errors import UserError
from attnlab.tasks.translation.corpora import Corpus, ParallelText
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import Vocabulary

log = logging.getLogger(__name__)

SIDES = ("source", "target")


@dataclass(frozen=True)
class VocabularyOptions:
    """How vocabularies are made.

    Attributes:
        min_frequency: leave out types that are rarer in training.
        max_size: keep at most so many types, special ones not counted; None keeps all.
        shared: one vocabulary for both languages and, if it learns its pieces, one tokenizer.

    Raises:
        UserError: a number that is not positive.
    """

    min_frequency: int = 1
    max_size: int | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        for name in ("min_frequency", "max_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be 1 or more, not {value}")


@dataclass(frozen=True)
class TokenizedCorpus:
    """A corpus after tokenization.

    Attributes:
        text: sentences of each split, in the order of the ids.
        ids: of each split, (source, target); a source sentence ends with the end symbol, a target sentence has both.
        vocabularies: (source, target).
        tokenizer_states: what the tokenizers learned, (source, target).
    """

    text: dict[str, ParallelText]
    ids: dict[str, tuple[Ragged, Ragged]]
    vocabularies: tuple[Vocabulary, Vocabulary]
    tokenizer_states: tuple[dict[str, Any], dict[str, Any]]


def tokenize(
    corpus: Corpus, tokenizers: tuple[Tokenizer, Tokenizer], options: VocabularyOptions, max_length: int | None
) -> TokenizedCorpus:
    """Learn tokenizers and vocabularies from the training set, and tokenize every split.

    Args:
        corpus: the text.
        tokenizers: (source, target), not yet fitted.
        options: of the vocabularies.
        max_length: leave out training pairs with a side of more tokens; None keeps all.

    Raises:
        UserError: an empty split, sides or alignments of unequal length, a sentence of two lines, no training pair short
            enough, or no type frequent enough.
    """
    text = corpus.load()
    for split, pairs in text.items():
        if not pairs.source:
            raise UserError(f"the corpus has no sentence in {split}")
        _check_split(split, pairs)
    train = text["train"]
    if options.shared and tokenizers[0].learns_pieces:
        tokenizers[0].fit(train.source + train.target)
        tokenizers[1].load_state(tokenizers[0].state())
    else:
        tokenizers[0].fit(train.source)
        tokenizers[1].fit(train.target)
    tokens = {
        split: (tokenizers[0].tokenize(pairs.source), tokenizers[1].tokenize(pairs.target)) for split, pairs in text.items()
    }
    if max_length is not None:
        text["train"], tokens["train"] = _drop_long(train, tokens["train"], max_length)
    sides: list[Iterable[Sequence[str]]] = list(tokens["train"])
    if options.shared:
        sides = [[*tokens["train"][0], *tokens["train"][1]]] * 2
    source, target = (Vocabulary.build(side, min_frequency=options.min_frequency, max_size=options.max_size) for side in sides)
    for side, vocabulary in zip(SIDES, (source, target), strict=True):
        if len(vocabulary) == RESERVED:
            raise UserError(f"min_frequency={options.min_frequency} leaves no type of the {side} side: lower it")
    ids = {
        split: (encode_sources(source_tokens, source), encode_targets(target_tokens, target))
        for split, (source_tokens, target_tokens) in tokens.items()
    }
    return TokenizedCorpus(text, ids, (source, target), (tokenizers[0].state(), tokenizers[1].state()))


def count_overlap(text: Mapping[str, ParallelText]) -> dict[str, int]:
    """Count the pairs of each other split that stand in training too, word by word the same; empty ones do not count."""
    pairs = {split: [pair for pair in zip(own.source, own.target, strict=True) if any(pair)] for split, own in text.items()}
    train = pairs.pop("train")
    sought = {pair for own in pairs.values() for pair in own}
    found = sought.intersection(train)
    return {split: sum(pair in found for pair in own) for split, own in pairs.items()}


def _check_split(split: str, text: ParallelText) -> None:
    """Refuse what would shift one side against the other, or either against its lines on disk."""
    counts = [len(text.source), len(text.target), *(() if text.alignments is None else [len(text.alignments)])]
    if len(set(counts)) > 1:
        told = "source, target and alignments" if len(counts) > 2 else "source and target"
        raise UserError(f"{told} of {split} must be of one length, not {', '.join(map(str, counts))}")
    for side, sentences in zip(SIDES, (text.source, text.target), strict=True):
        for number, sentence in enumerate(sentences, 1):
            if "\n" in sentence:
                raise UserError(f"sentence {number} of {split}, {side}, holds a line feed: a sentence is one line")


def encode_sources(sentences: Iterable[Sequence[str]], vocabulary: Vocabulary) -> Ragged:
    """Return ids of tokenized sentences, each with the end symbol."""
    return Ragged.of_ids([*vocabulary.encode(sentence), EOS] for sentence in sentences)


def encode_targets(sentences: Iterable[Sequence[str]], vocabulary: Vocabulary) -> Ragged:
    """Return ids of tokenized sentences, each with start and end symbol."""
    return Ragged.of_ids([BOS, *vocabulary.encode(sentence), EOS] for sentence in sentences)


def _drop_long(
    train: ParallelText, tokens: tuple[list[list[str]], list[list[str]]], max_length: int
) -> tuple[ParallelText, tuple[list[list[str]], list[list[str]]]]:
    lengths = [max(len(s), len(t)) for s, t in zip(*tokens, strict=True)]
    kept = [index for index, length in enumerate(lengths) if length <= max_length]
    if not kept:
        raise UserError(f"max_length={max_length} leaves no training pair: raise it")
    log.info("left out %d of %d training pairs: longer than %d tokens", len(lengths) - len(kept), len(lengths), max_length)
    links = train.alignments and [train.alignments[i] for i in kept]
    source, target = ([side[i] for i in kept] for side in (train.source, train.target))
    short = ([tokens[0][i] for i in kept], [tokens[1][i] for i in kept])
    return replace(train, source=source, target=target, alignments=links), short


def write_corpus(corpus: TokenizedCorpus, folder: Path) -> None:
    """Write a tokenized corpus into an empty folder."""
    index = {
        "splits": list(corpus.text),
        "vocabularies": [vocabulary.tokens for vocabulary in corpus.vocabularies],
        "tokenizers": corpus.tokenizer_states,
        "alignments": {split: write_alignments(pairs.alignments) for split, pairs in corpus.text.items()},
        "words": {split: pairs.words for split, pairs in corpus.text.items()},
    }
    for split, pairs in corpus.text.items():
        for side, sentences, ids in zip(SIDES, (pairs.source, pairs.target), corpus.ids[split], strict=True):
            (folder / f"{split}.{side}.txt").write_bytes("\n".join(sentences).encode())
            np.save(folder / f"{split}.{side}.ids.npy", ids.values)
            np.save(folder / f"{split}.{side}.offsets.npy", ids.offsets)
    (folder / "index.json").write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")


def read_corpus(folder: Path) -> TokenizedCorpus:
    """Read what :func:`write_corpus` wrote; its ids stay on disk until they are used.

    Raises:
        Exception: whatever reading damaged files raises.
    """
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    text, ids = {}, {}
    for split in index["splits"]:
        source, target = ((folder / f"{split}.{side}.txt").read_bytes().decode().split("\n") for side in SIDES)
        lines = index["alignments"][split]
        text[split] = ParallelText(source, target, None if lines is None else StoredAlignments(lines), index["words"][split])
        arrays = [
            [np.load(folder / f"{split}.{side}.{part}.npy", mmap_mode="r") for part in ("ids", "offsets")] for side in SIDES
        ]
        ids[split] = (Ragged(*arrays[0]), Ragged(*arrays[1]))
    vocabularies, states = index["vocabularies"], index["tokenizers"]
    return TokenizedCorpus(text, ids, (Vocabulary(vocabularies[0]), Vocabulary(vocabularies[1])), (states[0], states[1]))


class StoredAlignments(Sequence[Gold]):
    """Alignments as they are kept, a line of links a pair, each read when it is asked for: few runs ask for the training set's.

    Args:
        lines: in the Pharaoh or the talp format.
    """

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._lines)

    def __eq__(self, other: object) -> bool:
        """Tell whether these are the links of another sequence."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> Gold: ...
    @overload
    def __getitem__(self, index: slice) -> "StoredAlignments": ...
    @override
    def __getitem__(self, index: int | slice) -> "Gold | StoredAlignments":
        """Return the links of a pair."""
        return StoredAlignments(self._lines[index]) if isinstance(index, slice) else parse_links(self._lines[index])


def write_alignments(alignments: Sequence[Gold] | None) -> list[str] | None:
    """Return a line of links a pair."""
    if alignments is None:
        return None
    return [" ".join(f"{i}{'-' if (i, j) in gold.sure else 'p'}{j}" for i, j in sorted(gold.possible)) for gold in alignments]
