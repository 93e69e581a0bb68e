"""Kernels against the attention's own parts, and which of them is taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.attention import AttentionMechanism, MultiHeadAttention, Query
from attnlab.attention.head_weights import find_attentions
from attnlab.attention.kernels import KERNELS, KernelName, Situation, choose_kernel, fused_attention
from attnlab.errors import UserError
from conftest import options
from parts import attention, mechanism, part

LENGTHS = [20, 13]
PRODUCTS = ["cosine", "dot", "dot_learned_scale", "gaussian", "general", "local_m", "luong_general", "multihead", "qk_norm"]
CLAIMED = [*PRODUCTS, "scaled_dot"]
"""The attentions of conf/ that are a softmax over products; those around another are as the one inside."""
INNER = {"intra_decoder"}
SIZE = 64  # four heads of 16, the smallest that FlexAttention takes on a GPU


@contextmanager
def kernel(mechanism: AttentionMechanism, name: KernelName) -> Iterator[None]:
    """Let all attentions in a mechanism use one kernel."""
    found = [one.attention for one in find_attentions(mechanism)]
    before = [one.kernel for one in found]
    for one in found:
        one.kernel = name
    yield
    for one, earlier in zip(found, before, strict=True):
        one.kernel = earlier


def answer(ours: AttentionMechanism, name: KernelName, given: list[Tensor]) -> Tensor:
    """The contexts of a sequence, in two calls, so that the second begins in the middle of the target."""
    query, embedding, states = given
    mask = torch.arange(states.shape[1], device=query.device) < torch.tensor(LENGTHS, device=query.device).unsqueeze(1)
    memory = ours.memory(states, mask)
    state, contexts = ours.start(memory), []
    with kernel(ours, name):
        for part_of_query in zip(query.split([3, 6], dim=1), embedding.split([3, 6], dim=1), strict=True):
            output = ours(Query(*part_of_query), memory, state, need_weights=False)
            assert (output.weights.shape[-1] == 0) is (name != "eager")
            state = output.state
            contexts.append(output.context)
    assert not hasattr(state, "step") or state.step.flatten().tolist() == [9] * state.step.numel()
    return torch.cat(contexts, dim=1)


def inputs(device: torch.device, dtype: torch.dtype) -> list[Tensor]:
    torch.manual_seed(1)
    shapes = [(2, 9, SIZE), (2, 9, 5), (2, 20, SIZE)]
    return [torch.randn(*shape).to(device, dtype).requires_grad_() for shape in shapes]


def agree_with_eager(ours: AttentionMechanism, name: KernelName, given: list[Tensor], tolerance: float) -> None:
    """Contexts, and where there are gradients they too."""
    fast, slow = answer(ours, name, given), answer(ours, "eager", given)
    torch.testing.assert_close(fast, slow, rtol=tolerance, atol=tolerance)
    if not torch.is_grad_enabled():
        return
    torch.manual_seed(2)
    weight = torch.randn(fast.shape).to(fast)
    wanted = [*given, *ours.parameters()]
    both = (torch.autograd.grad((each * weight).sum(), wanted, allow_unused=True) for each in (fast, slow))
    for one, other in zip(*both, strict=True):
        assert (one is None) is (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance * max(1.0, float(other.abs().max())))


def made(name: str, device: torch.device, dtype: torch.dtype) -> AttentionMechanism:
    return mechanism(name, SIZE, SIZE, 5).to(device, dtype).eval()


@pytest.mark.exhaustive
def test_which_attentions_a_kernel_can_compute() -> None:
    able = []
    for name in options("attention"):
        found = find_attentions(mechanism(name, SIZE, SIZE, 5))
        able += [name] if found and all(one.attention.kernel_obstacle is None for one in found) else []
    assert able == sorted({*CLAIMED, *INNER})


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", [*CLAIMED, *INNER])
def test_the_fused_kernel_is_the_eager_attention(name: str, dtype: torch.dtype, device: torch.device) -> None:
    agree_with_eager(made(name, device, dtype), "sdpa", inputs(device, dtype), 1e-10 if dtype == torch.float64 else 2e-5)


@pytest.mark.parametrize("query", [["embedding", "state"], ["state", "language"]])
def test_the_fused_kernel_is_asked_by_all_parts_of_a_query(query: list[str], device: torch.device) -> None:
    """The language is that of the first token, also where a second call goes on."""
    agree_with_eager(attention(SIZE, SIZE, 5, query=query).to(device), "sdpa", inputs(device, torch.float64), 1e-10)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*CLAIMED, *INNER])
def test_flex_attention_is_the_eager_attention(
    name: str, device: torch.device, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """On a CPU PyTorch's own check that refuses gradients is left out, so that the functions of a window are differentiated."""
    if device.type == "cpu":
        monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *tensors: None)
        monkeypatch.setattr(type(KERNELS["flex"]), "obstacle", lambda self, situation: None)
    torch._dynamo.reset()
    dtype, tolerance = (torch.float32, 5e-3) if device.type == "cuda" else (torch.float64, 1e-10)
    agree_with_eager(made(name, device, dtype), "flex", inputs(device, dtype), tolerance)


@pytest.mark.parametrize("window", ["local_m", "gaussian"])
def test_flex_attention_without_gradients(window: str, device: torch.device) -> None:
    settings: dict[str, Any] = {"radius": 2} if window == "local_m" else {}
    ours = attention(SIZE, SIZE, 5, window=part("window", window, **settings)).to(device, torch.float32)
    torch._dynamo.reset()
    with torch.inference_mode():
        agree_with_eager(ours, "flex", inputs(device, torch.float32), 2e-5 if device.type == "cpu" else 5e-3)


