"""Diagnostics: sequences of symbols whose answer is known, and where each symbol of it is from."""

from attnlab.tasks.diagnostics.generators import Copy, Induction, Recall, Reverse, SelectiveCopy, SortSymbols
from attnlab.tasks.diagnostics.problems import SymbolProblem, SymbolProblems
from attnlab.tasks.diagnostics.task import Diagnostics

__all__ = [
    "Copy",
    "Diagnostics",
    "Induction",
    "Recall",
    "Reverse",
    "SelectiveCopy",
    "SortSymbols",
    "SymbolProblem",
    "SymbolProblems",
]
