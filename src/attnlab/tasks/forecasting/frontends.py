"""How the rows of a series become vectors."""

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.layers.frontend import SourceFrontend, TargetFrontend


class RowFrontend(SourceFrontend, TargetFrontend):
    """x_t = W r_t + b, r_t the numbers of a row: values, covariates and calendar; on either side.

    Parameters:
        projection: W (size, input_size) and b, initialised as a ``torch.nn.Linear`` is.

    Args:
        input_size: numbers in a row.
        size: of a vector.
        hidden: numbers at the beginning of a row that are read as zeros.
    """

    reads_numbers = True

    def __init__(self, input_size: int, size: int, *, hidden: int = 0) -> None:
        super().__init__()
        self.input_size = input_size
        self.size = size
        self.hidden = hidden
        self.reads_tokens = not hidden
        self.projection = nn.Linear(input_size, size)

    @override
    def forward(self, rows: Tensor, source: Tensor | None = None, /) -> Tensor:
        seen = torch.cat([torch.zeros_like(rows[..., : self.hidden]), rows[..., self.hidden :]], dim=-1)
        vectors: Tensor = self.projection(seen)
        return vectors


class PlainRows(SourceFrontend, TargetFrontend):
    """x_t = r_t: the numbers of a row as they are; a control reads none of those that it has written. No parameters.

    Args:
        input_size: numbers in a row.
    """

    reads_numbers = True
    reads_tokens = False

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.input_size = self.size = input_size

    @override
    def forward(self, rows: Tensor, source: Tensor | None = None, /) -> Tensor:
        return rows
