"""What is said of a corpus before a model is trained on it."""

import logging
from itertools import islice

from attnlab.errors import UserError
from attnlab.tasks.translation.corpora import SIDES, ParallelText
from attnlab.tasks.translation.spacing import join_pieces
from attnlab.tasks.translation.tokenization import TokenizedCorpus

log = logging.getLogger(__name__)

JOINER = "@@"
"""What subword-nmt puts at the end of a piece of a word, unless it is told otherwise."""
LOOKED_AT = 1000
"""Lines of a side of a split, the first ones, that are looked at: a text that was split into pieces has pieces everywhere."""
MANY = 0.01
"""Share of lines with pieces that is no accident."""
ENOUGH = 20
"""Sentences with pieces whose links tell what they count."""


def inspect_corpus(corpus: TokenizedCorpus, joiner: str | None) -> None:
    """Warn of pairs that are in training too, and of pieces of words that nothing joins.

    Args:
        corpus: that a model is to be trained on.
        joiner: of its tokenizers.

    Raises:
        UserError: a joiner that ends no piece, or links that do not count the pieces.
    """
    for split, count in corpus.overlap.items():
        if count:
            size = len(corpus.text[split].source)
            told = "figures on them tell what was learned by heart"
            log.warning("%d of %d pairs of %s (%.1f %%) are in train too: %s", count, size, split, 100 * count / size, told)
    if joiner is None:
        _warn_of_pieces(corpus)
        return
    if not any(token.endswith(joiner) for vocabulary in corpus.vocabularies for token in vocabulary.tokens):
        raise UserError(f"joiner={joiner} of the tokenizer joins nothing, since no token ends with it: leave it out")
    for split, text in corpus.text.items():
        _check_links(split, text, joiner)


def _warn_of_pieces(corpus: TokenizedCorpus) -> None:
    """Warn, once, of a side of a split many of whose lines hold pieces of words."""
    for split, text in corpus.text.items():
        for side, lines in zip(SIDES, (text.source, text.target), strict=True):
            first = lines[:LOOKED_AT]
            split_lines = sum(join_pieces(line, JOINER) != line for line in first)
            if split_lines > MANY * len(first):
                log.warning(
                    "%d of the first %d lines of %s, %s, hold pieces of words that end with %s, and BLEU would be that of "
                    "pieces: choose the tokenizer whitespace with joiner=%s",
                    *(split_lines, len(first), split, side, JOINER, JOINER),
                )
                return


def _check_links(split: str, text: ParallelText, joiner: str) -> None:
    """Refuse links that were made before the words were split into pieces.

    Of most sentences the last item, a full stop, is linked. Links of many sentences with more pieces than words, none of which
    leads beyond the number of words, cannot count pieces.
    """
    if text.alignments is None:
        return
    within: list[bool] = []
    for gold, *lines in zip(islice(text.alignments, LOOKED_AT), text.source, text.target, strict=False):
        for line, places in zip(lines, zip(*gold.possible, strict=True), strict=False):
            words = len(join_pieces(line, joiner).split())
            if words < len(line.split()):
                within.append(max(places) < words)
    if len(within) >= ENOUGH and all(within):
        raise UserError(
            f"the links of {split} seem to count words: of {len(within)} sentences with more pieces than words, none has a "
            "link beyond the number of its words. Align the files as they are, in pieces, or leave alignments out"
        )
