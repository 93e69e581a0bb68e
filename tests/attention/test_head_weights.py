"""The weights of single heads beside those that a decoder reports."""

import pytest
import torch

from attnlab.attention import collect_head_weights
from composing import model, sentences


@pytest.mark.parametrize(
    ("overrides", "name", "calls"),
    [
        (["decoder=transformer", "attention=multihead"], "layers.1.attention", 1),
        (["decoder=transformer", "attention=multihead", "decoder.weights_layer=0"], "layers.0.attention", 1),
        (["decoder=luong_feeding", "attention=multihead"], "attention", 3),
        (["attention=context_gate", "attention@attention.inner=multihead"], "attention.inner", 1),
    ],
)
def test_the_mean_over_heads_is_what_is_reported(overrides: list[str], name: str, calls: int) -> None:
    made = model(*overrides, "attention.heads=2" if name != "attention.inner" else "attention.inner.heads=2")
    memory, state = made.encode(*sentences([5, 3]))
    target = torch.tensor([[2, 5, 6], [2, 8, 3]])
    with collect_head_weights(made.decoder) as collected:
        reported = made.decode(target, memory, state).weights
    assert len(collected[name]) == calls
    weights = torch.cat(collected[name], dim=2)
    assert weights.shape == (2, 2, 3, 5)
    assert not torch.allclose(weights[:, 0], weights[:, 1])
    torch.testing.assert_close(weights.mean(dim=1), reported, rtol=0, atol=1e-12)
    made.decode(target, memory, state)
    assert len(collected[name]) == calls  # nothing is collected any more
