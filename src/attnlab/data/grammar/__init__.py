"""A synchronous grammar of English and German, which generates sentence pairs with gold word alignments."""

from attnlab.data.grammar.corpus import GrammarCorpus

__all__ = ["GrammarCorpus"]
