"""Parallel corpora, from files or from a grammar to batches of token ids."""

from attnlab.data.corpora import Alignment, Corpus, ParallelText
from attnlab.data.datamodule import ParallelDataModule
from attnlab.data.multi30k import Multi30k
from attnlab.data.tatoeba import Tatoeba
from attnlab.data.textfiles import TextFiles

__all__ = ["Alignment", "Corpus", "Multi30k", "ParallelDataModule", "ParallelText", "Tatoeba", "TextFiles"]
