"""Normalizers: from logits to weights."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.mechanism import Memory, Part
from attnlab.attention.noise import draw_gumbel
from attnlab.attention.scores.sharpness import check_temperature
from attnlab.precision import widen


class Normalizer(Part, ABC):
    """Turns logits into weights over the allowed positions: shares, unless it says otherwise.

    Args:
        query_size: size of a query, not used here.
        memory_size: size of an encoder state, not used here.

    Attributes:
        reads_logits: false for a control that ignores them, so that no score need be made.
        one_hot: whether all weight is on one position, in training too.
        ignores_shifts: whether weights stay as they are where one number is added to all logits of a query.
        reads_query: whether it looks at queries itself, beside their logits.
        softmax_temperature: τ of what is a softmax of the logits over τ and nothing else, or None.
    """

    reads_logits: bool = True
    one_hot: ClassVar[bool] = False
    ignores_shifts: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False
    softmax_temperature: float | None = None

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()

    def prepare(self, states: Tensor) -> Any:
        """Return what can be computed from the encoder states (batch, source_len, memory_size) alone, or None."""
        return None

    def start(self, mask: Tensor) -> Any:
        """Return the state before the first target token: a tree of tensors, batch first, or None."""
        return None

    @abstractmethod
    def advance(self, logits: Tensor, allowed: Tensor, query: Tensor, memory: Memory, state: Any) -> tuple[Tensor, Any]:
        """Normalise the logits of some queries; where it is sequential, of one query at a time.

        Args:
            logits: (batch, target_len, source_len).
            allowed: boolean (batch, target_len or 1, source_len).
            query: (batch, target_len, query_size).
            memory: the mask, and in ``normalizer`` what :meth:`prepare` made.
            state: from :meth:`start` or from the call before.

        Returns:
            Weights (batch, target_len, source_len), zero where not allowed, and the new state.
        """


class StatelessNormalizer(Normalizer, ABC):
    """Normalises every row of logits on its own.

    Args:
        query_size: size of a query, not used.
        memory_size: size of an encoder state, not used.
    """

    @override
    def advance(self, logits: Tensor, allowed: Tensor, query: Tensor, memory: Memory, state: None) -> tuple[Tensor, None]:
        return self(logits, allowed), None

    @abstractmethod
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        """Normalise over the last dimension.

        Args:
            logits: (batch, target_len, source_len), or with more dimensions between.
            allowed: boolean, broadcastable to the logits.

        Returns:
            Weights in the shape of the logits: zero where not allowed; a row without any allowed position is all zero.
        """


def _mask_logits(logits: Tensor, allowed: Tensor) -> Tensor:
    # The dtype's own minimum, not -inf: a row without any allowed position must give zeros, not NaN.
    return logits.masked_fill(~allowed, torch.finfo(logits.dtype).min)


class Softmax(StatelessNormalizer):
    """Softmax, a_j = exp(e_j / τ) / Σ_k exp(e_k / τ), over the allowed positions (Bahdanau et al. 2015, equation 6, τ = 1).

    No parameters.

    Args:
        query_size: size of a query, not used.
        memory_size: size of an encoder state, not used.
        temperature: τ; below one the weights are sharper, above one flatter.

    Raises:
        UserError: a temperature that is not positive.
    """

    ignores_shifts = True

    def __init__(self, query_size: int, memory_size: int, *, temperature: float = 1.0) -> None:
        super().__init__(query_size, memory_size)
        check_temperature(temperature)
        self.temperature = self.softmax_temperature = temperature

    @override
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        if self.temperature == 1.0:
            return _mask_logits(logits, allowed).softmax(dim=-1) * allowed
        # In half precision the quotient may be infinite.
        sharper = widen(logits) / self.temperature
        return (_mask_logits(sharper, allowed).softmax(dim=-1) * allowed).to(logits.dtype)


class SinkSoftmax(StatelessNormalizer):
    """Softmax with a sink, a_j = exp(e_j) / (exp(b) + Σ_k exp(e_k)): what goes to b is lost (after Xiao et al. 2024, section
    3.3, with b = 0, the "softmax off by one" of Miller 2023; with a learned b OpenAI 2025, "gpt-oss").

    Where nothing fits, a query need not look anywhere: weights may sum to less than one.

    Parameters:
        sink: b (1), initialised with 0.
    """

    sums_to_one = False

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.sink = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set b."""
        nn.init.zeros_(self.sink)

    @override
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        masked = _mask_logits(logits, allowed)
        with_sink = torch.cat([masked, self.sink.to(logits.dtype).expand(*logits.shape[:-1], 1)], dim=-1)
        return with_sink.softmax(dim=-1)[..., :-1] * allowed


