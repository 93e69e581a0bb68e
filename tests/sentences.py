"""Small parallel text for tests: made, not read."""

import random
from pathlib import Path
from typing import Any

from attnlab.data import BatchOptions
from attnlab.data.datamodule import SequenceDataModule
from attnlab.data.pharaoh import Gold
from attnlab.tasks.translation import Translation, VocabularyOptions
from attnlab.tasks.translation.corpora import Corpus, ParallelText
from attnlab.tasks.translation.tokenizers import WhitespaceTokenizer

SUBJECTS = [("The dog", "Der Hund"), ("A woman", "Eine Frau"), ("My friend", "Mein Freund"), ("Anna's child", "Annas Kind")]
VERBS = [("sees", "sieht"), ("doesn't like", "mag nicht"), ("draws", "zeichnet"), ("'s got", "hat")]
OBJECTS = [("the tree", "den Baum"), ("two T-shirts", "zwei T-Shirts"), ("cats, mice", "Katzen, Mäuse"), ("it", "es")]
ENDS = [(".", "."), ("!", "!"), (" (again).", " (wieder)."), (', "really".', ", „wirklich“."), (" at 3.50 €.", " für 3,50 €.")]


def sentences(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Sentence pairs, natural text."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        clauses = []
        for _ in range(draw.randint(1, 4)):
            subject, verb, thing = draw.choice(SUBJECTS), draw.choice(VERBS), draw.choice(OBJECTS)
            clauses.append(
                [f"{subject[side]}{'' if verb[side][0] == chr(39) else ' '}{verb[side]} {thing[side]}" for side in (0, 1)]
            )
        end = draw.choice(ENDS)
        pairs.append((" and ".join(c[0] for c in clauses) + end[0], " und ".join(c[1] for c in clauses) + end[1]))
    return [english for english, _ in pairs], [german for _, german in pairs]


class MadeCorpus(Corpus):
    """A corpus without files: 300 training pairs, 50 for validation, test sets of 40 and 7, with word alignments."""

    languages = ("en", "de")
    test_names = ("first", "second")

    def fingerprint(self) -> str:
        return "made"

    def load(self) -> dict[str, ParallelText]:
        sizes = {"train": 300, "val": 50, "first": 40, "second": 7}
        return {split: ParallelText(*sentences(size, size), links(size)) for split, size in sizes.items()}


def links(size: int) -> list[Gold]:
    """Something to recognise each sentence by."""
    return [Gold.all_sure([(0, 0), (index, 1)]) for index in range(size)]


def write_pair(prefix: Path, source: str | bytes, target: str | bytes) -> None:
    """Write PREFIX.en and PREFIX.de."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for language, content in (("en", source), ("de", target)):
        prefix.with_name(f"{prefix.name}.{language}").write_bytes(content if isinstance(content, bytes) else content.encode())


VOCABULARY_OPTIONS = {"min_frequency", "max_size", "shared"}
BATCH_OPTIONS = {"size", "by", "pool", "eval_size", "max_length", "num_workers"}


def translation(folder: Path, **changes: Any) -> Translation:
    """A task of translation that keeps its cache in a folder; options of batches and vocabularies by their own names."""
    settings = {"data": MadeCorpus(), "tokenizer": WhitespaceTokenizer, "cache_dir": str(folder / "cache")}
    batches = BatchOptions(**{"size": 32, **{name: changes.pop(name) for name in BATCH_OPTIONS & changes.keys()}})
    vocabulary = VocabularyOptions(**{name: changes.pop(name) for name in VOCABULARY_OPTIONS & changes.keys()})
    return Translation(batches=batches, vocabulary=vocabulary, metrics={}, **{**settings, **changes})


def prepared(task: Translation) -> Translation:
    task.prepare()
    return task


def served(task: Translation, seed: int = 1) -> SequenceDataModule:
    return SequenceDataModule(prepared(task).examples, task.test_names, task.batches, seed=seed)
