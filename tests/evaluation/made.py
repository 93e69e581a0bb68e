"""Evidence for tests: made, not computed."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attnlab.data.pharaoh import Gold, Links
from attnlab.evaluation.evidence import Evidence, ForcedDecoding, Prediction

END = "</s>"


def predictions(lines: Sequence[str]) -> list[Prediction]:
    """Predictions whose tokens stand between white space."""
    return [
        Prediction(index, line, [*line.split(), END], [END], torch.zeros(len(line.split()) + 1, 1), 0.0, 0.0)
        for index, line in enumerate(lines)
    ]


def forced(
    target: str, log_probabilities: Sequence[float], right: Sequence[bool], weights: Tensor | None = None, source: str = ""
) -> ForcedDecoding:
    """A target as a model sees it that finds the tokens so probable."""
    tokens, read = [*target.split(), END], [*source.split(), END]
    looked = torch.zeros(len(tokens), len(read)) if weights is None else weights
    return ForcedDecoding(tokens, [*log_probabilities], [*right], looked, read, attends=weights is not None)


def looking(weights: Tensor, source: Sequence[str]) -> ForcedDecoding:
    """A target that was written while the model looked so at source tokens, the last being the end symbol."""
    count = len(weights)
    return ForcedDecoding(["x"] * count, [0.0] * count, [True] * count, weights, list(source))


def evidence(
    hypotheses: Sequence[str] = (),
    references: Sequence[str] = (),
    *,
    forced: Sequence[ForcedDecoding | None] = (),
    alignments: Sequence[tuple[Links, Gold]] | None = None,
    **facts: str | bool,
) -> Evidence:
    """What is known of a test set."""
    return Evidence(predictions(hypotheses), references, forced, facts, alignments)