class Sigmoid(StatelessNormalizer):
    """Every position by itself, a_j = sigmoid(e_j - log n), n being the number of allowed positions (Ramapuram et al. 2024,
    section 2, with the bias b = -log n).

    Positions do not compete: weights may sum to less than one and to more, up to n.

    No parameters.
    """

    sums_to_one = False
    shares = False

    @override
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        precise = widen(logits)
        count = allowed.sum(dim=-1, keepdim=True).clamp(min=1)
        return (torch.sigmoid(precise - count.to(precise.dtype).log()) * allowed).to(logits.dtype)


class Entmax(StatelessNormalizer, ABC):
    """A sparse normalizer of the ``entmax`` package, α-entmax: a = argmax_p pᵀe + H_α(p) over the probability simplex.

    Positions far below the best get no weight at all. Half precision is computed in single.
    """

    ignores_shifts = True

    @abstractmethod
    def _map(self, logits: Tensor) -> Tensor:
        """Normalise float32 or float64 logits over their last dimension."""

    @override
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        precise = widen(logits)
        # What lies 2 or more below the best has no weight; a fill near there keeps the package's squares finite.
        # To subtract a constant changes no weight, so that it has no gradient.
        best = _mask_logits(precise.detach(), allowed).amax(dim=-1, keepdim=True)
        return (self._map((precise - best).masked_fill(~allowed, -100.0)) * allowed).to(logits.dtype)


class Sparsemax(Entmax):
    """Sparsemax, the Euclidean projection of the logits onto the simplex (Martins and Astudillo 2016, equation 2).

    a = argmin_p ‖p - e‖², which is max(e - τ, 0) with τ such that Σ_j a_j = 1.

    No parameters.
    """

    @override
    def _map(self, logits: Tensor) -> Tensor:
        from entmax import sparsemax

        weights: Tensor = sparsemax(logits, dim=-1)
        return weights


class Entmax15(Entmax):
    """1.5-entmax, between softmax and sparsemax (Peters et al. 2019, equation 10 with α = 1.5).

    a_j = max(e_j / 2 - τ, 0)², with τ such that Σ_j a_j = 1.

    No parameters.
    """

    @override
    def _map(self, logits: Tensor) -> Tensor:
        from entmax import entmax15

        weights: Tensor = entmax15(logits, dim=-1)
        return weights


class Hard(StatelessNormalizer):
    """One position alone, by the straight-through Gumbel-softmax estimator (Jang et al. 2017, sections 2.1 and 2.2).

    Forward, a = one_hot(argmax_j (e_j + g_j)) with g_j drawn from Gumbel(0, 1) in training and 0 otherwise; backward, the
    gradient is that of softmax((e + g) / τ).

    No parameters.

    Args:
        query_size: size of a query, not used.
        memory_size: size of an encoder state, not used.
        temperature: τ of the gradient.
        noise: draw g in training; without it the estimator is the deterministic straight-through one.

    Raises:
        UserError: a temperature that is not positive.
    """

    one_hot = True
    ignores_shifts = True

    def __init__(self, query_size: int, memory_size: int, *, temperature: float = 1.0, noise: bool = True) -> None:
        super().__init__(query_size, memory_size)
        check_temperature(temperature)
        self.temperature = temperature
        self.noise = noise

    @override
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        # In half precision a draw may be infinite.
        noisy = widen(logits)
        if self.noise and self.training:
            noisy = noisy + draw_gumbel(noisy)
        masked = _mask_logits(noisy / self.temperature, allowed)
        soft = masked.softmax(dim=-1)
        hard = torch.zeros_like(soft).scatter(-1, masked.argmax(dim=-1, keepdim=True), 1.0)
        return ((hard - soft.detach() + soft) * allowed).to(logits.dtype)


class Uniform(StatelessNormalizer):
    """The control that attends everywhere alike, a_j = 1 / (number of allowed positions); no score is made.

    No parameters.
    """

    reads_logits = False

    @override
    def forward(self, logits: Tensor, allowed: Tensor) -> Tensor:
        ones = torch.ones_like(logits) * allowed
        return ones / ones.sum(dim=-1, keepdim=True).clamp(min=1)
