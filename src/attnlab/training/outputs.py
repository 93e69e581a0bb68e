"""What a trained model wrote."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from attnlab.search import Hypothesis
from attnlab.tasks.translation.tokenizers import Tokenizer
from attnlab.tasks.translation.vocabulary import BOS, EOS, PAD, UNK, Vocabulary


@dataclass(frozen=True)
class Translation:
    """One translated sentence.

    Attributes:
        index: position of the sentence in its split or its batch.
        text: detokenized hypothesis.
        tokens: hypothesis tokens, ending with the end symbol.
        source: source tokens as the model saw them, ending with the end symbol.
        weights: attention weights (len(tokens), len(source)).
        log_probability: Σ_t log p(y_t | y_<t, x), the end symbol included, in nats.
        score: what the search ranked by.
    """

    index: int
    text: str
    tokens: list[str]
    source: list[str]
    weights: Tensor
    log_probability: float
    score: float


def read_out(
    hypothesis: Hypothesis,
    *,
    index: int,
    source: Sequence[str],
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    beyond: Sequence[str] = (),
    replace_unknown: bool = False,
) -> Translation:
    """Turn ids into text.

    Args:
        hypothesis: what a search found.
        index: see :class:`Translation`.
        source: source tokens, ending with the end symbol.
        vocabulary: of the target side.
        tokenizer: of the target side.
        beyond: words with ids beyond the vocabulary, that were copied.
        replace_unknown: write the source word that was looked at most for an unknown one (Luong et al. 2015, section 4), if
            any was.
    """
    types = [*vocabulary.tokens, *beyond] if beyond else vocabulary.tokens
    tokens = [types[token] for token in hypothesis.tokens]
    weights = hypothesis.weights[:, : len(source)]
    if replace_unknown and len(source) > 1 and bool(weights.any()):
        most = weights[:, :-1].argmax(dim=-1).tolist()  # not the end symbol, which is no word
        tokens = [source[most[t]] if hypothesis.tokens[t] == UNK else token for t, token in enumerate(tokens)]
    written = [token for token, number in zip(tokens, hypothesis.tokens, strict=True) if number not in (PAD, BOS, EOS)]
    text = tokenizer.detokenize(written)
    return Translation(index, text, tokens, list(source), weights, hypothesis.log_probability, hypothesis.score)
