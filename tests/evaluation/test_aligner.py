"""The statistical aligner: expectation maximisation against plain loops, and what it does with words it has not seen."""

import random
from collections import defaultdict
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma

from attnlab.evaluation import aligner
from attnlab.evaluation.aligner import DiagonalAligner

Sequences = list[list[int]]
NULL = -1


def arrays(sequences: Sequences) -> list[NDArray[np.int32]]:
    return [np.array(sequence, dtype=np.int32) for sequence in sequences]


def toy(seed: int, *, pairs: int = 40) -> tuple[Sequences, Sequences]:
    """Pairs whose target is nearly the source, word by word and in order, with a word of no source; some are empty."""
    draw = random.Random(seed)
    sources = [[draw.randrange(8) for _ in range(draw.randint(0, 7))] for _ in range(pairs)]
    targets = []
    for source in sources:
        target = [word + 1 if draw.random() < 0.8 else draw.randrange(9) for word in source if draw.random() < 0.8]
        if len(target) > 2 and draw.random() < 0.5:
            target[0], target[1] = target[1], target[0]
        if target and draw.random() < 0.5:
            target.insert(draw.randrange(len(target)), 9)
        targets.append(target)
    return sources, targets


def prior(i: int, j: int, m: int, n: int, tension: float) -> float:
    if not j:
        return 0.08
    normalizer = sum(exp(-tension * abs(i / m - k / n)) for k in range(1, n + 1))
    return 0.92 * exp(-tension * abs(i / m - j / n)) / normalizer


def plain_loops(sources: Sequences, targets: Sequences, iterations: int) -> tuple[dict[tuple[int, int], float], float]:
    pairs = [(s, t) for s, t in zip(sources, targets, strict=True) if s and t]
    together = {(f, e) for s, t in pairs for f in [NULL, *s] for e in t}
    theta, tension = dict.fromkeys(together, 1.0), 4.0
    for iteration in range(iterations):
        counts: defaultdict[tuple[int, int], float] = defaultdict(float)
        linked: defaultdict[tuple[int, int, int], float] = defaultdict(float)
        distance = 0.0
        for s, t in pairs:
            for i, e in enumerate(t, 1):
                joint = [prior(i, j, len(t), len(s), tension) * theta[f, e] for j, f in enumerate([NULL, *s])]
                for j, f in enumerate([NULL, *s]):
                    share = joint[j] / sum(joint)
                    counts[f, e] += share
                    if j:
                        linked[i, len(t), len(s)] += share
                        distance += share * abs(i / len(t) - j / len(s))
        totals: defaultdict[int, float] = defaultdict(float)
        for f, e in together:
            totals[f] += counts[f, e] + 0.01
        theta = {(f, e): exp(digamma(counts[f, e] + 0.01) - digamma(totals[f])) for f, e in together}
        if not iteration:
            continue
        low, high = 0.1, 14.0
        for _ in range(60):  # where the prior expects as much distance as there is
            middle = (low + high) / 2
            expected = sum(
                weight * sum(prior(i, j, m, n, middle) / 0.92 * abs(i / m - j / n) for j in range(1, n + 1))
                for (i, m, n), weight in linked.items()
            )
            low, high = (middle, high) if expected > distance else (low, middle)
        tension = low
    return theta, tension


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_training_is_that_of_plain_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligner, "CELLS", 60)  # so that pairs of one shape are several parts
    sources, targets = toy(seed)
    model = DiagonalAligner.train(arrays(sources), arrays(targets), (8, 10), iterations=3)
    theta, tension = plain_loops(sources, targets, 3)
    assert 0.1 < tension < 14.0
    assert model.tension == pytest.approx(tension, rel=1e-9)
    found = {(int(key // 10), int(key % 10)): value for key, value in zip(model.keys, model.translations, strict=True)}
    assert found.keys() == {(8 if f == NULL else f, e) for f, e in theta}
    for (f, e), value in theta.items():
        assert found[8 if f == NULL else f, e] == pytest.approx(value, rel=1e-6)

    found_links = model.link(arrays(sources), arrays(targets))
    for source, target, links in zip(sources, targets, found_links, strict=True):
        assert len({word for _, word in links}) == len(links)
        chosen = {word: place + 1 for place, word in links}
        for i, e in enumerate(target if source else [], 1):
            scores = [
                prior(i, j, len(target), len(source), tension) * max(theta.get((f, e), 0.0), 1e-9)
                for j, f in enumerate([NULL, *source])
            ]  # of which two may be equal, where a word stands twice
            assert scores[chosen.get(i - 1, 0)] == pytest.approx(max(scores), rel=1e-6)
    linkable = sum(len(t) for s, t in zip(sources, targets, strict=True) if s)
    assert 0 < sum(map(len, found_links)) < linkable, "some words have a link, and some have none"


def test_the_tension_stays_inside_its_bounds() -> None:
    words = [[word] for word in range(6)] * 500
    in_order = [[0, 1, 2, 3, 4, 5], *words]
    model = DiagonalAligner.train(arrays(in_order), arrays(in_order), (6, 6))
    assert model.tension == 14.0
    turned = [sequence[::-1] for sequence in in_order]
    assert DiagonalAligner.train(arrays(in_order), arrays(turned), (6, 6)).tension == 0.1


def test_an_unknown_word_is_linked_to_an_unknown_word() -> None:
    """Words 3 and 4 were not seen; what was seen keeps its translation, wherever it stands."""
    sources = [[0], [1], [2], [0, 1], [1, 2], [2, 0]] * 10
    targets = [sequence[::-1] for sequence in sources]
    model = DiagonalAligner.train(arrays(sources), arrays(targets), (5, 100))
    found = model.link(arrays([[0, 3, 1], [3, 0], []]), arrays([[0, 4, 1], [0, 4], [1]]))
    assert found == [{(0, 0), (1, 1), (2, 2)}, {(1, 0), (0, 1)}, set()]
    among_known = model.link(arrays([[0, 1]]), arrays([[0, 4]]))
    assert among_known == [{(0, 0), (1, 1)}], "where no translation is known, the place decides"


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(ValueError, match="no pair"):
        DiagonalAligner.train(arrays([[], [1]]), arrays([[1], []]), (2, 2))
