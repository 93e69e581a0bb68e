"""What a parallel corpus is, and how text files are read."""

import gzip
import logging
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import UserError

log = logging.getLogger(__name__)

Alignment = list[tuple[int, int]]
"""Links (source word, target word) of one sentence pair, counted from 0."""


@dataclass(frozen=True)
class ParallelText:
    """One split of a parallel corpus.

    Attributes:
        source: sentences, natural text.
        target: their translations, in the same order.
        alignments: known word alignments, or None. Words are what spaCy's tokenizer makes of the text.
    """

    source: list[str]
    target: list[str]
    alignments: list[Alignment] | None = None


class Corpus(ABC):
    """A parallel corpus with the splits "train", "val" and any number of test sets.

    Attributes:
        languages: codes of the source and the target language.
        test_names: names of the test sets.
    """

    languages: tuple[str, str]
    test_names: tuple[str, ...]

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of everything that decides the corpus' content: files and options, not paths."""

    @abstractmethod
    def load(self) -> dict[str, ParallelText]:
        """Return the splits by name.

        Raises:
            UserError: a file that is missing or damaged, or options that cannot be met.
        """


def find_file(path: Path, remedy: str) -> Path:
    """Return ``path`` or, where that is missing, ``path`` with ``.gz`` added.

    Args:
        path: without ``.gz``.
        remedy: what to do if there is neither, as the end of a sentence.

    Raises:
        UserError: neither exists.
    """
    path = path.expanduser()
    for candidate in (path, path.with_name(f"{path.name}.gz")):
        if candidate.is_file():
            return candidate
    raise UserError(f"no file {path} (or {path.name}.gz): {remedy}")


def read_bytes(path: Path) -> bytes:
    """Return a file's content, unpacked if its name ends in ``.gz``.

    Raises:
        UserError: not a gzip file, although its name says so, or not readable.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def decode_lines(content: bytes, path: Path) -> list[str]:
    """Split text into lines, at line feeds alone, and strip white space around each.

    Raises:
        UserError: not UTF-8, or no line at all.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: not UTF-8 (byte 0x{error.object[error.start]:02x}); convert the file, "
            "for example with iconv -f LATIN1 -t UTF-8"
        ) from error
    if not text.strip():
        raise UserError(f"{path} is empty")
    return [line.strip() for line in text.removesuffix("\n").split("\n")]


def read_pair(source: Path, target: Path, *, drop_empty: bool) -> ParallelText:
    """Read two line-aligned files.

    Args:
        source: sentences, one a line.
        target: their translations.
        drop_empty: leave out pairs with an empty side, as a training set should; a test set keeps them, so that line numbers
            stay those of the files.

    Raises:
        UserError: a file that is damaged or empty, or files of unequal length.
    """
    sides = [decode_lines(read_bytes(path), path) for path in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{source} has {len(sides[0])} lines but {target} has {len(sides[1])}: each line must translate its counterpart"
        )
    if not drop_empty:
        return ParallelText(sides[0], sides[1])
    kept = [(s, t) for s, t in zip(*sides, strict=True) if s and t]
    if len(kept) < len(sides[0]):
        log.info("left out %d of %d pairs of %s: a side is empty", len(sides[0]) - len(kept), len(sides[0]), source)
    return ParallelText([s for s, _ in kept], [t for _, t in kept])
