"""Corpora after tokenization, as they are kept on disk."""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnlab.data.batches import no_examples
from attnlab.data.cache import StoredFolder
from attnlab.data.lines import OFFSETS, TEXT, LineWriter, StoredLines
from attnlab.data.ondemand import OnDemand
from attnlab.data.pharaoh import format_gold, parse_links
from attnlab.data.progress import progress
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, EOS
from attnlab.errors import UserError
from attnlab.tasks.translation.annotations import format_annotations, parse_annotations
from attnlab.tasks.translation.corpora import SIDES, Corpus, PairStream, ParallelText
from attnlab.tasks.translation.encoding import NumberedText, TypeNumbers, encode_parts, parse_unknown, sample_sentences
from attnlab.tasks.translation.languages import language_symbol
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import Vocabulary

log = logging.getLogger(__name__)

T = TypeVar("T")
SAMPLE = 2**25
"""Bytes of training text that a tokenizer learns from: of a larger text every second sentence, every third, and so on."""
UNKNOWN = "{}.{}.unknown"
"""Name of the lines that tell the unknown tokens of a side of a split."""
PART = 2**12
"""Pairs that are written at once."""


@dataclass(frozen=True)
class VocabularyOptions:
    """How vocabularies are made.

    Attributes:
        min_frequency: leave out types that are rarer in training.
        max_size: keep at most so many types, special ones not counted; None keeps all.
        shared: one vocabulary for both sides and, if it learns its pieces, one tokenizer.

    Raises:
        UserError: a number that is not positive.
    """

    min_frequency: int = 1
    max_size: int | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        for name in ("min_frequency", "max_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be 1 or more, not {value}")


@dataclass(frozen=True)
class TokenizedCorpus:
    """A corpus after tokenization; text and ids stay on disk.

    Attributes:
        text: sentences of each split, in the order of the ids.
        ids: of each split, (source, target); a source sentence ends with the end symbol, a target sentence has both.
        unknown: of each split, (source, target); the tokens of each sentence that the vocabularies lack.
        vocabularies: (source, target).
        tokenizer_states: what the tokenizers learned, that of the source and that of each target language.
        overlap: how many pairs of each other split stand in training too; see :func:`count_overlap`.
    """

    text: dict[str, ParallelText]
    ids: dict[str, tuple[Ragged, Ragged]]
    unknown: dict[str, tuple[Sequence[list[str]], Sequence[list[str]]]]
    vocabularies: tuple[Vocabulary, Vocabulary]
    tokenizer_states: Sequence[dict[str, Any]]
    overlap: dict[str, int]


def write_corpus(
    corpus: Corpus,
    tokenizers: Sequence[Tokenizer],
    options: VocabularyOptions,
    max_length: int | None,
    folder: Path,
    *,
    processes: int = 1,
) -> None:
    """Learn tokenizers and vocabularies from the training set, tokenize every split, and write all into an empty folder.

    No more of the text than a part is held in memory, but what grows with the number of its types, and a few bytes a pair.

    Args:
        corpus: the text.
        tokenizers: of the source and of each target language, not yet fitted.
        options: of the vocabularies.
        max_length: leave out training pairs with a side of more tokens; None keeps all.
        folder: that is written into.
        processes: that may tokenize at once; what is written does not depend on it.

    Raises:
        UserError: an empty split, sides or alignments of unequal length, a sentence of two lines, no training pair short
            enough, or no type frequent enough.
    """
    splits = corpus.open()
    train = list(corpus.parts["train"].values())
    of_language = dict(zip(corpus.languages[1:], tokenizers[1:], strict=True))
    chosen = {part: (tokenizers[0], of_language[code]) for part, code in corpus.part_languages.items()}
    symbols = [language_symbol(code) for code in of_language] if len(of_language) > 1 else []
    for split, stream in splits.items():
        _write_text(folder, split, stream)
    texts = {split: _sides(folder, split) for split in splits}
    _fit(tokenizers, [texts[part] for part in train], shared=options.shared)
    numbered: tuple[dict[str, NumberedText], ...] = ({}, {})
    numbers = [TypeNumbers()] * 2 if options.shared else [TypeNumbers(), TypeNumbers()]
    with progress("tokenizing", 2 * sum(len(lines) for lines, _ in texts.values())) as advance:
        encoded = encode_parts(texts, chosen, processes)
        for (side, split), own in groupby(encoded, key=lambda item: (item[0].side, item[0].split)):
            parts = (part for _, part in own)
            numbered[side][split] = NumberedText.write(folder / f"{split}.{side}.npy", parts, numbers[side], advance)
    kept = {} if max_length is None else _find_short(numbered, train, max_length)
    counted = [[(side[part], kept.get(part)) for part in train] for side in numbered]
    vocabularies = _build_vocabularies(counted, numbers, options, symbols)
    for side, of_split, types, vocabulary in zip(SIDES, numbered, numbers, vocabularies, strict=True):
        known = list(types)
        table = np.array(vocabulary.encode(known), dtype=np.int32)
        for split, text in of_split.items():
            text.write_ids(folder, f"{split}.{side}", table, kept.get(split), starts=side == "target")
            text.write_unknown(folder, UNKNOWN.format(split, side), known, table, kept.get(split))
            text.path.unlink()
    for split, is_kept in kept.items():
        given = {"alignments": splits[split].is_aligned, "annotations": splits[split].annotations is not None}
        for part in [*SIDES, *(name for name, is_given in given.items() if is_given)]:
            _write_kept(folder, f"{split}.{part}", is_kept)
    index = {
        "splits": list(splits),
        "symbols": len(symbols),
        "vocabularies": [vocabulary.tokens for vocabulary in vocabularies],
        "tokenizers": [tokenizer.state() for tokenizer in tokenizers],
        "aligned": {split: stream.is_aligned for split, stream in splits.items()},
        "annotated": {split: stream.annotations is not None for split, stream in splits.items()},
        "words": {split: stream.words for split, stream in splits.items()},
        "overlap": count_overlap({split: ParallelText(*_sides(folder, split)) for split in splits}, train),
    }
    (folder / "index.json").write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")


