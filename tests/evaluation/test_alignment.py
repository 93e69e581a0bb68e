"""Word alignments: symmetrisation, links from weights, and the error rates that others publish."""

import itertools
import random
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
import torch

from attnlab.data.pharaoh import Gold, Links, parse_links, transpose
from attnlab.errors import UserError
from attnlab.evaluation.alignment import (
    SYMMETRISATIONS,
    best_links,
    diagonal_links,
    from_weights,
    grow_diagonal,
    grow_diagonal_final,
    make_silver,
    score,
)

PUBLISHED = {
    ("fastalign", "forward"): (28.5, 71.3, 71.8),
    ("fastalign", "reverse"): (32.0, 69.7, 66.4),
    ("fastalign", "intersection"): (28.0, 87.1, 61.3),
    ("fastalign", "union"): (31.8, 61.4, 77.0),
    ("fastalign", "grow-diagonal"): (27.0, 84.5, 64.1),
    ("fastalign", "grow-diagonal-final"): (27.7, 80.6, 65.5),
    ("giza", "forward"): (20.9, 86.3, 72.8),
    ("giza", "reverse"): (23.1, 86.6, 69.0),
    ("giza", "intersection"): (23.4, 95.8, 63.7),
    ("giza", "union"): (20.9, 80.2, 78.1),
    ("giza", "grow-diagonal"): (21.4, 94.2, 67.2),
    ("giza", "grow-diagonal-final"): (20.5, 91.3, 70.2),
}
"""AER, precision and recall in per cent, as published for these very files."""


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("aligner", ["fastalign", "giza"])
def test_published_error_rates_are_reproduced(aligner: str, data_root: Path) -> None:
    folder = data_root / "gold-alignments"
    gold = [parse_links(line, base=1) for line in lines(folder / "deen-rwth" / "deen.talp")]
    forward = [parse_links(line).sure for line in lines(folder / "baselines" / f"{aligner}.deen.talp")]
    reverse = [transpose(parse_links(line).sure) for line in lines(folder / "baselines" / f"{aligner}.deen.reverse.talp")]
    alignments = {"forward": forward, "reverse": reverse}
    for name, symmetrise in SYMMETRISATIONS.items():
        alignments[name] = [symmetrise(one, other) for one, other in zip(forward, reverse, strict=True)]
    for name, found in alignments.items():
        result = score(found, gold)
        aer, precision, recall = PUBLISHED[aligner, name]
        assert 100 * result.aer == pytest.approx(aer, abs=0.1), name
        assert 100 * result.precision == pytest.approx(precision, abs=0.1), name
        assert 100 * result.recall == pytest.approx(recall, abs=0.1), name
    for name in ("grow-diagonal", "grow-diagonal-final"):  # their own files, links and all
        published = [parse_links(line).sure for line in lines(folder / "baselines" / f"{aligner}.deen.{name}.talp")]
        same = sum(ours == theirs for ours, theirs in zip(alignments[name], published, strict=True))
        assert same >= 500
        assert 100 * score(published, gold).aer == pytest.approx(PUBLISHED[aligner, name][0], abs=0.1)


def test_links_are_counted_and_sure_ones_make_no_error() -> None:
    gold = [Gold({(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)}), Gold({(0, 0)}, {(0, 0)})]
    assert score([{(0, 0), (1, 2), (3, 3)}, set()], gold).links == 3
    assert score([g.sure for g in gold], gold).aer == 0.0


def test_no_choice_of_one_link_a_word_is_better_than_the_best() -> None:
    draw = random.Random(0)
    for _ in range(30):
        source_len, target_len = draw.randint(1, 3), draw.randint(1, 3)
        cells = list(itertools.product(range(source_len), range(target_len)))
        sure = {cell for cell in cells if draw.random() < 0.3} or {cells[0]}
        gold = Gold(sure, sure | {cell for cell in cells if draw.random() < 0.3})
        choices = itertools.product(range(source_len), repeat=target_len)
        rates = [score([{(i, j) for j, i in enumerate(chosen)}], [gold]).aer for chosen in choices]
        best = best_links(gold, source_len, target_len)
        assert sorted(j for _, j in best) == list(range(target_len))
        assert score([best], [gold]).aer == pytest.approx(min(rates))
    assert best_links(Gold(set(), set()), 0, 2) == set()


