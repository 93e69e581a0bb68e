"""Every attention traces under torch.compile, as one graph unless its normalizer comes from the entmax package."""

import pytest
import torch
from torch import Tensor

from attnlab.attention import AttentionMechanism, Query
from attnlab.attention.noise import NOISE
from conftest import options
from parts import mechanism

BREAKS_THE_GRAPH = {"sparsemax", "entmax15"}


def gradients(ours: AttentionMechanism, *, compiled: bool, fullgraph: bool) -> list[Tensor]:
    def look(query: Tensor, embedding: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        memory = ours.memory(states, mask)
        return ours(Query(query, embedding), memory, ours.start(memory)).context

    torch.manual_seed(0)
    shapes = [(3, 4, 8), (3, 4, 4), (3, 5, 8)]
    inputs = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    mask = torch.arange(5) < torch.tensor([[5], [2], [4]])
    torch._dynamo.reset()
    run = torch.compile(look, fullgraph=fullgraph, backend="aot_eager") if compiled else look
    wanted = [*inputs, *ours.parameters()]
    NOISE.seed(1)
    loss = run(*inputs, mask).pow(2).sum()
    found = torch.autograd.grad(loss, wanted, allow_unused=True)
    return [torch.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in options("attention") if name != "none"])
def test_compiled_gradients_are_the_eager_ones(name: str) -> None:
    ours = mechanism(name, 8, 8, 4).double().train()
    whole = name not in BREAKS_THE_GRAPH
    pairs = zip(gradients(ours, compiled=True, fullgraph=whole), gradients(ours, compiled=False, fullgraph=whole), strict=True)
    for compiled, eager in pairs:
        torch.testing.assert_close(compiled, eager, rtol=0, atol=1e-10)
