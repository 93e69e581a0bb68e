"""Frontends: how the elements of a source, and the tokens of a target, become vectors."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn
from typing_extensions import override

from attnlab.errors import UserError


class Frontend(nn.Module, ABC):
    """Makes a vector of every element of a sequence.

    Attributes:
        size: of a vector.
        input_size: how many ids there are, or how many numbers an element has; None where that is not fixed.
        reads_numbers: whether an element is numbers, and not an id.
    """

    reads_numbers: ClassVar[bool] = False

    size: int
    input_size: int | None = None

    def tie(self, matrix: nn.Linear) -> None:
        """Share the matrix of the output layer.

        Raises:
            UserError: there are no embeddings that could be that matrix.
        """
        raise UserError(f"a {type(self).__name__} has no embeddings that could be the matrix of the output: leave them untied")


class SourceFrontend(Frontend):
    """Makes the vectors that an encoder reads.

    Attributes:
        tells_language: whether a source tells the target language, one of several.
        tells_attention_alone: whether it tells the language where nothing but an attention can read it.
        entities: elements that every source begins with, the same in all of them.
        joins_words: whether an element may be several words at once.
    """

    joins_words: ClassVar[bool] = False
    tells_language: bool = False
    tells_attention_alone: bool = False
    entities: int = 0

    @abstractmethod
    def forward(self, source: Tensor, /) -> Tensor:
        """Return (batch, source_len, size) for a source (batch, source_len, …), padding included."""

    def language(self, source: Tensor) -> Tensor | None:
        """Return vectors (batch, size) of the target languages that sources tell; None where they tell none."""
        return None


class TargetFrontend(Frontend):
    """Makes the vectors that a decoder reads.

    Attributes:
        reads_source: whether a token may stand for an element of the source, so that the source's vectors are needed.
        reads_tokens: whether the vectors depend on the tokens at all.
    """

    reads_source: ClassVar[bool] = False
    reads_tokens: bool = True

    @abstractmethod
    def forward(self, tokens: Tensor, source: Tensor | None, /) -> Tensor:
        """Return (batch, target_len, size).

        Args:
            tokens: (batch, target_len).
            source: what the source frontend made, (batch, source_len, source size), if ``reads_source``; else None.
        """


class TokenEmbedding(nn.Embedding):
    """Token embeddings drawn from N(0, 1), padding zero.

    The scale decides how fast a recurrent model begins to learn: on Multi30k the loss after 300 steps is 3.7 nats, and 5.0 with
    a standard deviation of 1/√size. Where the matrix is that of an output layer too, which must be small, it is scaled by √size
    on the way in instead (Vaswani et al. 2017, section 3.4).
    """

    scale = 1.0

    @override
    def forward(self, input: Tensor) -> Tensor:
        embeddings = super().forward(input)
        return embeddings if self.scale == 1.0 else embeddings * self.scale

    def share(self, matrix: nn.Linear) -> None:
        """Take an output layer's matrix for one's own."""
        self.weight = matrix.weight
        self.scale = self.embedding_dim**0.5


class TokenFrontend(SourceFrontend, TargetFrontend):
    """x_j = E_{i_j}: every id has an embedding; on either side.

    Parameters:
        embedding: E (input_size, size), drawn from N(0, 1), the row of padding being zero; or an output layer's matrix.

    Args:
        input_size: number of ids.
        padding_id: the id of padding.
        size: of an embedding.
        shared: whether an id stands for the same token in the output.
    """

    def __init__(self, input_size: int, padding_id: int, size: int, *, shared: bool = True) -> None:
        super().__init__()
        self.shared = shared
        self.input_size = input_size
        self.size = size
        self.embedding = TokenEmbedding(input_size, size, padding_idx=padding_id)

    @override
    def tie(self, matrix: nn.Linear) -> None:
        if matrix.in_features != self.size:
            raise UserError(
                f"a tied embedding is of the size of the readout, but the embedding size is {self.size} and the hidden size of "
                f"the decoder {matrix.in_features}: make them equal"
            )
        if matrix.out_features != self.input_size:
            raise UserError(
                f"a tied embedding has as many tokens as the output, but there are {self.input_size} and "
                f"{matrix.out_features}: share one vocabulary between source and target"
            )
        if not self.shared:
            raise UserError(
                "a tied embedding has the tokens of the output, and these are others: share one vocabulary between source and "
                "target"
            )
        self.embedding.share(matrix)

    @override
    def forward(self, tokens: Tensor, source: Tensor | None = None, /) -> Tensor:
        vectors: Tensor = self.embedding(tokens)
        return vectors
