"""Windows: which source positions may be looked at, and with which prior."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Window(nn.Module, ABC):
    """Limits the source positions that a query may look at.

    Args:
        query_size: size of a query, for windows that the query places.
    """

    def __init__(self, query_size: int) -> None:
        super().__init__()
        self.query_size = query_size

    @abstractmethod
    def forward(self, query: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the positions allowed and a prior that multiplies the weights after the normalizer.

        Args:
            query: (batch, target_len, query_size).
            mask: (batch, source_len), true where the source has a token.

        Returns:
            Allowed positions (batch, target_len or 1, source_len), and the prior of that shape or None.
        """


class Global(Window):
    """The whole source sentence (Luong et al. 2015, section 3.1: "global attention")."""

    def forward(self, query: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """See :meth:`Window.forward`."""
        return mask.unsqueeze(1), None
