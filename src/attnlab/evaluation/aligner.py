"""A statistical aligner: what a table of word translations and a preference for the diagonal find in the same pairs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma

from attnlab.data.pharaoh import Links

Ids = Sequence[NDArray[np.int32]]
"""Sequences of the numbers of words, from 0."""

ITERATIONS = 5
NULL = 0.08
"""Probability that a target word has no source word."""
CONCENTRATION = 0.01
"""Of the Dirichlet prior of each source word's translations."""
TENSION = 4.0
"""Before the first iteration."""
TENSIONS = (0.1, 14.0)
"""Between which it is looked for."""
FLOOR = 1e-9
"""Probability of a translation that training has not seen, or has given up."""
CELLS = 2**21
"""Pairs of words that are looked at together."""


@dataclass(frozen=True)
class Part:
    """Pairs of sequences of one shape.

    Attributes:
        indices: positions of the pairs.
        source_len: words of each source.
        target_len: words of each target.
    """

    indices: NDArray[np.int64]
    source_len: int
    target_len: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """(pairs, target_len, source_len + 1), of one cell for each word and each place that it may come from."""
        return len(self.indices), self.target_len, self.source_len + 1

    def keys(self, source: Ids, target: Ids, sizes: tuple[int, int]) -> NDArray[np.int64]:
        """Return the number of each cell's pair of words, in the form of :attr:`shape`; column 0 is of no source word."""
        words = np.full((len(self.indices), self.source_len + 1), sizes[0], dtype=np.int64)
        words[:, 1:] = [source[index] for index in self.indices]
        others = np.array([target[index] for index in self.indices], dtype=np.int64)
        return words[:, None, :] * sizes[1] + others[:, :, None]


