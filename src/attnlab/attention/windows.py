"""Windows: which source positions a query may attend to, and with which prior. They keep no state."""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.mechanism import Part
from attnlab.errors import UserError
from attnlab.precision import wide_type


class Region(NamedTuple):
    """Where queries may attend, a_t = prior ∘ normalizer(e_t + bias, allowed)."""

    allowed: Tensor
    """Boolean (batch, target_len or 1, source_len), false where the source has no token."""
    bias: Tensor | None = None
    """(batch, target_len, source_len), added to the logits; None adds nothing."""
    prior: Tensor | None = None
    """(batch, target_len, source_len), multiplies the weights, which are not normalised again; None changes nothing."""


class Window(Part):
    """Limits the source positions that a query may attend to, or weighs them.

    A window places each query with some numbers, such as the centre of its region, and says in three functions of a position
    and these numbers what that means there. The functions are elementwise, so that one kernel asks them of all positions at
    once and another of one position at a time. This one limits and weighs nothing.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state, not used here.

    Attributes:
        reads_query: whether the numbers depend on what is in a query, and not on its place alone.
    """

    reads_query: ClassVar[bool] = True

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.query_size = query_size

    def place(self, query: Tensor, mask: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        """Return the numbers of each query, each a tensor (batch, target_len, 1).

        Args:
            query: (batch, target_len, query_size).
            mask: (batch, source_len), true where the source has a token.
            step: (batch,), target tokens before the first of these queries.
        """
        return ()

    def is_near(self, position: Tensor, *numbers: Tensor) -> Tensor | None:
        """Return whether a query may attend to a position of the source, counted from 0; None where it may to all."""
        return None

    def bias(self, position: Tensor, *numbers: Tensor) -> Tensor | None:
        """Return what is added to the logit of a position; None adds nothing."""
        return None

    def prior(self, position: Tensor, *numbers: Tensor) -> Tensor | None:
        """Return what the weight of a position is multiplied by, without another normalisation; None changes nothing."""
        return None

    def forward(self, query: Tensor, mask: Tensor, step: Tensor) -> Region:
        """Say where queries may attend; see :meth:`place`."""
        return self.region(mask, self.place(query, mask, step))

    def region(self, mask: Tensor, numbers: tuple[Tensor, ...]) -> Region:
        """Return the region of placed queries in sources with a mask (batch, source_len)."""
        positions = torch.arange(mask.shape[1], device=mask.device)
        near, inside = self.is_near(positions, *numbers), mask.unsqueeze(1)
        allowed = inside if near is None else near & inside
        return Region(allowed, self.bias(positions, *numbers), self.prior(positions, *numbers))


class Global(Window):
    """The whole source (Luong et al. 2015, section 3.1: "global attention").

    No parameters.
    """

    reads_query = False

    @override
    def region(self, mask: Tensor, numbers: tuple[Tensor, ...]) -> Region:
        """Return all that has a token, without looking at positions."""
        return Region(mask.unsqueeze(1))


class Local(Window):
    """The positions at most D from a centre, the first of the window's numbers.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        radius: D, in tokens.

    Raises:
        UserError: a radius with which a window may be empty.
    """

    least_radius: ClassVar[int] = 0

    def __init__(self, query_size: int, memory_size: int, *, radius: int = 10) -> None:
        super().__init__(query_size, memory_size)
        if radius < self.least_radius:
            raise UserError(f"radius must be {self.least_radius} or more, not {radius}")
        self.radius = radius

    @override
    def is_near(self, position: Tensor, *numbers: Tensor) -> Tensor:
        center, *_ = numbers
        return (position - center).abs() <= self.radius


class LocalMonotonic(Local):
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

    reads_query = False

    @override
    def place(self, query: Tensor, mask: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        steps = step.unsqueeze(1) + torch.arange(query.shape[1], device=mask.device)
        return (torch.minimum(steps, mask.sum(1, keepdim=True) - 1).unsqueeze(2),)


class LocalPredictive(Local):
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
    least_radius = 1

    def __init__(self, query_size: int, memory_size: int, *, radius: int = 10) -> None:
        super().__init__(query_size, memory_size, radius=radius)
        self.projection = nn.Linear(query_size, query_size, bias=False)
        self.v = nn.Linear(query_size, 1, bias=False)

    @override
    def place(self, query: Tensor, mask: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        return (_scale_to_length(self.v(torch.tanh(self.projection(query))), mask),)

    @override
    def prior(self, position: Tensor, *numbers: Tensor) -> Tensor:
        (center,) = numbers
        return torch.exp(-2.0 * ((position - center) / self.radius) ** 2)


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

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.projection = nn.Linear(query_size, query_size, bias=False)
        self.center = nn.Linear(query_size, 1, bias=False)
        self.width = nn.Linear(query_size, 1, bias=False)

    @override
    def place(self, query: Tensor, mask: Tensor, step: Tensor) -> tuple[Tensor, ...]:
        hidden = torch.tanh(self.projection(query))
        center, width = (_scale_to_length(part(hidden), mask) for part in (self.center, self.width))
        return center, width.clamp(min=0.01)  # a width that underflows must not make a whole row infinite

    @override
    def bias(self, position: Tensor, *numbers: Tensor) -> Tensor:
        center, width = numbers
        return (-2.0 * ((position - center) / width) ** 2).clamp(min=-1e4)


def _scale_to_length(logits: Tensor, mask: Tensor) -> Tensor:
    """Return S · sigmoid(logits) for logits (batch, target_len, 1), S being the length of each source."""
    # Half precision does not tell distant positions apart.
    precise = wide_type(logits)
    return mask.sum(1).view(-1, 1, 1) * torch.sigmoid(logits.to(precise))
