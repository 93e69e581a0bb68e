"""Score functions: how well does each key answer a query?

Every class is one equation. ``project_keys`` does the part that depends on the source alone, once per sentence;
``forward`` does the rest for one query or for all queries of a sentence at once, with the same code.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from attnlab.errors import UserError


class Score(nn.Module, ABC):
    """A score function e(q, k).

    Args:
        query_size: size of a query, from the decoder.
        memory_size: size of an encoder state, from the encoder.
    """

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


class Dot(Score):
    """Dot product, e(s, h) = sᵀh (Luong et al. 2015, section 3.1, "dot").

    No parameters.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        if query_size != memory_size:
            raise UserError(
                f"a {type(self).__name__} score compares vectors of one size, but the decoder asks with {query_size} and "
                f"the encoder answers with {memory_size} (hidden size times directions): make them equal with "
                "decoder.hidden_size or encoder.hidden_size, or choose attention=general"
            )

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """See :meth:`Score.forward`."""
        return query @ keys.transpose(1, 2)


class ScaledDot(Dot):
    """Scaled dot product, e(s, h) = sᵀh / √d, with d the size of s (Vaswani et al. 2017, equation 1).

    No parameters.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """See :meth:`Score.forward`."""
        return super().forward(query * self.query_size**-0.5, keys)


class General(Score):
    """Bilinear, e(s, h) = sᵀ W h (Luong et al. 2015, section 3.1, "general").

    W is applied to the memory, once per sentence.

    Parameters:
        weight: W (query_size, memory_size), initialised as a ``torch.nn.Linear`` is.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.projection = nn.Linear(memory_size, query_size, bias=False)

    def project_keys(self, states: Tensor) -> Tensor:
        """Return W h for every encoder state."""
        projected: Tensor = self.projection(states)
        return projected

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """See :meth:`Score.forward`."""
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

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """See :meth:`Score.forward`."""
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

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """See :meth:`Score.forward`."""
        projected = nn.functional.linear(query, self.projection.weight[:, : self.query_size])
        logits: Tensor = self.v(torch.tanh(projected.unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1)
        return logits
