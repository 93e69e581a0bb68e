"""The target language of sentence pairs, as ids tell it."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from attnlab.data.ragged import Ragged, RaggedView
from attnlab.data.symbols import PAD
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
        if self.token == "target":
            return ids
        longer = ids.lengths > 1 if self.token == "source" else 0
        return RaggedView(ids.lengths + longer, partial(self._mark_source, ids, self.number))

    def _mark_source(self, ids: Ragged, number: int, index: int) -> NDArray[np.integer]:
        row, symbol = ids[index], np.array([number])
        if self.token == "query":
            return np.stack(np.broadcast_arrays(row, symbol), axis=1)
        return np.concatenate([symbol, row]) if len(row) > 1 else row

    def mark_targets(self, ids: Ragged) -> Ragged | RaggedView:
        """Return targets that the symbol opens, or the targets themselves where it does not."""
        if self.token != "target":
            return ids
        return RaggedView(ids.lengths, partial(self._mark_target, ids))

    def _mark_target(self, ids: Ragged, index: int) -> NDArray[np.integer]:
        return np.concatenate([np.array([self.number]), ids[index][1:]])

    def mark_copies(self, ids: Ragged) -> Ragged | RaggedView:
        """Return the ids under which sources are copied, in the length of :meth:`mark_sources`; a symbol is never copied."""
        if self.token != "source":
            return ids
        return RaggedView(ids.lengths + (ids.lengths > 1), partial(self._mark_source, ids, PAD))
