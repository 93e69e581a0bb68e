"""Which source tokens an output depends on, by means other than the attention, and how far the attention agrees."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attnlab.data.batches import Batch
from attnlab.model import Seq2Seq
from attnlab.probing.figures import CORRELATION, Tally
from attnlab.probing.forcing import label_log_probabilities
from attnlab.tasks.predictor import force

FEWEST = 3
"""Tokens of the shortest source that has ranks: two, and the end element."""


@torch.inference_mode()
def leave_one_out(model: Seq2Seq, batch: Batch, *, rows: int = 64) -> Tensor:
    """Return how far each output distribution moves, as total variation, when one source token is removed (Jain and Wallace
    2019, section 4.1).

    Removed, as there, and not replaced by the unknown symbol: which a model may never have read in training (no tokens of
    characters or subwords are unknown), so that its vector would be noise. What moves is the output for the rest of the source,
    whose positions close up.

    Args:
        model: whose targets are no positions of the source: those could not be written without it.
        batch: of one example.
        rows: sources without one token that are read together.

    Returns:
        (target_len, source_len - 1): the end element is never left out.
    """
    length, target_len = int(batch.source_lengths[0]), len(batch.positions)
    whole = force(model, batch).log_probabilities.exp()
    kept = ~torch.eye(length, dtype=torch.bool)[: length - 1]
    moved = []
    for part in torch.split(kept.nonzero()[:, 1].view(length - 1, length - 1), rows):
        count, places = len(part), part.to(batch.source.device)
        without = replace(
            batch,
            source=batch.source[0, places],
            source_lengths=torch.full((count,), length - 1),
            target=batch.target.expand(count, -1),
            target_lengths=batch.target_lengths.expand(count),
            labels=batch.labels.expand(count, -1),
            links=None,
            copy_ids=None if batch.copy_ids is None else batch.copy_ids[0, places],
        )
        found = force(model, without).log_probabilities.exp()
        # Without a token that is only known from the source there are fewer ids to copy.
        missing = whole.shape[1] - found.shape[1]
        found = nn.functional.pad(found, (0, missing)).view(count, target_len, -1)
        moved.append(0.5 * (found - whole).abs().sum(dim=-1))
    return torch.cat(moved).T


def attribute_by_gradient(model: Seq2Seq, batch: Batch) -> Tensor:
    """Return gradient times input of every source vector for every target token, |x_jᵀ ∂ log p(y_t | y_<t, x) / ∂x_j|.

    For embeddings that is the gradient by a token's one-hot vector, as Jain and Wallace (2019, section 4.1) take it; but here
    it flows through the attention too. Within a row, ranks are those of the gradient of the probability itself.

    Returns:
        (batch, target_len, source_len); zero where a target or a source is padded.
    """
    # cuDNN has no gradient of a recurrent network in evaluation mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False), _vectors(model.source_frontend) as vectors:
        own = label_log_probabilities(force(model, batch), batch)
        columns = batch.positions % batch.labels.shape[1]
        (leaf,) = vectors
        found = leaf.new_zeros(*batch.labels.shape, leaf.shape[1])
        for column in range(batch.labels.shape[1]):
            # An example's tokens depend on its own source alone, so that one pass serves all examples.
            (gradient,) = torch.autograd.grad(own[columns == column].sum(), leaf, retain_graph=True, allow_unused=True)
            if gradient is not None:
                found[:, column] = (gradient * leaf.detach()).sum(dim=-1).abs()
    return found.detach()


@contextmanager
def _vectors(frontend: nn.Module) -> Iterator[list[Tensor]]:
    """Make what a frontend returns the leaves of gradients, and collect it."""
    leaves: list[Tensor] = []

    def cut(module: nn.Module, arguments: object, output: Tensor) -> Tensor:
        leaves.append(output.detach().requires_grad_())
        return leaves[-1]

    handle = frontend.register_forward_hook(cut)
    try:
        yield leaves
    finally:
        handle.remove()


def correlate(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Return the sum of Kendall's τ_b of the rows (target_len, source_len) of two importances, and how many rows have one."""
    from scipy.stats import kendalltau  # which takes a second to import

    found = np.array([kendalltau(*rows).statistic for rows in zip(one, other, strict=True)])
    known = found[np.isfinite(found)]
    return float(known.sum()), float(len(known))


def add_correlations(tally: Tally, model: Seq2Seq, batch: Batch) -> None:
    """Count how the weights, the gradient and, where it can be, leaving one out agree in ranking the source tokens.

    The end element is not ranked. Row t of the weights is compared with what the output at t depends on, which is made from it,
    whatever token it may be about.
    """
    with torch.inference_mode():
        weights = force(model, batch).weights
    importances = {"weights": weights, "gradient": attribute_by_gradient(model, batch)}
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row, length in enumerate(batch.source_lengths.tolist()):
        target_len = int(batch.real[row].sum())
        own = {name: found[row, :target_len, : length - 1] for name, found in importances.items()}
        has_ranks = length >= FEWEST
        if not model.target_frontend.reads_source:
            nothing = batch.source.new_zeros(target_len, length - 1)
            own["leave-one-out"] = leave_one_out(model, _single(batch, row)) if has_ranks else nothing
        arrays = {name: found.cpu().double().numpy() for name, found in own.items()}
        for pair in PAIRS:
            if all(name in arrays for name in pair):
                one, other = (arrays[name] for name in pair)
                rows.setdefault(pair, []).append(correlate(one, other) if has_ranks else (0.0, 0.0))
    for (one_name, other_name), counted in rows.items():
        tally.add(f"{one_name}_{other_name}".replace("-", "_"), f"{one_name} and {other_name}", CORRELATION, counted)


PAIRS = (("weights", "leave-one-out"), ("weights", "gradient"), ("gradient", "leave-one-out"))
"""What is compared; the last pair says how far two measures agree that do not ask the attention."""


def _single(batch: Batch, row: int) -> Batch:
    """Return the batch of one example, without padding."""
    length, target_len = int(batch.source_lengths[row]), int(batch.real[row].sum())
    return replace(
        batch,
        source=batch.source[row : row + 1, :length],
        source_lengths=batch.source_lengths[row : row + 1],
        target=batch.target[row : row + 1, : target_len + 1],
        target_lengths=batch.target_lengths[row : row + 1],
        labels=batch.labels[row : row + 1, :target_len],
        indices=batch.indices[row : row + 1],
        links=None,
        copy_ids=None if batch.copy_ids is None else batch.copy_ids[row : row + 1, :length],
    )
