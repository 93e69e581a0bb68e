"""Kernels: how a softmax over products of queries and keys is computed where nobody reads the weights.

The reference is an attention's own parts, one after the other, which write the weights down; here it is called eager, and it
can do everything. A kernel computes the context of some attentions without their weights. The first that can do what is asked,
and is worth it there, is taken, unless an attention is told which.
"""

from abc import ABC, abstractmethod
from functools import cache, partial
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from typing_extensions import override

from attnlab.attention.windows import Window
from attnlab.errors import UserError
from attnlab.precision import product_type

KernelName = Literal["auto", "eager", "sdpa", "flex"]


class ProductAttention(NamedTuple):
    """A kernel's task, c_t = Σ_j a_tj v_j with a_t = softmax((scale · q_tᵀk_j + bias_tj) / τ) over what is allowed."""

    query: Tensor
    """(batch, target_len, size)."""
    keys: Tensor
    """(batch, source_len, size)."""
    values: Tensor
    """(batch, source_len, value_size)."""
    mask: Tensor
    """(batch, source_len), true where the source has a token."""
    scale: float
    """What products are multiplied by."""
    window: Window
    """Says which positions are allowed, and what is added to their logits; without a prior."""
    numbers: tuple[Tensor, ...]
    """The window's, of these queries."""
    temperature: float
    """τ, of the softmax."""


class Situation(NamedTuple):
    """What decides which kernel is taken."""

    device: str
    """Its type, such as cuda."""
    dtypes: frozenset[torch.dtype]
    """Of queries, keys and values."""
    size: int
    """Of a key or a value, whichever is smaller."""
    needs_gradient: bool
    fused_on_cpu: bool = False
    """Whether a fused kernel is worth it on a CPU."""


class Kernel(ABC):
    """Computes the contexts of queries without writing their weights down."""

    @abstractmethod
    def obstacle(self, situation: Situation) -> str | None:
        """Return what it lacks for this, in words that follow its name, or None."""

    def pays(self, situation: Situation) -> bool:
        """Return whether it has been found to be worth it for this."""
        return False

    @abstractmethod
    def __call__(self, asked: ProductAttention) -> Tensor:
        """Return the contexts (batch, target_len, value_size)."""


class ScaledDotProduct(Kernel):
    """PyTorch's fused ``scaled_dot_product_attention``, with the window as a mask or as a matrix that is added.

    On a CPU it is seldom faster than the reference (docs/architecture.md has figures).
    """

    @override
    def obstacle(self, situation: Situation) -> None:
        return None

    @override
    def pays(self, situation: Situation) -> bool:
        return situation.fused_on_cpu or situation.device != "cpu"

    @override
    def __call__(self, asked: ProductAttention) -> Tensor:
        allowed, bias, _ = asked.window.region(asked.mask, asked.numbers)
        mask = allowed if bias is None else (bias / asked.temperature).masked_fill(~allowed, -torch.inf)
        query, keys, values, mask = (tensor.unsqueeze(1) for tensor in (asked.query, asked.keys, asked.values, mask))
        return fused_attention(query, keys, values, mask, scale=asked.scale / asked.temperature).squeeze(1)


