"""How elements and positions become vectors."""

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.data.symbols import RESERVED
from attnlab.layers.frontend import SourceFrontend, TargetFrontend


class ElementFrontend(SourceFrontend):
    """x_j = W e_j + b, e_j an element's numbers beside the mark of the end element.

    Parameters:
        projection: W (size, element_size + 1) and b, initialised as a ``torch.nn.Linear`` is.

    Args:
        element_size: numbers in an element.
        size: of a vector.
    """

    reads_numbers = True

    def __init__(self, element_size: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.projection = nn.Linear(element_size + 1, size)

    @override
    def forward(self, source: Tensor) -> Tensor:
        vectors: Tensor = self.projection(source)
        return vectors


class PointedElement(TargetFrontend):
    """The vector of the element that was pointed at last (Vinyals et al. 2015, section 2.3), or of a reserved symbol.

    Parameters:
        reserved: (reserved symbols, size), drawn from N(0, 1): of these the start symbol alone is read.

    Args:
        size: of a vector.
    """

    reads_source = True

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.reserved = nn.Embedding(RESERVED, size)

    @override
    def forward(self, tokens: Tensor, source: Tensor | None) -> Tensor:
        assert source is not None, "the model keeps what the source frontend made"
        positions = (tokens - RESERVED).clamp(min=0).unsqueeze(-1).expand(-1, -1, self.size)
        symbols = self.reserved(tokens.clamp(max=RESERVED - 1))
        return torch.where((tokens < RESERVED).unsqueeze(-1), symbols, source.gather(1, positions).to(symbols.dtype))
