"""A head that writes numbers, and what they are learned by."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.decoders import Decoder, DecoderOutput
from attnlab.errors import UserError
from attnlab.heads.head import Head, TargetSpace
from attnlab.hints import Range
from attnlab.precision import widen
from attnlab.trees import move


class Criterion(ABC):
    """What numbers are learned by: a loss of what is written against what is right.

    Attributes:
        levels: of the quantiles that are written for each number; a single one of ½ for a point forecast.
    """

    levels: Sequence[float] = (0.5,)

    @abstractmethod
    def __call__(self, written: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each number (…, numbers).

        Args:
            written: (…, numbers, levels).
            labels: (…, numbers).
        """

    def order(self, written: Tensor) -> Tensor:
        """Return what is forecast by what is written, both (…, numbers, levels): unless levels may cross, the same."""
        return written

    def point(self, written: Tensor) -> Tensor:
        """Return the numbers (…, numbers) that stand for a forecast (…, numbers, levels): the median, or the only ones."""
        return written[..., list(self.levels).index(0.5) if len(self.levels) > 1 else 0]


@dataclass(frozen=True)
class Squared(Criterion):
    """L = (y - ŷ)², which the mean makes least."""

    @override
    def __call__(self, written: Tensor, labels: Tensor) -> Tensor:
        return (written.squeeze(-1) - labels) ** 2


@dataclass(frozen=True)
class Absolute(Criterion):
    """L = |y - ŷ|, which the median makes least."""

    @override
    def __call__(self, written: Tensor, labels: Tensor) -> Tensor:
        return (written.squeeze(-1) - labels).abs()


@dataclass(frozen=True)
class Quantiles(Criterion):
    """L = 2 Q⁻¹ Σ_q max(q (y - ŷ_q), (q - 1) (y - ŷ_q)), which the quantiles of the levels q make least (Koenker and Bassett
    1978).

    Of the level ½ alone it is :class:`Absolute`. The point forecast is the median, or the only quantile. What is written may
    cross; a forecast is what is written in rising order, which is never further from the right quantiles (Chernozhukov,
    Fernández-Val and Galichon 2010). The loss is that of what is written.

    Args:
        levels: of the quantiles, from below to above.

    Raises:
        UserError: no level, levels that do not rise, or several of which none is ½.
    """

    levels: Sequence[Annotated[float, Range(above=0, below=1)]] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

    def __post_init__(self) -> None:
        if not self.levels or sorted(set(self.levels)) != list(self.levels) or not 0 < self.levels[0] <= self.levels[-1] < 1:
            raise UserError(f"levels are numbers above 0 and below 1 that rise, not {list(self.levels)}")
        if len(self.levels) > 1 and 0.5 not in self.levels:
            raise UserError(f"levels {list(self.levels)} have no median, which is the point forecast: add 0.5")

    @override
    def __call__(self, written: Tensor, labels: Tensor) -> Tensor:
        levels: Tensor = move(torch.tensor(list(self.levels), dtype=written.dtype), written.device)
        error = labels.unsqueeze(-1) - written
        return 2 * torch.maximum(levels * error, (levels - 1) * error).mean(dim=-1)

    @override
    def order(self, written: Tensor) -> Tensor:
        return written.sort(dim=-1).values


class ValueHead(Head):
    """ŷ_t = V readout_t + b: the numbers of the next element, or several quantiles of each.

    Parameters:
        projection: V (numbers · levels, readout_size) and b, initialised as a ``torch.nn.Linear`` is.

    Args:
        decoder: the decoder, for its sizes.
        embedding_size: size of a target vector, not used.
        targets: how many numbers an element has.
        criterion: what the numbers are learned by.

    Raises:
        UserError: targets that are no numbers.
    """

    writes_values = True
    all_tokens_possible = False

    def __init__(self, decoder: Decoder, embedding_size: int, targets: TargetSpace, *, criterion: Criterion) -> None:
        if not targets.numbers:
            raise UserError("a ValueHead writes numbers, which the targets here are not: choose another head")
        super().__init__(decoder, embedding_size, targets)
        self.criterion = criterion
        self.projection = nn.Linear(decoder.readout_size, targets.numbers * len(criterion.levels))

    @override
    def forward(self, decoded: DecoderOutput, memory: Any, dropout: nn.Module) -> Tensor:
        written: Tensor = self.projection(dropout(decoded.readouts))
        return written

    def split(self, written: Tensor) -> Tensor:
        """Return what is written (…, numbers · levels) as (…, numbers, levels), in single precision at least."""
        precise = widen(written)
        return precise.reshape(*precise.shape[:-1], self.targets.numbers, len(self.criterion.levels))

    def predict(self, written: Tensor) -> Tensor:
        """Return what is forecast by what is written, (…, numbers, levels), quantiles in rising order."""
        return self.criterion.order(self.split(written))

    @override
    def loss(self, scores: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
        return self.criterion(self.split(scores), labels).mean()

    @override
    def best(self, scores: Tensor, given: Tensor) -> Tensor:
        point = self.criterion.point(self.predict(scores))
        return torch.cat([point.to(given.dtype), given[..., self.targets.numbers :]], dim=-1)
