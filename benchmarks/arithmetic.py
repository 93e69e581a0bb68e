"""What the arithmetic allows: the matrix products of a training step, and how fast the machine multiplies matrices."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from typing_extensions import override

from attnlab.data.batches import Batch
from attnlab.training.arithmetic import flop_counter
from benchmarks.figures import Contestant, rate
from benchmarks.loops import batch_loss
from benchmarks.setting import Setting

ATEN = torch.ops.aten
PRODUCTS = {op.default for op in (ATEN.mm, ATEN.addmm, ATEN.addmm_, ATEN.bmm, ATEN.baddbmm)}
SQUARE = 1024
LONG_ON_A_GPU = 1e12
"""FLOP that take a GPU some milliseconds, beside which starting and waiting count little."""

Layout = tuple[tuple[int, ...], tuple[int, ...]]
"""Size and stride."""


@dataclass(frozen=True)
class Product:
    """A matrix product, by its operation and the layouts of its operands."""

    operation: Any
    operands: tuple[Layout, ...]

    @property
    def flop(self) -> int:
        """Multiplications and additions."""
        (*batch, rows, inner), _ = self.operands[-2]
        columns = self.operands[-1][0][-1]
        return 2 * (batch[0] if batch else 1) * rows * inner * columns


class ProductLog(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every matrix product that is computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: Counter[Product] = Counter()

    @override
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in PRODUCTS:
            operands = tuple((tuple(a.shape), tuple(a.stride())) for a in args if isinstance(a, Tensor))
            self.products[Product(func, operands)] += 1
        return func(*args, **(kwargs or {}))


def step_products(setting: Setting, batches: Sequence[Batch]) -> tuple[int, Counter[Product]]:
    """Return what training steps on some batches compute: FLOP as torch counts them, and the matrix products."""
    model = setting.model().cpu().train()
    with flop_counter() as counter, ProductLog() as log:
        for batch in batches:
            batch_loss(model, batch).backward()  # type: ignore[no-untyped-call]
    return counter.get_total_flops(), log.products


def product_rate(setting: Setting, products: Counter[Product], dtype: torch.dtype) -> Contestant:
    """Return what computes the products of a step alone, in FLOP a second; the smallest, 2 % together, are left out."""
    chosen: list[tuple[Any, list[Layout], int, int]] = []
    left = sum(product.flop * count for product, count in products.items()) * 0.98
    for product, count in sorted(products.items(), key=lambda item: -item[0].flop * item[1]):
        if left <= 0:
            break
        chosen.append((product.operation, list(product.operands), count, product.flop))
        left -= product.flop * count

    def run() -> float:
        flop = seconds = 0.0
        for operation, layouts, count, one in chosen:
            operands = [torch.empty_strided(*layout, dtype=dtype, device=setting.device).normal_() for layout in layouts]
            operation(*operands)
            times = max(1, int(LONG_ON_A_GPU / one)) if setting.device == "cuda" else max(1, min(count, int(2e8 / one)))

            def work(operation: Any = operation, operands: list[Tensor] = operands, times: int = times) -> float:
                for _ in range(times):
                    operation(*operands)
                return times

            seconds += count / rate(work, setting.synchronize)
            flop += count * one
        return flop / seconds

    return run


def square_rate(setting: Setting, dtype: torch.dtype) -> Contestant:
    """Return what multiplies square matrices, in FLOP a second."""
    left, right = (torch.randn(SQUARE, SQUARE, device=setting.device).to(dtype) for _ in range(2))
    flop = 2.0 * SQUARE**3
    repetitions = int(LONG_ON_A_GPU / flop) if setting.device == "cuda" else 10

    def run() -> float:
        for _ in range(repetitions):
            torch.mm(left, right)
        return repetitions * flop

    return lambda: rate(run, setting.synchronize)
