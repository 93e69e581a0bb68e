"""Windows: which source positions a query may look at, and with which prior.

A window is given the logits and a normalizer and returns the weights, since some limit the positions, some weigh the normalised
weights, some the logits, and some carry a position from one target token to the next.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.mechanism import Memory
from attnlab.attention.normalizers import Normalizer
from attnlab.attention.scores import Score
from attnlab.errors import UserError


class Window(nn.Module, ABC):
    """Limits the source positions that a query may look at, or weighs them.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.

    Attributes:
        sequential: whether one target token's weights need those of the token before.
        sums_to_one: whether the weights of a query sum to one.
        changes_logits: whether it needs a normalizer that reads them.
        normalizes: whether it calls the normalizer.
        max_length: the longest source sentence that it can look at, in tokens, or None.
    """

    changes_logits: ClassVar[bool] = False
    normalizes: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    sums_to_one: ClassVar[bool] = True
    max_length: int | None = None

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.query_size = query_size
        self.memory_size = memory_size

    def prepare(self, states: Tensor) -> Any:
        """Return what can be computed from the encoder states (batch, source_len, memory_size) alone, or None."""
        return None

    def start(self, mask: Tensor) -> Any:
        """Return the window's state before the first target token: a tree of tensors, batch first, or None."""
        return None

    @abstractmethod
    def forward(
        self, logits: Tensor, query: Tensor, memory: Memory, step: Tensor, normalizer: Normalizer, state: Any
    ) -> tuple[Tensor, Any]:
        """Turn logits into weights.

        Args:
            logits: (batch, target_len, source_len).
            query: (batch, target_len, query_size).
            memory: the mask, and in ``window`` what :meth:`prepare` made.
            step: (batch,), target tokens before the first of these queries.
            normalizer: to be called with logits and the positions allowed.
            state: from :meth:`start` or from the call before.

        Returns:
            Weights (batch, target_len, source_len), zero where the source has no token, and the new state.
        """


class Global(Window):
    """The whole source sentence (Luong et al. 2015, section 3.1: "global attention").

    No parameters.
    """

    @override
    def forward(
        self, logits: Tensor, query: Tensor, memory: Memory, step: Tensor, normalizer: Normalizer, state: None
    ) -> tuple[Tensor, None]:
        return normalizer(logits, memory.mask.unsqueeze(1)), None


class LocalMonotonic(Window):
    """Luong's local-m: the positions from p_t - D to p_t + D, with p_t = t (Luong et al. 2015, section 3.2).

    t and the positions count from 0. Beyond the end of the source p_t stays at its last token, so that the window is never
    empty.

    No parameters.

    Args:
        query_size: size of a query, not used.
        memory_size: size of an encoder state, not used.
        radius: D, in tokens; the paper's is 10.

    Raises:
        UserError: a negative radius.
    """

    def __init__(self, query_size: int, memory_size: int, *, radius: int = 10) -> None:
        super().__init__(query_size, memory_size)
        if radius < 0:
            raise UserError(f"attention.window.radius of local_m must be 0 or more, not {radius}")
        self.radius = radius

    @override
    def forward(
        self, logits: Tensor, query: Tensor, memory: Memory, step: Tensor, normalizer: Normalizer, state: None
    ) -> tuple[Tensor, None]:
        positions = torch.arange(logits.shape[2], device=logits.device)
        steps = step.unsqueeze(1) + torch.arange(logits.shape[1], device=logits.device)
        centers = torch.minimum(steps, memory.mask.sum(1, keepdim=True) - 1)
        near = (positions - centers.unsqueeze(2)).abs() <= self.radius
        return normalizer(logits, near & memory.mask.unsqueeze(1)), None


