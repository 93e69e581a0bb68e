"""Parts of an attention in tests: made by name as conf/ says, and called as an attention calls them."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import yaml
from torch import Tensor, nn

from attnlab.attention import Attention, AttentionMechanism
from attnlab.attention.normalizers import StatelessNormalizer
from attnlab.attention.scores import EqualSizes
from attnlab.config import build
from composing import composed
from conftest import CONF, options

QUERY, MEMORY, EMBEDDING = 4, 6, 3


def part(group: str, name: str, **settings: Any) -> Callable[..., Any]:
    """The factory of a score, window, normalizer, keys or history that conf/ has under a name."""
    made: Callable[..., Any] = build({**_node(group, name), **settings}, f"attention.{group}")
    return made


@cache
def _node(group: str, name: str) -> dict[str, Any]:
    node: dict[str, Any] = yaml.safe_load((CONF / "attention" / group / f"{name}.yaml").read_text())
    if "defaults" not in node:
        return node
    nested: dict[str, Any] = composed("attention=additive", f"attention/{group}={name}")["attention"][group]
    return nested


def stateless_normalizers() -> list[str]:
    """Names of the normalizers that conf/ has which normalise every row on its own."""
    return [n for n in options("attention/normalizer") if issubclass(part("normalizer", n).func, StatelessNormalizer)]


def sequential_normalizers() -> list[str]:
    """Names of the normalizers that conf/ has which carry a state."""
    return [n for n in options("attention/normalizer") if part("normalizer", n).func.sequential]


def score(name: str, *, query: int = QUERY) -> Any:
    """A score in float64; of equal sizes if it wants them."""
    torch.manual_seed(0)
    make = part("score", name, **({"hidden_sizes": [6, 5]} if name == "network" else {}))  # 64 take a plain loop 8 s
    equal = issubclass(make.func, EqualSizes)
    return make(query, query if equal else MEMORY).double()


def attention(
    query_size: int = QUERY,
    memory_size: int = MEMORY,
    embedding_size: int = EMBEDDING,
    *,
    query: Sequence[str] = ("state",),
    kernel: str = "auto",
    **chosen: Any,
) -> Attention:
    """An attention in float64, in evaluation mode; parts are chosen by name or given as factories."""
    usual = {"score": "general", "window": "global", "normalizer": "softmax", "keys": "states", "history": "none"}
    torch.manual_seed(0)
    parts = {group: part(group, made) if isinstance(made, str) else made for group, made in {**usual, **chosen}.items()}
    return Attention(query_size, memory_size, embedding_size, query=query, kernel=kernel, **parts).double().eval()


def mechanism(name: str, query: int, memory: int, embedding: int) -> AttentionMechanism:
    """The attention that conf/ has under a name."""
    torch.manual_seed(0)
    made: AttentionMechanism = build(composed(f"attention={name}")["attention"], "attention")(query, memory, embedding)
    return made


def inputs(batch: int = 2, target: int = 4, source: int = 5, *, query: int = QUERY, memory: int = MEMORY) -> list[Tensor]:
    """Random queries, embeddings and encoder states in float64 that want gradients."""
    torch.manual_seed(1)
    shapes = [(batch, target, query), (batch, target, EMBEDDING), (batch, source, memory)]
    return [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def parameters(module: nn.Module) -> dict[str, Tensor]:
    return dict(module.named_parameters())


def agree(ours: Tensor, theirs: Tensor, wanted: Sequence[Tensor]) -> None:
    """Two computations of one thing have the same values and the same gradients, to 1e-10."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    torch.manual_seed(2)
    weight = torch.randn_like(ours)
    gradients = torch.autograd.grad((ours * weight).sum(), wanted, allow_unused=True, retain_graph=True)
    expected = torch.autograd.grad((theirs * weight).sum(), wanted, allow_unused=True, retain_graph=True)
    for one, other, tensor in zip(gradients, expected, wanted, strict=True):
        zero = torch.zeros_like(tensor)
        torch.testing.assert_close(zero if one is None else one, zero if other is None else other, rtol=0, atol=1e-10)


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


def softmax(logits: Tensor) -> Tensor:
    return torch.exp(logits) / torch.exp(logits).sum()


def lstm(p: dict[str, Tensor], x: Tensor, state: tuple[Tensor, ...], suffix: str = "l0") -> tuple[Tensor, Tensor]:
    """One step of an LSTM with torch's parameters."""
    w, b, u, d = (p[f"{name}_{suffix}"] for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh"))
    h, c = state
    i, f, g, o = (w @ x + b + u @ h + d).chunk(4)
    c = sigmoid(f) * c + sigmoid(i) * g.tanh()
    return sigmoid(o) * c.tanh(), c


def normalize_layer(p: dict[str, Tensor], x: Tensor) -> Tensor:
    centred = x - x.sum() / len(x)
    return centred / torch.sqrt((centred**2).sum() / len(x) + 1e-5) * p["weight"] + p["bias"]


def under(p: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The parameters whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in p.items() if name.startswith(prefix)}
