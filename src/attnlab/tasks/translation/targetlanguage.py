"""The target language of sentence pairs, as ids tell it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnlab.data.ragged import Ragged, RaggedView
from attnlab.tasks.translation.languages import LanguageToken, language_symbol


@dataclass(frozen=True)
class TargetLanguage:
    """The target language of some sentence pairs, where there are several.

    Attributes:
        code: of the language.
        number: id of its symbol, in both vocabularies.
        token: where the symbol stands.
    """

    code: str
    number: int
    token: LanguageToken

    def lead(self) -> list[str]:
        """Return what is shown before the tokens of a source."""
        return [language_symbol(self.code)] if self.token == "source" else []

    def mark_sources(self, ids: Ragged) -> Ragged | RaggedView:
        """Return sources that tell the language, or the sources themselves where they do not.

        A symbol in the source stands before its tokens, but an empty source stays empty. For the query, an element is (token,
        symbol).
        """
        symbol = np.array([self.number])
        if self.token == "source":
            lengths = ids.lengths
            return RaggedView(lengths + (lengths > 1), lambda index: _lead(symbol, ids[index]))
        if self.token == "query":
            return RaggedView(ids.lengths, lambda index: np.stack(np.broadcast_arrays(ids[index], symbol), axis=1))
        return ids

    def mark_targets(self, ids: Ragged) -> Ragged | RaggedView:
        """Return targets that the symbol opens, or the targets themselves where it does not."""
        if self.token != "target":
            return ids
        symbol = np.array([self.number])
        return RaggedView(ids.lengths, lambda index: np.concatenate([symbol, ids[index][1:]]))

    def mark_copies(self, ids: Ragged) -> Ragged | RaggedView:
        """Return the ids under which sources are copied, in the length of :meth:`mark_sources`."""
        return self.mark_sources(ids) if self.token == "source" else ids


def _lead(symbol: NDArray[np.integer], ids: NDArray[np.integer]) -> NDArray[np.integer]:
    return np.concatenate([symbol, ids]) if len(ids) > 1 else ids
