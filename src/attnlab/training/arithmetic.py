"""How much arithmetic a model does for a target token."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attnlab.attention import Attention
from attnlab.data.batches import Batch, split_evaluation
from attnlab.data.examples import Examples
from attnlab.model import Seq2Seq
from attnlab.tasks.predictor import force

COUNTED = 64
"""Examples whose forced decoding is counted."""


@contextmanager
def flop_counter() -> Iterator[FlopCounterMode]:
    """Count FLOP as torch does, and those of products that it does not know: of a matrix and a vector, or added in place.

    It is for the CPU, where recurrent networks and fused attentions are made to consist of products that it knows.
    """
    others = {torch.ops.aten.mv: _count_matrix_by_vector, torch.ops.aten.addmm_: _count_product_in_place}
    counter = FlopCounterMode(display=False, custom_mapping=others)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*oneDNN.*")  # which says something of GPUs when it is turned off
        with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH), counter:
            yield counter


@contextmanager
def _without_flex(model: Seq2Seq) -> Iterator[None]:
    """Let the parts of attentions compute what FlexAttention would, which no FLOP are known of."""
    attentions = [module for module in model.modules() if isinstance(module, Attention) and module.kernel == "flex"]
    for attention in attentions:
        attention.kernel = "eager"
    try:
        yield
    finally:
        for attention in attentions:
            attention.kernel = "flex"


def _count_matrix_by_vector(matrix: tuple[int, int], *_: Any, **__: Any) -> int:
    return 2 * matrix[0] * matrix[1]


def _count_product_in_place(_: Any, left: tuple[int, int], right: tuple[int, int], **__: Any) -> int:
    return 2 * left[0] * left[1] * right[1]


@torch.no_grad()
def count_multiply_adds(model: Seq2Seq, batches: Sequence[Batch]) -> float:
    """Return the multiply-adds of forced decoding, the reading of the source included, for each target token.

    They are those of products of matrices and of convolutions, half the FLOP that torch counts. What is done for padding counts
    too, but padding is no target token; the end symbol is one. Not counted are element-wise arithmetic, such as that of gates
    and of tanh, normalizers, sums, and the lookup of embeddings.

    Args:
        model: on the CPU, in evaluation mode.
        batches: with a target token at least.
    """
    tokens = 0
    with _without_flex(model), flop_counter() as counter:
        for batch in batches:
            force(model, batch)
            tokens += len(batch.positions)
    return counter.get_total_flops() / 2 / tokens


def choose_batches(examples: Examples) -> list[Batch]:
    """Return examples from all over a split in batches as an evaluation has them; none of a split without sources."""
    known = np.flatnonzero(examples.has_source)
    chosen = known[np.linspace(0, len(known) - 1, min(COUNTED, len(known))).round().astype(int)]
    order = examples.sort_by_length(chosen)
    return [examples[rows] for rows in split_evaluation(order, examples.source.lengths, examples.target.lengths, COUNTED)]
