"""Several target languages in one model: where a sentence is told into which of them it is translated."""

from collections.abc import Sequence
from typing import Literal

from attnlab.errors import UserError, nearest

LanguageToken = Literal["source", "target", "query"]
"""Where the symbol of the target language stands: first in the source (Johnson et al. 2017), first in the target in place of
the start symbol, or nowhere but in the query of the attention."""

SEVERAL = "mul"
"""The code of text in several languages (ISO 639-2)."""


def language_symbol(language: str) -> str:
    """Return what the symbol of a target language is shown as, such as ``<2fr>`` (Johnson et al. 2017)."""
    return f"<2{language}>"


def unknown_language(name: str, known: Sequence[str]) -> UserError:
    """Tell of a target language that a model does not write."""
    if len(known) == 1:
        return UserError(f"the model writes one language, {known[0]}, and no {name!r}: leave out --to")
    return UserError(f"no target language {name!r}: {nearest(name, known)}")


def language_missing(known: Sequence[str]) -> UserError:
    """Tell that one of several target languages must be chosen."""
    told = f"{', '.join(known[:-1])} and {known[-1]}"
    return UserError(f"the model writes {told}: say which, such as --to {known[0]}, or to={known[0]!r} in Python")
