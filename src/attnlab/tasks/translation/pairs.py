"""Sentence pairs as examples."""

from collections.abc import Sequence
from functools import cached_property

from typing_extensions import override

from attnlab.data.examples import Examples
from attnlab.data.links import GoldLinks
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import END
from attnlab.tasks.translation.copying import CopyIds
from attnlab.tasks.translation.corpora import ParallelText
from attnlab.tasks.translation.links import link_tokens
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import Vocabulary


class SentencePairs(Examples):
    """The sentence pairs of one split.

    Args:
        name: of the split, for the log.
        text: the sentences.
        ids: of (source, target).
        tokenizers: of (source, target).

    Attributes:
        extensions: where tokens are copied, for each pair the types that extend the target vocabulary.
    """

    def __init__(
        self, name: str, text: ParallelText, ids: tuple[Ragged, Ragged], tokenizers: tuple[Tokenizer, Tokenizer]
    ) -> None:
        super().__init__(*ids)
        self.name = name
        self.text = text
        self.tokenizers = tokenizers
        self.extensions: list[list[str]] | None = None

    @cached_property
    def tokens(self) -> tuple[list[list[str]], list[list[str]]]:
        """The sentences as tokens; ids tell nothing of tokens outside the vocabularies."""
        return self.tokenizers[0].tokenize(self.text.source), self.tokenizers[1].tokenize(self.text.target)

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

    @override
    def gold_links(self) -> GoldLinks | None:
        if self.text.alignments is None:
            return None
        languages = (self.tokenizers[0].language, self.tokenizers[1].language)
        return link_tokens(self.name, self.text, self.tokens, languages)

    def extend(self, vocabulary: Vocabulary) -> None:
        """Let source tokens be copied: give those that the target vocabulary lacks ids past its end."""
        if self.extensions is None:
            copies = CopyIds.of(*self.tokens, vocabulary)
            self.copy_ids, self.labels, self.extensions = copies.source, copies.labels, copies.extensions
