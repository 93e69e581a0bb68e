"""What a trained model wrote."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Translation:
    """One translated sentence.

    Attributes:
        index: position of the sentence in its split.
        text: detokenized hypothesis.
        tokens: hypothesis tokens, ending with the end symbol.
        source: source tokens as the model saw them, ending with the end symbol.
        weights: attention weights (len(tokens), len(source)).
    """

    index: int
    text: str
    tokens: list[str]
    source: list[str]
    weights: Tensor
