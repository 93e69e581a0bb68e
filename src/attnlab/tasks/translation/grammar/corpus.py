"""The corpus that the grammar generates."""

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from typing_extensions import override

from attnlab.data.pharaoh import Gold
from attnlab.errors import UserError
from attnlab.seeding import derive_seed
from attnlab.tasks.translation.annotations import Annotation
from attnlab.tasks.translation.corpora import Corpus, ParallelText
from attnlab.tasks.translation.grammar.annotations import list_annotations
from attnlab.tasks.translation.grammar.derivation import nesting
from attnlab.tasks.translation.grammar.phrases import Word, align
from attnlab.tasks.translation.grammar.sampling import Sampler

GRAMMAR_VERSION = 5
"""Raised whenever the same seed draws other sentences than before."""

SHORT = (3, 20)
LONG = (21, 60)
"""Tokens on either side, of short and of long sentences."""

FEWEST = 3
"""Tokens of a clause at least: a sentence is not shorter than all clauses that are nested in each other."""
MOST_DEPTH = 2
"""Of clauses of training: one level deeper must still be said in a short sentence."""


class Shape(NamedTuple):
    """What the sentences of a split are like.

    Attributes:
        lengths: least and most tokens of either side.
        width: of the ranges of source length that are equally frequent.
        is_deep: whether some clause is one level deeper than any of training, else no clause is.
        joints: probability that one more main clause is joined.
        nesting: how many times likelier than in training something holds a clause.
    """

    lengths: tuple[int, int]
    width: int
    is_deep: bool
    joints: float
    nesting: float = 1.0


LIKE_TRAINING = Shape(SHORT, 3, is_deep=False, joints=0.1)
SHAPES = {
    "train": LIKE_TRAINING,
    "val": LIKE_TRAINING,
    "test": LIKE_TRAINING,
    "test_long": Shape(LONG, 10, is_deep=False, joints=0.7),
    "test_deep": Shape(SHORT, 20, is_deep=True, joints=0.0, nesting=12.0),
    "test_long_deep": Shape(LONG, 10, is_deep=True, joints=0.4, nesting=12.0),
}

PATIENCE = 20_000
"""Sentences drawn in vain, one after another, before the search for one more is given up."""