class LocalPredictive(Window):
    """Luong's local-p: a window around a predicted position (Luong et al. 2015, section 3.2, equations 9 and 10).

    p_t = S · sigmoid(v_pᵀ tanh(W_p s_t)), S the length of the source; a_tj = normalizer(e_t, |j - p_t| ≤ D)_j ·
    exp(-(j - p_t)² / (2 σ²)), σ = D / 2. As in the paper the product is not normalised again: weights sum to less than one.

    Parameters:
        projection: W_p (query_size, query_size), no bias.
        v: v_p (query_size). Both are initialised as a ``torch.nn.Linear`` is.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state, not used.
        radius: D, in tokens; the paper's is 10.

    Raises:
        UserError: a radius below 1, with which a window may be empty.
    """

    sums_to_one = False

    def __init__(self, query_size: int, memory_size: int, *, radius: int = 10) -> None:
        super().__init__(query_size, memory_size)
        if radius < 1:
            raise UserError(f"attention.window.radius of local_p must be 1 or more, not {radius}")
        self.radius = radius
        self.projection = nn.Linear(query_size, query_size, bias=False)
        self.v = nn.Linear(query_size, 1, bias=False)

    @override
    def forward(
        self, logits: Tensor, query: Tensor, memory: Memory, step: Tensor, normalizer: Normalizer, state: None
    ) -> tuple[Tensor, None]:
        lengths = memory.mask.sum(1).view(-1, 1, 1)
        # Half precision does not tell distant positions apart.
        precise = torch.promote_types(query.dtype, torch.float32)
        centers = lengths * torch.sigmoid(self.v(torch.tanh(self.projection(query))).to(precise))
        distances = torch.arange(logits.shape[2], device=logits.device) - centers
        allowed = (distances.abs() <= self.radius) & memory.mask.unsqueeze(1)
        prior = torch.exp(-2.0 * (distances / self.radius) ** 2)
        return normalizer(logits, allowed) * prior.to(logits.dtype), None


class Gaussian(Window):
    """A Gaussian prior on the logits, its centre and its width predicted (Yang et al. 2018, section 3.1).

    P_t = S · sigmoid(u_pᵀ tanh(W_p s_t)), D_t = S · sigmoid(u_dᵀ tanh(W_p s_t)), S the length of the source;
    a_t = normalizer(e_t + G_t) with G_tj = -(j - P_t)² / (2 σ_t²), σ_t = D_t / 2. No position is forbidden, and weights sum to
    one.

    Parameters:
        projection: W_p (query_size, query_size), no bias.
        center: u_p (query_size).
        width: u_d (query_size). All are initialised as a ``torch.nn.Linear`` is.
    """

    changes_logits = True

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.projection = nn.Linear(query_size, query_size, bias=False)
        self.center = nn.Linear(query_size, 1, bias=False)
        self.width = nn.Linear(query_size, 1, bias=False)

    @override
    def forward(
        self, logits: Tensor, query: Tensor, memory: Memory, step: Tensor, normalizer: Normalizer, state: None
    ) -> tuple[Tensor, None]:
        lengths = memory.mask.sum(1).view(-1, 1, 1)
        hidden = torch.tanh(self.projection(query))
        # Half precision does not tell distant positions apart.
        precise = torch.promote_types(query.dtype, torch.float32)
        centers, widths = (lengths * torch.sigmoid(part(hidden).to(precise)) for part in (self.center, self.width))
        distances = torch.arange(logits.shape[2], device=logits.device) - centers
        # A width that underflows must not make a whole row infinite.
        prior = (-2.0 * (distances / widths.clamp(min=0.01)) ** 2).clamp(min=-1e4)
        return normalizer(logits + prior.to(logits.dtype), memory.mask.unsqueeze(1)), None


