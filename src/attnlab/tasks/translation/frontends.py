"""Frontends of translation."""

from torch import Tensor
from typing_extensions import override

from attnlab.layers.frontend import TokenFrontend
from attnlab.tasks.translation.languages import LanguageToken


class LanguageFrontend(TokenFrontend):
    """x_j = E_{i_j}, and the target language as a vector that an attention may ask with: that of the symbol, E_l.

    The symbol l is the first element of a source (batch, source_len), and then read by the encoder too; or an element is
    (token, l), of which the encoder reads the token alone, in a source (batch, source_len, 2).

    Parameters:
        embedding: E, as of :class:`TokenFrontend`.

    Args:
        token: where the symbol stands, source or query.
        input_size: number of ids.
        padding_id: the id of padding.
        size: of an embedding.
        shared: whether an id stands for the same token in the output.
    """

    def __init__(self, token: LanguageToken, input_size: int, padding_id: int, size: int, *, shared: bool = True) -> None:
        super().__init__(input_size, padding_id, size, shared=shared)
        self.tells_language = True
        self.tells_attention_alone = token == "query"

    @override
    def forward(self, tokens: Tensor, source: Tensor | None = None, /) -> Tensor:
        return super().forward(tokens[..., 0] if self.tells_attention_alone else tokens, source)

    @override
    def language(self, source: Tensor) -> Tensor:
        vectors: Tensor = self.embedding(source[:, 0, 1] if self.tells_attention_alone else source[:, 0])
        return vectors
