"""Scores that are small networks, from one without a hidden layer to one with several."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.scores.score import EqualSizes, Score
from attnlab.errors import UserError


class Linear(Score):
    """The linear control, e(s, h) = wᵀ[s; h] = w_sᵀs + w_hᵀh.

    w_sᵀs is the same for every position, so that a softmax over positions cancels it: the weights do not depend on the query at
    all, and w_s receives no gradient. It shows what a score without a nonlinearity or a product cannot do.

    Parameters:
        query_weight: w_s (query_size).
        key_weight: w_h (memory_size). Both are initialised as a ``torch.nn.Linear`` is.
    """

    is_separable = True

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.query_weight = nn.Linear(query_size, 1, bias=False)
        self.key_weight = nn.Linear(memory_size, 1, bias=False)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return w_hᵀh for every encoder state."""
        projected: Tensor = self.key_weight(states)
        return projected

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        logits: Tensor = self.query_weight(query) + keys.transpose(1, 2)
        return logits


class HiddenLayer(Score, ABC):
    """One hidden layer, e(s, h) = vᵀ tanh(p(s) + k(h)): :meth:`project_query` is p and ``project_keys`` is k.

    Parameters:
        v: (hidden_size), initialised as a ``torch.nn.Linear`` is.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        hidden_size: size of the hidden layer; the query's size if it is None.
    """

    def __init__(self, query_size: int, memory_size: int, *, hidden_size: int | None = None) -> None:
        super().__init__(query_size, memory_size)
        self.v = nn.Linear(query_size if hidden_size is None else hidden_size, 1, bias=False)
        self.pair_size = self.v.in_features

    @abstractmethod
    def project_query(self, query: Tensor) -> Tensor:
        """Turn queries (batch, target_len, query_size) into (batch, target_len, hidden_size)."""

    def combine_units(self, hidden: Tensor) -> Tensor:
        """Turn the layer's units, (..., hidden_size), into a score each, (...)."""
        logits: Tensor = self.v(hidden).squeeze(-1)
        return logits

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        # In place: nothing needs the sum, which is as large as all units, again.
        return self.combine_units((self.project_query(query).unsqueeze(2) + keys.unsqueeze(1)).tanh_())


class Additive(HiddenLayer):
    """Additive, e(s, h) = vᵀ tanh(W s + U h) (Bahdanau et al. 2015, appendix A.1.2, with s the decoder's state).

    Parameters:
        query_projection: W (hidden_size, query_size).
        key_projection: U (hidden_size, memory_size), with a bias (hidden_size) if ``bias``.
        v: (hidden_size). All are initialised as a ``torch.nn.Linear`` is.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        hidden_size: size of the alignment layer; the query's size if it is None.
        bias: add a bias inside the tanh; the paper has none.
    """

    def __init__(self, query_size: int, memory_size: int, *, hidden_size: int | None = None, bias: bool = False) -> None:
        super().__init__(query_size, memory_size, hidden_size=hidden_size)
        self.query_projection = nn.Linear(query_size, self.v.in_features, bias=False)
        self.key_projection = nn.Linear(memory_size, self.v.in_features, bias=bias)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return U h (+ b) for every encoder state."""
        projected: Tensor = self.key_projection(states)
        return projected

    @override
    def project_query(self, query: Tensor) -> Tensor:
        """Return W s for every query."""
        projected: Tensor = self.query_projection(query)
        return projected


class NormalizedAdditive(Additive):
    """Additive with a normalised v, e(s, h) = g vᵀ/‖v‖ tanh(W s + U h + b) (Raffel et al. 2017, section 2.4).

    The paper's offset r belongs to the monotonic normalizer.

    Parameters:
        query_projection: W (hidden_size, query_size), no bias.
        key_projection: U (hidden_size, memory_size) and b (hidden_size).
        v: (hidden_size). All of these are initialised as a ``torch.nn.Linear`` is.
        gain: g (1), initialised with 1 / √hidden_size.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        hidden_size: size of the alignment layer; the query's size if it is None.
    """

    def __init__(self, query_size: int, memory_size: int, *, hidden_size: int | None = None) -> None:
        super().__init__(query_size, memory_size, hidden_size=hidden_size, bias=True)
        self.gain = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set g."""
        nn.init.constant_(self.gain, self.v.in_features**-0.5)

    @override
    def combine_units(self, hidden: Tensor) -> Tensor:
        direction = self.v.weight.squeeze(0) / self.v.weight.norm()
        logits: Tensor = hidden @ (self.gain * direction)
        return logits


