"""Sentence pairs as examples."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.examples import Examples
from attnlab.data.links import BatchLinks, GoldLinks, LinksOnDemand
from attnlab.data.ondemand import KEPT, PART, OnDemand, on_demand
from attnlab.data.ragged import Ragged, RaggedOnDemand, RaggedView
from attnlab.data.symbols import END, UNK, UNKNOWN
from attnlab.tasks.translation.copying import CopyIds
from attnlab.tasks.translation.corpora import ParallelText
from attnlab.tasks.translation.links import WORDS, link_tokens
from attnlab.tasks.translation.spacing import is_unspaced
from attnlab.tasks.translation.targetlanguage import TargetLanguage
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import Vocabulary

T = TypeVar("T")


class SentencePairs(Examples):
    """The sentence pairs of one split.

    Args:
        name: of the split, for the log.
        text: the sentences.
        ids: of (source, target).
        vocabularies: that the ids are of.
        tokenizers: of (source, target).
        language: of the targets, where the model has several.
        unknown: of (source, target), the tokens of each sentence that the vocabularies lack, of which :attr:`tokens` are made.

    Attributes:
        ids: of (source, target), without a symbol of the language.
        extensions: where tokens are copied, for each pair the types that extend the target vocabulary.
    """

    def __init__(
        self,
        name: str,
        text: ParallelText,
        ids: tuple[Ragged, Ragged],
        vocabularies: tuple[Vocabulary, Vocabulary],
        tokenizers: tuple[Tokenizer, Tokenizer],
        language: TargetLanguage | None = None,
        unknown: tuple[Sequence[list[str]], Sequence[list[str]]] = ((), ()),
    ) -> None:
        super().__init__(*(ids if language is None else (language.mark_sources(ids[0]), language.mark_targets(ids[1]))))
        self.ids = ids
        self.language = language
        self.unknown = unknown
        self.facts = {} if language is None else {"language": language.code}
        self.name = name
        self.unit = "characters" if is_unspaced(tokenizers[0].language) else "words"
        self.text = text
        self.vocabularies = vocabularies
        self.tokenizers = tokenizers
        self.extensions: Sequence[list[str]] | None = None
        self._last: tuple[list[int], CopyIds] | None = None

    @cached_property
    def tokens(self) -> tuple[Sequence[list[str]], Sequence[list[str]]]:
        """The sentences as tokens, made of their ids without a tokenizer, which may take a second to load."""
        sides = zip(self.ids, self.vocabularies, self.unknown, strict=True)
        source, target = (on_demand(partial(_read_tokens, *side), len(self)) for side in sides)
        return source, target

    @cached_property
    def words(self) -> tuple[Sequence[list[str]], Sequence[list[str]]]:
        """The sentences as the words that alignments count; these are the tokens where their tokenizer splits so."""
        splitters = [WORDS[self.text.words](tokenizer.language) for tokenizer in self.tokenizers]
        source, target = (
            tokens if splitter.describe() == own.describe() else on_demand(partial(_split, splitter, side), len(self))
            for splitter, own, tokens, side in zip(splitters, self.tokenizers, self.tokens, self._sides, strict=True)
        )
        return source, target

    @property
    def _sides(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.text.source, self.text.target

    @override
    def source_tokens(self, index: int) -> list[str]:
        tokens = self.tokens[0][index]
        return [*(self.language.lead() if self.language and tokens else ()), *tokens, END]

    @override
    def target_tokens(self, index: int) -> list[str]:
        return [*self.tokens[1][index], END]

    def target_tokenizer(self, index: int) -> Tokenizer:
        """Return the tokenizer of an example's target."""
        return self.tokenizers[1]

    @property
    @override
    def sources(self) -> Sequence[str]:
        return self._texts[0]

    @property
    @override
    def references(self) -> Sequence[str]:
        return self._texts[1]

    @cached_property
    def _texts(self) -> tuple[Sequence[str], Sequence[str]]:
        """The sentences as they are measured and shown, the pieces of their words joined."""
        source, target = (
            side if tokenizer.joiner is None else on_demand(partial(_restore, tokenizer, side), len(self))
            for tokenizer, side in zip(self.tokenizers, self._sides, strict=True)
        )
        return source, target

    @cached_property
    @override
    def lengths(self) -> NDArray[np.int64]:
        """(pairs, 2): words of each side, at white space; characters where its language is written without spaces."""
        unspaced_sides = [is_unspaced(tokenizer.language) for tokenizer in self.tokenizers]
        sides = zip((self.sources, self.references), unspaced_sides, strict=True)
        counts = [[len("".join(line.split()) if unspaced else line.split()) for line in lines] for lines, unspaced in sides]
        return np.array(counts, dtype=np.int64).T

    @cached_property
    @override
    def blocks(self) -> NDArray[np.int64]:
        """Of pairs with one source: several translations of a sentence, into one language or into several."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(line, len(numbers)) for line in self.sources], dtype=np.int64)

    @override
    def gold_links(self) -> BatchLinks | None:
        if self.text.alignments is None:
            return None
        if len(self) <= KEPT:
            return self._link(self.name, range(len(self)))
        self._link(f"the beginning of {self.name}", range(min(PART, len(self))))  # of whose links the log tells
        return LinksOnDemand(partial(self._link, None))

    def _link(self, name: str | None, indices: Sequence[int]) -> GoldLinks:
        assert self.text.alignments is not None
        words, tokens = ((_choose(source, indices), _choose(target, indices)) for source, target in (self.words, self.tokens))
        return link_tokens(name, _choose(self.text.alignments, indices), words, tokens)

    def extend(self) -> None:
        """Let source tokens be copied: give those that the target vocabulary lacks ids past its end."""
        if self.extensions is not None:
            return
        if len(self) > KEPT:
            self.copy_ids = RaggedOnDemand(self._copy_sources)
            self.labels = RaggedOnDemand(partial(self._copy, "labels"))
            self.extensions = OnDemand(partial(self._copy, "extensions"), len(self))
        else:
            copies = self._make_copies(range(len(self)))
            self.copy_ids, self.labels, self.extensions = self._mark(copies.source), copies.labels, copies.extensions

    def _copy_sources(self, indices: Sequence[int]) -> Ragged | RaggedView:
        return self._mark(self._copies(indices).source)

    def _mark(self, copies: Ragged) -> Ragged | RaggedView:
        return copies if self.language is None else self.language.mark_copies(copies)

    def _copy(self, name: str, indices: Sequence[int]) -> Any:
        return getattr(self._copies(indices), name)

    def _copies(self, indices: Sequence[int]) -> CopyIds:
        """Return the copies of some pairs; the last ones are kept, since a batch asks for its sources and for its labels."""
        if self._last is None or self._last[0] != [*indices]:
            self._last = [*indices], self._make_copies(indices)
        return self._last[1]

    def _make_copies(self, indices: Sequence[int]) -> CopyIds:
        source, target = (_choose(side, indices) for side in self.tokens)
        return CopyIds.of(source, target, self.vocabularies[1])


def _choose(items: Sequence[T], indices: Sequence[int]) -> Sequence[T]:
    if indices == range(len(items)):
        return items
    return items.take(indices) if isinstance(items, OnDemand) else [items[index] for index in indices]


def _read_tokens(ids: Ragged, vocabulary: Vocabulary, unknown: Sequence[list[str]], indices: Sequence[int]) -> list[list[str]]:
    tokens = []
    for index in indices:
        own = ids[index].tolist()
        known = vocabulary.decode(own)
        if UNK in own:
            spelled = iter(unknown[index])
            known = [next(spelled) if token == UNKNOWN else token for token in known]
        tokens.append(known)
    return tokens


def _split(splitter: Tokenizer, sentences: Sequence[str], indices: Sequence[int]) -> list[list[str]]:
    return splitter.tokenize([sentences[index] for index in indices])


def _restore(tokenizer: Tokenizer, sentences: Sequence[str], indices: Sequence[int]) -> list[str]:
    return [tokenizer.restore(sentences[index]) for index in indices]
