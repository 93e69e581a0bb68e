"""Monotonic normalizers, which carry a position from one target token to the next and never go back."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.composition import Composition, validate_composition
from attnlab.attention.mechanism import Memory
from attnlab.attention.noise import draw_normal
from attnlab.attention.normalizers import Normalizer, StatelessNormalizer
from attnlab.attention.scores import Score
from attnlab.errors import UserError
from attnlab.precision import widen


class Monotonic(Normalizer):
    """Hard monotonic attention: one position, never to the left of the one before (Raffel et al. 2017, sections 2.2 to 2.5).

    The logits are selection energies, p_tj = sigmoid(e_tj + r), and zero where a window forbids j. At test, from the position
    before on, the first j with p_tj > 1/2 is taken; if there is none, the context is zero and stays so. In training the
    expected weights are used,

        α_tj = p_tj Σ_{k≤j} α_{t-1,k} Π_{l=k}^{j-1} (1 - p_tl),  α_0 = (1, 0, …, 0),

    computed from the products themselves in log space and not by the paper's closed form, whose denominator vanishes. In
    training, noise from N(0, noise²) is added to the energies, so that p is driven to 0 or 1. Mass that runs off the end is
    lost: weights may sum to less than one. The gradient needs two tensors (batch, source_len, source_len) of every target
    token.

    Parameters:
        offset: r (1), initialised with ``initial_offset``.

    Args:
        query_size: size of a query, not used.
        memory_size: size of an encoder state, not used.
        initial_offset: initial r. The paper advises a negative one; with one far below zero short sources are run through at
            once.
        noise: standard deviation of the noise.

    Raises:
        UserError: a negative noise.
    """

    sequential = True
    sums_to_one = False

    def __init__(self, query_size: int, memory_size: int, *, initial_offset: float = -1.0, noise: float = 1.0) -> None:
        super().__init__(query_size, memory_size)
        if noise < 0:
            raise UserError(f"noise is a standard deviation and must not be negative, as {noise} is")
        self.initial_offset = initial_offset
        self.noise = noise
        self.offset = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set r."""
        nn.init.constant_(self.offset, self.initial_offset)

    @override
    def start(self, mask: Tensor) -> Tensor:
        """Return α_0 (batch, source_len): all weight on the first position."""
        return torch.eye(1, mask.shape[1], device=mask.device, dtype=self.offset.dtype).expand(len(mask), -1)

    @override
    def advance(self, logits: Tensor, allowed: Tensor, query: Tensor, memory: Memory, state: Tensor) -> tuple[Tensor, Tensor]:
        selected = self._select(logits.squeeze(1), allowed.squeeze(1), state)
        return selected.unsqueeze(1), selected

    def _select(self, energies: Tensor, allowed: Tensor, before: Tensor) -> Tensor:
        """Return the (expected) weights (batch, source_len) after those of the token before."""
        # In half precision the sum of the logarithms would overflow.
        energies = widen(energies + self.offset)
        if not self.training:
            chosen = (energies > 0) & allowed & (before.cumsum(1) > 0.5)
            return (chosen & (chosen.cumsum(1) == 1)).to(before.dtype)
        if self.noise:
            energies = energies + self.noise * draw_normal(energies)
        energies = energies.masked_fill(~allowed, torch.finfo(energies.dtype).min)
        # Larger logarithms than of a probability of 1e-13 would cancel digits of those that stand after them in the sum.
        passed = nn.functional.logsigmoid(-energies).clamp(min=-30).cumsum(1)
        passed = nn.functional.pad(passed[:, :-1], (1, 0))  # log Π_{l<j} (1 - p_l)
        reach = (passed.unsqueeze(1) - passed.unsqueeze(2)).clamp(max=0).exp().triu()  # [k, j] = Π_{l=k}^{j-1} (1 - p_l)
        with torch.autocast(reach.device.type, enabled=False):  # in half precision the sum of the weights could exceed one
            arrived = (before.to(reach.dtype).unsqueeze(1) @ reach).squeeze(1)
        return (torch.sigmoid(energies) * arrived).to(before.dtype)


class MonotonicChunkwise(Monotonic):
    """MoChA: soft attention over a chunk that ends where a hard monotonic attention stops (Chiu and Raffel 2018, section 2.3).

    α as in :class:`Monotonic`, from a selection score of its own; the logits are the chunk energies u, and only to these do a
    window and a history add:

        β_tj = Σ_{k=j}^{j+w-1} α_tk · normalizer(u_{t,k-w+1}, …, u_tk)_j.

    Parameters:
        offset: r (1), initialised with ``initial_offset``.
        selection: its own, the score of the selection energies.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        selection: makes the selection score from (query_size, memory_size).
        chunk: makes the normalizer inside a chunk from (query_size, memory_size).
        chunk_size: w, in tokens; with one token this would be :class:`Monotonic`, and the score would learn nothing.
        initial_offset: see :class:`Monotonic`.
        noise: see :class:`Monotonic`.

    Raises:
        UserError: a chunk of fewer than two tokens, or a normalizer that cannot normalise a chunk by itself.
    """

    reads_query = True

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        selection: Callable[[int, int], Score],
        chunk: Callable[[int, int], StatelessNormalizer],
        chunk_size: int = 3,
        initial_offset: float = -1.0,
        noise: float = 1.0,
    ) -> None:
        super().__init__(query_size, memory_size, initial_offset=initial_offset, noise=noise)
        if chunk_size < 2:
            raise UserError(
                f"chunk_size must be 2 or more, not {chunk_size}: there is nothing to score in a chunk of one token; for that "
                "choose a monotonic normalizer"
            )
        self.chunk_size = chunk_size
        self.selection = selection(query_size, memory_size)
        self.chunk = chunk(query_size, memory_size)
        self.reads_logits = self.chunk.reads_logits
        validate_composition(Composition(chunk=self.chunk))

    @override
    def prepare(self, states: Tensor) -> Tensor:
        """Return the keys of the selection score."""
        return self.selection.project_keys(states)

    @override
    def advance(self, logits: Tensor, allowed: Tensor, query: Tensor, memory: Memory, state: Tensor) -> tuple[Tensor, Tensor]:
        positions = allowed.squeeze(1)
        selected = self._select(self.selection(query, memory.normalizer).squeeze(1), positions, state)
        size = min(self.chunk_size, logits.shape[-1])
        before = (size - 1, 0)
        chunks = nn.functional.pad(logits.squeeze(1), before).unfold(1, size, 1)
        inside = nn.functional.pad(positions, before).unfold(1, size, 1)
        shares = selected.unsqueeze(2) * self.chunk(chunks, inside)
        # shares[:, k, i] belongs to position k - w + 1 + i
        weights = torch.stack([part.roll(-behind, 1) for behind, part in enumerate(reversed(shares.unbind(2)))]).sum(0)
        return weights.unsqueeze(1), selected
