"""What a parallel corpus is, and how text files are read."""

import hashlib
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from typing_extensions import override

from attnlab.data.contents import hash_content
from attnlab.data.files import LineReader, blank_file
from attnlab.data.pharaoh import BLANKS, Gold, check_inside, parse_links, split_words
from attnlab.errors import UserError
from attnlab.tasks.translation.annotations import Annotation
from attnlab.tasks.translation.languages import LanguageToken

log = logging.getLogger(__name__)

Words = Literal["spacy", "whitespace"]
"""What alignments link: what spaCy's tokenizer makes of the text, or what stands between white space."""
SIDES = ("source", "target")


class PairStream(Protocol):
    """One split of a parallel corpus, read pair by pair."""

    @property
    def words(self) -> Words:
        """What the links are between."""

    @property
    def is_aligned(self) -> bool:
        """Whether the links of each pair are known."""

    @property
    def annotations(self) -> Sequence[Sequence[Annotation]] | None:
        """What the target of each pair must show, where that is known; no corpus that is read pair by pair knows it."""

    def pairs(self) -> Iterator[tuple[str, str, Gold | None]]:
        """Yield the source, the target and the links of each pair."""


@dataclass(frozen=True)
class ParallelText:
    """One split of a parallel corpus.

    Attributes:
        source: sentences, natural text.
        target: their translations, in the same order.
        alignments: known links (source word, target word) of each pair, counted from 0, or None.
        words: what they link; see :data:`Words`.
        annotations: what a translation of each pair must show of which phenomenon, or None.
    """

    source: Sequence[str]
    target: Sequence[str]
    alignments: Sequence[Gold] | None = None
    words: Words = "spacy"
    annotations: Sequence[Sequence[Annotation]] | None = None

    @classmethod
    def collect(cls, stream: PairStream) -> "ParallelText":
        """Return a split that is held in memory."""
        if isinstance(stream, ParallelText):
            return stream
        source, target, links = [], [], []
        for pair in stream.pairs():
            source.append(pair[0])
            target.append(pair[1])
            if pair[2] is not None:
                links.append(pair[2])
        return cls(source, target, links if stream.is_aligned else None, stream.words, stream.annotations)

    def select(self, places: Sequence[int]) -> "ParallelText":
        """Return some of the pairs."""
        source, target = ([side[place] for place in places] for side in (self.source, self.target))
        links = self.alignments and [self.alignments[place] for place in places]
        notes = self.annotations and [self.annotations[place] for place in places]
        return ParallelText(source, target, links, self.words, notes)

    @property
    def is_aligned(self) -> bool:
        """Whether the links of each pair are known."""
        return self.alignments is not None

    def pairs(self) -> Iterator[tuple[str, str, Gold | None]]:
        """Yield the source, the target and the links of each pair."""
        links = [None] * len(self.source) if self.alignments is None else self.alignments
        yield from zip(self.source, self.target, links, strict=True)


