"""Tokenized corpora on disk, found again by content."""

import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path

from attnlab.data.ids import Ids
from attnlab.errors import UserError
from attnlab.tasks.translation.corpora import Alignment, Corpus, ParallelText
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import BOS, EOS, Vocabulary

log = logging.getLogger(__name__)

FORMAT = 2
"""Raised whenever the files below change their meaning, so that older ones are not found."""

SIDES = ("source", "target")


def cache_folder() -> Path:
    """Return the folder for what can be made or downloaded again: ``ATTNLAB_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("ATTNLAB_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("attnlab")


@dataclass(frozen=True)
class VocabularyOptions:
    """How vocabularies are made.

    Attributes:
        min_frequency: leave out types that are rarer in training.
        max_size: keep at most so many types, special ones not counted.
        shared: one vocabulary for both languages and, if it learns its pieces, one tokenizer.
    """

    min_frequency: int
    max_size: int | None
    shared: bool


@dataclass(frozen=True)
class TokenizedCorpus:
    """A corpus after tokenization.

    Attributes:
        text: sentences of each split, in the order of the ids.
        ids: of each split, (source, target); a source sentence ends with the end symbol, a target sentence has both.
        vocabularies: (source, target).
        tokenizer_states: what the tokenizers learned, (source, target).
    """

    text: dict[str, ParallelText]
    ids: dict[str, tuple[Ids, Ids]]
    vocabularies: tuple[Vocabulary, Vocabulary]
    tokenizer_states: tuple[dict[str, Any], dict[str, Any]]


def tokenize(
    corpus: Corpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    options: VocabularyOptions,
    max_length: int | None,
) -> TokenizedCorpus:
    """Learn tokenizers and vocabularies from the training set, and tokenize every split.

    Args:
        corpus: the text.
        tokenizers: (source, target), not yet fitted.
        options: of the vocabularies.
        max_length: leave out training pairs with a side of more tokens; None keeps all.

    Raises:
        UserError: an empty split, or no training pair short enough.
    """
    text = corpus.load()
    for split, pairs in text.items():
        if not pairs.source:
            raise UserError(f"the corpus has no sentence in {split}")
    train = text["train"]
    if options.shared and tokenizers[0].learns_pieces:
        tokenizers[0].fit(train.source + train.target)
        tokenizers[1].load_state(tokenizers[0].state())
    else:
        tokenizers[0].fit(train.source)
        tokenizers[1].fit(train.target)
    tokens = {
        split: (tokenizers[0].tokenize(pairs.source), tokenizers[1].tokenize(pairs.target)) for split, pairs in text.items()
    }
    if max_length is not None:
        lengths = [max(len(s), len(t)) for s, t in zip(*tokens["train"], strict=True)]
        kept = [index for index, length in enumerate(lengths) if length <= max_length]
        if not kept:
            raise UserError(f"datamodule.max_length={max_length} leaves no training pair: raise it")
        log.info("left out %d of %d training pairs: longer than %d tokens", len(lengths) - len(kept), len(lengths), max_length)
        links = train.alignments and [train.alignments[i] for i in kept]
        source_text, target_text = ([side[i] for i in kept] for side in (train.source, train.target))
        text["train"] = replace(train, source=source_text, target=target_text, alignments=links)
        tokens["train"] = ([tokens["train"][0][i] for i in kept], [tokens["train"][1][i] for i in kept])

    sides: list[Iterable[Sequence[str]]] = list(tokens["train"])
    if options.shared:
        sides = [[*tokens["train"][0], *tokens["train"][1]]] * 2
    source, target = (Vocabulary.build(side, min_frequency=options.min_frequency, max_size=options.max_size) for side in sides)
    ids = {
        split: (
            Ids.of([*source.encode(sentence), EOS] for sentence in source_tokens),
            Ids.of([BOS, *target.encode(sentence), EOS] for sentence in target_tokens),
        )
        for split, (source_tokens, target_tokens) in tokens.items()
    }
    return TokenizedCorpus(text, ids, (source, target), (tokenizers[0].state(), tokenizers[1].state()))


def cached(folder: Path, make: Callable[[], TokenizedCorpus]) -> TokenizedCorpus:
    """Return the tokenized corpus in a folder, making it first if it is not there.

    It is written beside and renamed at last: a folder that exists is whole, whoever else writes the same at the same time.
    One that was damaged later is made again.

    Raises:
        UserError: the folder cannot be written.
    """
    if folder.exists():
        try:
            return _read(folder)
        except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
            log.warning("making the cached corpus %s again: it is damaged (%s)", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    corpus = make()
    temporary = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    try:
        temporary.mkdir(parents=True)
        _write(corpus, temporary)
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.is_dir():  # if it is, another process was faster: the content is the same
                raise
    except OSError as error:
        raise UserError(f"cannot write {folder} ({error.strerror}): add datamodule.cache_dir=FOLDER") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return _read(folder)


def _write(corpus: TokenizedCorpus, folder: Path) -> None:
    index = {
        "splits": list(corpus.text),
        "vocabularies": [vocabulary.tokens for vocabulary in corpus.vocabularies],
        "tokenizers": corpus.tokenizer_states,
        "alignments": {split: pairs.alignments for split, pairs in corpus.text.items()},
        "words": {split: pairs.words for split, pairs in corpus.text.items()},
    }
    for split, pairs in corpus.text.items():
        for side, sentences, ids in zip(SIDES, (pairs.source, pairs.target), corpus.ids[split], strict=True):
            (folder / f"{split}.{side}.txt").write_bytes("\n".join(sentences).encode())
            np.save(folder / f"{split}.{side}.ids.npy", ids.flat)
            np.save(folder / f"{split}.{side}.offsets.npy", ids.offsets)
    index["sizes"] = {path.name: path.stat().st_size for path in folder.iterdir()}
    (folder / "index.json").write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")


def _read(folder: Path) -> TokenizedCorpus:
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    for name, size in index["sizes"].items():
        if (folder / name).stat().st_size != size:
            raise ValueError(f"{name} is not whole")
    text, ids = {}, {}
    for split in index["splits"]:
        source, target = ((folder / f"{split}.{side}.txt").read_bytes().decode().split("\n") for side in SIDES)
        links: list[Alignment] | None = index["alignments"][split]
        alignments = links and [[(s, t) for s, t in pair] for pair in links]
        text[split] = ParallelText(source, target, alignments, index["words"][split])
        arrays = [
            [np.load(folder / f"{split}.{side}.{part}.npy", mmap_mode="r") for part in ("ids", "offsets")] for side in SIDES
        ]
        ids[split] = (Ids(*arrays[0]), Ids(*arrays[1]))
    vocabularies = index["vocabularies"]
    states = index["tokenizers"]
    return TokenizedCorpus(text, ids, (Vocabulary(vocabularies[0]), Vocabulary(vocabularies[1])), (states[0], states[1]))
