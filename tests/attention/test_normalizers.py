"""Every stateless normalizer against a loop written from its equation, gradients included."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.attention.normalizers import StatelessNormalizer
from attnlab.errors import UserError
from parts import agree, part, softmax, stateless_normalizers

NAMES = stateless_normalizers()
ALLOWED = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0]], dtype=torch.bool)


def normalizer(name: str, **settings: Any) -> StatelessNormalizer:
    made: StatelessNormalizer = part("normalizer", name, **settings)(4, 6)
    return made


class BySearch(torch.autograd.Function):
    """p_j = max((α - 1) e_j - τ, 0)^(1 / (α - 1)), τ by bisection; its Jacobian is diag(s) - s sᵀ / Σ s with s = p^(2 - α)."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, logits: Tensor, alpha: float) -> Tensor:
        scaled = (alpha - 1) * logits
        low, high = scaled.max() - 1, scaled.max()
        for _ in range(200):
            middle = (low + high) / 2
            total = (scaled - middle).clamp(min=0).pow(1 / (alpha - 1)).sum()
            low, high = (middle, high) if total > 1 else (low, middle)
        weights = (scaled - low).clamp(min=0).pow(1 / (alpha - 1))
        ctx.save_for_backward(weights)
        ctx.alpha = alpha
        return weights

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        s = torch.where(weights > 0, weights.pow(2 - ctx.alpha), 0)
        return s * gradient - s * (s @ gradient) / s.sum(), None


def straight_through(logits: Tensor) -> Tensor:
    best = max(range(len(logits)), key=lambda j: float(logits[j].detach()))
    soft = softmax(logits)
    return torch.eye(len(logits), dtype=logits.dtype)[best] + soft - soft.detach()


LOOPS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": softmax,
    "sparsemax": lambda logits: BySearch.apply(logits, 2.0),
    "entmax15": lambda logits: BySearch.apply(logits, 1.5),
    "hard": straight_through,
    "uniform": lambda logits: 0 * logits + 1 / len(logits),
    "sigmoid": lambda logits: 1 / (1 + len(logits) * torch.exp(-logits)),  # exp(e - log n) = exp(e) / n
    "sink": lambda logits: torch.exp(logits) / (1 + sum(torch.exp(e) for e in logits)),
}


def by_loop(loop: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
    rows = []
    for row, allowed in zip(logits, ALLOWED, strict=True):
        where = allowed.nonzero().squeeze(1)
        rows.append(torch.zeros(6, dtype=torch.float64).index_put((where,), loop(row[where])))
    return torch.stack(rows)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_equation_and_gradients(name: str, scale: float) -> None:
    torch.manual_seed(0)
    logits = (scale * torch.randn(3, 6, dtype=torch.float64)).requires_grad_()
    weights = normalizer(name).eval()(logits, ALLOWED)
    agree(weights + 0 * logits, by_loop(LOOPS[name], logits), [logits])  # uniform weights depend on nothing


TEMPERATURES = [(name, {"temperature": temperature}) for name in ("softmax", "hard") for temperature in (0.1, 10.0)]


@pytest.mark.parametrize(("name", "settings"), [*((name, {}) for name in NAMES), *TEMPERATURES])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1.0, 3e4])
@pytest.mark.parametrize("training", [False, True])
def test_no_nan_even_where_nothing_is_allowed(
    name: str, settings: dict[str, float], dtype: torch.dtype, size: float, training: bool
) -> None:
    torch.manual_seed(0)
    logits = (size * torch.randn(4, 6)).clamp(-6e4, 6e4).to(dtype).requires_grad_()
    allowed = torch.cat([ALLOWED, torch.zeros(1, 6, dtype=torch.bool)])
    made = normalizer(name, **settings).train(training)
    weights = made(logits, allowed)
    assert weights.dtype == dtype
    assert (weights >= 0).all()
    assert (weights[~allowed] == 0).all()
    total = weights.float().sum(-1)
    if made.sums_to_one:
        torch.testing.assert_close(total, torch.tensor([1.0, 1.0, 1.0, 0.0]), rtol=0, atol=1e-2)
    assert (total[:3] <= 1.01).all() or not made.shares
    assert total[3] == 0
    (weights + 0 * logits).float().pow(2).sum().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert (logits.grad[~allowed] == 0).all()


def test_a_sink_is_learned() -> None:
    made = normalizer("sink").double()
    with torch.no_grad():
        made.sink.fill_(0.7)
    logits = torch.randn(6, dtype=torch.float64, requires_grad=True)
    allowed = torch.tensor([1, 0, 1, 1, 0, 1], dtype=torch.bool)
    raised = [torch.exp(e) * float(a) for e, a in zip(logits, allowed, strict=True)]
    expected = torch.stack(raised) / (torch.exp(made.sink[0]) + sum(raised))
    agree(made(logits, allowed), expected, [logits, made.sink])
    assert made(logits, allowed).sum() < 1


def test_temperature_divides_the_logits() -> None:
    """Those of the gradient, where the weights are hard."""
    torch.manual_seed(0)
    logits = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    for name in ("softmax", "hard"):
        cold, plain = normalizer(name, temperature=0.5).eval(), normalizer(name).eval()
        agree(cold(logits, ALLOWED), plain(2 * logits, ALLOWED), [logits])
        with pytest.raises(UserError, match="temperature must be above 0"):
            normalizer(name, temperature=0)


def test_sparse_normalizers_leave_positions_out() -> None:
    logits = torch.tensor([[2.0, 1.5, -1.0, -3.0]])
    allowed = torch.ones(1, 4, dtype=torch.bool)
    for name, kept in (("softmax", 4), ("entmax15", 2), ("sparsemax", 2)):
        assert int((normalizer(name)(logits, allowed) > 0).sum()) == kept


def test_hard_attention_samples_in_training_by_its_distribution() -> None:
    """By the Gumbel-max trick the frequency of a position is its softmax probability."""
    torch.manual_seed(0)
    logits = torch.tensor([0.5, 0.0, -1.0, 2.0]).repeat(20000, 1)
    noisy = normalizer("hard").train()
    weights = noisy(logits, torch.tensor([True, True, True, False]))
    assert ((weights.round() - weights).abs() < 1e-6).all()
    torch.testing.assert_close(weights.mean(0)[:3], logits[0, :3].softmax(0), rtol=0, atol=0.02)
    quiet = normalizer("hard", noise=False).train()
    assert (quiet(logits, torch.tensor(True)).argmax(-1) == 3).all()
