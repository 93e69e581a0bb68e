"""Word alignments out of attention weights: from tokens to the words that known alignments count."""

from collections.abc import Sequence

from attnlab.data.pharaoh import Links
from attnlab.evaluation.alignment import from_weights
from attnlab.evaluation.evidence import ForcedDecoding
from attnlab.tasks.translation.links import token_spans


def link_words(
    source: Sequence[str], target: Sequence[str], forced: ForcedDecoding, shift: int, *, null: bool = False
) -> Links | None:
    """Turn weights over the tokens of one sentence pair into links between its words.

    None where its tokens do not spell its words, as when lowering the case changed a length.

    Args:
        source: words of the source sentence.
        target: words of the target sentence.
        forced: the weights, and whose they are.
        shift: of the rows; see :func:`attnlab.evaluation.alignment.from_weights`.
        null: let a target word have no link that looks at the end symbol of the source more than at any of its words.
    """
    columns, rows = token_spans(source, forced.source[:-1]), token_spans(target, forced.tokens[:-1])
    if columns is None or rows is None:
        return None
    end = [(len(forced.source) - 1, len(forced.source))] if null else []
    found = from_weights(forced.weights, [*columns, *end], rows, shift=shift)
    return {(i, j) for i, j in found if i < len(columns)}


def link_words_of_text(
    words: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]],
    indices: Sequence[int],
    forced: Sequence[ForcedDecoding | None],
    shift: int,
) -> list[Links]:
    """Turn the weights of forced decoding into links between the words that a text's alignments count.

    Args:
        words: of (source, target), sentence by sentence.
        indices: positions of sentence pairs in the text.
        forced: of these pairs; None for one without a source. It gets no link, nor does one whose tokens do not spell it.
        shift: see :func:`link_words`.
    """
    source, target = words
    pairs = zip(indices, forced, strict=True)
    return [set() if f is None else link_words(source[i], target[i], f, shift) or set() for i, f in pairs]
