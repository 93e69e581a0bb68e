"""Several models searched as one."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from attnlab.decoders import DecoderState
from attnlab.errors import UserError
from attnlab.model import Seq2Seq, SourceMemory


class Ensemble:
    """Averages the distributions of several models: p(y_t) = (1 / n) Σ_i p_i(y_t); their attention weights are averaged too.

    Args:
        models: of the same source, the same targets and the same head.

    Raises:
        UserError: no model, or models that read or write differently.
    """

    def __init__(self, models: Sequence[Seq2Seq]) -> None:
        kinds = {(model.source_frontend.input_size, model.targets, type(model.head)) for model in models}
        if len(kinds) != 1:
            raise UserError(
                "an ensemble needs models that read the same sources, write the same targets and have the same head"
            )
        self.models = list(models)

    def encode(
        self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None
    ) -> tuple[tuple[SourceMemory, ...], tuple[DecoderState, ...]]:
        """Read sources with every model."""
        encoded = [model.encode(source, lengths, copy_ids) for model in self.models]
        return tuple(memory for memory, _ in encoded), tuple(state for _, state in encoded)

    def step(
        self, tokens: Tensor, memory: tuple[SourceMemory, ...], state: tuple[DecoderState, ...]
    ) -> tuple[Tensor, Tensor, tuple[DecoderState, ...]]:
        """Advance every model by one token."""
        steps = [model.step(tokens, m, s) for model, m, s in zip(self.models, memory, state, strict=True)]
        log_probabilities, weights = average([p for p, _, _ in steps], [w for _, w, _ in steps])
        return log_probabilities, weights, tuple(s for _, _, s in steps)


def average(log_probabilities: Sequence[Tensor], weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Average what several models say: log((1 / n) Σ_i p_i) of their log-probabilities, and the mean of their weights."""
    if len(log_probabilities) == 1:
        return log_probabilities[0], weights[0]
    mixed = torch.stack(list(log_probabilities)).logsumexp(dim=0) - math.log(len(log_probabilities))
    return mixed, torch.stack(list(weights)).mean(dim=0)
