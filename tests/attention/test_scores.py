"""Every score against a loop written from its equation, gradients included."""

from collections.abc import Callable

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from attnlab.attention import Attention
from attnlab.attention.normalizers import Softmax
from attnlab.attention.scores import Score
from attnlab.attention.windows import Global
from attnlab.errors import UserError
from conftest import options

CONFIGS = {name: OmegaConf.load(f"conf/attention/score/{name}.yaml") for name in options("attention/score")}
SIZES = {"dot": (4, 4), "scaled_dot": (4, 4)}

LOOPS: dict[str, Callable[[dict[str, Tensor], Tensor, Tensor], Tensor]] = {
    "dot": lambda p, s, h: sum(s[i] * h[i] for i in range(len(s))),
    "scaled_dot": lambda p, s, h: sum(s[i] * h[i] for i in range(len(s))) / len(s) ** 0.5,
    "general": lambda p, s, h: sum(s[i] * p["projection.weight"][i, j] * h[j] for i in range(len(s)) for j in range(len(h))),
    "additive": lambda p, s, h: sum(
        p["v.weight"][0, a]
        * torch.tanh(
            sum(p["query_projection.weight"][a, i] * s[i] for i in range(len(s)))
            + sum(p["key_projection.weight"][a, j] * h[j] for j in range(len(h)))
        )
        for a in range(p["v.weight"].shape[1])
    ),
    "concat": lambda p, s, h: sum(
        p["v.weight"][0, a] * torch.tanh(sum(p["projection.weight"][a, i] * x for i, x in enumerate([*s, *h])))
        for a in range(p["v.weight"].shape[1])
    ),
}


def make(name: str, dtype: torch.dtype = torch.float64) -> Score:
    torch.manual_seed(0)
    score: Score = instantiate(CONFIGS[name])(*SIZES.get(name, (4, 6)))
    return score.to(dtype)


@pytest.mark.parametrize("name", CONFIGS)
def test_equation_and_gradients(name: str) -> None:
    score = make(name)
    query = torch.randn(2, 3, score.query_size, dtype=torch.float64, requires_grad=True)
    states = torch.randn(2, 5, score.memory_size, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 3, 5, dtype=torch.float64)
    inputs = [query, states, *score.parameters()]

    logits = score(query, score.project_keys(states))
    parameters = dict(score.named_parameters())
    rows = [[[LOOPS[name](parameters, query[b, t], states[b, s]) for s in range(5)] for t in range(3)] for b in range(2)]
    expected = torch.stack([torch.stack([torch.stack(list(row)) for row in batch]) for batch in rows])

    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)
    gradients = torch.autograd.grad((logits * weight).sum(), inputs)
    expected_gradients = torch.autograd.grad((expected * weight).sum(), inputs)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["dot", "scaled_dot"])
def test_dot_refuses_unequal_sizes(name: str) -> None:
    with pytest.raises(UserError, match=r"asks with 4 .* answers with 6"):
        instantiate(CONFIGS[name])(4, 6)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_weights_are_a_distribution_over_real_tokens(name: str, dtype: torch.dtype) -> None:
    score = make(name, dtype)
    attention = Attention(score.query_size, score.memory_size, score=lambda q, m: score, window=Global, normalizer=Softmax())
    states = 50 * torch.randn(3, 5, score.memory_size, dtype=dtype)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    query = torch.randn(3, 2, score.query_size, dtype=dtype)
    context, weights, _ = attention(query, attention.memory(states, mask), None)

    assert context.isfinite().all()
    assert (weights >= 0).all()
    assert (weights[1, :, 2:] == 0).all()
    torch.testing.assert_close(weights[:2].float().sum(-1), torch.ones(2, 2), rtol=0, atol=1e-2)
    assert (weights[2] == 0).all()
    assert (context[2] == 0).all()
