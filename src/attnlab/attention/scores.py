"""Score functions: how well does each key answer a query?

Every class is one equation. ``project_keys`` does the part that depends on the source alone, once per sentence;
``forward`` does the rest for one query or for all queries of a sentence at once, with the same code.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.mechanism import Part
from attnlab.errors import UserError


class Score(Part, ABC):
    """A score function e(q, k).

    Args:
        query_size: size of a query, from the decoder.
        memory_size: size of an encoder state, from the encoder.

    Attributes:
        linear_keys: whether :meth:`project_keys` is linear, so that a history may add to the keys after it.
        content_based: whether it compares the query with the keys; if not, it sees their number alone.
    """

    linear_keys: ClassVar[bool] = True
    content_based: ClassVar[bool] = True

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.query_size = query_size
        self.memory_size = memory_size

    def project_keys(self, states: Tensor) -> Tensor:
        """Turn encoder states (batch, source_len, memory_size) into keys (batch, source_len, key_size)."""
        return states

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score queries (batch, target_len, query_size) against keys; returns (batch, target_len, source_len)."""


class EqualSizes(Score, ABC):
    """A score that compares vectors of one size.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        if query_size != memory_size:
            raise UserError(
                f"a {type(self).__name__} score compares vectors of one size, but the decoder asks with {query_size} and "
                f"the encoder answers with {memory_size} (hidden size times directions): make them equal with "
                "decoder.hidden_size or encoder.hidden_size, or choose attention/score=general"
            )


class Dot(EqualSizes):
    """Dot product, e(s, h) = sᵀh (Luong et al. 2015, section 3.1, "dot").

    No parameters.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


