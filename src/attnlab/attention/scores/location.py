"""The score that sees positions alone."""

from typing import Annotated

from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.scores.score import Score
from attnlab.errors import UserError
from attnlab.hints import Range


class Location(Score):
    """Location-based, e_j(s) = (W s)_j: it sees nothing of the source but its length (Luong et al. 2015, equation 8).

    With the embedding of the previous token beside the state as query and a bias, it is the attention of PyTorch's translation
    tutorial.

    Parameters:
        projection: W (max_length, query_size), with a bias (max_length) if ``bias``, initialised as a ``torch.nn.Linear`` is.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state, not used.
        max_length: rows of W: the longest source, in tokens, its end symbol included; longer ones are refused.
        bias: add a bias.

    Raises:
        UserError: a source that is longer than ``max_length``.
    """

    content_based = False

    def __init__(
        self, query_size: int, memory_size: int, *, max_length: Annotated[int, Range(2)] = 100, bias: bool = False
    ) -> None:
        super().__init__(query_size, memory_size)
        self.max_length: int = max_length
        self.projection = nn.Linear(query_size, max_length, bias=bias)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return the states without their content; what is left is their number."""
        if states.shape[1] > self.max_length:
            raise UserError(
                f"a Location score has {self.max_length} positions, but a source has {states.shape[1]} tokens: raise its "
                f"max_length to {states.shape[1]}"
            )
        return states[..., :0]

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        logits: Tensor = self.projection(query)[..., : keys.shape[1]]
        return logits
