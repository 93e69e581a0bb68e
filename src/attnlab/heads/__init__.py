"""Heads: from what a decoder read to the distribution of what comes next."""

from attnlab.heads.head import Head, TargetSpace
from attnlab.heads.pointer_generator import PointerGeneratorHead
from attnlab.heads.pointing import PointingHead, PointingMemory
from attnlab.heads.values import Absolute, Criterion, Quantiles, Squared, ValueHead
from attnlab.heads.vocabulary import VocabularyHead

__all__ = [
    "Absolute",
    "Criterion",
    "Head",
    "PointerGeneratorHead",
    "PointingHead",
    "PointingMemory",
    "Quantiles",
    "Squared",
    "TargetSpace",
    "ValueHead",
    "VocabularyHead",
]
