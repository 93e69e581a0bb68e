"""Where a number that is none arose."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attnlab.data.batches import Batch
from attnlab.model import Seq2Seq
from attnlab.tasks.predictor import force


def describe_origin(model: Seq2Seq, batch: Batch) -> str:
    """Say which parameters of a model are not finite or, if all are, the first module that makes of a batch what is not."""
    broken = [name for name, parameter in model.named_parameters() if not bool(parameter.isfinite().all())]
    if broken:
        others = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        return f"the parameters {broken[0]}{others} are no longer finite"
    module = _first_module(model, batch)
    return f"{module} is the first to make what is not finite" if module else "all modules make what is finite"


@torch.no_grad()
def _first_module(model: Seq2Seq, batch: Batch) -> str | None:
    found: list[str] = []

    def watch(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            numbers = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
            # Scores of tokens that cannot come next are -inf on purpose.
            if not found and any(bool((leaf.isnan() | leaf.isposinf()).any()) for leaf in numbers):
                found.append(name)

        return hook

    hooks = [module.register_forward_hook(watch(name)) for name, module in model.named_modules() if name]
    try:
        force(model, batch)
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else None
