"""Keys and values: what of an encoder state is compared, and what is averaged."""

from abc import ABC, abstractmethod

from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.mechanism import Part
from attnlab.errors import UserError


class Keys(Part, ABC):
    """Makes a key and a value out of every encoder state.

    Args:
        memory_size: size of an encoder state.

    Attributes:
        key_size: size of a key.
        value_size: size of a value, which is that of the context.
    """

    def __init__(self, memory_size: int) -> None:
        super().__init__()
        self.key_size = memory_size
        self.value_size = memory_size

    @abstractmethod
    def forward(self, states: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys (batch, source_len, key_size) and values (batch, source_len, value_size).

        Args:
            states: encoder states (batch, source_len, memory_size).
            values: what the encoder wants averaged, in the shape of the states; mostly the states themselves.
        """


class States(Keys):
    """k_j = v_j = h_j: the encoder's state is both (Bahdanau et al. 2015; Luong et al. 2015).

    No parameters.
    """

    @override
    def forward(self, states: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        return states, values


class Split(Keys):
    """[k_j; v_j] = h_j: one half of the encoder's state is the key, the other the value (Daniluk et al. 2017, section 2.2).

    The halves are the even and the odd units, so that each has both directions of an encoder that reads both ways.

    No parameters.

    Raises:
        UserError: a state of odd size.
    """

    def __init__(self, memory_size: int) -> None:
        super().__init__(memory_size)
        if memory_size % 2:
            raise UserError(
                f"split keys halve an encoder state, but its size is {memory_size}: make it even, or choose other keys"
            )
        self.key_size = self.value_size = memory_size // 2

    @override
    def forward(self, states: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        return states[..., ::2], values[..., 1::2]


class Projected(Keys):
    """k_j = W^K h_j, v_j = W^V h_j (Vaswani et al. 2017, section 3.2.2; Miller et al. 2016).

    Parameters:
        key_projection: W^K (key_size, memory_size), no bias.
        value_projection: W^V (value_size, memory_size), no bias. Both are initialised as a ``torch.nn.Linear`` is.

    Args:
        memory_size: size of an encoder state.
        key_size: size of a key; None is the encoder state's.
        value_size: size of a value; None is the encoder state's.
    """

    def __init__(self, memory_size: int, *, key_size: int | None = None, value_size: int | None = None) -> None:
        super().__init__(memory_size)
        self.key_size = memory_size if key_size is None else key_size
        self.value_size = memory_size if value_size is None else value_size
        self.key_projection = nn.Linear(memory_size, self.key_size, bias=False)
        self.value_projection = nn.Linear(memory_size, self.value_size, bias=False)

    @override
    def forward(self, states: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        return self.key_projection(states), self.value_projection(values)
