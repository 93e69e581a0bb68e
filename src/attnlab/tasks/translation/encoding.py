"""From text on disk to ids on disk, a part at a time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnlab.data.lines import LineWriter, StoredLines
from attnlab.data.processes import map_in_order
from attnlab.data.ragged import RaggedWriter
from attnlab.data.storage import ArrayWriter, StoredArray, StoredFile
from attnlab.data.symbols import BOS, EOS, UNK
from attnlab.errors import UserError
from attnlab.tasks.translation.textparts import Encoded, TextPart, encode
from attnlab.tasks.translation.tokenizers import Tokenizer

TOKENS = 2**21
"""Tokens that are read at once, and one more text line's."""
SEPARATOR = "\x1f"
"""What stands between tokens that are kept as text."""


def encode_parts(
    texts: Mapping[str, Sequence[StoredLines]], tokenizers: Mapping[str, Sequence[Tokenizer]], processes: int
) -> Iterator[tuple[TextPart, Encoded]]:
    """Tokenize the source sides of all splits and then their target sides, part by part.

    Args:
        texts: of each split, (source, target).
        tokenizers: of each split, (source, target), which have learned whatever there is to learn.
        processes: that may work at once.
    """
    parts = [TextPart(side, split, *part) for side in (0, 1) for split in texts for part in texts[split][side].parts()]
    yield from zip(parts, map_in_order(partial(encode, texts, tokenizers), parts, processes), strict=True)


class TypeNumbers:
    """Numbers of types, in the order in which they are first seen, whatever part that is in."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__

    def renumber(self, part: Encoded) -> NDArray[np.int32]:
        """Return the numbers of a part's tokens among all types."""
        table = np.fromiter(map(self._numbers.__getitem__, part.types), np.int32, count=len(part.types))
        return table[part.numbers]

    def __len__(self) -> int:
        """Return the number of types."""
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        """Yield the types, by their number."""
        return iter(self._numbers)


class NumberedText:
    """One side of a split after tokenization, on disk, its tokens as numbers of types.

    Args:
        path: of the numbers.

    Attributes:
        lengths: tokens in each sentence (int32).
    """

    def __init__(self, path: Path, lengths: NDArray[np.int32]) -> None:
        self.path = path
        self.lengths = lengths

    @classmethod
    def write(
        cls, path: Path, parts: Iterable[Encoded], numbers: TypeNumbers, advance: Callable[[int], object]
    ) -> "NumberedText":
        """Write the parts of a text.

        Args:
            path: where the numbers are written.
            parts: of the text.
            numbers: of the types, which grow.
            advance: is told how many sentences were written.
        """
        lengths: list[NDArray[np.int32]] = []
        with ArrayWriter(path, np.int32) as writer:
            for part in parts:
                writer.append(numbers.renumber(part))
                lengths.append(part.lengths.astype(np.int32))
                advance(len(part.lengths))
        return cls(path, np.concatenate(lengths))

    def parts(self, kept: NDArray[np.bool_] | None) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """Yield the numbers of consecutive sentences, and how many each has.

        Args:
            kept: whether a sentence counts; None is all.
        """
        values = StoredArray(StoredFile(self.path))
        ends = np.cumsum(self.lengths, dtype=np.int64)
        start = 0
        while start < len(ends):
            begin = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, begin + TOKENS, side="right")))
            own, lengths = values[begin : int(ends[stop - 1])], self.lengths[start:stop].astype(np.int64)
            if kept is not None:
                own, lengths = own[np.repeat(kept[start:stop], lengths)], lengths[kept[start:stop]]
            yield own, lengths
            start = stop

    def count(self, size: int, kept: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Return how often each of the first ``size`` types occurs."""
        counts = np.zeros(size, dtype=np.int64)
        for own, _ in self.parts(kept):
            counts += np.bincount(own, minlength=size)
        return counts

    def write_ids(
        self, folder: Path, name: str, table: NDArray[np.int32], kept: NDArray[np.bool_] | None, *, starts: bool
    ) -> None:
        """Write the ids of each sentence, with the end symbol.

        Args:
            folder: for the files.
            name: of the sequences.
            table: ids by numbers.
            kept: whether a sentence is to be written; None is all.
            starts: with the start symbol too.
        """
        with RaggedWriter(folder, name) as writer:
            for own, lengths in self.parts(kept):
                if len(lengths):
                    writer.append(*enclose(table[own], lengths, starts=starts))

    def write_unknown(
        self, folder: Path, name: str, types: Sequence[str], table: NDArray[np.int32], kept: NDArray[np.bool_] | None
    ) -> None:
        """Write a line for each sentence, the tokens that the vocabulary lacks; see :func:`parse_unknown`.

        Args:
            folder: for the files.
            name: of the lines.
            types: by number.
            table: ids by numbers.
            kept: whether a sentence is to be written; None is all.
        """
        with LineWriter(folder, name) as writer:
            for own, lengths in self.parts(kept):
                is_unknown = table[own] == UNK
                tokens = [types[number] for number in own[is_unknown].tolist()]
                ends = np.concatenate([[0], np.cumsum(is_unknown)])[np.concatenate([[0], np.cumsum(lengths)])].tolist()
                writer.append([format_unknown(tokens[start:end]) for start, end in pairwise(ends)])


def format_unknown(tokens: Sequence[str]) -> str:
    """Return tokens as a line.

    Raises:
        UserError: one holds what stands between them, which Python's ``str.split`` takes for white space.
    """
    line = SEPARATOR.join(tokens)
    if tokens and line.count(SEPARATOR) >= len(tokens):
        raise UserError("a token holds the control character U+001F: let the tokenizer split there, as at white space")
    return line


def parse_unknown(line: str) -> list[str]:
    """Return the tokens of a sentence, in their order, that the vocabulary lacks."""
    return line.split(SEPARATOR) if line else []


def enclose(ids: NDArray[np.int32], lengths: NDArray[np.int64], *, starts: bool) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Put the end symbol behind each of some sequences and, where ``starts``, the start symbol before it.

    Args:
        ids: one sequence after another.
        lengths: of each.
        starts: whether the start symbol stands before each.

    Returns:
        The longer sequences, and their lengths.
    """
    lead, longer = int(starts), lengths + 1 + int(starts)
    ends = np.cumsum(longer)
    enclosed = np.empty(int(ends[-1]), dtype=np.int32)
    is_inner = np.ones(len(enclosed), dtype=bool)
    is_inner[ends - 1] = False
    enclosed[ends - 1] = EOS
    if lead:
        is_inner[ends - longer] = False
        enclosed[ends - longer] = BOS
    enclosed[is_inner] = ids
    return enclosed, longer


def sample_sentences(sides: Sequence[StoredLines], most: int) -> Sequence[str]:
    """Return every n-th sentence of one side after the other, such that there are about ``most`` bytes of text, or all."""
    step = -(-sum(lines.text.size for lines in sides) // most) or 1
    if step == len(sides) == 1:
        return sides[0]
    return [sentence for lines in sides for sentence in islice(lines, 0, None, step)]  # in order, and not one by one
