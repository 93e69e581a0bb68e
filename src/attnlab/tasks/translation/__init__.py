"""Translation: sentences of one language into another."""

from attnlab.tasks.translation.corpora import Corpus, ParallelText
from attnlab.tasks.translation.multi30k import Multi30k
from attnlab.tasks.translation.task import Translation
from attnlab.tasks.translation.tatoeba import Tatoeba
from attnlab.tasks.translation.textfiles import TextFiles
from attnlab.tasks.translation.tokenization import VocabularyOptions

__all__ = ["Corpus", "Multi30k", "ParallelText", "Tatoeba", "TextFiles", "Translation", "VocabularyOptions"]