class Corpus(ABC):
    """A parallel corpus with the splits "train", "val" and any number of test sets.

    Attributes:
        languages: codes of the source language and of the target language, or of each target language.
        test_names: names of the test sets.
        language_token: where the target language is told, if there are several.
        may_link_words: whether a split may come with links between the words that spaCy makes of its text.
    """

    may_link_words: ClassVar[bool] = True
    languages: tuple[str, ...]
    test_names: tuple[str, ...]
    language_token: LanguageToken = "source"

    @property
    def parts(self) -> Mapping[str, Mapping[str, str]]:
        """The splits; of each, by target language, the name under which :meth:`open` has its pairs."""
        return {split: {self.languages[1]: split} for split in ("train", "val", *self.test_names)}

    @property
    def part_languages(self) -> dict[str, str]:
        """The target language of everything that :meth:`open` has."""
        return {part: code for own in self.parts.values() for code, part in own.items()}

    @staticmethod
    def name_tests(names: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the test sets.

        Raises:
            UserError: no name, one twice, that of another split, or one that cannot be part of a file's name.
        """
        found = tuple(names)
        for name in found:
            if not re.fullmatch(r"\w[\w.-]*", name):
                raise UserError(f"tests: {name!r} names files: take letters, digits and any of _ . -")
            if found.count(name) > 1 or name in ("train", "val"):
                raise UserError(f"tests: {name!r} is the name of another set: each has one of its own")
        if not found:
            raise UserError("tests is empty: name one test set or more")
        return found

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that decides the corpus' content: files and options, not paths."""

    def place(self, split: str, index: int) -> str:
        """Say from which line of which file a pair comes; empty where that is not known."""
        return ""

    @abstractmethod
    def load(self) -> dict[str, ParallelText]:
        """Return the splits by name, held in memory.

        Raises:
            UserError: a file that is missing or damaged, or options that cannot be met.
        """

    def open(self) -> Mapping[str, PairStream]:
        """Return the splits by name, to be read pair by pair; those of :meth:`load` where nothing else is known.

        Raises:
            UserError: as from :meth:`load`; also from reading, and then also sides or alignments of unequal length, or a
                sentence of two lines.
        """
        texts = self.load()
        for split, text in texts.items():
            _check_split(split, text)
        return texts


class FileCorpus(Corpus):
    """A corpus of line-aligned files, which are read pair by pair; with several target languages their pairs are joined.

    Args:
        source: code of the source language.
        target: code of the target language, or a list of such codes.
        tests: names of test sets.
        language_token: where the target language is told, if there are several; see :data:`LanguageToken`.

    Raises:
        UserError: no test set, or one with the name of another split or division; no target language, one twice, or one whose
            code cannot be part of a symbol; a ``language_token`` that is unknown, or without effect.
    """

    kind: ClassVar[str]
    may_link_words = False  # files link what stands between white space

    def __init__(
        self, source: str, target: str | Sequence[str], tests: Iterable[str], language_token: LanguageToken = "source"
    ) -> None:
        targets = (target,) if isinstance(target, str) else tuple(target)
        if not targets or len({*targets}) < len(targets):
            raise UserError(f"target names one language or several, each once, not [{','.join(targets)}]")
        if len(targets) == 1 and language_token != "source":
            raise UserError(
                f"one target language is told nowhere, so that language_token={language_token} would have no effect: leave it "
                "out, or name several languages as target"
            )
        if len(targets) > 1 and (odd := next((code for code in targets if not re.fullmatch(r"[\w-]+", code)), None)):
            raise UserError(f"target: of several languages each has a code of letters and digits, such as fr, not {odd!r}")
        self.languages = (source, *targets)
        self.language_token = language_token
        self.test_names = self.name_tests(tests)
        divisions = {f"{split}_{code}" for split in ("train", "val", *self.test_names) for code in targets}
        if len(targets) > 1 and (taken := sorted(divisions & {*self.test_names})):
            raise UserError(f"tests: {taken[0]} is what a division by language is called: choose another name")

    @override
    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"{self.kind} {self.languages} {self.test_names}".encode())
        for split, parts in self.parts.items():
            if len(parts) < len(self.languages) - 1:
                digest.update(f"{split} in {[*parts]}".encode())
            for language in (self.languages[0], *parts):
                digest.update(hash_content(self.file(split, language)))
            if links := self.links(split):
                digest.update(f"alignments of {split}".encode() + hash_content(links))
        return digest.hexdigest()

    @abstractmethod
    def file(self, split: str, language: str) -> Path:
        """Return the file of a split in one language.

        Raises:
            UserError: it is missing.
        """

    def links(self, split: str) -> Path | None:
        """Return the file of a split's word alignments; None where there is none."""
        return None

    def files(self, split: str, language: str) -> "PairFiles":
        """Return the files of a split in one target language."""
        return PairFiles(self.file(split, self.languages[0]), self.file(split, language), split == "train", self.links(split))

    @abstractmethod
    def missing(self, split: str, language: str) -> str:
        """Return the file that a split lacks in a target language; empty where it lacks none."""

    @cached_property
    @override
    def parts(self) -> Mapping[str, Mapping[str, str]]:
        _, *targets = self.languages
        if len(targets) == 1:
            return super().parts
        found = {}
        for split in ("train", "val", *self.test_names):
            lacking = {code: self.missing(split, code) for code in targets} if split in self.test_names else {}
            own = [code for code in targets if not lacking.get(code)] or targets
            if len(own) < len(targets):
                _warn_once(
                    f"no file {', '.join(filter(None, lacking.values()))}: {split} is measured in {', '.join(own)} alone"
                )
            found[split] = {code: f"{split}_{code}" for code in own}
        return found

    def origin(self, part: str) -> tuple[str, str]:
        """Return the split and the target language of what :meth:`open` has under a name."""
        return next((split, code) for split, own in self.parts.items() for code, name in own.items() if name == part)

    @override
    def load(self) -> dict[str, ParallelText]:
        return {split: ParallelText.collect(files) for split, files in self.open().items()}

    @override
    def open(self) -> Mapping[str, "PairFiles"]:
        return {part: self.files(split, code) for split, own in self.parts.items() for code, part in own.items()}


