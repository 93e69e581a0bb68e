"""Vocabularies: from tokens to ids and back."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain

from attnlab.data.symbols import BOS, EOS, PAD, RESERVED, SPECIAL, UNK


class Vocabulary:
    """A list of types; a type's id is its position.

    Args:
        tokens: all types, the special ones first and then the symbols.
        symbols: how many symbols of target languages there are, which no text contains either.

    Attributes:
        tokens: all types, by id.
        reserved: the first id that text may have.
    """

    def __init__(self, tokens: Sequence[str], symbols: int = 0) -> None:
        self.tokens = list(tokens)
        self.reserved = RESERVED + symbols
        self._ids = {token: index for index, token in enumerate(self.tokens)}

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]]) -> "Vocabulary":
        """Collect the types of tokenized sentences, the most frequent first and equals in alphabetical order."""
        return cls.of_counts(Counter(chain.from_iterable(sentences)).items())

    @classmethod
    def of_counts(
        cls,
        counts: Iterable[tuple[str, int]],
        *,
        min_frequency: int = 1,
        max_size: int | None = None,
        symbols: Sequence[str] = (),
    ) -> "Vocabulary":
        """Collect counted types; see :meth:`build`.

        Args:
            counts: types and how often each occurs; 0 is not at all.
            min_frequency: leave out types that are rarer.
            max_size: keep at most so many types, special ones and symbols not counted.
            symbols: of target languages.
        """
        least = max(1, min_frequency)
        frequent = [(-count, token) for token, count in counts if count >= least]
        special = (*SPECIAL, *symbols)
        known = frozenset(special)  # a text that spells a special symbol must not turn into it
        ranked = [token for _, token in sorted(frequent) if token not in known]
        return cls([*special, *ranked[:max_size]], len(symbols))

    def __len__(self) -> int:
        """Return the number of types, special ones included."""
        return len(self.tokens)

    @cached_property
    def digest(self) -> str:
        """A short hash of the types, in whatever order: two vocabularies may have one size."""
        return hashlib.sha256("\n".join(sorted(self.tokens)).encode()).hexdigest()[:6]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return ids; what is not in the vocabulary is ``UNK``, as is a text that spells a special symbol."""
        ids = (self._ids.get(token, UNK) for token in tokens)
        return [index if index >= self.reserved else UNK for index in ids]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of one sentence up to the first end symbol, without padding and start symbols."""
        tokens = []
        for index in ids:
            if index == EOS:
                break
            if index not in (PAD, BOS):
                tokens.append(self.tokens[index])
        return tokens
