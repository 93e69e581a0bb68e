"""Sentence pairs as examples."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.examples import Examples
from attnlab.data.links import GoldLinks
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import END, UNK
from attnlab.tasks.translation.copying import CopyIds
from attnlab.tasks.translation.corpora import ParallelText
from attnlab.tasks.translation.links import WORDS, link_tokens
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import Vocabulary

UNSPACED = frozenset({"bo", "ja", "km", "lo", "my", "th", "zh"})
"""Languages that are written without spaces between words."""


class SentencePairs(Examples):
    """The sentence pairs of one split.

    Args:
        name: of the split, for the log.
        text: the sentences.
        ids: of (source, target).
        vocabularies: that the ids are of.
        tokenizers: of (source, target).

    Attributes:
        extensions: where tokens are copied, for each pair the types that extend the target vocabulary.
    """

    def __init__(
        self,
        name: str,
        text: ParallelText,
        ids: tuple[Ragged, Ragged],
        vocabularies: tuple[Vocabulary, Vocabulary],
        tokenizers: tuple[Tokenizer, Tokenizer],
    ) -> None:
        super().__init__(*ids)
        self.name = name
        self.unit = "characters" if _is_unspaced(tokenizers[0]) else "words"
        self.text = text
        self.vocabularies = vocabularies
        self.tokenizers = tokenizers
        self.extensions: list[list[str]] | None = None

    @cached_property
    def tokens(self) -> tuple[list[list[str]], list[list[str]]]:
        """The sentences as tokens: those that the ids name, but of a sentence with an unknown one what its tokenizer makes."""
        source, target = map(_read_tokens, (self.source, self.target), self.vocabularies, self.tokenizers, self._sides)
        return source, target

    @cached_property
    def words(self) -> tuple[list[list[str]], list[list[str]]]:
        """The sentences as the words that alignments count; these are the tokens where their tokenizer splits so."""
        splitters = [WORDS[self.text.words](tokenizer.language) for tokenizer in self.tokenizers]
        source, target = (
            tokens if splitter.describe() == own.describe() else splitter.tokenize(side)
            for splitter, own, tokens, side in zip(splitters, self.tokenizers, self.tokens, self._sides, strict=True)
        )
        return source, target

    @property
    def _sides(self) -> tuple[list[str], list[str]]:
        return self.text.source, self.text.target

    @override
    def source_tokens(self, index: int) -> list[str]:
        return [*self.tokens[0][index], END]

    @override
    def target_tokens(self, index: int) -> list[str]:
        return [*self.tokens[1][index], END]

    @property
    @override
    def sources(self) -> Sequence[str]:
        return self.text.source

    @property
    @override
    def references(self) -> Sequence[str]:
        return self.text.target

    @cached_property
    @override
    def lengths(self) -> NDArray[np.int64]:
        """(pairs, 2): words of each side, at white space; characters where its language is written without spaces."""
        sides = zip((self.sources, self.references), map(_is_unspaced, self.tokenizers), strict=True)
        counts = [[len("".join(line.split()) if unspaced else line.split()) for line in lines] for lines, unspaced in sides]
        return np.array(counts, dtype=np.int64).T

    @override
    def gold_links(self) -> GoldLinks | None:
        if self.text.alignments is None:
            return None
        return link_tokens(self.name, self.text.alignments, self.words, self.tokens)

    def extend(self) -> None:
        """Let source tokens be copied: give those that the target vocabulary lacks ids past its end."""
        if self.extensions is None:
            copies = CopyIds.of(*self.tokens, self.vocabularies[1])
            self.copy_ids, self.labels, self.extensions = copies.source, copies.labels, copies.extensions


def _read_tokens(ids: Ragged, vocabulary: Vocabulary, tokenizer: Tokenizer, sentences: Sequence[str]) -> list[list[str]]:
    values, bounds = ids.values.tolist(), ids.offsets.tolist()
    each = [values[start:end] for start, end in pairwise(bounds)]
    unknown = [index for index, own in enumerate(each) if UNK in own]
    tokens = [vocabulary.decode(own) for own in each]
    for index, own in zip(unknown, tokenizer.tokenize([sentences[index] for index in unknown]), strict=True):
        tokens[index] = own
    return tokens


def _is_unspaced(tokenizer: Tokenizer) -> bool:
    return tokenizer.language.partition("-")[0] in UNSPACED
