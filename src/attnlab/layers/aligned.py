"""A linear layer whose product lies in memory as matrix products on a CPU write it fastest."""

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.precision import product_type

ALIGNMENT = 8
"""Numbers between the starts of two rows are a multiple of this."""
FEWEST_ROWS = 128
"""With fewer, the copy that a softmax makes of such a product costs as much as is gained (7,851 numbers a row, two cores)."""


class AlignedLinear(nn.Linear):
    """x ↦ W x + b, as ``torch.nn.Linear`` computes it.

    On a CPU a product in single precision whose rows have 7,851 numbers takes 1.6 times as long as one whose rows have 7,856:
    MKL writes rows slowly that begin anywhere. Here their starts are a multiple of eight numbers apart, so that what is
    returned may be no contiguous tensor.

    Parameters:
        weight: W (out_features, in_features).
        bias: b (out_features,).
    """

    bias: nn.Parameter

    @override
    def forward(self, input: Tensor) -> Tensor:
        width, rows = self.out_features, input.numel() // self.in_features
        is_served = width % ALIGNMENT == 0 or rows < FEWEST_ROWS
        if is_served or input.device.type != "cpu" or product_type(input) not in (torch.float32, torch.float64):
            return super().forward(input)
        product = input.new_empty_strided((rows, width), (width + -width % ALIGNMENT, 1))
        product.copy_(self.bias).addmm_(input.flatten(0, -2), self.weight.t())
        return product.view(*input.shape[:-1], width)
