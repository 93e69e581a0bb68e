"""Links between the words of two sequences, as files hold them: in the Pharaoh or the talp format."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from attnlab.errors import UserError

Links = set[tuple[int, int]]
"""Links (source position, target position) of one pair of sequences, counted from 0."""


class Gold(NamedTuple):
    """What annotators say of one pair of sequences."""

    sure: Links
    possible: Links
    """Sure links are possible too."""

    @classmethod
    def all_sure(cls, links: Iterable[tuple[int, int]]) -> "Gold":
        """Return links of which every one is sure."""
        sure = set(links)
        return cls(sure, set(sure))


BLANKS = " \t\n\r\f\v"
"""ASCII white space, at which aligners split a line."""
LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})", re.ASCII)


def split_words(line: str) -> list[str]:
    """Return the words of a line as aligners count them: what stands between ASCII white space, no-break spaces included."""
    return re.findall(f"[^{BLANKS}]+", line)


def parse_links(line: str, *, base: int = 0, place: str = "") -> Gold:
    """Read the links of one pair, ``1-2`` for a sure and ``1p2`` for a possible one, separated by white space.

    Args:
        line: in the Pharaoh or the talp format; empty where nothing is linked.
        base: what positions are counted from, 0 or 1.
        place: file and line, for the message.

    Raises:
        UserError: something that is no link, or a position below ``base``.
    """
    gold = Gold(set(), set())
    for token in line.split():
        match = LINK.fullmatch(token)
        if not match:
            raise UserError(f"{place}: {token!r} is no link; links are like 0-0 or 1p2, source position first")
        source, target = int(match[1]) - base, int(match[3]) - base
        if min(source, target) < 0:
            raise UserError(f"{place}: {token!r} counts from 0, not from {base}")
        gold.possible.add((source, target))
        if match[2] == "-":
            gold.sure.add((source, target))
    return gold


def check_inside(links: Links, source: int, target: int, *, place: str, base: int = 0) -> None:
    """Refuse links between words that are not there.

    Args:
        links: of one pair.
        source: how many source words there are.
        target: how many target words there are.
        place: file and line, for the message.
        base: what the message counts positions from.

    Raises:
        UserError: a link past the end of a sequence.
    """
    for i, j in sorted(links):
        if i >= source or j >= target:
            raise UserError(
                f"{place}: source position {i + base} is linked to target position {j + base}, counted from {base}, but there "
                f"are {source} source and {target} target positions"
            )


def format_links(links: Links, *, base: int = 0) -> str:
    """Return the links of one pair as a line, in order; with ``base`` 0 that is Pharaoh's format, with 1 talp's."""
    return " ".join(f"{source + base}-{target + base}" for source, target in sorted(links))


def format_gold(gold: Gold) -> str:
    """Return the links of one pair as a line, in order, as :func:`parse_links` reads them."""
    return " ".join(f"{i}{'-' if (i, j) in gold.sure else 'p'}{j}" for i, j in sorted(gold.possible))


def transpose(links: Links) -> Links:
    """Return links with source and target exchanged, as a model of the other direction makes them."""
    return {(target, source) for source, target in links}