class GrammarCorpus(Corpus):
    """Sentence pairs drawn from a grammar of English and German, with gold word alignments and annotations of phenomena.

    Training, validation and ``test`` have 3 to 20 tokens a side, spread evenly, and clauses nested up to ``max_depth`` levels.
    Three more test sets tell length from depth. ``test_long`` has 21 to 60 tokens and nests no deeper: it is long by clauses
    that are joined, by modifiers and by adjuncts. ``test_deep`` is as short as training and somewhere one level deeper;
    ``test_long_deep`` is both. No two pairs of the whole corpus share a source sentence, and no sentence of training, on
    either side, becomes one of validation or of a test by replacing one word.

    Args:
        source: en or de.
        target: the other one.
        train_size, val_size, test_size, test_long_size, test_deep_size, test_long_deep_size: pairs.
        max_depth: how deeply clauses of training nest: 1 or 2, since four levels are hardly ever said in 20 tokens.
        seed: of the corpus; not the run's.
        open_names: probability that a name is invented on the spot, and so unknown to a vocabulary of words.

    Raises:
        UserError: other languages, sizes or depths that are not possible; from :meth:`load`, more sentences asked for
            than can be found.
    """

    test_names = ("test", "test_long", "test_deep", "test_long_deep")

    def __init__(
        self,
        *,
        source: str = "en",
        target: str = "de",
        train_size: int = 12000,
        val_size: int = 500,
        test_size: int = 500,
        test_long_size: int = 150,
        test_deep_size: int = 150,
        test_long_deep_size: int = 150,
        max_depth: int = 2,
        seed: int = 1,
        open_names: float = 0.0,
    ) -> None:
        if {source, target} != {"en", "de"}:
            raise UserError(f"the grammar speaks en and de, not source={source} and target={target}")
        self.languages = (source, target)
        tests = (test_size, test_long_size, test_deep_size, test_long_deep_size)
        self.sizes = dict(zip(("train", "val", *self.test_names), (train_size, val_size, *tests), strict=True))
        for name, size in self.sizes.items():
            if size < 1:
                raise UserError(f"{name}_size must be 1 or more, not {size}")
        if not 1 <= max_depth <= MOST_DEPTH:
            raise UserError(f"max_depth must be 1 to {MOST_DEPTH}, not {max_depth}")
        if not 0.0 <= open_names <= 1.0:
            raise UserError(f"open_names must be a probability from 0 to 1, not {open_names}")
        self.max_depth = max_depth
        self.seed = seed
        self.open_names = open_names

    @override
    def fingerprint(self) -> str:
        options = [GRAMMAR_VERSION, self.languages, self.sizes, self.max_depth, self.seed, self.open_names]
        return hashlib.sha256(json.dumps(["grammar", *options]).encode()).hexdigest()

    @override
    def load(self) -> dict[str, ParallelText]:
        return {**self.open()}

    @override
    def open(self) -> Mapping[str, ParallelText]:
        return _Drawn([*self.sizes], self._splits())

    def _splits(self) -> Iterator[tuple[str, ParallelText]]:
        """Draw each from its own generator, and training last: its size does not change what is tested."""
        seen: set[str] = set()
        held_out: set[str] = set()
        for name in ("val", *self.test_names):
            text = self._draw(name, seen, set())
            held_out |= {gapped for side in (text.source, text.target) for sentence in side for gapped in gaps(sentence)}
            yield name, text
        yield "train", self._draw("train", seen, held_out)

    def _draw(self, name: str, seen: set[str], held_out: set[str]) -> ParallelText:
        """Draw distinct pairs whose source lengths are spread over the bounds, in an order that does not show length.

        Args:
            name: of the split.
            seen: sources that are taken; those drawn join them.
            held_out: sentences with a gap, which no sentence drawn may fill.
        """
        shape, count = SHAPES[name], self.sizes[name]
        generator = random.Random(derive_seed(self.seed, f"grammar, {name}"))
        sampler = Sampler(
            generator,
            depths=self._depths(shape),
            open_names=self.open_names,
            joints=shape.joints,
            nesting=shape.nesting,
        )
        low, high = shape.lengths
        low = max(low, FEWEST * (self.max_depth + 2)) if shape.is_deep else low
        quotas = _shares(count, len(range(low, high + 1, shape.width)))
        pairs: list[tuple[str, str, Gold, tuple[Annotation, ...]]] = []
        refused = 0
        while len(pairs) < count:
            if refused == PATIENCE:
                raise UserError(
                    f"the grammar found {len(pairs)} of {count} distinct sentences of {low} to {high} words for {name}: "
                    f"lower {name}_size or change max_depth"
                )
            refused += 1
            sentence = sampler.sentence()
            if shape.is_deep and nesting(sentence) <= self.max_depth:
                continue
            source = sentence.say(self.languages[0])
            bucket = (len(source) - low) // shape.width
            if not low <= len(source) <= high or not quotas[bucket]:
                continue
            target = sentence.say(self.languages[1])
            if not low <= len(target) <= high:
                continue
            text, translation = _join(source), _join(target)
            if text in seen or any(gapped in held_out for side in (text, translation) for gapped in gaps(side)):
                continue
            seen.add(text)
            quotas[bucket] -= 1
            own = () if name == "train" else list_annotations(sentence, self.languages[1])
            pairs.append((text, translation, Gold.all_sure(align(source, target)), own))
            refused = 0
        generator.shuffle(pairs)
        sources, targets, alignments, annotations = map(list, zip(*pairs, strict=True))
        # of training nothing is measured that is written
        return ParallelText(sources, targets, alignments, annotations=None if name == "train" else annotations)

    def _depths(self, shape: Shape) -> list[int]:
        """Return what the depth of each main clause is drawn from: more of the deep ones, which are refused more often."""
        if shape.is_deep:
            return [self.max_depth + 1]
        return [depth for depth in range(self.max_depth + 1) for _ in range(depth + 1)]


class _Drawn(Mapping[str, ParallelText]):
    """Splits that are drawn when they are asked for: whoever evaluates a trained model needs no training set."""

    def __init__(self, names: Sequence[str], splits: Iterator[tuple[str, ParallelText]]) -> None:
        self._names = names
        self._splits = splits
        self._drawn: dict[str, ParallelText] = {}

    @override
    def __getitem__(self, name: str) -> ParallelText:
        while name in self._names and name not in self._drawn:
            self._drawn.update([next(self._splits)])
        return self._drawn[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    @override
    def __len__(self) -> int:
        return len(self._names)


def gaps(sentence: str) -> Iterator[str]:
    """Leave out each word of a sentence in turn; two sentences share a result if one word makes one of them the other."""
    words = sentence.split()
    for position in range(len(words)):
        yield " ".join((*words[:position], "_", *words[position + 1 :]))


def _shares(count: int, buckets: int) -> list[int]:
    """Share a count out evenly."""
    return [count // buckets + (index < count % buckets) for index in range(buckets)]


def _join(words: Sequence[Word]) -> str:
    text = " ".join(word.form for word in words)
    for mark in (",", ".", "?", "'s"):
        text = text.replace(f" {mark}", mark)
    return text