class Concat(HiddenLayer):
    """Concatenation, e(s, h) = vᵀ tanh(W [s; h]) (Luong et al. 2015, section 3.1, "concat").

    W [s; h] is computed as W_s s + W_h h, so that W_h h is paid once for a source. It differs from :class:`Additive`
    in its initialisation alone: W is one matrix, with the fan-in of both.

    Parameters:
        projection: W (hidden_size, query_size + memory_size), no bias.
        v: (hidden_size). Both are initialised as a ``torch.nn.Linear`` is.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        hidden_size: size of the hidden layer; the query's size if it is None.
    """

    def __init__(self, query_size: int, memory_size: int, *, hidden_size: int | None = None) -> None:
        super().__init__(query_size, memory_size, hidden_size=hidden_size)
        self.projection = nn.Linear(query_size + memory_size, self.v.in_features, bias=False)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return W_h h for every encoder state."""
        return nn.functional.linear(states, self.projection.weight[:, self.query_size :])

    @override
    def project_query(self, query: Tensor) -> Tensor:
        """Return W_s s for every query."""
        return nn.functional.linear(query, self.projection.weight[:, : self.query_size])


class SharedConcat(HiddenLayer, EqualSizes):
    """The tutorials' "concat", e(s, h) = vᵀ tanh(W (s + h)): one W for both, which is not Luong's function.

    Parameters:
        projection: W (hidden_size, query_size), no bias.
        v: (hidden_size). Both are initialised as a ``torch.nn.Linear`` is.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        hidden_size: size of the hidden layer; the query's size if it is None.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def __init__(self, query_size: int, memory_size: int, *, hidden_size: int | None = None) -> None:
        super().__init__(query_size, memory_size, hidden_size=hidden_size)
        self.projection = nn.Linear(query_size, self.v.in_features, bias=False)

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return W h for every encoder state."""
        projected: Tensor = self.projection(states)
        return projected

    @override
    def project_query(self, query: Tensor) -> Tensor:
        """Return W s for every query."""
        return self.project_keys(query)


class Network(Score):
    """A small network of any depth, e(s, h) = f([s; h]): W_n φ(… φ(W_1 [s; h] + b_1) …).

    W_1 [s; h] is computed as W_s s + W_h h, so that W_h h is paid once for a source.

    Parameters:
        first: W_1 (hidden_sizes[0], query_size + memory_size) and b_1.
        rest: the other layers, each with a bias but the last, which makes one number. All are initialised as a
            ``torch.nn.Linear`` is.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        hidden_sizes: units of each hidden layer, one layer or more.
        activation: makes φ. With a tanh more than one hidden layer is slow to begin to align.

    Raises:
        UserError: no hidden layer.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        hidden_sizes: Sequence[int] = (64, 64),
        activation: Callable[[], nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__(query_size, memory_size)
        if not hidden_sizes or min(hidden_sizes) < 1:
            raise UserError("hidden_sizes names the units of one hidden layer or more, such as [64,64]")
        self.first = nn.Linear(query_size + memory_size, hidden_sizes[0])
        layers: list[nn.Module] = [activation()]
        for below, size in pairwise(hidden_sizes):
            layers += [nn.Linear(below, size), activation()]
        self.pair_size = 2 * sum(hidden_sizes)  # before and after φ
        self.rest = nn.Sequential(*layers, nn.Linear(hidden_sizes[-1], 1, bias=False))

    @override
    def project_keys(self, states: Tensor) -> Tensor:
        """Return W_h h + b_1 for every encoder state."""
        return nn.functional.linear(states, self.first.weight[:, self.query_size :], self.first.bias)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        projected = nn.functional.linear(query, self.first.weight[:, : self.query_size])
        logits: Tensor = self.rest(projected.unsqueeze(2) + keys.unsqueeze(1)).squeeze(-1)
        return logits