class ScaledDot(Dot):
    """Scaled dot product, e(s, h) = sᵀh / √d, with d the size of s (Vaswani et al. 2017, equation 1).

    No parameters.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query * self.query_size**-0.5, keys)


class LearnedScaleDot(Dot):
    """Dot product with a learned scale, e(s, h) = g sᵀh.

    A plain dot product of large vectors saturates the softmax (Britz et al. 2017); this one can grow out of it.

    Parameters:
        scale: g (1), initialised with 1 / √d, with d the size of s.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.scale = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set g."""
        nn.init.constant_(self.scale, self.query_size**-0.5)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query * self.scale, keys)


class Cosine(EqualSizes):
    """Cosine similarity over a temperature, e(s, h) = sᵀh / (τ ‖s‖ ‖h‖) (Graves et al. 2014, equations 5 and 6, β = 1 / τ).

    No parameters.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        temperature: τ; without one below 1 the weights stay close to uniform, since a cosine is at most 1.

    Raises:
        UserError: the query and the encoder states differ in size, or a temperature that is not positive.
    """

    linear_keys = False

    def __init__(self, query_size: int, memory_size: int, *, temperature: float = 0.1) -> None:
        super().__init__(query_size, memory_size)
        if temperature <= 0:
            raise UserError(f"attention.score.temperature must be above 0, not {temperature}")
        self.temperature = temperature

    def project_keys(self, states: Tensor) -> Tensor:
        """Return h / ‖h‖."""
        return nn.functional.normalize(states, dim=-1, eps=_smallest_norm(states))

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        unit = nn.functional.normalize(query, dim=-1, eps=_smallest_norm(query))
        return unit @ keys.transpose(1, 2) / self.temperature


def _smallest_norm(vectors: Tensor) -> float:
    return math.sqrt(torch.finfo(vectors.dtype).tiny)  # torch's own default underflows to zero in half precision


class General(Score):
    """Bilinear, e(s, h) = sᵀ W h (Luong et al. 2015, section 3.1, "general"), or g sᵀ W h with a learned scale.

    W is applied to the memory, once per sentence.

    Parameters:
        projection: W (query_size, memory_size), initialised as a ``torch.nn.Linear`` is.
        scale: g (1) if ``learned_scale``, initialised with 1.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state.
        learned_scale: multiply by g.
    """

    def __init__(self, query_size: int, memory_size: int, *, learned_scale: bool = False) -> None:
        super().__init__(query_size, memory_size)
        self.projection = nn.Linear(memory_size, query_size, bias=False)
        self.scale = nn.Parameter(torch.ones(1)) if learned_scale else None

    def reset_parameters(self) -> None:
        """Set g."""
        if self.scale is not None:
            nn.init.ones_(self.scale)

    def project_keys(self, states: Tensor) -> Tensor:
        """Return W h, or g W h, for every encoder state."""
        projected: Tensor = self.projection(states)
        return projected if self.scale is None else projected * self.scale

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


class Additive(Score):
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
        super().__init__(query_size, memory_size)
        hidden_size = hidden_size or query_size
        self.query_projection = nn.Linear(query_size, hidden_size, bias=False)
        self.key_projection = nn.Linear(memory_size, hidden_size, bias=bias)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def project_keys(self, states: Tensor) -> Tensor:
        """Return U h (+ b) for every encoder state."""
        projected: Tensor = self.key_projection(states)
        return projected

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        hidden = torch.tanh(self.query_projection(query).unsqueeze(2) + keys.unsqueeze(1))
        logits: Tensor = self.v(hidden).squeeze(-1)
        return logits


class Concat(Score):
    """Concatenation, e(s, h) = vᵀ tanh(W [s; h]) (Luong et al. 2015, section 3.1, "concat").

    W [s; h] is computed as W_s s + W_h h, so that W_h h is paid once per sentence. It differs from :class:`Additive`
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
        super().__init__(query_size, memory_size)
        hidden_size = hidden_size or query_size
        self.projection = nn.Linear(query_size + memory_size, hidden_size, bias=False)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def project_keys(self, states: Tensor) -> Tensor:
        """Return W_h h for every encoder state."""
        return nn.functional.linear(states, self.projection.weight[:, self.query_size :])

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        projected = nn.functional.linear(query, self.projection.weight[:, : self.query_size])
        logits: Tensor = self.v(torch.tanh(projected.unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1)
        return logits


class NormalizedAdditive(Score):
    """Additive with a normalised v, e(s, h) = g vᵀ/‖v‖ tanh(W s + U h + b) (Raffel et al. 2017, section 2.4).

    The paper's offset r belongs to the monotonic window.

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
        super().__init__(query_size, memory_size)
        hidden_size = hidden_size or query_size
        self.query_projection = nn.Linear(query_size, hidden_size, bias=False)
        self.key_projection = nn.Linear(memory_size, hidden_size)
        self.v = nn.Linear(hidden_size, 1, bias=False)
        self.gain = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set g."""
        nn.init.constant_(self.gain, self.v.in_features**-0.5)

    def project_keys(self, states: Tensor) -> Tensor:
        """Return U h + b for every encoder state."""
        projected: Tensor = self.key_projection(states)
        return projected

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        hidden = torch.tanh(self.query_projection(query).unsqueeze(2) + keys.unsqueeze(1))
        direction = self.v.weight.squeeze(0) / self.v.weight.norm()
        logits: Tensor = hidden @ (self.gain * direction)
        return logits


class SharedConcat(EqualSizes):
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
        super().__init__(query_size, memory_size)
        hidden_size = hidden_size or query_size
        self.projection = nn.Linear(query_size, hidden_size, bias=False)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def project_keys(self, states: Tensor) -> Tensor:
        """Return W h for every encoder state."""
        projected: Tensor = self.projection(states)
        return projected

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        hidden = torch.tanh(self.projection(query).unsqueeze(2) + keys.unsqueeze(1))
        logits: Tensor = self.v(hidden).squeeze(-1)
        return logits


class Linear(Score):
    """The linear control, e(s, h) = wᵀ[s; h] = w_sᵀs + w_hᵀh.

    w_sᵀs is the same for every position, so that a softmax over positions cancels it: the weights do not depend on the query at
    all, and w_s receives no gradient. It shows what a score without a nonlinearity or a product cannot do.

    Parameters:
        query_weight: w_s (query_size).
        key_weight: w_h (memory_size). Both are initialised as a ``torch.nn.Linear`` is.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.query_weight = nn.Linear(query_size, 1, bias=False)
        self.key_weight = nn.Linear(memory_size, 1, bias=False)

    def project_keys(self, states: Tensor) -> Tensor:
        """Return w_hᵀh for every encoder state."""
        projected: Tensor = self.key_weight(states)
        return projected

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        logits: Tensor = self.query_weight(query) + keys.transpose(1, 2)
        return logits


class Network(Score):
    """A small network of any depth, e(s, h) = f([s; h]): W_n φ(… φ(W_1 [s; h] + b_1) …).

    W_1 [s; h] is computed as W_s s + W_h h, so that W_h h is paid once per sentence.

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
            raise UserError("attention.score.hidden_sizes names the units of one hidden layer or more, such as [64,64]")
        self.first = nn.Linear(query_size + memory_size, hidden_sizes[0])
        layers: list[nn.Module] = [activation()]
        for below, size in pairwise(hidden_sizes):
            layers += [nn.Linear(below, size), activation()]
        self.rest = nn.Sequential(*layers, nn.Linear(hidden_sizes[-1], 1, bias=False))

    def project_keys(self, states: Tensor) -> Tensor:
        """Return W_h h + b_1 for every encoder state."""
        return nn.functional.linear(states, self.first.weight[:, self.query_size :], self.first.bias)

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        projected = nn.functional.linear(query, self.first.weight[:, : self.query_size])
        logits: Tensor = self.rest(projected.unsqueeze(2) + keys.unsqueeze(1)).squeeze(-1)
        return logits


class Location(Score):
    """Location-based, e_j(s) = (W s)_j: it never looks at the source (Luong et al. 2015, equation 8).

    With the embedding of the previous token beside the state as query and a bias, it is the attention of PyTorch's translation
    tutorial (``attention=tutorial``).

    Parameters:
        projection: W (max_length, query_size), with a bias (max_length) if ``bias``, initialised as a ``torch.nn.Linear`` is.

    Args:
        query_size: size of a query.
        memory_size: size of an encoder state, not used.
        max_length: rows of W: the longest source sentence, in tokens, its end symbol included; longer ones are refused.
        bias: add a bias.

    Raises:
        UserError: a source sentence that is longer than ``max_length``.
    """

    content_based = False

    def __init__(self, query_size: int, memory_size: int, *, max_length: int = 100, bias: bool = False) -> None:
        super().__init__(query_size, memory_size)
        self.max_length: int = max_length
        self.projection = nn.Linear(query_size, max_length, bias=bias)

    def project_keys(self, states: Tensor) -> Tensor:
        """Return the states without their content; what is left is their number."""
        if states.shape[1] > self.max_length:
            raise UserError(
                f"a Location score looks at {self.max_length} source positions, but a sentence has {states.shape[1]} tokens: "
                f"raise its max_length to {states.shape[1]}"
            )
        return states[..., :0]

    @override
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        logits: Tensor = self.projection(query)[..., : keys.shape[1]]
        return logits
