"""The layer of the vocabulary: torch's own numbers, in rows that start where a CPU writes them fastest."""

import pytest
import torch
from torch import Tensor, nn

from attnlab.layers.aligned import ALIGNMENT, FEWEST_ROWS, AlignedLinear
from attnlab.training.arithmetic import flop_counter

ODD = 3 * ALIGNMENT - 5


def layers(width: int, dtype: torch.dtype = torch.float64) -> tuple[AlignedLinear, nn.Linear]:
    """Return two layers of the same weights, ours and torch's."""
    torch.manual_seed(1)
    ours, theirs = AlignedLinear(6, width, dtype=dtype), nn.Linear(6, width, dtype=dtype)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def gradients(layer: nn.Linear, inputs: Tensor) -> list[Tensor]:
    """Return the gradients of the inputs and of the parameters of a loss of random weights."""
    leaf = inputs.clone().requires_grad_()
    product: Tensor = layer(leaf)
    weights = torch.randn(product.shape, dtype=product.dtype, generator=torch.Generator().manual_seed(2))
    return list(torch.autograd.grad((product * weights).sum(), [leaf, *layer.parameters()]))


@pytest.mark.parametrize("shape", [(FEWEST_ROWS,), (4, FEWEST_ROWS // 2)])
def test_a_product_and_its_gradients_are_those_of_torch(shape: tuple[int, ...]) -> None:
    ours, theirs = layers(ODD)
    inputs = torch.randn(*shape, 6, dtype=torch.float64)
    product = ours(inputs)
    torch.testing.assert_close(product, theirs(inputs))
    assert product.stride()[-2] % ALIGNMENT == 0, "the product lies as torch would lay it"
    for own, other in zip(gradients(ours, inputs), gradients(theirs, inputs), strict=True):
        torch.testing.assert_close(own, other)


@pytest.mark.parametrize(
    ("width", "rows", "dtype"),
    [(2 * ALIGNMENT, FEWEST_ROWS, torch.float32), (ODD, FEWEST_ROWS - 1, torch.float32), (ODD, FEWEST_ROWS, torch.bfloat16)],
    ids=["aligned", "few rows", "bfloat16"],
)
def test_where_nothing_is_gained_torch_lays_the_product_out(width: int, rows: int, dtype: torch.dtype) -> None:
    ours, theirs = layers(width, dtype)
    inputs = torch.randn(rows, 6, dtype=dtype)
    product = ours(inputs)
    assert product.is_contiguous()
    assert torch.equal(product, theirs(inputs))


def test_mixed_precision_computes_a_product_in_half() -> None:
    ours, theirs = layers(ODD, torch.float32)
    inputs = torch.randn(FEWEST_ROWS, 6)
    with torch.autocast("cpu", torch.bfloat16):
        product = ours(inputs)
        assert product.dtype == torch.bfloat16
        assert torch.equal(product, theirs(inputs))


def test_the_arithmetic_of_a_product_is_counted() -> None:
    counts = []
    for layer in layers(ODD):
        inputs = torch.randn(FEWEST_ROWS, 6, dtype=torch.float64, requires_grad=True)
        with flop_counter() as counter:
            layer(inputs).sum().backward()
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0
