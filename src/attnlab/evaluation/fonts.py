"""Which installed fonts have the letters of a picture."""

from functools import cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, findfont, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

FIRST = "DejaVu Sans"
"""Matplotlib's own, and enough for most alphabets."""
NO_TEXT = ("cm", "STIX", "Last Resort")
"""Beginnings of the names of Matplotlib's fonts for formulas, which may have other signs in the places of letters, or boxes."""


def set_fonts(figure: Figure) -> list[str]:
    """Give the texts of a figure the fonts that have their letters; return these, for texts that are made when it is drawn."""
    for axes in figure.axes:
        axes.get_xticklabels(), axes.get_yticklabels()  # which makes those that are known by now
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    fonts = choose_fonts("".join(text.get_text() for text in texts))
    for text in texts:
        text.set_fontfamily(fonts)
    return fonts


def choose_fonts(letters: str) -> list[str]:
    """Return the names of installed fonts that together have some letters, as far as any has them.

    Others than the first are looked through only where it lacks a letter: those that are called Noto before all others, since
    they are made to look alike.
    """
    fonts, missing = [FIRST], {ord(letter) for letter in letters if not letter.isspace()} - _letters(findfont(FIRST))
    for entry in sorted(fontManager.ttflist, key=_rank) if missing else ():
        if not entry.name.startswith(NO_TEXT) and not missing.isdisjoint(_letters(entry.fname)):
            fonts.append(entry.name)
            missing -= _letters(entry.fname)
    return fonts


def _rank(entry: FontEntry) -> tuple[bool, bool, bool, str]:
    return not entry.name.startswith("Noto"), entry.style != "normal", str(entry.weight) not in ("400", "normal"), entry.name


@cache
def _letters(path: str) -> frozenset[int]:
    """Return the letters of a font, none of one that cannot be read, such as pictures in colour or a file that is gone."""
    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()