class Monotonic(Window):
    """Hard monotonic attention: one position, never to the left of the one before (Raffel et al. 2017, sections 2.2 to 2.5).

    The logits are selection energies, p_tj = sigmoid(e_tj + r). At test, from the position before on, the first j with
    p_tj > 1/2 is taken; if there is none, the context is zero and stays so. In training the expected weights are used,

        α_tj = p_tj Σ_{k≤j} α_{t-1,k} Π_{l=k}^{j-1} (1 - p_tl),  α_0 = (1, 0, …, 0),

    computed from the products themselves in log space and not by the paper's closed form, whose denominator vanishes. In
    training noise from N(0, 1) is added to the energies, so that p is driven to 0 or 1. Mass that runs off the end is lost:
    weights may sum to less than one. One position is looked at at a time, so that every normalizer comes to the same.

    Parameters:
        offset: r (1), initialised with ``initial_offset``.

    Args:
        query_size: size of a query, not used.
        memory_size: size of an encoder state, not used.
        initial_offset: initial r. The paper advises a negative one; with one far below zero short sentences are run through at
            once.
        noise: standard deviation of the noise.

    Raises:
        UserError: a negative noise.
    """

    changes_logits = True
    normalizes = False
    sequential = True
    sums_to_one = False

    def __init__(self, query_size: int, memory_size: int, *, initial_offset: float = -1.0, noise: float = 1.0) -> None:
        super().__init__(query_size, memory_size)
        if noise < 0:
            raise UserError(f"attention.window.noise is a standard deviation and must not be negative, as {noise} is")
        self.initial_offset = initial_offset
        self.noise = noise
        self.offset = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set r."""
        nn.init.constant_(self.offset, self.initial_offset)

    def start(self, mask: Tensor) -> Tensor:
        """Return α_0 (batch, source_len): all weight on the first position."""
        return torch.eye(1, mask.shape[1], device=mask.device, dtype=self.offset.dtype).expand(len(mask), -1)

    @override
    def forward(
        self, logits: Tensor, query: Tensor, memory: Memory, step: Tensor, normalizer: Normalizer, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One target token at a time."""
        selected = self._select(logits.squeeze(1), memory.mask, state)
        return selected.unsqueeze(1), selected

    def _select(self, energies: Tensor, mask: Tensor, before: Tensor) -> Tensor:
        """Return the (expected) weights (batch, source_len) after those of the token before."""
        # In half precision the sum of the logarithms would overflow.
        energies = (energies + self.offset).to(torch.promote_types(energies.dtype, torch.float32))
        if not self.training:
            chosen = (energies > 0) & mask & (before.cumsum(1) > 0.5)
            return (chosen & (chosen.cumsum(1) == 1)).to(before.dtype)
        if self.noise:
            energies = energies + self.noise * torch.randn_like(energies)
        energies = energies.masked_fill(~mask, torch.finfo(energies.dtype).min)
        passed = nn.functional.logsigmoid(-energies).cumsum(1)
        passed = nn.functional.pad(passed[:, :-1], (1, 0))  # log Π_{l<j} (1 - p_l)
        reach = (passed.unsqueeze(1) - passed.unsqueeze(2)).clamp(max=0).exp().triu()  # [k, j] = Π_{l=k}^{j-1} (1 - p_l)
        selected = torch.sigmoid(energies) * (before.to(reach.dtype).unsqueeze(1) @ reach).squeeze(1)
        return selected.to(before.dtype)


class MonotonicChunkwise(Monotonic):
    """MoChA: soft attention over a chunk that ends where a hard monotonic attention stops (Chiu and Raffel 2018, section 2.3).

    α as in :class:`Monotonic`, from a selection score of its own; the logits are the chunk energies u:

        β_tj = Σ_{k=j}^{j+w-1} α_tk · normalizer(u_{t,k-w+1}, …, u_tk)_j.

    Parameters:
        offset: r (1), initialised with ``initial_offset``.
        selection: its own, the score of the selection energies.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        selection: makes the selection score from (query_size, memory_size).
        chunk_size: w, in tokens.
        initial_offset: see :class:`Monotonic`.
        noise: see :class:`Monotonic`.

    Raises:
        UserError: a chunk without a token.
    """

    changes_logits = False
    normalizes = True

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        selection: Callable[[int, int], Score],
        chunk_size: int = 3,
        initial_offset: float = -1.0,
        noise: float = 1.0,
    ) -> None:
        super().__init__(query_size, memory_size, initial_offset=initial_offset, noise=noise)
        if chunk_size < 1:
            raise UserError(f"attention.window.chunk_size must be 1 or more, not {chunk_size}")
        self.chunk_size = chunk_size
        self.selection = selection(query_size, memory_size)
        self.max_length = self.selection.max_length

    def prepare(self, states: Tensor) -> Tensor:
        """Return the keys of the selection score."""
        return self.selection.project_keys(states)

    @override
    def forward(
        self, logits: Tensor, query: Tensor, memory: Memory, step: Tensor, normalizer: Normalizer, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One target token at a time."""
        selected = self._select(self.selection(query, memory.window).squeeze(1), memory.mask, state)
        before = (self.chunk_size - 1, 0)
        chunks = nn.functional.pad(logits.squeeze(1), before).unfold(1, self.chunk_size, 1)
        allowed = nn.functional.pad(memory.mask, before).unfold(1, self.chunk_size, 1)
        shares = selected.unsqueeze(2) * normalizer(chunks, allowed)
        # shares[:, k, i] belongs to position k - w + 1 + i
        weights = torch.stack([part.roll(-behind, 1) for behind, part in enumerate(reversed(shares.unbind(2)))]).sum(0)
        return weights.unsqueeze(1), selected
