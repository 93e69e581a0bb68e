"""The matrices of several heads."""

import pytest
import torch

from attnlab.attention import HeadProjections
from attnlab.errors import UserError


def projections() -> HeadProjections:
    torch.manual_seed(0)
    return HeadProjections(4, 6, 2).double()


def test_splitting_and_merging_are_inverse_up_to_the_output_matrix() -> None:
    ours = projections()
    states = torch.randn(2, 5, 4, dtype=torch.float64)
    heads = ours.split(states)
    assert heads.shape == (2, 2, 5, 2)
    assert torch.equal(heads[:, 1], states[..., 2:])
    torch.testing.assert_close(ours.merge(heads), states @ ours.output_projection.weight.T)


def test_each_matrix_is_drawn_by_glorots_rule() -> None:
    torch.manual_seed(0)
    ours = HeadProjections(64, 32, 4)
    for name, fans in (("query", 128), ("key", 96), ("value", 96), ("output", 128)):
        largest = getattr(ours, f"{name}_projection").weight.abs().max().item()
        bound = (6 / fans) ** 0.5
        assert 0.98 * bound < largest <= bound


@pytest.mark.parametrize("heads", [0, 3])
def test_heads_that_do_not_divide_the_query_are_refused(heads: int) -> None:
    with pytest.raises(UserError, match=f"{heads} heads cannot share a query of size 4"):
        HeadProjections(4, 6, heads)