@pytest.mark.parametrize("name", ["sdpa", "flex"])
def test_a_temperature_divides_what_a_window_adds_too(name: KernelName, device: torch.device) -> None:
    parts = {"window": part("window", "gaussian"), "normalizer": part("normalizer", "softmax", temperature=0.25)}
    ours = attention(SIZE, SIZE, 5, **parts).to(device, torch.float32)
    torch._dynamo.reset()
    with torch.inference_mode():
        agree_with_eager(ours, name, inputs(device, torch.float32), 2e-5 if device.type == "cpu" else 5e-3)


@pytest.mark.parametrize("name", ["sdpa", "flex"])
def test_kernels_under_mixed_precision(name: KernelName, device: torch.device) -> None:
    ours, given = made("gaussian", device, torch.float32), inputs(device, torch.float32)
    torch._dynamo.reset()
    with torch.inference_mode():
        exact = answer(ours, "eager", given)
        with torch.autocast(device.type, torch.bfloat16):
            torch.testing.assert_close(answer(ours, name, given).float(), exact, rtol=0.05, atol=0.05)


USUAL = Situation("cpu", frozenset([torch.float32]), 64, needs_gradient=True)


@pytest.mark.parametrize(
    ("name", "changed", "chosen"),
    [
        ("auto", {}, None),
        ("auto", {"fused_on_cpu": True}, "sdpa"),
        ("auto", {"device": "cuda"}, "sdpa"),
        ("auto", {"device": "mps", "needs_gradient": False}, "sdpa"),
        ("eager", {"device": "cuda"}, None),
        ("sdpa", {}, "sdpa"),
        ("flex", {"needs_gradient": False}, "flex"),
        ("flex", {"device": "cuda"}, "flex"),
        ("flex", {"device": "cuda", "size": 16}, "flex"),
    ],
)
def test_the_choice(name: KernelName, changed: dict[str, Any], chosen: KernelName | None) -> None:
    assert choose_kernel(name, USUAL._replace(**changed)) is (None if chosen is None else KERNELS[chosen])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, "the kernel flex has no gradients on a CPU: choose another, or auto"),
        ({"device": "mps"}, "the kernel flex does not run on mps"),
        ({"device": "cuda", "dtypes": frozenset([torch.float64])}, "flex has no double precision on a GPU"),
        ({"device": "cuda", "size": 8}, "flex needs vectors of 16 numbers or more on a GPU, and these have 8"),
    ],
)
def test_a_kernel_that_is_impossible_here_is_refused(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told) as refusal:
        choose_kernel("flex", USUAL._replace(**changed))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"score": "additive"}, "the score Additive is no product of query and key"),
        ({"normalizer": "sparsemax"}, "a Sparsemax normalizer is no softmax"),
        ({"normalizer": "sink"}, "a SinkSoftmax normalizer is no softmax"),
        ({"history": "temporal"}, "a Temporal history changes at every token"),
        ({"window": "local_p"}, "a LocalPredictive window multiplies the weights after the softmax"),
        ({"query": ("state", "context")}, "each of its steps needs the one before"),
    ],
)
@pytest.mark.parametrize("name", ["sdpa", "flex"])
def test_a_composition_that_no_kernel_computes_is_refused(parts: dict[str, Any], told: str, name: KernelName) -> None:
    with pytest.raises(UserError, match=told) as refusal:
        attention(kernel=name, **parts)
    assert f"the kernel {name} computes a softmax over products alone" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert attention(kernel="eager", **parts).kernel_obstacle is not None


def test_a_kernel_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(UserError, match="kernel is auto, eager, sdpa, flex, not 'fast'"):
        attention(kernel="fast")


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_in_bfloat16_on_a_cpu_are_those_of_single_precision(autocast: bool, bias: bool) -> None:
    torch.manual_seed(1)
    given = [torch.randn(3, 2, length, 16).bfloat16() for length in (7, 20, 20)]
    mask = torch.rand(3, 1, 7, 20) > 0.3
    allowed = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf).bfloat16() if bias else mask
    short = [one.clone().requires_grad_() for one in given]
    single = [one.float().requires_grad_() for one in given]
    with torch.autocast("cpu", enabled=autocast, dtype=torch.bfloat16):
        ours = fused_attention(*short, allowed)
    exact = fused_attention(*single, mask)
    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours, exact.bfloat16(), rtol=0, atol=0)
    found = torch.autograd.grad(ours.float().square().sum(), short)
    known = torch.autograd.grad(exact.bfloat16().float().square().sum(), single)
    for gradient, reference in zip(found, known, strict=True):
        torch.testing.assert_close(gradient, reference.bfloat16(), rtol=0, atol=0)


def test_several_heads_of_the_paper_alone_are_fused_on_a_cpu() -> None:
    """Elsewhere a CPU is no faster with it."""
    fused = {}
    for name in (name for name in CLAIMED if name != "multihead"):
        fused[name] = any(one.attention.fused_on_cpu for one in find_attentions(mechanism(name, SIZE, SIZE, 5)))
    assert not any(fused.values())
    sizes = (SIZE, SIZE, 5)
    usual = {group: part(group, name) for group, name in [("window", "global"), ("normalizer", "softmax"), ("history", "none")]}
    for score, expected in [("scaled_dot", True), ("dot", False), ("general", False)]:
        assert MultiHeadAttention(*sizes, score=part("score", score), **usual).head.fused_on_cpu is expected
    for settings in ({"temperature": 2.0}, {"sharpness": "learned"}):
        assert not MultiHeadAttention(*sizes, score=part("score", "scaled_dot", **settings), **usual).head.fused_on_cpu