def split_by_shape(source: Ids, target: Ids) -> Iterator[Part]:
    """Yield the pairs with a word on either side, those of one shape together."""
    lengths = np.array([[len(s), len(t)] for s, t in zip(source, target, strict=True)], dtype=np.int64).reshape(-1, 2)
    order = np.lexsort(lengths.T)
    order = order[lengths[order].min(axis=1) > 0]
    ends = np.flatnonzero(np.any(np.diff(lengths[order], axis=0), axis=1)) + 1
    for group in np.split(order, ends) if len(order) else ():
        source_len, target_len = lengths[group[0]].tolist()
        size = max(1, CELLS // ((source_len + 1) * target_len))
        for first in range(0, len(group), size):
            yield Part(group[first : first + size], source_len, target_len)


def distances(source_len: int, target_len: int) -> NDArray[np.float64]:
    """Return |i / m - j / n| for target word i of m and source word j of n, both from 1: (target_len, source_len)."""
    rows, columns = np.arange(1, target_len + 1) / target_len, np.arange(1, source_len + 1) / source_len
    return np.abs(rows[:, None] - columns)


def diagonal_prior(source_len: int, target_len: int, tension: float) -> NDArray[np.float64]:
    """Return δ(a_i = j | i, m, n) of :class:`DiagonalAligner`, (target_len, source_len + 1)."""
    near = np.exp(-tension * distances(source_len, target_len))
    prior = np.full((target_len, source_len + 1), NULL)
    prior[:, 1:] = (1.0 - NULL) * near / near.sum(axis=1, keepdims=True)
    return prior


@dataclass(frozen=True)
class DiagonalAligner:
    """IBM model 2 with a prior for the diagonal, in one direction (Dyer, Chahuneau and Smith 2013, equations 1 to 3).

    The model of a target e of m words given a source f of n words is p(e | f) = Π_i Σ_j δ(a_i = j | i, m, n) θ(e_i | f_j),
    where f_0 is no word, δ(a_i = 0) = p_0, and otherwise δ(a_i = j | i, m, n) = (1 - p_0) e^{-λ |i/m - j/n|} / Z_λ(i, m, n).
    θ(· | f) has a Dirichlet prior over the words that share a pair with f, and is exp(ψ(c(f, e) + μ) - ψ(Σ_e' (c(f, e') + μ)))
    by variational Bayes. The tension λ maximises the expected log-likelihood; its gradient is monotonic, so that the root is
    found, where the paper takes some steps towards it. p_0 = .08, μ = .01, and λ begins at 4.

    A source word that training has not seen translates into every target word alike; a target word that it has not seen beside
    a source word that it has seen is hardly its translation.

    Attributes:
        keys: (types,) in order, a number of each pair of a source and a target word that share a pair of training:
            source * target_size + target; the source word after the last is none.
        translations: (types,) θ of each.
        tension: λ.
        sizes: of the vocabularies (source, target).
    """

    keys: NDArray[np.int64]
    translations: NDArray[np.float64]
    tension: float
    sizes: tuple[int, int]

    @classmethod
    def train(cls, source: Ids, target: Ids, sizes: tuple[int, int], *, iterations: int = ITERATIONS) -> "DiagonalAligner":
        """Find translations and tension by expectation maximisation.

        Args:
            source: words of each source.
            target: words of each target.
            sizes: of the vocabularies.
            iterations: of expectation maximisation.

        Raises:
            ValueError: no pair has a word on either side.
        """
        parts = list(split_by_shape(source, target))
        if not parts:
            raise ValueError("no pair has a word on either side")
        cells, keys = _number_types(part.keys(source, target, sizes).ravel() for part in parts)
        first_of_source = np.flatnonzero(np.diff(keys // sizes[1], prepend=-1))
        translations, tension = np.ones(len(keys)), TENSION
        for iteration in range(iterations):
            expected = _Expected(np.zeros(len(keys)), {}, 0.0)
            for part, own in zip(parts, cells, strict=True):
                expected.add(part, own, translations, tension)
            counts = expected.counts + CONCENTRATION
            totals = np.add.reduceat(counts, first_of_source)
            spread = np.repeat(digamma(totals), np.diff(first_of_source, append=len(keys)))
            translations = np.exp(digamma(counts) - spread)
            if iteration:  # the first expectations are of translations that tell nothing
                tension = expected.best_tension()
        return cls(keys, translations, tension, sizes)

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        known = np.zeros(self.sizes[0] + 1, dtype=bool)
        known[self.keys // self.sizes[1]] = True
        return known

    def link(self, source: Ids, target: Ids) -> list[Links]:
        """Link every target word to the source word that it most probably comes from, argmax_j δ(a_i = j) θ(e_i | f_j); to none
        where that is no word.

        Args:
            source: words of each source; a number that was not seen in training is an unknown word.
            target: likewise.
        """
        found: list[Links] = [set() for _ in source]
        for part in split_by_shape(source, target):
            prior = diagonal_prior(part.source_len, part.target_len, self.tension)
            best = (self._translate(part.keys(source, target, self.sizes)) * prior).argmax(axis=2)
            for index, row in zip(part.indices.tolist(), best.tolist(), strict=True):
                found[index] = {(place - 1, word) for word, place in enumerate(row) if place}
        return found

    def _translate(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        seen = np.where(self.keys[places] == keys, self.translations[places], 0.0)
        return np.where(self._known[keys // self.sizes[1]], seen.clip(min=FLOOR), 1.0 / self.sizes[1])


@dataclass
class _Expected:
    """What the model expects of training pairs.

    Attributes:
        counts: (types,) how often each source word became each target word.
        words: of each shape (source_len, target_len), for each target position how many words have a source word.
        distance: Σ |i/m - j/n| over these.
    """

    counts: NDArray[np.float64]
    words: dict[tuple[int, int], NDArray[np.float64]]
    distance: float

    def add(self, part: Part, cells: "_Cells", translations: NDArray[np.float64], tension: float) -> None:
        """Add some pairs.

        Args:
            part: the pairs.
            cells: of the part.
            translations: of each type.
            tension: of the prior.
        """
        posterior = translations[cells.types][cells.places].reshape(part.shape)
        posterior *= diagonal_prior(part.source_len, part.target_len, tension)
        posterior /= posterior.sum(axis=2, keepdims=True)
        self.counts[cells.types] += np.bincount(cells.places, posterior.ravel())
        linked = posterior[:, :, 1:].sum(axis=0)
        shape = (part.source_len, part.target_len)
        self.words[shape] = self.words.get(shape, 0.0) + linked.sum(axis=1)
        self.distance += float((linked * distances(*shape)).sum())

    def best_tension(self) -> float:
        """Return the λ at which the prior expects the distance that the posterior does, or the nearest that is allowed."""
        low, high = TENSIONS
        if self._surplus(low) <= 0.0:
            return low
        return high if self._surplus(high) >= 0.0 else float(brentq(self._surplus, low, high))

    def _surplus(self, tension: float) -> float:
        """Return by how much more distance the prior expects: the gradient in λ of the expected log-likelihood."""
        expected = 0.0
        for shape, words in self.words.items():
            apart = distances(*shape)
            near = np.exp(-tension * apart)
            expected += float(words @ ((near * apart).sum(axis=1) / near.sum(axis=1)))
        return expected - self.distance


class _Cells(NamedTuple):
    """The types of the cells of a part: of cell k that is ``types[places[k]]``."""

    types: NDArray[np.int32]
    places: NDArray[np.int32]


def _number_types(keys: Iterable[NDArray[np.int64]]) -> tuple[list[_Cells], NDArray[np.int64]]:
    """Return of the keys of each part which of all different ones they are, and these, in order."""
    found = [np.unique(part, return_inverse=True) for part in keys]
    types = np.unique(np.concatenate([own for own, _ in found]))
    return [_Cells(np.searchsorted(types, own).astype(np.int32), places.astype(np.int32)) for own, places in found], types
