"""The words of a corpus, aligned by a statistical aligner that has seen what its models have seen: the training pairs."""

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from attnlab.data.cache import StoredFolder
from attnlab.data.lines import LineWriter
from attnlab.data.pharaoh import Links, transpose
from attnlab.data.storage import ArrayWriter
from attnlab.errors import UserError
from attnlab.evaluation.aligner import DiagonalAligner
from attnlab.tasks.translation.corpora import SIDES
from attnlab.tasks.translation.vocabulary import Vocabulary

log = logging.getLogger(__name__)

Words = Sequence[Sequence[str]]
"""Of several sentences, in the case that they are written in."""

MOST = 2**17
"""Pairs that are learned from: of more every second one, every third, and so on."""
DIRECTIONS = ("forward", "reverse")


@dataclass(frozen=True)
class WordAligner:
    """Aligns words in both directions, whatever their case.

    Attributes:
        vocabularies: of (source, target).
        forward: links every target word to one source word or none.
        reverse: links every source word to one target word or none.
    """

    vocabularies: tuple[Vocabulary, Vocabulary]
    forward: DiagonalAligner
    reverse: DiagonalAligner

    @classmethod
    def train(cls, source: Words, target: Words) -> Self:
        """Learn from training pairs; see :data:`MOST`.

        Raises:
            UserError: no pair has a word on either side.
        """
        step = -(-len(source) // MOST) or 1
        sides = [[_fold(words) for words in side[::step]] for side in (source, target)]
        vocabularies = Vocabulary.build(sides[0]), Vocabulary.build(sides[1])
        sizes = len(vocabularies[0]), len(vocabularies[1])
        ids, others = (_encode(words, vocabulary) for words, vocabulary in zip(sides, vocabularies, strict=True))
        log.info("aligning the words of %d training pairs, for comparison", len(ids))
        try:
            forward, reverse = DiagonalAligner.train(ids, others, sizes), DiagonalAligner.train(others, ids, sizes[::-1])
        except ValueError as error:
            raise UserError(f"there is nothing to learn to align words from: {error}") from None
        return cls(vocabularies, forward, reverse)

    def link(self, source: Words, target: Words) -> list[tuple[Links, Links]]:
        """Link the words of sentence pairs.

        Returns:
            For each pair the links (source word, target word) of both directions.
        """
        sides = zip((source, target), self.vocabularies, strict=True)
        ids, others = (_encode(map(_fold, words), vocabulary) for words, vocabulary in sides)
        back = map(transpose, self.reverse.link(others, ids))
        return list(zip(self.forward.link(ids, others), back, strict=True))

    def write(self, folder: Path) -> None:
        """Write all of it into an empty folder."""
        for side, vocabulary in zip(SIDES, self.vocabularies, strict=True):
            with LineWriter(folder, side) as writer:
                writer.append(vocabulary.tokens)
        for name, aligner in zip(DIRECTIONS, (self.forward, self.reverse), strict=True):
            for part in ("keys", "translations"):
                values = getattr(aligner, part)
                with ArrayWriter(folder / f"{name}.{part}.npy", values.dtype.type) as writer:
                    writer.append(values)
        (folder / "index.json").write_text(json.dumps({"tensions": [self.forward.tension, self.reverse.tension]}))

    @classmethod
    def read(cls, folder: StoredFolder) -> Self:
        """Read what :meth:`write` wrote.

        Raises:
            Exception: whatever reading damaged files raises.
        """
        vocabularies = Vocabulary(list(folder.lines("source"))), Vocabulary(list(folder.lines("target")))
        sizes = len(vocabularies[0]), len(vocabularies[1])
        forward, reverse = (
            DiagonalAligner(folder.array(f"{name}.keys"), folder.array(f"{name}.translations"), tension, own)
            for name, tension, own in zip(DIRECTIONS, folder.json("index.json")["tensions"], (sizes, sizes[::-1]), strict=True)
        )
        return cls(vocabularies, forward, reverse)


def _fold(words: Iterable[str]) -> list[str]:
    """Return words without their case: at the beginning of a sentence it tells nothing, and a statistic has few of each."""
    return [word.casefold() for word in words]


def _encode(sentences: Iterable[Sequence[str]], vocabulary: Vocabulary) -> list[NDArray[np.int32]]:
    return [np.array(vocabulary.encode(words), dtype=np.int32) for words in sentences]
