"""Parallel corpora, from files or from a grammar to batches of token ids."""
