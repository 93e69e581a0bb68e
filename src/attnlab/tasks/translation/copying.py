"""Copying: target vocabularies extended by each source sentence's own words, and source words for unknown ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlab.data.ragged import Ragged
from attnlab.data.symbols import BOS, EOS, UNK
from attnlab.tasks.translation.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class CopyIds:
    """The sentences of one split in the extended target vocabulary (Gu et al. 2016, See et al. 2017).

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


def copy_for_unknown(
    tokens: Sequence[str], ids: Sequence[int], source: Sequence[str], weights: "Tensor", words: int
) -> list[str]:
    """Put the source word with the largest weight in the place of each unknown token (Luong et al. 2015, section 4).

    Args:
        tokens: of a hypothesis.
        ids: of these.
        source: tokens of the source, ending with the end symbol; before the words a symbol of the target language may stand.
        weights: (tokens, source tokens); a token whose row is 0 on all words is not replaced.
        words: how many tokens of the source are words.
    """
    if not words:
        return [*tokens]
    first = len(source) - 1 - words
    largest, places = weights[:, first:-1].max(dim=-1)  # not the end symbol, nor one of a language, which are no words
    each = zip(tokens, ids, largest.tolist(), places.tolist(), strict=True)
    return [source[first + place] if number == UNK and weight > 0 else token for token, number, weight, place in each]
