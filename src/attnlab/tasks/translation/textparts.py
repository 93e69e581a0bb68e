"""What a process that tokenizes does: from text on disk to numbers of types. No torch is needed for it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnlab.data.lines import StoredLines
from attnlab.tasks.translation.tokenizers import Tokenizer


@dataclass(frozen=True)
class Encoded:
    """Some sentences as tokens.

    Attributes:
        types: that occur in them, in the order in which they do.
        numbers: of the type of each token, sentence after sentence (int32).
        lengths: tokens in each sentence.
    """

    types: list[str]
    numbers: NDArray[np.int32]
    lengths: NDArray[np.int64]


class TextPart(NamedTuple):
    """Consecutive sentences of one side of a split.

    Attributes:
        side: 0 for the source, 1 for the target.
        split: name.
        start, stop: position of the first sentence, and that after the last.
    """

    side: int
    split: str
    start: int
    stop: int


def encode(
    texts: Mapping[str, Sequence[StoredLines]], tokenizers: Mapping[str, Sequence[Tokenizer]], part: TextPart
) -> Encoded:
    """Tokenize consecutive sentences, and number their types."""
    sentences = tokenizers[part.split][part.side].tokenize(texts[part.split][part.side].read(part.start, part.stop))
    lengths = np.fromiter(map(len, sentences), np.int64, count=len(sentences))
    types: defaultdict[str, int] = defaultdict()
    types.default_factory = types.__len__
    numbers = np.fromiter(map(types.__getitem__, chain.from_iterable(sentences)), np.int32, count=int(lengths.sum()))
    return Encoded(list(types), numbers, lengths)
