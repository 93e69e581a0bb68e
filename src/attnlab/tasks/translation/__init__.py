"""Translation: sentences of one language into another."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnlab.tasks.translation.corpora import Corpus as Corpus
    from attnlab.tasks.translation.corpora import ParallelText as ParallelText
    from attnlab.tasks.translation.multi30k import Multi30k as Multi30k
    from attnlab.tasks.translation.task import Translation as Translation
    from attnlab.tasks.translation.tatoeba import Tatoeba as Tatoeba
    from attnlab.tasks.translation.textfiles import TextFiles as TextFiles
    from attnlab.tasks.translation.tokenization import VocabularyOptions as VocabularyOptions

MODULES = {
    "Corpus": "corpora",
    "Multi30k": "multi30k",
    "ParallelText": "corpora",
    "Tatoeba": "tatoeba",
    "TextFiles": "textfiles",
    "Translation": "task",
    "VocabularyOptions": "tokenization",
}
__all__ = list(MODULES)


def __getattr__(name: str) -> Any:
    """Import what is asked for: a process that tokenizes needs no torch."""
    if name in MODULES:
        return getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