def _sides(folder: Path, split: str) -> tuple[StoredLines, StoredLines]:
    source, target = (StoredLines.written(folder, f"{split}.{side}") for side in SIDES)
    return source, target


def _write_text(folder: Path, split: str, stream: PairStream) -> None:
    with ExitStack() as stack:
        advance = stack.enter_context(progress(f"reading {split}"))
        parts = [*SIDES, *(["alignments"] if stream.is_aligned else [])]
        writers = [stack.enter_context(LineWriter(folder, f"{split}.{part}")) for part in parts]
        pairs = stream.pairs()
        count = 0
        while part := list(islice(pairs, PART)):
            source, target, links = zip(*part, strict=True)
            for writer, lines in zip(writers, (source, target, map(format_gold, links)), strict=False):
                writer.append(list(lines))
            count += len(part)
            advance(len(part))
    if not count:
        raise UserError(f"the corpus has no sentence in {split}")
    if stream.annotations is not None:
        with LineWriter(folder, f"{split}.annotations") as writer:
            writer.append(list(map(format_annotations, stream.annotations)))


def _fit(tokenizers: Sequence[Tokenizer], train: Sequence[tuple[StoredLines, StoredLines]], *, shared: bool) -> None:
    """Let tokenizers learn from the training pairs of each target language; those that learn pieces learn them together."""
    sources, targets = zip(*train, strict=True)
    source, *others = tokenizers
    if not source.learns_pieces:
        together = [([source], sources), *(([one], [lines]) for one, lines in zip(others, targets, strict=True))]
    elif shared:
        together = [([source, *others], [*sources, *targets])]
    else:
        together = [([source], sources), (others, targets)]
    for (first, *rest), lines in together:
        first.fit(sample_sentences(lines, SAMPLE))
        for tokenizer in rest:
            tokenizer.load_state(first.state())


def _find_short(
    numbered: Sequence[Mapping[str, NumberedText]], train: Sequence[str], max_length: int
) -> dict[str, NDArray[np.bool_]]:
    """Return of the training pairs of each target language which are short enough; nothing where all are."""
    kept = {part: np.maximum(*(side[part].lengths for side in numbered)) <= max_length for part in train}
    count, total = sum(int(own.sum()) for own in kept.values()), sum(map(len, kept.values()))
    if not all(own.any() for own in kept.values()):
        of_part = "" if len(train) == 1 else f" of {next(part for part, own in kept.items() if not own.any())}"
        raise no_examples(max_length, f"pair{of_part}")
    if count == total:
        return {}
    log.info("left out %d of %d training pairs: longer than %d tokens", total - count, total, max_length)
    return kept


