"""What can be copied: target vocabularies extended by each source sentence's own words (Gu et al. 2016, See et al. 2017)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.data.ids import Ids
from attnlab.tasks.translation.vocabulary import BOS, EOS, UNK, Vocabulary


class Copies(NamedTuple):
    """A batch in the extended target vocabulary.

    Id V + k, V the size of the target vocabulary, is the k-th type of a pair's own source sentence that the target vocabulary
    lacks. Anything else has its id in the target vocabulary.

    Attributes:
        source: (batch, source_len), the source tokens; end symbols and padding as in the batch.
        labels: (batch, target_len), the target tokens, from start symbol to end symbol, padded; unknown is what neither the
            target vocabulary nor the source sentence has.
        words: for each pair the types V, V + 1, ...
    """

    source: Tensor
    labels: Tensor
    words: list[list[str]]

    def to(self, device: torch.device, non_blocking: bool = False) -> "Copies":
        """Return the copies with their ids on a device."""
        source, labels = (ids.to(device, non_blocking=non_blocking) for ids in (self.source, self.labels))
        return Copies(source, labels, self.words)


@dataclass(frozen=True)
class ExtendedIds:
    """The sentences of one split in the extended target vocabulary; see :class:`Copies`.

    Attributes:
        source: of the source sentences.
        labels: of the target sentences.
        words: for each pair what extends the vocabulary.
    """

    source: Ids
    labels: Ids
    words: list[list[str]]

    @classmethod
    def find(cls, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]], vocabulary: Vocabulary) -> "ExtendedIds":
        """Extend the target vocabulary for each pair.

        Args:
            source: tokens of the source sentences, as strings.
            target: tokens of their translations.
            vocabulary: of the target side.
        """
        sources, labels, words = [], [], []
        for source_tokens, target_tokens in zip(source, target, strict=True):
            known = vocabulary.encode(source_tokens)
            own = list(dict.fromkeys(token for token, index in zip(source_tokens, known, strict=True) if index == UNK))
            extension = {token: len(vocabulary) + position for position, token in enumerate(own)}
            sources.append([*_extended(source_tokens, known, extension), EOS])
            labels.append([BOS, *_extended(target_tokens, vocabulary.encode(target_tokens), extension), EOS])
            words.append(own)
        return cls(Ids.of(sources), Ids.of(labels), words)

    def batch(self, indices: Sequence[int]) -> Copies:
        """Return the pairs at some positions."""
        (source, _), (labels, _) = self.source.padded(indices), self.labels.padded(indices)
        return Copies(source, labels, [self.words[index] for index in indices])


def _extended(tokens: Sequence[str], known: Sequence[int], extension: Mapping[str, int]) -> list[int]:
    return [extension.get(token, index) for token, index in zip(tokens, known, strict=True)]
