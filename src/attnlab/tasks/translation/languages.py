"""Several target languages in one model: where a sentence is told into which of them it is translated."""

from typing import Literal, get_args

from attnlab.errors import UserError

LanguageToken = Literal["source", "target", "query"]
"""Where the symbol of the target language stands: first in the source (Johnson et al. 2017), first in the target in place of
the start symbol, or nowhere but in the query of the attention."""

SEVERAL = "mul"
"""The code of text in several languages (ISO 639-2)."""


def language_symbol(language: str) -> str:
    """Return what the symbol of a target language is shown as, such as ``<2fr>`` (Johnson et al. 2017)."""
    return f"<2{language}>"


def check_token(token: str) -> None:
    """Refuse what is none of :data:`LanguageToken`."""
    if token not in get_args(LanguageToken):
        raise UserError(f"language_token is one of {', '.join(get_args(LanguageToken))}, not {token!r}")