def _build_vocabularies(
    train: Sequence[Sequence[tuple[NumberedText, NDArray[np.bool_] | None]]],
    numbers: Sequence[TypeNumbers],
    options: VocabularyOptions,
    symbols: Sequence[str],
) -> tuple[Vocabulary, Vocabulary]:
    """Make the vocabularies of both sides; of each there are training texts, and which of their sentences are kept."""
    made = []
    least, most = options.min_frequency, options.max_size
    for side, types, texts in zip(SIDES, numbers, [[*train[0], *train[1]]] if options.shared else train, strict=False):
        counts = sum((text.count(len(types), kept) for text, kept in texts), np.zeros(len(types), dtype=np.int64))
        each = zip(types, map(int, counts), strict=True)
        made.append(Vocabulary.of_counts(each, min_frequency=least, max_size=most, symbols=symbols))
        if len(made[-1]) == made[-1].reserved:
            named = "either" if options.shared else f"the {side}"
            raise UserError(f"min_frequency={least} leaves no type of {named} side: lower it")
    return made[0], made[-1]


def _write_kept(folder: Path, name: str, kept: NDArray[np.bool_]) -> None:
    """Write lines anew, without those that are left out."""
    with LineWriter(folder, "kept") as writer:
        writer.append_some(StoredLines.written(folder, name), kept)
    for form in (TEXT, OFFSETS):
        (folder / form.format("kept")).replace(folder / form.format(name))


def count_overlap(text: Mapping[str, ParallelText], training: Collection[str] = ("train",)) -> dict[str, int]:
    """Count the pairs of each other split that stand in training too, word by word the same; empty ones do not count."""
    others = {split: own for split, own in text.items() if split not in training}
    sought = {hash(pair) for own in others.values() for pair in zip(own.source, own.target, strict=True) if any(pair)}
    train = chain.from_iterable(zip(text[split].source, text[split].target, strict=True) for split in training)
    found = {pair for pair in train if hash(pair) in sought}
    return {
        split: sum(any(pair) and pair in found for pair in zip(own.source, own.target, strict=True))
        for split, own in others.items()
    }


def encode_sources(sentences: Iterable[Sequence[str]], vocabulary: Vocabulary) -> Ragged:
    """Return ids of tokenized sentences, each with the end symbol."""
    return Ragged.of_ids([*vocabulary.encode(sentence), EOS] for sentence in sentences)


def encode_targets(sentences: Iterable[Sequence[str]], vocabulary: Vocabulary) -> Ragged:
    """Return ids of tokenized sentences, each with start and end symbol."""
    return Ragged.of_ids([BOS, *vocabulary.encode(sentence), EOS] for sentence in sentences)


def read_corpus(folder: StoredFolder) -> TokenizedCorpus:
    """Read what :func:`write_corpus` wrote; text and ids stay on disk until they are used.

    Raises:
        Exception: whatever reading damaged files raises.
    """
    index = folder.json("index.json")
    text, ids = {}, {}
    unknown: dict[str, tuple[Sequence[list[str]], Sequence[list[str]]]] = {}
    for split in index["splits"]:
        source, target = (folder.lines(f"{split}.{side}") for side in SIDES)
        alignments = _parse_lines(folder.lines(f"{split}.alignments"), parse_links) if index["aligned"][split] else None
        lines = folder.lines(f"{split}.annotations") if index["annotated"][split] else None
        annotations = None if lines is None else _parse_lines(lines, parse_annotations)
        text[split] = ParallelText(source, target, alignments, index["words"][split], annotations)
        ids[split] = (folder.ragged(f"{split}.source"), folder.ragged(f"{split}.target"))
        first, second = (_parse_lines(folder.lines(UNKNOWN.format(split, side)), parse_unknown) for side in SIDES)
        unknown[split] = (first, second)
    made = [Vocabulary(tokens, index["symbols"]) for tokens in index["vocabularies"]]
    return TokenizedCorpus(text, ids, unknown, (made[0], made[1]), index["tokenizers"], index["overlap"])


def _parse_lines(lines: Sequence[str], parse: Callable[[str], T]) -> OnDemand[T]:
    """Read lines when they are asked for: few runs ask for the alignments of the training set."""
    return OnDemand(partial(_parse, lines, parse), len(lines))


def _parse(lines: Sequence[str], parse: Callable[[str], T], indices: Sequence[int]) -> list[T]:
    return [parse(lines[index]) for index in indices]
