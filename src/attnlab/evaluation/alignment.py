"""Word alignments: read, written, made from attention weights, symmetrised, and scored against gold."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.errors import UserError

Links = set[tuple[int, int]]
"""Links (source position, target position) of one sentence pair, counted from 0."""


class Gold(NamedTuple):
    """What annotators say of one sentence pair."""

    sure: Links
    possible: Links
    """Sure links are possible too."""


@dataclass(frozen=True)
class AlignmentScore:
    """How well alignments agree with gold, over a whole corpus (Och and Ney 2003, section 5).

    Attributes:
        precision: share of the links that are possible, |A ∩ P| / |A|.
        recall: share of the sure links that were found, |A ∩ S| / |S|.
        aer: alignment error rate, 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|).
        links: |A|.
    """

    precision: float
    recall: float
    aer: float
    links: int


def score(alignments: Sequence[Links], gold: Sequence[Gold]) -> AlignmentScore:
    """Score the alignments of a corpus.

    Raises:
        UserError: not as many alignments as gold ones, or gold without a sure link.
    """
    if len(alignments) != len(gold):
        raise UserError(f"{len(alignments)} alignments cannot be scored against {len(gold)} gold ones: one a sentence pair")
    links = sum(map(len, alignments))
    sure = sum(len(g.sure) for g in gold)
    if not sure:
        raise UserError("the gold alignment has no sure link, so that there is nothing to find")
    right = sum(len(a & g.sure) for a, g in zip(alignments, gold, strict=True))
    allowed = sum(len(a & (g.possible | g.sure)) for a, g in zip(alignments, gold, strict=True))
    return AlignmentScore(allowed / links if links else 1.0, right / sure, 1.0 - (right + allowed) / (links + sure), links)


def parse(line: str, *, base: int = 0, place: str = "") -> Gold:
    """Read one sentence pair's links, ``1-2`` for a sure and ``1p2`` for a possible one, at white space.

    Args:
        line: in the Pharaoh or the talp format.
        base: what positions are counted from, 0 or 1.
        place: file and line, for the message.

    Raises:
        UserError: something that is no link, or a position below ``base``.
    """
    gold = Gold(set(), set())
    for token in line.split():
        match = re.fullmatch(r"(\d+)([-p])(\d+)", token, re.ASCII)
        if not match:
            raise UserError(f"{place}: {token!r} is no link; links are like 0-0 or 1p2")
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
        links: of one sentence pair.
        source: how many source words there are.
        target: how many target words.
        place: file and line, for the message.
        base: what the message counts positions from.

    Raises:
        UserError: a link past the end of a sentence.
    """
    for i, j in sorted(links):
        if i >= source or j >= target:
            raise UserError(
                f"{place}: source position {i + base} is linked to target position {j + base}, counted from {base}, but there "
                f"are {source} source and {target} target positions"
            )


def written(links: Links, *, base: int = 0) -> str:
    """Return one sentence pair's links as a line, in order; with ``base`` 0 that is Pharaoh's format, with 1 talp's."""
    return " ".join(f"{source + base}-{target + base}" for source, target in sorted(links))


def transposed(links: Links) -> Links:
    """Return links with source and target exchanged, as a model of the other direction makes them."""
    return {(target, source) for source, target in links}


def intersection(forward: Links, reverse: Links) -> Links:
    """Return the links of both directions."""
    return forward & reverse


def union(forward: Links, reverse: Links) -> Links:
    """Return the links of either direction."""
    return forward | reverse


def grow_diagonal(forward: Links, reverse: Links) -> Links:
    """Grow the intersection by neighbouring links of the union, diagonal ones too (Koehn et al. 2003, section 4.5).

    A link is added next to one that is there, if neither its source word nor its target word has one yet. (Moses asks for one
    of the two; asking for both is what Zenkel et al. (2020) publish figures of.)
    """
    links = forward & reverse
    free = _Free(links)
    grown = True
    while grown:
        grown = False
        for source, target in sorted(links):
            for step_source, step_target in NEIGHBOURS:
                link = (source + step_source, target + step_target)
                if (link in forward or link in reverse) and free.take(link):
                    links.add(link)
                    grown = True
    return links


def grow_diagonal_final(forward: Links, reverse: Links) -> Links:
    """Grow as :func:`grow_diagonal`, then add links of either direction whose source and target word both have none yet."""
    links = grow_diagonal(forward, reverse)
    free = _Free(links)
    for direction in (forward, reverse):
        links |= {link for link in sorted(direction) if free.take(link)}
    return links


class _Free:
    """Words without a link."""

    def __init__(self, links: Links) -> None:
        self.sources = {source for source, _ in links}
        self.targets = {target for _, target in links}

    def take(self, link: tuple[int, int]) -> bool:
        """Link two words if both are free, and tell whether they were."""
        if link[0] in self.sources or link[1] in self.targets:
            return False
        self.sources.add(link[0])
        self.targets.add(link[1])
        return True


def from_weights(weights: Tensor, source: Sequence[tuple[int, int]], target: Sequence[tuple[int, int]], *, shift: int) -> Links:
    """Link every target word to the source word that its tokens look at most.

    The tokens of a source word add up their weights; those of a target word are averaged. The end symbol, and any token outside
    the words, is left out.

    Args:
        weights: (target tokens with the end symbol, source tokens with the end symbol); row t was computed to write token t.
        source: for each source word its first token and the one after its last.
        target: for each target word likewise.
        shift: 0 reads row t as about the token that it wrote, 1 as about the token before, which it had just read: the right
            reading where the decoder's state asks before it has seen what it is going to write.
    """
    links: Links = set()
    for word, (first, end) in enumerate(target):
        rows = weights[first + shift : end + shift]
        if not len(rows) or not source:
            continue
        row = rows.mean(dim=0)
        looked = torch.stack([row[start:stop].sum() for start, stop in source])
        best = int(looked.argmax())
        if looked[best] > 0:
            links.add((best, word))
    return links


NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]

SYMMETRISATIONS: dict[str, Callable[[Links, Links], Links]] = {
    "intersection": intersection,
    "union": union,
    "grow-diagonal": grow_diagonal,
    "grow-diagonal-final": grow_diagonal_final,
}
