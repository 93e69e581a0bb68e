"""Problems as tensors and as lines of text."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from attnlab.data.examples import Examples
from attnlab.data.links import GoldLinks
from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, END, EOS, RESERVED
from attnlab.tasks.pointing.lines import show_element, write_element, write_positions
from attnlab.tasks.pointing.problems import ProblemList


class ProblemExamples(Examples):
    """The problems of one split.

    An element is its numbers and a 0; the end element, which every source has at its end, is zeros and a 1, so that pointing
    there can be learned.

    Args:
        problems: of the split.
    """

    unit = "elements"

    def __init__(self, problems: ProblemList) -> None:
        self.problems = problems
        super().__init__(_with_ends(problems.elements), _with_symbols(problems.answers))

    @override
    def source_tokens(self, index: int) -> list[str]:
        return [*map(show_element, self.problems[index].elements), END]

    @override
    def target_tokens(self, index: int) -> list[str]:
        elements, answer = self.problems[index]
        return [*(show_element(elements[position]) for position in answer), END]

    @cached_property
    @override
    def sources(self) -> Sequence[str]:
        return [" ".join(map(write_element, problem.elements)) for problem in self.problems]

    @cached_property
    @override
    def references(self) -> Sequence[str]:
        return [write_positions(problem.answer) for problem in self.problems]

    @cached_property
    @override
    def lengths(self) -> NDArray[np.int64]:
        return np.stack([self.problems.elements.lengths, self.problems.answers.lengths], axis=1)

    @override
    def gold_links(self) -> GoldLinks:
        return GoldLinks.of_positions(enumerate(problem.answer) for problem in self.problems)


def _with_ends(elements: Ragged) -> Ragged:
    """Return sequences of elements that have the end element at their end, and its mark beside their numbers."""
    offsets = elements.offsets + np.arange(len(elements.offsets))
    values = np.zeros((int(offsets[-1]), elements.values.shape[1] + 1), np.float32)
    ends = np.zeros(len(values), dtype=bool)
    ends[offsets[1:] - 1] = True
    values[~ends, :-1] = elements.values[:]
    values[ends, -1] = 1.0
    return Ragged(values, offsets)


def _with_symbols(answers: Ragged) -> Ragged:
    """Return answers as ids, between the start symbol and the end symbol."""
    offsets = answers.offsets + 2 * np.arange(len(answers.offsets))
    values = np.full(int(offsets[-1]), -1, np.int32)
    values[offsets[:-1]], values[offsets[1:] - 1] = BOS, EOS
    values[values < 0] = RESERVED + answers.values[:]
    return Ragged(values, offsets)
