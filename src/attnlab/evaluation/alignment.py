"""Alignments: made from attention weights, symmetrised, and scored against gold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from attnlab.data.pharaoh import Gold, Links
from attnlab.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class AlignmentScore:
    """How well alignments agree with gold, over a whole test set (Och and Ney 2003, section 5).

    Attributes:
        precision: share of the links that are possible, |A ∩ P| / |A|; NaN where there is no link.
        recall: share of the sure links that were found, |A ∩ S| / |S|; NaN where none is sure.
        aer: alignment error rate, 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|); NaN where no link is sure.
        links: |A|.
    """

    precision: float
    recall: float
    aer: float
    links: int

    @classmethod
    def of_counts(cls, counts: NDArray[np.float64]) -> "AlignmentScore":
        """Score the sum (4,) of what :func:`count_links` returns."""
        right, allowed, links, sure = counts.tolist()
        return cls(
            precision=allowed / links if links else float("nan"),
            recall=right / sure if sure else float("nan"),
            aer=1.0 - (right + allowed) / (links + sure) if sure else float("nan"),
            links=int(links),
        )


def count_links(links: Links, gold: Gold) -> tuple[int, int, int, int]:
    """Return |A ∩ S|, |A ∩ P|, |A| and |S| of one pair of sequences."""
    return len(links & gold.sure), len(links & (gold.possible | gold.sure)), len(links), len(gold.sure)


def score(alignments: Sequence[Links], gold: Sequence[Gold]) -> AlignmentScore:
    """Score the alignments of a test set.

    Raises:
        UserError: not as many alignments as gold ones, or gold without a sure link.
    """
    if len(alignments) != len(gold):
        raise UserError(f"{len(alignments)} alignments cannot be scored against {len(gold)} gold ones: one an example")
    if not any(g.sure for g in gold):
        raise UserError("the gold alignment has no sure link, so that there is nothing to find")
    return AlignmentScore.of_counts(
        np.sum([count_links(*pair) for pair in zip(alignments, gold, strict=True)], axis=0, dtype=np.float64)
    )


def best_links(gold: Gold, source_len: int, target_len: int) -> Links:
    """Return the best that one link for every target word can do: a sure one if there is one, else a possible one, else a wrong
    one, as the largest of some weights links every word.

    Args:
        gold: of one pair of sequences.
        source_len: source words.
        target_len: target words.
    """
    ranked = sorted(gold.possible - gold.sure) + sorted(gold.sure)  # of one target word the last of them counts
    chosen = {target: source for source, target in ranked}
    return {(chosen.get(target, 0), target) for target in range(target_len if source_len else 0)}


def diagonal_links(gold: Gold, source_len: int, target_len: int) -> Links:
    """Return the straight diagonal, which links every target word to the source word at the same share of the sequence.

    Args:
        gold: of one pair of sequences, not used.
        source_len: source words.
        target_len: target words.
    """
    return {((2 * target + 1) * source_len // (2 * target_len), target) for target in range(target_len if source_len else 0)}


ANCHORS: dict[str, Callable[[Gold, int, int], Links]] = {
    "best with one link for each target word": best_links,
    "straight diagonal": diagonal_links,
}
"""What an alignment by the largest weight is to be compared with, from (gold, source words, target words)."""


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
    """Grow as :func:`grow_diagonal`, then add links of either direction whose source and target word both have none yet, which
    Moses calls grow-diag-final-and.
    """
    links = grow_diagonal(forward, reverse)
    free = _Free(links)
    for direction in (forward, reverse):
        links |= {link for link in sorted(direction) if free.take(link)}
    return links


def make_silver(forward: Links, reverse: Links) -> Gold:
    """Return what an aligner says in place of people: the links of both directions are sure, those of either are possible."""
    return Gold(forward & reverse, forward | reverse)


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


def from_weights(
    weights: "Tensor", source: Sequence[tuple[int, int]], target: Sequence[tuple[int, int]], *, shift: int
) -> Links:
    """Link every target word to the source word that its tokens look at most; to none where two share the largest weight.

    The tokens of a source word add up their weights; those of a target word are averaged. The end symbol, and any token outside
    the words, is left out. Where all tokens of the source words have one weight there is no link either, for the word of most
    tokens would be looked at most.

    Args:
        weights: (target tokens with the end symbol, source tokens with the end symbol); row t was computed to write token t.
        source: for each source word its first token and the one after its last.
        target: for each target word likewise.
        shift: 0 reads row t as about the token that it wrote, 1 as about the token before, which it had just read: the right
            reading where the decoder's state asks before it has seen what it is going to write.
    """
    rows = [(word, first + shift, min(end + shift, len(weights))) for word, (first, end) in enumerate(target)]
    rows = [(word, first, end) for word, first, end in rows if first < end]
    if not rows or not source or not weights.numel():
        return set()
    words, first, end = (np.array(column) for column in zip(*rows, strict=True))
    spans = np.minimum(source, weights.shape[1])
    by_token = _merge(weights, first, end, dim=0, average=True)
    looked = _merge(by_token, *spans.T, dim=1).numpy()
    largest = looked.max(axis=1)
    clear = ((looked == largest[:, None]).sum(axis=1) == 1) & (largest > 0)
    if (spans[:, 0] < spans[:, 1]).sum() > 1:
        of_words = np.concatenate([np.arange(*span) for span in spans])
        clear &= np.ptp(by_token.numpy()[:, of_words], axis=1) > 0
    return set(zip(looked.argmax(axis=1)[clear].tolist(), words[clear].tolist(), strict=True))


def link_items(weights: "Tensor | None", source: int, target: int, *, shift: int) -> Links:
    """Link every item of a target, such as a symbol, to an item of its source, as :func:`from_weights` links words.

    Args:
        weights: of the target's items and its end, by the source's items and its end; None links nothing.
        source: how many items the source has.
        target: how many the target has.
        shift: as of :func:`from_weights`.
    """
    if weights is None:
        return set()
    columns, rows = ([(place, place + 1) for place in range(size)] for size in (source, target))
    return from_weights(weights, columns, rows, shift=shift)


def _merge(
    weights: "Tensor", first: NDArray[np.int64], end: NDArray[np.int64], *, dim: Literal[0, 1], average: bool = False
) -> "Tensor":
    """Add up, or average, the weights of the tokens of each word, along one dimension; most words are one token."""
    import torch

    first, end = (np.minimum(places, weights.shape[dim]) for places in (first, end))
    merged = weights.index_select(dim, torch.from_numpy(np.minimum(first, weights.shape[dim] - 1)))
    for word in np.flatnonzero(end - first != 1).tolist():
        part = weights.narrow(dim, int(first[word]), int(end[word] - first[word]))
        merged.select(dim, word).copy_(part.mean(dim) if average else part.sum(dim))
    return merged


NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]

SYMMETRISATIONS: dict[str, Callable[[Links, Links], Links]] = {
    "intersection": set.intersection,
    "union": set.union,
    "grow-diagonal": grow_diagonal,
    "grow-diagonal-final": grow_diagonal_final,
}