def test_the_diagonal_goes_from_corner_to_corner() -> None:
    nothing = Gold(set(), set())
    assert diagonal_links(nothing, 3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(nothing, 2, 4) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert diagonal_links(nothing, 4, 2) == {(1, 0), (3, 1)}
    assert diagonal_links(nothing, 0, 2) == diagonal_links(nothing, 2, 0) == set()


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(UserError, match="1 alignments cannot be scored against 2"):
        score([set()], [Gold(set(), set())] * 2)
    with pytest.raises(UserError, match="no sure link"):
        score([set()], [Gold(set(), {(0, 0)})])


def test_growing_goes_to_free_neighbours_alone() -> None:
    forward = {(0, 0), (1, 1), (3, 3), (5, 0)}
    reverse = {(0, 0), (1, 2), (2, 1), (3, 3)}
    grown = grow_diagonal(forward, reverse)
    assert grown == {(0, 0), (1, 1), (3, 3)}  # (1, 1) is a free diagonal neighbour; then rows and columns 1 are taken
    assert grow_diagonal_final({(0, 0), (4, 4)}, {(0, 0), (7, 0)}) == {(0, 0), (4, 4)}
    assert grow_diagonal_final({(4, 4)}, {(4, 6), (8, 8)}) == {(4, 4), (8, 8)}, "what goes forward comes first"


def test_links_from_weights_merge_pieces_and_drop_the_end_symbol() -> None:
    """Source pieces of a word add up, target pieces are averaged; the end symbol gets no link even where it is looked at."""
    weights = torch.tensor([[0.1, 0.3, 0.3, 0.3], [0.1, 0.05, 0.1, 0.75], [0.6, 0.1, 0.1, 0.2], [0.0, 0.0, 0.0, 1.0]])
    source, target = [(0, 1), (1, 3)], [(0, 1), (1, 2), (2, 3)]
    assert from_weights(weights, source, target, shift=0) == {(1, 0), (1, 1), (0, 2)}
    pieces = [(0, 1), (1, 3)]
    assert from_weights(weights, source, pieces, shift=0) == {(1, 0), (0, 1)}
    assert from_weights(weights, source, [(0, 1), (1, 2)], shift=1) == {(1, 0), (0, 1)}
    assert from_weights(torch.zeros(2, 3), [(0, 1)], [(0, 1)], shift=0) == set()
    assert from_weights(torch.full((2, 3), 1 / 3), [(0, 1), (1, 2)], [(0, 1)], shift=0) == set(), "both are looked at alike"
    flat = torch.full((2, 4), 0.25)
    assert from_weights(flat, [(0, 1), (1, 3)], [(0, 1)], shift=0) == set(), (
        "the longer word is looked at no more than the other"
    )
    beside = torch.tensor([[0.2, 0.2, 0.2, 0.4]])
    assert from_weights(beside, [(0, 2), (2, 3)], [(0, 1)], shift=0) == set(), "the end is no word, and may be looked at more"
    assert from_weights(flat, [(0, 3)], [(0, 1)], shift=0) == {(0, 0)}, "there is no other word"
    cut = torch.tensor([[0.3, 0.7], [0.5, 0.5]])
    assert from_weights(cut, [(0, 1), (1, 2), (2, 4)], [(0, 1)], shift=0) == {(1, 0)}, "of the last word no weight is known"


@pytest.mark.parametrize("longest", [1, 3, 20])
def test_links_from_weights_are_those_of_a_plain_loop(longest: int) -> None:
    """Word by word and bit by bit, with ties, words without tokens, and rows that the shift puts past the end."""
    generator = random.Random(longest)

    def draw_spans() -> list[tuple[int, int]]:
        sizes = [generator.randint(0 if longest > 1 else 1, longest) for _ in range(generator.randint(1, 12))]
        return list(pairwise(accumulate(sizes, initial=0)))

    def link(weights: torch.Tensor, source: list[tuple[int, int]], target: list[tuple[int, int]], shift: int) -> Links:
        links = set()
        for word, (first, end) in enumerate(target):
            rows = weights[first + shift : end + shift]
            if not len(rows):
                continue
            looked = [float(rows.mean(dim=0)[start:stop].sum()) for start, stop in source]
            tokens = {float(weight) for start, stop in source for weight in rows.mean(dim=0)[start:stop]}
            if len(tokens) == 1 and sum(start < stop for start, stop in source) > 1:
                continue
            if looked.count(max(looked)) == 1 and max(looked) > 0:
                links.add((looked.index(max(looked)), word))
        return links

    found = 0
    for trial in range(100):
        source, target = draw_spans(), draw_spans()
        noise = torch.rand(target[-1][1] + 1, source[-1][1] + 1, generator=torch.Generator().manual_seed(trial))
        weights = (noise * 3).round() / 3 if trial % 2 else noise.softmax(dim=1)
        if trial % 10 == 0:
            weights[::2] = 1 / 3
        for shift in (0, 1):
            expected = link(weights, source, target, shift)
            assert from_weights(weights, source, target, shift=shift) == expected
            found += len(expected)
    assert found > 100


def test_of_silver_links_those_of_both_directions_are_sure() -> None:
    silver = make_silver({(0, 0), (1, 1)}, {(0, 0), (2, 1)})
    assert (silver.sure, silver.possible) == ({(0, 0)}, {(0, 0), (1, 1), (2, 1)})
