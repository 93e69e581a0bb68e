"""The corpus that the grammar generates."""

import hashlib
import json
import random
from collections.abc import Sequence

from attnlab.data.corpora import Alignment, Corpus, ParallelText
from attnlab.data.grammar.phrases import Word, align
from attnlab.data.grammar.sampling import Sampler
from attnlab.errors import UserError
from attnlab.seeding import derive_seed

GRAMMAR_VERSION = 1
"""Raised whenever the same seed draws other sentences than before."""

SHORT = (3, 20)
LONG = (21, 60)
"""Tokens on either side: of training, validation and test; of the long test."""


class GrammarCorpus(Corpus):
    """Sentence pairs drawn from a grammar of English and German, with gold word alignments.

    Training, validation and test have 3 to 20 tokens a side, spread evenly; ``test_long`` has 21 to 60, built from the same
    constructions, nested and joined more deeply. No two pairs of the whole corpus share a source sentence.

    Args:
        source: en or de.
        target: the other one.
        train_size, val_size, test_size, test_long_size: pairs.
        max_depth: how deeply clauses nest; the long test goes one deeper.
        seed: of the corpus; not the run's.
        open_names: probability that a name is invented on the spot, and so unknown to a vocabulary of words.

    Raises:
        UserError: other languages, sizes or depths that are not possible; from :meth:`load`, more sentences asked for
            than can be found.
    """

    test_names = ("test", "test_long")

    def __init__(
        self,
        *,
        source: str = "en",
        target: str = "de",
        train_size: int = 12000,
        val_size: int = 500,
        test_size: int = 500,
        test_long_size: int = 300,
        max_depth: int = 2,
        seed: int = 1,
        open_names: float = 0.0,
    ) -> None:
        if {source, target} != {"en", "de"}:
            raise UserError(f"the grammar speaks en and de, not data.source={source} data.target={target}")
        self.languages = (source, target)
        self.sizes = {"train": train_size, "val": val_size, "test": test_size, "test_long": test_long_size}
        for name, size in self.sizes.items():
            if size < 1:
                raise UserError(f"data.{name}_size must be 1 or more, not {size}")
        if max_depth < 1 or not 0.0 <= open_names <= 1.0:
            raise UserError("data.max_depth must be 1 or more, and data.open_names a probability from 0 to 1")
        self.max_depth = max_depth
        self.seed = seed
        self.open_names = open_names

    def fingerprint(self) -> str:
        """See :meth:`Corpus.fingerprint`."""
        options = [GRAMMAR_VERSION, self.languages, self.sizes, self.max_depth, self.seed, self.open_names]
        return hashlib.sha256(json.dumps(["grammar", *options]).encode()).hexdigest()

    def load(self) -> dict[str, ParallelText]:
        """See :meth:`Corpus.load`."""
        seen: set[str] = set()
        short = self._draw("short", SHORT, sum(self.sizes.values()) - self.sizes["test_long"], seen)
        # The tests first: what a training set of another size holds must not change what it is tested on.
        splits, start = {}, 0
        for name in ("val", "test", "train"):
            splits[name] = self._text(short[start : start + self.sizes[name]])
            start += self.sizes[name]
        splits["test_long"] = self._text(self._draw("long", LONG, self.sizes["test_long"], seen))
        return {name: splits[name] for name in self.sizes}

    def _draw(self, name: str, bounds: tuple[int, int], count: int, seen: set[str]) -> list[tuple[list[Word], list[Word]]]:
        """Draw distinct pairs whose source lengths are spread over the bounds, in an order that does not show length."""
        generator = random.Random(derive_seed(self.seed, f"grammar, {name}"))
        is_long = name == "long"
        sampler = Sampler(
            generator,
            max_depth=self.max_depth + is_long,
            open_names=self.open_names,
            joints=0.75 if is_long else 0.08,
        )
        width = 10 if is_long else 4
        quotas = _shares(count, range(bounds[0], bounds[1] + 1, width))
        pairs: list[tuple[list[Word], list[Word]]] = []
        for _ in range(400 * count + 10_000):
            if len(pairs) == count:
                break
            sentence = sampler.sentence()
            english, german = sentence.english(), sentence.german()
            source, target = (english, german) if self.languages[0] == "en" else (german, english)
            bucket = (len(source) - bounds[0]) // width
            if min(len(source), len(target)) < bounds[0] or max(len(source), len(target)) > bounds[1] or not quotas[bucket]:
                continue
            text = _join(source)
            if text not in seen:
                seen.add(text)
                quotas[bucket] -= 1
                pairs.append((source, target))
        if len(pairs) < count:
            raise UserError(
                f"the grammar found {len(pairs)} of {count} distinct {name} sentences: lower data.train_size or "
                "data.test_long_size, or raise data.max_depth"
            )
        generator.shuffle(pairs)
        return pairs

    def _text(self, pairs: Sequence[tuple[list[Word], list[Word]]]) -> ParallelText:
        alignments: list[Alignment] = [align(source, target) for source, target in pairs]
        return ParallelText([_join(s) for s, _ in pairs], [_join(t) for _, t in pairs], alignments)


def _shares(count: int, buckets: Sequence[int]) -> list[int]:
    """Share a count out evenly."""
    return [count // len(buckets) + (index < count % len(buckets)) for index in range(len(buckets))]


def _join(words: Sequence[Word]) -> str:
    text = " ".join(word.form for word in words)
    for mark in ",.?":
        text = text.replace(f" {mark}", mark)
    return text
