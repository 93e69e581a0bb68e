"""What can be copied: target vocabularies extended by each source sentence's own words (Gu et al. 2016, See et al. 2017)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, EOS, UNK
from attnlab.tasks.translation.vocabulary import Vocabulary


@dataclass(frozen=True)
class CopyIds:
    """The sentences of one split in the extended target vocabulary.

    Id V + k, V the size of the target vocabulary, is the k-th type of a pair's own source sentence that the target vocabulary
    lacks. Anything else has its id in the target vocabulary.

    Attributes:
        source: of the source tokens, with the end symbol.
        labels: of the target tokens, from start symbol to end symbol; unknown is what neither the target vocabulary nor the
            source sentence has.
        extensions: for each pair the types V, V + 1, ...
    """

    source: Ragged
    labels: Ragged
    extensions: list[list[str]]

    @classmethod
    def of(cls, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]], vocabulary: Vocabulary) -> "CopyIds":
        """Extend the target vocabulary for each pair.

        Args:
            source: tokens of the source sentences, as strings.
            target: tokens of their translations.
            vocabulary: of the target side.
        """
        sources, labels, extensions = [], [], []
        for source_tokens, target_tokens in zip(source, target, strict=True):
            known = vocabulary.encode(source_tokens)
            own = list(dict.fromkeys(token for token, index in zip(source_tokens, known, strict=True) if index == UNK))
            ids = {token: len(vocabulary) + position for position, token in enumerate(own)}
            sources.append([*_extend(source_tokens, known, ids), EOS])
            labels.append([BOS, *_extend(target_tokens, vocabulary.encode(target_tokens), ids), EOS])
            extensions.append(own)
        return cls(Ragged.of_ids(sources), Ragged.of_ids(labels), extensions)


def _extend(tokens: Sequence[str], known: Sequence[int], ids: Mapping[str, int]) -> list[int]:
    return [ids.get(token, index) for token, index in zip(tokens, known, strict=True)]
