"""Any pair of line-aligned text files."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from attnlab.data.corpora import Corpus, ParallelText, find_file, read_bytes, read_pair
from attnlab.errors import UserError


class TextFiles(Corpus):
    """A corpus of one's own: two files a split, line n of one translating line n of the other.

    A split is given by what its two files have in common: ``corpus/train`` stands for ``corpus/train.en`` and
    ``corpus/train.de``, plain or ``.gz``. Training pairs with an empty side are left out; validation and test sets stay whole.

    Args:
        train: the training set.
        val: the validation set.
        tests: test sets by name.
        source: code of the source language, the suffix of its files.
        target: code of the target language.

    Raises:
        UserError: no test set, or one with the name of another split; from :meth:`load`, a file that is missing or damaged, or
            files of unequal length.
    """

    def __init__(self, train: str, val: str, tests: Mapping[str, str], *, source: str, target: str) -> None:
        if not tests or {"train", "val"} & set(tests):
            raise UserError("data.tests names one test set or more, none of them train or val: data.tests={test: FOLDER/test}")
        self.languages = (source, target)
        self.test_names = tuple(tests)
        self._prefixes = {"train": train, "val": val, **tests}

    def fingerprint(self) -> str:
        """See :meth:`Corpus.fingerprint`."""
        digest = hashlib.sha256(f"text {self.languages} {self.test_names}".encode())
        for prefix in self._prefixes.values():
            for path in self._files(prefix):
                digest.update(hashlib.sha256(read_bytes(path)).digest())
        return digest.hexdigest()

    def load(self) -> dict[str, ParallelText]:
        """See :meth:`Corpus.load`."""
        return {split: read_pair(*self._files(prefix), drop_empty=split == "train") for split, prefix in self._prefixes.items()}

    def _files(self, prefix: str) -> list[Path]:
        remedy = f"{prefix} stands for {prefix}.{self.languages[0]} and {prefix}.{self.languages[1]}"
        return [find_file(Path(f"{prefix}.{language}"), remedy) for language in self.languages]
