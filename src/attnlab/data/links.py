"""Known alignments, from words to the tokens of whatever tokenizer there is."""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnlab.tasks.translation.corpora import ParallelText
from attnlab.tasks.translation.tokenizers import SpacyTokenizer, Tokenizer, WhitespaceTokenizer

log = logging.getLogger(__name__)

WORDS: dict[str, Callable[[str], Tokenizer]] = {"spacy": SpacyTokenizer, "whitespace": WhitespaceTokenizer}
"""What splits a text into the words that its alignments count."""


@dataclass(frozen=True)
class TokenLinks:
    """The token links of one split, as flat arrays.

    Attributes:
        blocks: (word links, 4), the tokens of the two words: positions of the first and after the last in the target sentence,
            then in the source sentence; special symbols are not counted.
        offsets: where the links of each sentence pair start, and at last the end.
    """

    blocks: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def find(
        cls,
        split: str,
        text: ParallelText,
        tokens: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]],
        languages: tuple[str, str],
    ) -> "TokenLinks":
        """Link tokens that overlap linked words.

        A pair whose tokens do not spell its text, as when lowering the case changed a length, has no links; the log tells
        how many there are.

        Args:
            split: name, for the log.
            text: sentences with alignments of their words.
            tokens: of (source, target), sentence by sentence.
            languages: codes of source and target.
        """
        assert text.alignments is not None
        tokenizer = WORDS[text.words]
        words = [tokenizer(code).tokenize(side) for code, side in zip(languages, (text.source, text.target), strict=True)]
        sources, targets = (map(runs, *side) for side in zip(words, tokens, strict=True))
        found: list[list[tuple[int, int, int, int]]] = []
        misspelt = 0
        for alignment, source, target in zip(text.alignments, sources, targets, strict=True):
            if source is None or target is None:
                misspelt += 1
                found.append([])
            else:
                found.append([(*target[j], *source[i]) for i, j in alignment])
        if misspelt:
            log.warning("%d of %d pairs of %s have no links: their tokens do not spell the text", misspelt, len(found), split)
        blocks = np.array(list(chain.from_iterable(found)), dtype=np.int32).reshape(-1, 4)
        return cls(blocks, np.cumsum([0, *map(len, found)], dtype=np.int64))

    def batch(self, indices: Sequence[int], target_len: int, source_len: int) -> Tensor:
        """Return what attention should be at some sentence pairs (Liu et al. 2016, Mi et al. 2016).

        The row of a token is spread evenly over the source tokens that it is linked to; the row of a token without links, of
        the end symbol and of padding is zero.

        Args:
            indices: positions of the pairs in their split.
            target_len: tokens to predict, of the longest target sentence: its start symbol is none.
            source_len: of the longest source sentence.

        Returns:
            (batch, target_len, source_len); row t is about the t-th token to predict.
        """
        linked = np.zeros((len(indices), target_len, source_len), dtype=np.float32)
        for row, index in enumerate(indices):
            for first, end, source_first, source_end in self.blocks[self.offsets[index] : self.offsets[index + 1]].tolist():
                linked[row, first:end, source_first:source_end] = 1.0
        return torch.from_numpy(linked / linked.sum(-1, keepdims=True).clip(min=1.0))


def runs(words: Sequence[str], tokens: Sequence[str]) -> list[tuple[int, int]] | None:
    """Find the tokens that share a character with each word.

    Returns:
        For each word the positions of the first token and after the last; None if words and tokens spell different text.
    """
    if words == tokens:  # not only faster: words may be pieces already, and some of these nothing but "▁"
        return [(position, position + 1) for position in range(len(words))]
    spelled, pieces = [_letters(word) for word in words], [_letters(token) for token in tokens]
    text, other = "".join(spelled), "".join(pieces)
    if len(text) != len(other) or text.casefold() != other.casefold():
        return None
    ends = list(accumulate(map(len, pieces)))
    bounds = pairwise(accumulate(map(len, spelled), initial=0))
    return [(bisect_right(ends, start), bisect_left(ends, end) + (start < end)) for start, end in bounds]


def _letters(token: str) -> str:
    """Return a token without white space, nor what stands for it."""
    return "".join(token.replace("▁", " ").split())
