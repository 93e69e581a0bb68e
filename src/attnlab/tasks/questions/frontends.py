"""How sentences become vectors, and what stands for an answer that nobody reads."""

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.data.symbols import PAD
from attnlab.layers.frontend import SourceFrontend, TargetFrontend, TokenEmbedding


class SentenceFrontend(SourceFrontend):
    """s = Σ_i f_i ⊙ E_{w_i}, over the words w_i of a sentence (Henaff et al. 2017, equation 1).

    The mask f weighs each word by its place, one mask for sentences and one for questions; without it every f_i is 1. An
    entity, which is one word, is its embedding.

    Parameters:
        embedding: E (words, size), drawn from N(0, 1); the row of padding is zero.
        masks: f (2, longest, size), of sentences and of questions, from one.

    Args:
        words: number of ids.
        longest: words in the longest sentence.
        size: of a vector.
        word_mask: whether there are masks.
        entities: that every source begins with.
    """

    joins_words = True

    def __init__(self, words: int, longest: int, size: int, *, word_mask: bool = True, entities: int = 0) -> None:
        super().__init__()
        self.size = size
        self.entities = entities
        self.embedding = TokenEmbedding(words, size, padding_idx=PAD)
        self.masks = nn.Parameter(torch.ones(2, longest, size)) if word_mask else None

    def reset_parameters(self) -> None:
        """Let every word count alike."""
        if self.masks is not None:
            nn.init.ones_(self.masks)

    @override
    def forward(self, source: Tensor, /) -> Tensor:
        kinds, words = source[..., 0], source[..., 1:]
        vectors = self.embedding(words)
        if self.masks is None:
            total: Tensor = vectors.sum(dim=2)
            return total
        of_kind = nn.functional.pad(self.masks, (0, 0, 0, 0, 1, 1), value=1.0)  # of padding and of entities: one
        found: Tensor = torch.einsum("bswe,bswe->bse", vectors, of_kind[kinds])
        return found


class SilentFrontend(TargetFrontend):
    """Zeros: an answer is one token, and what would be read before it is the same start symbol every time. No parameters.

    Args:
        size: of a vector.
    """

    reads_tokens = False

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("zeros", torch.zeros(size), persistent=False)
        self.zeros: Tensor

    @override
    def forward(self, tokens: Tensor, source: Tensor | None, /) -> Tensor:
        return self.zeros.expand(*tokens.shape, self.size)
