"""What a parallel corpus is, and how text files are read."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from attnlab.data.files import decode_lines, read_bytes
from attnlab.data.pharaoh import Gold, check_inside, parse_links
from attnlab.errors import UserError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ParallelText:
    """One split of a parallel corpus.

    Attributes:
        source: sentences, natural text.
        target: their translations, in the same order.
        alignments: known links (source word, target word) of each pair, counted from 0, or None.
        words: what they link: what spaCy's tokenizer makes of the text, or what stands between white space.
    """

    source: list[str]
    target: list[str]
    alignments: Sequence[Gold] | None = None
    words: Literal["spacy", "whitespace"] = "spacy"


class Corpus(ABC):
    """A parallel corpus with the splits "train", "val" and any number of test sets.

    Attributes:
        languages: codes of the source and the target language.
        test_names: names of the test sets.
    """

    languages: tuple[str, str]
    test_names: tuple[str, ...]

    @staticmethod
    def name_tests(names: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the test sets.

        Raises:
            UserError: no name, one twice, or that of another split.
        """
        found = tuple(names)
        if not found or len({"train", "val", *found}) < len(found) + 2:
            raise UserError("tests names one test set or more, none of them twice, train or val")
        return found

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that decides the corpus' content: files and options, not paths."""

    def place(self, split: str, index: int) -> str:
        """Say from which line of which file a pair comes; empty where that is not known."""
        return ""

    @abstractmethod
    def load(self) -> dict[str, ParallelText]:
        """Return the splits by name.

        Raises:
            UserError: a file that is missing or damaged, or options that cannot be met.
        """


def read_pair(source: Path, target: Path, *, drop_empty: bool, alignments: Path | None = None) -> ParallelText:
    """Read two line-aligned files.

    Args:
        source: sentences, one a line.
        target: their translations.
        drop_empty: leave out pairs with an empty side, as a training set should; a test set keeps them, so that line numbers
            stay those of the files.
        alignments: links between their words, one sentence pair a line; see :func:`attnlab.data.pharaoh.parse_links`.

    Raises:
        UserError: a file that is damaged or empty, files of unequal length, or a link between words that are not there.
    """
    sides = [decode_lines(read_bytes(path), path) for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{source} has {len(sides[0])} lines but {target} has {len(sides[1])}: each line must translate its counterpart"
        )
    kept = [index for index, pair in enumerate(zip(*sides, strict=True)) if all(pair) or not drop_empty]
    if len(kept) < len(sides[0]):
        log.info("left out %d of %d pairs of %s: a side is empty", len(sides[0]) - len(kept), len(sides[0]), source)
    text = ParallelText([sides[0][index] for index in kept], [sides[1][index] for index in kept])
    if alignments is None:
        return text
    lines = decode_lines(read_bytes(alignments), alignments)
    if len(lines) != len(sides[0]):
        raise UserError(
            f"{alignments} has {len(lines)} lines but {source} has {len(sides[0])}: each line must align its counterparts"
        )
    links = [
        _read_alignment(line, pair, f"{alignments}, line {number}")
        for number, (line, *pair) in enumerate(zip(lines, *sides, strict=True), start=1)
    ]
    return replace(text, alignments=[links[index] for index in kept], words="whitespace")


def _read_alignment(line: str, pair: Sequence[str], place: str) -> Gold:
    """Read links between words at white space."""
    gold = parse_links(line, place=place)
    source, target = (len(sentence.split()) for sentence in pair)
    check_inside(gold.possible, source, target, place=place)
    return gold
