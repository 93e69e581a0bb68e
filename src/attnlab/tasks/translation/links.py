"""Known alignments, from words to the tokens of whatever tokenizer there is."""

import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from typing_extensions import override

from attnlab.data.links import GoldLinks
from attnlab.data.pharaoh import Gold, split_words
from attnlab.tasks.translation.languages import language_symbol
from attnlab.tasks.translation.tokenizers import SpacyTokenizer, Tokenizer, WhitespaceTokenizer

log = logging.getLogger(__name__)


class LinkedWords(WhitespaceTokenizer):
    """Words as aligners count them; see :func:`attnlab.data.pharaoh.split_words`."""

    @override
    def _tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return list(map(split_words, sentences))


WORDS: dict[str, Callable[[str], Tokenizer]] = {"spacy": SpacyTokenizer, "whitespace": LinkedWords}
"""What splits a text into the words that its alignments count."""

SYMBOL = re.compile(language_symbol(r"\S+"))


def link_tokens(
    split: str | None,
    alignments: Sequence[Gold],
    words: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]],
    tokens: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]],
) -> GoldLinks:
    """Link tokens that overlap linked words, whether the link is sure or possible.

    A pair whose tokens do not spell its text, as when lowering the case changed a length, has no links; the log tells how many
    there are.

    Args:
        split: name, for the log; None tells it nothing.
        alignments: of the words of each pair.
        words: of (source, target), sentence by sentence.
        tokens: likewise.
    """
    sources, targets = (map(token_spans, *side) for side in zip(words, tokens, strict=True))
    links: list[list[tuple[int, int, int, int]]] = []
    misspelt = 0
    for gold, source, target in zip(alignments, sources, targets, strict=True):
        if source is None or target is None:
            misspelt += 1
            links.append([])
        else:
            links.append([(*target[j], *source[i]) for i, j in sorted(gold.possible)])
    if misspelt and split is not None:
        log.warning("%d of %d pairs of %s have no links: their tokens do not spell the text", misspelt, len(links), split)
    return GoldLinks.of(links)


def token_spans(words: Sequence[str], tokens: Sequence[str], joiner: str | None = None) -> list[tuple[int, int]] | None:
    """Find the tokens that share a character with each word; before them a symbol of the target language may stand.

    Args:
        words: of a sentence.
        tokens: of the same sentence.
        joiner: what ends a token that is joined to the next one, but is no part of the words.

    Returns:
        For each word the positions of the first token and after the last; None if words and tokens spell different text.
    """
    if words == tokens:  # not only faster: words may be pieces already, and some of these nothing but "▁"
        return [(position, position + 1) for position in range(len(words))]
    spelled, pieces = [_letters(word) for word in words], [_letters(token.removesuffix(joiner or "")) for token in tokens]
    text, other = "".join(spelled), "".join(pieces)
    if len(text) != len(other) or text.casefold() != other.casefold():
        if not (tokens and SYMBOL.fullmatch(tokens[0])):
            return None
        spans = token_spans(words, tokens[1:], joiner)
        return None if spans is None else [(start + 1, end + 1) for start, end in spans]
    ends = list(accumulate(map(len, pieces)))
    bounds = pairwise(accumulate(map(len, spelled), initial=0))
    found = ((bisect_right(ends, start), bisect_left(ends, end) + (start < end)) for start, end in bounds)
    return [(first, max(first, last)) for first, last in found]  # of a word that is nothing but white space none


def _letters(token: str) -> str:
    """Return a token without white space, nor what stands for it."""
    return "".join(token.replace("▁", " ").split())
