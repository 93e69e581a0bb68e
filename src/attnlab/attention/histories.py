"""Histories: what an attention remembers of its earlier weights, and how that changes its scores."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.mechanism import Memory, Part
from attnlab.errors import UserError
from attnlab.precision import widen, without_autocast


class HistorySizes(NamedTuple):
    """Sizes that a history may need."""

    query: int
    """Of a query."""
    value: int
    """Of a value, an encoder state unless keys and values differ."""
    projected: int
    """Of a key after the score's own projection, as the score's ``forward`` reads it."""


class History(Part, ABC):
    """What is carried from one target token to the next beside the decoder's state.

    Args:
        sizes: of queries, values and keys, not used here.

    Attributes:
        changes_keys: whether it adds to the keys, so that there must be keys that the score compares.
        reads_query: whether what is carried depends on the queries, and not on their logits and weights alone.
    """

    sequential = True
    changes_keys: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False

    def __init__(self, sizes: HistorySizes) -> None:
        super().__init__()

    def prepare(self, values: Tensor) -> Any:
        """Return what can be computed from the values (batch, source_len, value_size) alone, or None."""
        return None

    def start(self, mask: Tensor) -> Any:
        """Return the state before the first target token: a tree of tensors, batch first, or None."""
        return None

    def adjust_keys(self, keys: Tensor, state: Any) -> Tensor:
        """Return the keys (batch, source_len, projected_size) that the score is to compare with."""
        return keys

    def adjust_logits(self, logits: Tensor, state: Any) -> Tensor:
        """Return the logits (batch, 1, source_len) that are to be normalised."""
        return logits

    @abstractmethod
    def advance(self, state: Any, logits: Tensor, weights: Tensor, query: Tensor, memory: Memory) -> Any:
        """Return the state after one target token.

        Args:
            state: before it.
            logits: the score's own (batch, 1, source_len).
            weights: (batch, 1, source_len).
            query: (batch, 1, query_size).
            memory: values and mask, and in ``history`` what :meth:`prepare` made.
        """


class NoHistory(History):
    """Nothing is remembered: every target token is as the first one.

    No parameters.
    """

    sequential = False

    @override
    def advance(self, state: None, logits: Tensor, weights: Tensor, query: Tensor, memory: Memory) -> None:
        """Nothing is carried."""


class KeyFeatures(History, ABC):
    """Tells the score something of each source position that changes over time: features φ_{t-1,j}, from *before* this target
    token, such as its coverage φ = C (Tu et al. 2016, section 3.2; See et al. 2017, equation 11).

    They enter through the keys, k_j + V φ_{t-1,j} after the score's own projection: with an additive score
    e_tj = vᵀ tanh(W s_t + U h_j + V φ_{t-1,j}), with any other that projects its keys linearly as if the encoder state were
    [h_j; φ_{t-1,j}].

    Args:
        sizes: of queries, values and keys.
        features: numbers for a position.
    """

    changes_keys = True

    def __init__(self, sizes: HistorySizes, features: int) -> None:
        super().__init__(sizes)
        self.features = features
        self.projection = nn.Linear(features, sizes.projected, bias=False)

    @override
    def start(self, mask: Tensor) -> Tensor:
        """Return φ_0 = 0 (batch, source_len, features)."""
        return torch.zeros(*mask.shape, self.features, device=mask.device, dtype=self.projection.weight.dtype)

    @override
    def adjust_keys(self, keys: Tensor, state: Tensor) -> Tensor:
        shifted_keys: Tensor = keys + self.projection(state)
        return shifted_keys


class SumCoverage(KeyFeatures):
    """Coverage is the sum of the weights so far, C_tj = C_{t-1,j} + a_tj; the score of step t sees C_{t-1} (See et al. 2017,
    equations 10 and 11).

    The sum is in single precision at least: in half precision it would stop growing.

    Parameters:
        projection: V (projected key size, 1), no bias, initialised as a ``torch.nn.Linear`` is.
    """

    def __init__(self, sizes: HistorySizes) -> None:
        super().__init__(sizes, 1)

    @override
    def start(self, mask: Tensor) -> Tensor:
        return widen(super().start(mask))

    @override
    def adjust_keys(self, keys: Tensor, state: Tensor) -> Tensor:
        return super().adjust_keys(keys, state.to(self.projection.weight.dtype))

    @override
    def advance(self, state: Tensor, logits: Tensor, weights: Tensor, query: Tensor, memory: Memory) -> Tensor:
        return state + weights.transpose(1, 2)


class LinguisticCoverage(SumCoverage):
    """Coverage relative to a predicted fertility, C_tj = C_{t-1,j} + a_tj / Φ_j with Φ_j = N · sigmoid(u_fᵀ h_j); the score of
    step t sees C_{t-1} (Tu et al. 2016, section 3.1).

    Φ_j is the number of target tokens that source token j is expected to make, here at least 0.001, so that a token that makes
    none does not make its coverage infinite.

    Parameters:
        projection: V (projected key size, 1), no bias.
        fertility: u_f (value_size), no bias. Both are initialised as a ``torch.nn.Linear`` is.

    Args:
        sizes: of queries, values and keys.
        max_fertility: N, the paper's is 2.

    Raises:
        UserError: a fertility that is not positive.
    """

    def __init__(self, sizes: HistorySizes, *, max_fertility: float = 2.0) -> None:
        super().__init__(sizes)
        if max_fertility <= 0:
            raise UserError(f"max_fertility must be above 0, not {max_fertility}")
        self.max_fertility = max_fertility
        self.fertility = nn.Linear(sizes.value, 1, bias=False)

    @override
    def prepare(self, values: Tensor) -> Tensor:
        """Return Φ (batch, source_len, 1)."""
        return (self.max_fertility * torch.sigmoid(self.fertility(values))).clamp(min=1e-3)

    @override
    def advance(self, state: Tensor, logits: Tensor, weights: Tensor, query: Tensor, memory: Memory) -> Tensor:
        coverage: Tensor = state + widen(weights).transpose(1, 2) / memory.history
        return coverage


class NeuralCoverage(KeyFeatures):
    """Coverage is the state of a recurrent network at each source position (Tu et al. 2016, section 3.1).

    C_tj = GRU([a_tj; h_j; s_t], C_{t-1,j}), with s_t the query.

    Parameters:
        projection: V (projected key size, coverage_size), no bias.
        cell: the GRU, its input of size 1 + value_size + query_size. Both are initialised as in ``torch.nn``.

    Args:
        sizes: of queries, values and keys.
        coverage_size: numbers for a position; the paper's best is 10.
    """

    reads_query = True

    def __init__(self, sizes: HistorySizes, *, coverage_size: int = 10) -> None:
        super().__init__(sizes, coverage_size)
        self.cell = nn.GRUCell(1 + sizes.value + sizes.query, coverage_size)

    @override
    def advance(self, state: Tensor, logits: Tensor, weights: Tensor, query: Tensor, memory: Memory) -> Tensor:
        queries = query.expand(-1, state.shape[1], -1)
        inputs = torch.cat([weights.transpose(1, 2), memory.values, queries], dim=-1)
        dtype = self.cell.weight_hh.dtype
        with without_autocast(state.device.type):  # sums over steps, as those of a recurrent network
            coverage: Tensor = self.cell(inputs.flatten(0, 1).to(dtype), state.flatten(0, 1).to(dtype)).view_as(state)
        return coverage


class LocationSensitive(KeyFeatures):
    """Tells the score where the weights before were: convolutions over them, f_t = F * a_{t-1} with f_1 = 0 (Chorowski et al.
    2015, section 2.2, equations 8 and 9).

    With an additive score e_tj = vᵀ tanh(W s_t + U h_j + V f_tj).

    Parameters:
        projection: V (projected key size, filters), no bias, initialised as a ``torch.nn.Linear`` is.
        convolution: F (filters, 1, 2 · radius + 1), no bias, initialised as a ``torch.nn.Conv1d`` is.

    Args:
        sizes: of queries, values and keys.
        filters: rows of F; the paper's best is 10.
        radius: positions on either side that a filter sees; the paper's is 100, of frames of speech.

    Raises:
        UserError: no filter, or a radius below 1, with which it would not see where a position is.
    """

    def __init__(self, sizes: HistorySizes, *, filters: int = 10, radius: int = 3) -> None:
        if filters < 1 or radius < 1:
            raise UserError(f"filters and radius must be 1 or more, not {filters} and {radius}")
        super().__init__(sizes, filters)
        self.convolution = nn.Conv1d(1, filters, 2 * radius + 1, padding=radius, bias=False)

    @override
    def advance(self, state: Tensor, logits: Tensor, weights: Tensor, query: Tensor, memory: Memory) -> Tensor:
        found: Tensor = self.convolution(weights.to(state.dtype)).transpose(1, 2)
        return found


class Temporal(History):
    """Temporal normalisation: what scored high before scores less now (Sankaran et al. 2016; Paulus et al. 2018, equation 3).

    e'_tj = exp(e_tj) for the first target token, and exp(e_tj) / Σ_{i<t} exp(e_ij) after it; computed on logits, so that
    it goes with any normalizer: e_tj - log Σ_{i<t} exp(e_ij).

    No parameters.
    """

    @override
    def start(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return log Σ of nothing as zeros (batch, source_len), and whether anything was summed, (batch,)."""
        return torch.zeros(mask.shape, device=mask.device), torch.zeros(len(mask), dtype=torch.bool, device=mask.device)

    @override
    def adjust_logits(self, logits: Tensor, state: tuple[Tensor, Tensor]) -> Tensor:
        return (logits - state[0].unsqueeze(1)).to(logits.dtype)

    @override
    def advance(
        self, state: tuple[Tensor, Tensor], logits: Tensor, weights: Tensor, query: Tensor, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        total, begun = state
        now = widen(logits.squeeze(1))
        total = torch.where(begun.unsqueeze(1), torch.logaddexp(total.to(now.dtype), now), now)
        return total, torch.ones_like(begun)
