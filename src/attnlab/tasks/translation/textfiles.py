"""Any pair of line-aligned text files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from typing_extensions import override

from attnlab.data.files import find_file, has_file
from attnlab.errors import UserError
from attnlab.tasks.translation.corpora import FileCorpus
from attnlab.tasks.translation.languages import LanguageToken


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
        target: code of the target language, or a list of several, each the suffix of its files; a test set that one of them
            lacks is measured in the others.
        language_token: where the target language is told, if there are several; see :class:`FileCorpus`.
        alignments: suffix of the alignments' files, which training must have and other splits may; None is no alignments.

    Raises:
        UserError: names that :class:`FileCorpus` refuses, or alignments of several languages; from reading, a file that is
            missing or damaged, files of unequal length, or a link between words that are not there.
    """

    kind = "text"

    def __init__(
        self,
        train: str,
        val: str,
        tests: Mapping[str, str],
        *,
        source: str,
        target: str | Sequence[str],
        language_token: LanguageToken = "source",
        alignments: str | None = None,
    ) -> None:
        super().__init__(source, target, tests, language_token)
        if alignments is not None and len(self.languages) > 2:
            raise UserError("alignments are those of one target language: leave them out, or name one language as target")
        self.alignments = alignments
        self._prefixes = {"train": train, "val": val, **tests}
        if empty := [split for split, prefix in self._prefixes.items() if not prefix]:
            raise UserError(
                f"{empty[0]} is empty: name what its files have in common before their languages, as corpus/{empty[0]}"
            )

    @override
    def missing(self, split: str, language: str) -> str:
        path = f"{self._prefixes[split]}.{language}"
        return "" if has_file(Path(path)) else path

    @override
    def place(self, split: str, index: int) -> str:
        origin, _ = self.origin(split)
        if origin == "train":  # some of whose pairs were left out
            return ""
        return f"{self.file(origin, self.languages[0])}, line {index + 1}"

    @override
    def file(self, split: str, language: str) -> Path:
        prefix = self._prefixes[split]
        ending = next((f".{code}" for code in self.languages if prefix.endswith(f".{code}")), "")
        *others, last = (f"{prefix.removesuffix(ending)}.{code}" for code in self.languages)
        remedy = f"{prefix.removesuffix(ending)} stands for {', '.join(others)} and {last}"
        path = Path(f"{prefix}.{language}")
        if ending:
            remedy = f"leave out {ending}: {remedy}"
        elif Path(prefix).is_dir():
            remedy = f"as {prefix} is a folder, name what two files in it have in common before their languages"
        elif Path(prefix).is_file():
            remedy += "; one file of both languages, with a tab between them, is read by the corpus tatoeba"
        return find_file(path, remedy)

    @override
    def links(self, split: str) -> Path | None:
        if self.alignments is None:
            return None
        path = Path(f"{self._prefixes[split]}.{self.alignments}")
        if split != "train" and not has_file(path) and not path.exists():
            return None
        return find_file(path, f"alignments={self.alignments} needs it, with links such as 0-0 1-2 for each pair")
