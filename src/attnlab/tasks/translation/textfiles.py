"""Any pair of line-aligned text files."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from typing_extensions import override

from attnlab.data.contents import hash_content
from attnlab.data.files import find_file
from attnlab.errors import UserError
from attnlab.tasks.translation.corpora import FileCorpus, PairFiles


class TextFiles(FileCorpus):
    """A corpus of one's own: two files a split, line n of one translating line n of the other.

    A split is given by what its two files have in common: ``corpus/train`` stands for ``corpus/train.en`` and
    ``corpus/train.de``, plain or ``.gz``. Training pairs with an empty side are left out; validation and test sets stay whole.

    Word alignments, where there are any, stand in a third file of each split, as aligners write them (Pharaoh's format): line
    n has the links ``0-0 1-2`` (source word, target word) of pair n, between words at white space, counted from 0.

    Args:
        train: the training set.
        val: the validation set.
        tests: test sets by name.
        source: code of the source language, the suffix of its files.
        target: code of the target language.
        alignments: suffix of the alignments' files, which training must have and other splits may; None is no alignments.

    Raises:
        UserError: no test set, or one with the name of another split; from reading, a file that is missing or damaged,
            files of unequal length, or a link between words that are not there.
    """

    def __init__(
        self, train: str, val: str, tests: Mapping[str, str], *, source: str, target: str, alignments: str | None = None
    ) -> None:
        self.languages = (source, target)
        self.test_names = self.name_tests(tests)
        self.alignments = alignments
        self._prefixes = {"train": train, "val": val, **tests}

    @override
    def fingerprint(self) -> str:
        digest = hashlib.sha256(f"text {self.languages} {self.test_names}".encode())
        for split, prefix in self._prefixes.items():
            for path in self._files(prefix):
                digest.update(hash_content(path))
            if links := self._links(split):
                digest.update(f"alignments of {split}".encode() + hash_content(links))
        return digest.hexdigest()

    @override
    def files(self, split: str) -> PairFiles:
        source, target = self._files(self._prefixes[split])
        return PairFiles(source, target, split == "train", self._links(split))

    @override
    def place(self, split: str, index: int) -> str:
        if split == "train":  # some of whose pairs were left out
            return ""
        return f"{self._files(self._prefixes[split])[0]}, line {index + 1}"

    def _files(self, prefix: str) -> list[Path]:
        remedy = f"{prefix} stands for {prefix}.{self.languages[0]} and {prefix}.{self.languages[1]}"
        return [find_file(Path(f"{prefix}.{language}"), remedy) for language in self.languages]

    def _links(self, split: str) -> Path | None:
        if self.alignments is None:
            return None
        path = Path(f"{self._prefixes[split]}.{self.alignments}")
        try:
            return find_file(path, f"alignments={self.alignments} needs it, with links such as 0-0 1-2 for each pair")
        except UserError:
            if split == "train":
                raise
            return None
