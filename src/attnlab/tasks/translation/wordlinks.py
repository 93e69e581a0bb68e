"""Links between the words of a corpus: those that people or the grammar made, or those of a statistical aligner."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from attnlab.data.cache import load_or_make
from attnlab.data.pharaoh import Gold, Links
from attnlab.evaluation.alignment import make_silver
from attnlab.tasks.translation.aligner import WordAligner
from attnlab.tasks.translation.pairs import SentencePairs


class WordLinks:
    """The links that attentions are scored by. Words are those that alignments count, whatever the tokens of a run are.

    Args:
        training: returns the pairs that the aligner learns from.
        folder: returns where the aligner is kept.
        silver: let its links stand in where nobody has linked the words.

    Attributes:
        may_be_silver: whether they do.
    """

    def __init__(self, training: Callable[[], SentencePairs], folder: Callable[[], Path], *, silver: bool) -> None:
        self._training = training
        self._folder = folder
        self.may_be_silver = silver

    @cached_property
    def aligner(self) -> WordAligner:
        """The statistical aligner, learned from the training set; kept on disk.

        Raises:
            UserError: data that cannot be read.
        """

        def make(folder: Path) -> None:
            WordAligner.train(*self._training().words).write(folder)

        return load_or_make(self._folder(), make=make, read=WordAligner.read)

    def align(self, pairs: SentencePairs, indices: Sequence[int]) -> list[tuple[Links, Links]]:
        """Return the aligner's links of some pairs, in both directions."""
        source, target = pairs.words
        return self.aligner.link([source[index] for index in indices], [target[index] for index in indices])

    def are_silver(self, pairs: SentencePairs) -> bool:
        """Tell whether the links that are known of some pairs are the aligner's."""
        return self.may_be_silver and pairs.text.alignments is None

    def find_known(self, pairs: SentencePairs, indices: Sequence[int]) -> list[Gold] | None:
        """Return the known links of some pairs; None where there are none."""
        if pairs.text.alignments is not None:
            return [pairs.text.alignments[index] for index in indices]
        return [make_silver(*both) for both in self.align(pairs, indices)] if self.may_be_silver else None

    def count_words(self, pairs: SentencePairs, indices: Sequence[int]) -> list[tuple[int, int]] | None:
        """Return how many source and target words some pairs have; None where no links are known."""
        if pairs.text.alignments is None and not self.may_be_silver:
            return None
        source, target = pairs.words
        return [(len(source[index]), len(target[index])) for index in indices]
