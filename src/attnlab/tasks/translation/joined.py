"""The sentence pairs of a split in several target languages, one language after another."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.ondemand import OnDemand
from attnlab.data.ragged import Padded, RaggedView
from attnlab.tasks.translation.corpora import ParallelText
from attnlab.tasks.translation.pairs import SentencePairs
from attnlab.tasks.translation.tokenizers import Tokenizer

T = TypeVar("T")


class JoinedPairs(SentencePairs):
    """The union of the pairs (English, x) over the target languages; each source occurs once for every language.

    Args:
        name: of the split, for the log.
        parts: the pairs of each language, with the same vocabularies, none of them with known links.
    """

    def __init__(self, name: str, parts: Sequence[SentencePairs]) -> None:
        first = parts[0]
        text = ParallelText(_join([part.text.source for part in parts]), _join([part.text.target for part in parts]))
        super().__init__(name, text, first.ids, first.vocabularies, first.tokenizers)
        self.parts = list(parts)
        self.source = RaggedView.join([part.source for part in parts], [part.source.lengths for part in parts])
        self.target = RaggedView.join([part.target for part in parts], [part.target.lengths for part in parts])

    @cached_property
    def places(self) -> list[range]:
        """Where the pairs of each language stand."""
        ends = np.cumsum([len(part) for part in self.parts]).tolist()
        return [range(end - len(part), end) for end, part in zip(ends, self.parts, strict=True)]

    def _find(self, index: int) -> tuple[SentencePairs, int]:
        number = next(number for number, places in enumerate(self.places) if index in places)
        return self.parts[number], index - self.places[number].start

    @cached_property
    @override
    def tokens(self) -> tuple[Sequence[list[str]], Sequence[list[str]]]:
        return _join([part.tokens[0] for part in self.parts]), _join([part.tokens[1] for part in self.parts])

    @cached_property
    @override
    def words(self) -> tuple[Sequence[list[str]], Sequence[list[str]]]:
        return _join([part.words[0] for part in self.parts]), _join([part.words[1] for part in self.parts])

    @cached_property
    @override
    def lengths(self) -> NDArray[np.int64]:
        return np.concatenate([part.lengths for part in self.parts])

    @override
    def source_tokens(self, index: int) -> list[str]:
        part, own = self._find(index)
        return part.source_tokens(own)

    @override
    def target_tokenizer(self, index: int) -> Tokenizer:
        part, own = self._find(index)
        return part.target_tokenizer(own)

    @override
    def extend(self) -> None:
        if self.extensions is not None:
            return
        for part in self.parts:
            part.extend()
        self.copy_ids = self._join_padded([part.copy_ids for part in self.parts], [part.source.lengths for part in self.parts])
        self.labels = self._join_padded([part.labels for part in self.parts], [part.target.lengths for part in self.parts])
        self.extensions = _join([part.extensions or [] for part in self.parts])

    @staticmethod
    def _join_padded(parts: Sequence[Padded | None], lengths: Sequence[NDArray[np.int64]]) -> RaggedView:
        return RaggedView.join([part for part in parts if part is not None], lengths)


def _join(sides: Sequence[Sequence[T]]) -> Sequence[T]:
    """Return the items of several sequences one after another, none of them kept."""
    starts = np.cumsum([0, *map(len, sides)])
    return OnDemand(partial(_take, sides, starts), int(starts[-1]))


def _take(sides: Sequence[Sequence[T]], starts: NDArray[np.int64], indices: Sequence[int]) -> list[T]:
    parts = (np.searchsorted(starts, np.asarray(indices, dtype=np.int64), side="right") - 1).tolist()
    return [sides[part][index - int(starts[part])] for part, index in zip(parts, indices, strict=True)]
