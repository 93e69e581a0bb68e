"""Tatoeba: short sentences, many with several translations, as manythings.org packs them."""

import hashlib
import random
import zipfile
import zlib
from pathlib import Path

from scipy.cluster.hierarchy import DisjointSet
from typing_extensions import override

from attnlab.data.files import decode_lines, expand_home, read_bytes, read_unpacked
from attnlab.errors import UserError
from attnlab.seeding import derive_seed
from attnlab.tasks.translation.corpora import Corpus, ParallelText


class Tatoeba(Corpus):
    """One file of lines ``English TAB translation`` (and perhaps an attribution), split without leaks.

    One sentence has many translations. Sentences that are linked by translation, directly or through others, form a group,
    and a group stays whole: no sentence of the validation or the test set occurs in training, on either side. Sentences
    that differ in case or spacing alone count as one.

    Args:
        path: ``deu.txt``, plain, ``.gz``, or the ``.zip`` it comes in.
        source: code of the source language.
        target: code of the target language; one of both is en, the file's first column.
        max_pairs: draw so many pairs for all splits together; None takes all.
        max_words: leave out pairs with a longer side, in words between spaces; None takes all.
        val_size: pairs in the validation set, at least.
        test_size: pairs in the test set, at least.
        seed: of the draw and of the split; not the run's.

    Raises:
        UserError: neither language is en, or a size is not positive; from :meth:`load`, a file that is missing or damaged, or
            too few pairs in it.
    """

    test_names = ("test",)

    def __init__(
        self,
        path: str,
        *,
        source: str = "en",
        target: str = "de",
        max_pairs: int | None = None,
        max_words: int | None = None,
        val_size: int = 1000,
        test_size: int = 1000,
        seed: int = 1,
    ) -> None:
        if (source == "en") == (target == "en"):
            raise UserError(f"Tatoeba's file pairs English with another language: not source={source} and target={target}")
        sizes = {"max_pairs": max_pairs, "max_words": max_words, "val_size": val_size, "test_size": test_size}
        for name, size in sizes.items():
            if size is not None and size < 1:
                raise UserError(f"{name} must be 1 or more, not {size}")
        self.path = expand_home(path)
        self.languages = (source, target)
        self.max_pairs = max_pairs
        self.max_words = max_words
        self.val_size = val_size
        self.test_size = test_size
        self.seed = seed

    @override
    def fingerprint(self) -> str:
        options = (self.languages, self.max_pairs, self.max_words, self.val_size, self.test_size, self.seed)
        return hashlib.sha256(repr(("tatoeba", 1, options)).encode() + self._content()).hexdigest()

    @override
    def load(self) -> dict[str, ParallelText]:
        pairs = self._pairs()
        shuffler = random.Random(derive_seed(self.seed, "tatoeba"))
        if self.max_pairs is not None and self.max_pairs < len(pairs):
            pairs = [pairs[index] for index in sorted(shuffler.sample(range(len(pairs)), self.max_pairs))]
        groups = _groups(pairs)
        shuffler.shuffle(groups)
        # The largest groups hold the commonest sentences; a test set takes whole groups, so they would swell it.
        small = [group for group in groups if len(group) <= 10]
        large = [group for group in groups if len(group) > 10]
        test, rest = _take(small, self.test_size)
        val, rest = _take(rest, self.val_size)
        train = sorted(index for group in rest + large for index in group)
        if min(len(test) - self.test_size, len(val) - self.val_size, len(train) - 1) < 0:
            raise UserError(
                f"{self.path}: {len(pairs)} pairs are too few for val_size={self.val_size} and "
                f"test_size={self.test_size}: lower them, or raise max_pairs or max_words"
            )
        return {name: self._text(pairs, indices) for name, indices in (("train", train), ("val", val), ("test", test))}

    def _text(self, pairs: list[tuple[str, str]], indices: list[int]) -> ParallelText:
        english, other = [pairs[index][0] for index in indices], [pairs[index][1] for index in indices]
        return ParallelText(english, other) if self.languages[0] == "en" else ParallelText(other, english)

    def _pairs(self) -> list[tuple[str, str]]:
        pairs = []
        for number, line in enumerate(decode_lines(self._content(), self.path, blanks=""), start=1):
            columns = line.split("\t")
            if not line.strip():
                continue
            if len(columns) < 2:
                raise UserError(f"{self.path}, line {number}: no tab; each line must be ENGLISH TAB TRANSLATION")
            if number == 1 and len(columns) > 2 and columns[0].strip().isdecimal():
                raise UserError(
                    f"{self.path}, line 1: begins with a number; each line must be ENGLISH TAB TRANSLATION, as cut -f 2- makes "
                    "it where numbers stand before"
                )
            english, other = columns[0].strip(), columns[1].strip()
            longest = max(len(english.split()), len(other.split()))
            if english and other and (self.max_words is None or longest <= self.max_words):
                pairs.append((english, other))
        return pairs

    def _content(self) -> bytes:
        if not self.path.is_file():
            told = f"{self.path} is no file" if self.path.exists() else f"no file {self.path}"
            wanted = self.path.name if self.path.suffix == ".zip" else "deu-eng.zip"
            raise UserError(f"{told}: get {wanted} or another from https://www.manythings.org/anki/ and name it as path")
        if self.path.suffix != ".zip":
            return read_bytes(self.path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                names = [n for n in archive.namelist() if n.endswith(".txt") and not Path(n).name.startswith("_")]
                if len(names) != 1:
                    raise UserError(f"{self.path} should hold one .txt file beside _about.txt, not {names or 'none'}")
                with archive.open(names[0]) as stream:
                    return read_unpacked(stream, self.path)
        except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:  # the last of an encrypted file
            raise UserError(f"cannot read {self.path}: {error}") from error


def _groups(pairs: list[tuple[str, str]]) -> list[list[int]]:
    """Return the positions of pairs that are linked by a shared sentence, group by group, in the order of the pairs."""
    groups = DisjointSet(range(len(pairs)))
    first: dict[tuple[int, str], int] = {}
    for index, pair in enumerate(pairs):
        for side, sentence in enumerate(pair):
            groups.merge(index, first.setdefault((side, " ".join(sentence.casefold().split())), index))
    return [sorted(group) for group in groups.subsets()]


def _take(groups: list[list[int]], size: int) -> tuple[list[int], list[list[int]]]:
    """Take whole groups until they hold ``size`` pairs; return the pairs, sorted, and the groups that are left."""
    taken: list[int] = []
    count = 0
    while count < len(groups) and len(taken) < size:
        taken += groups[count]
        count += 1
    return sorted(taken), groups[count:]
