"""How an attention looks: numbers about its weights."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Looks:
    """Averages over the target tokens of a corpus.

    Attributes:
        entropy: -Σ_j a_tj log a_tj of the weights, in nats: 0 is one position alone.
        relative_entropy: entropy over that of a uniform attention, from 0 to 1.
        sharpness: the largest weight.
        coverage: mean of min(Σ_t a_tj, 1) over source tokens, their end symbol left out: the share of the source that was
            looked at.
        monotonicity: share of steps whose most looked-at position is not to the left of that of the step before.
        punctuation: weight on punctuation marks.
        end: weight on the source's end symbol.
    """

    entropy: float
    relative_entropy: float
    sharpness: float
    coverage: float
    monotonicity: float
    punctuation: float
    end: float


def looks(sentences: Iterable[tuple[Tensor, Sequence[str]]]) -> Looks:
    """Average over sentences, each its weights (target_len, source_len) and its source tokens, the last the end symbol."""
    tokens = steps = covered = sources = 0.0
    sums = dict.fromkeys(("entropy", "relative", "sharpness", "punctuation", "end", "forward"), 0.0)
    for weights, source in sentences:
        if not weights.numel():
            continue
        weights = weights.double()
        entropy = -(weights * weights.clamp(min=1e-12).log()).sum(dim=1)
        marks = [position for position, token in enumerate(source[:-1]) if _is_punctuation(token)]
        best = weights.argmax(dim=1)
        tokens += len(weights)
        steps += len(weights) - 1
        sources += len(source) - 1
        covered += float(weights[:, :-1].sum(dim=0).clamp(max=1.0).sum())
        sums["entropy"] += float(entropy.sum())
        sums["relative"] += float(entropy.sum()) / math.log(len(source)) if len(source) > 1 else 0.0
        sums["sharpness"] += float(weights.amax(dim=1).sum())
        sums["punctuation"] += float(weights[:, marks].sum())
        sums["end"] += float(weights[:, -1].sum())
        sums["forward"] += float((best[1:] >= best[:-1]).sum())
    per_token = {name: value / max(tokens, 1.0) for name, value in sums.items()}
    return Looks(
        per_token["entropy"],
        per_token["relative"],
        per_token["sharpness"],
        covered / max(sources, 1.0),
        sums["forward"] / max(steps, 1.0),
        per_token["punctuation"],
        per_token["end"],
    )


def _is_punctuation(token: str) -> bool:
    letters = token.strip("▁")
    return bool(letters) and all(unicodedata.category(letter).startswith("P") for letter in letters)