@cache
def _warn_once(message: str) -> None:
    """Warn, but not again where a process makes the same corpus many times, as for the runs of a study."""
    log.warning(message)


@dataclass(frozen=True)
class PairFiles:
    """Two line-aligned files.

    Attributes:
        source: sentences, one a line.
        target: their translations.
        drop_empty: leave out pairs with an empty side, as a training set should; a test set keeps them, so that line numbers
            stay those of the files.
        alignments: links between their words, one sentence pair a line; see :func:`attnlab.data.pharaoh.parse_links`.
    """

    source: Path
    target: Path
    drop_empty: bool
    alignments: Path | None = None

    @property
    def words(self) -> Words:
        """What the alignments link."""
        return "whitespace" if self.alignments else "spacy"

    @property
    def is_aligned(self) -> bool:
        """Whether there are alignments."""
        return self.alignments is not None

    @property
    def annotations(self) -> None:
        """Nothing is known of phenomena."""
        return None

    def pairs(self) -> Iterator[tuple[str, str, Gold | None]]:
        """Yield the source, the target and the links of each pair.

        Raises:
            UserError: a file that is damaged or empty, files of unequal length, or a link between words that are not there.
        """
        if self.source == self.target:
            _warn_once(f"{self.source} is both source and target: what is learned from it is to copy")
        blanks = BLANKS if self.alignments else None  # a no-break space is a word to aligners
        readers = [LineReader(path, blanks) for path in (self.source, self.target, self.alignments) if path]
        left_out = 0
        for lines in zip_longest(*readers):  # to the end of each: the message tells how long it is
            if None in lines:
                continue
            source, target, *links = lines
            gold = self._read_links(links[0], lines, readers[-1].count) if links else None
            if self.drop_empty and not (source.strip() and target.strip()):
                left_out += 1
            else:
                yield source, target, gold
        self._check(readers)
        if left_out:
            log.info("left out %d of %d pairs of %s: a side is empty", left_out, readers[0].count, self.source)

    def _read_links(self, line: str, pair: Sequence[str], number: int) -> Gold:
        """Read links between words at white space."""
        place = f"{self.alignments}, line {number}"
        gold = parse_links(line, place=place)
        check_inside(gold.possible, len(split_words(pair[0])), len(split_words(pair[1])), place=place)
        return gold

    def _check(self, readers: Sequence[LineReader]) -> None:
        for reader in readers:
            if reader.is_blank:
                raise blank_file(reader.path)
        source, target, *rest = [reader.count for reader in readers]
        if source != target:
            raise UserError(
                f"{self.source} has {source} lines but {self.target} has {target}: each line must translate its counterpart"
            )
        if rest and rest[0] != source:
            raise UserError(
                f"{self.alignments} has {rest[0]} lines but {self.source} has {source}: each line must align its counterparts"
            )


def _check_split(split: str, text: ParallelText) -> None:
    """Refuse what would shift one side against the other, or either against its lines on disk."""
    sides = {"source": text.source, "target": text.target, "alignments": text.alignments, "annotations": text.annotations}
    counts = {name: len(side) for name, side in sides.items() if side is not None}
    if len(set(counts.values())) > 1:
        *names, last = counts
        told = f"{', '.join(names)} and {last}"
        raise UserError(f"{told} of {split} must be of one length, not {', '.join(map(str, counts.values()))}")
    for side, sentences in zip(SIDES, (text.source, text.target), strict=True):
        for number, sentence in enumerate(sentences, 1):
            if "\n" in sentence:
                raise UserError(f"sentence {number} of {split}, {side}, holds a line feed: a sentence is one line")