class Flex(Kernel):
    """PyTorch's FlexAttention (Dong et al. 2024), with the window as functions of a position that are compiled into the kernel.

    What a window forbids is a ``mask_mod``, by which blocks of 128 by 128 are skipped; what it adds to the logits is a
    ``score_mod``, so that no matrix is written. On a CPU, where it is not compiled, it is slow, and there to be compared with.
    It is never chosen by itself: where it is worth it has not been measured.
    """

    SMALLEST_SIZE: ClassVar[int] = 16
    """Of the vectors that are multiplied, on a GPU."""

    @override
    def obstacle(self, situation: Situation) -> str | None:
        if situation.device == "cpu":
            return "has no gradients on a CPU" if situation.needs_gradient else None
        if situation.device != "cuda":
            return f"does not run on {situation.device}"
        if torch.float64 in situation.dtypes:
            return "has no double precision on a GPU"
        if situation.size < self.SMALLEST_SIZE:
            return f"needs vectors of {self.SMALLEST_SIZE} numbers or more on a GPU, and these have {situation.size}"
        return None

    @override
    def __call__(self, asked: ProductAttention) -> Tensor:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        window, numbers, mask = asked.window, asked.numbers, asked.mask
        settled = [number.detach() for number in numbers]
        device = asked.query.device

        def is_allowed(row: Tensor, head: Tensor, target: Tensor, source: Tensor) -> Tensor:
            near = window.is_near(source, *(number[row, target, 0] for number in settled))
            return mask[row, source] if near is None else near & mask[row, source]

        def add_bias(logit: Tensor, row: Tensor, head: Tensor, target: Tensor, source: Tensor) -> Tensor:
            bias = window.bias(source, *(number[row, target, 0] for number in numbers))
            return logit if bias is None else logit + (bias / asked.temperature).to(logit.dtype)

        rows, target_len = asked.query.shape[:2]
        blocks = create_block_mask(is_allowed, rows, None, target_len, mask.shape[1], device=device)
        tensors = (tensor.to(product_type(asked.query)).unsqueeze(1) for tensor in (asked.query, asked.keys, asked.values))
        plain = device.type == "cpu" or torch.compiler.is_compiling()
        run = flex_attention if plain else _compile_flex_attention()
        scale = asked.scale / asked.temperature
        context: Tensor = run(*tensors, score_mod=add_bias, block_mask=blocks, scale=scale)
        return context.squeeze(1)


@cache
def _compile_flex_attention() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)


KERNELS: dict[KernelName, Kernel] = {"sdpa": ScaledDotProduct(), "flex": Flex()}


def choose_kernel(name: KernelName, situation: Situation) -> Kernel | None:
    """Choose what computes an attention of which nobody reads the weights.

    Args:
        name: which kernel; ``auto`` takes what pays here, ``eager`` is none.
        situation: of the call.

    Returns:
        The kernel, or None where the attention's own parts do it.

    Raises:
        UserError: the kernel of that name cannot do it.
    """
    if name == "eager":
        return None
    if name == "auto":
        able = (kernel for kernel in KERNELS.values() if kernel.obstacle(situation) is None)
        return next((kernel for kernel in able if kernel.pays(situation)), None)
    obstacle = KERNELS[name].obstacle(situation)
    if obstacle is not None:
        raise UserError(f"the kernel {name} {obstacle}: choose another, or auto")
    return KERNELS[name]


def fused_attention(
    query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor, *, scale: float | None = None, dropout: float = 0.0
) -> Tensor:
    """Average the values by softmax(γ q kᵀ) (Vaswani et al. 2017, equation 1) without writing the weights down.

    Args:
        query: (batch, heads, target_len, size).
        keys: (batch, heads, source_len, size).
        values: (batch, heads, source_len, value_size).
        allowed: boolean, or numbers to be added to the logits, broadcastable to (batch, heads, target_len, source_len).
        scale: γ; None is 1 / √size.
        dropout: on the weights, a probability.

    Returns:
        (batch, heads, target_len, value_size).
    """
    attend = partial(scaled_dot_product_attention, dropout_p=dropout, scale=scale)
    in_bfloat16 = query.dtype == torch.bfloat16 or torch.is_autocast_enabled("cpu")
    if query.device.type == "cpu" and in_bfloat16 and torch.is_grad_enabled():
        # The gradient of the CPU's kernel takes ten times as long in bfloat16 as in single precision.
        mask = allowed if allowed.dtype == torch.bool else allowed.float()
        with torch.autocast("cpu", enabled=False):
            return attend(query.float(), keys.float(), values.float(), attn_mask=mask).to(query.dtype)
    mask = allowed if allowed.dtype == torch.bool else allowed.to(query.dtype)
    return attend(query, keys, values, attn_mask=mask)
