"""The recurrent entity network's memory."""

import torch
from torch import Tensor, nn


class EntityMemory(nn.Module):
    """Slots, each with a key of its own, that read one vector after another (Henaff et al. 2017, equations 2 to 5).

    Of a vector s_t slot j with the key w_j keeps as much as its gate lets in:

        g_j = σ(s_tᵀ h_j + s_tᵀ w_j)
        h̃_j = φ(U h_j + V w_j + W s_t)
        h_j ← h_j + g_j h̃_j
        h_j ← h_j / ‖h_j‖

    Every slot has the same U, V and W; φ is a PReLU with one slope. A slot begins at its key. All is of one size.

    Parameters:
        memory: U (size, size); key: V (size, size); input: W (size, size); initialised as a ``torch.nn.Linear`` is, no biases.
        activation: the slope of φ, from 1.

    Args:
        size: of a vector, a key and a slot.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.memory = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.input = nn.Linear(size, size, bias=False)
        self.activation = nn.PReLU(init=1.0)

    def forward(self, vectors: Tensor, mask: Tensor, keys: Tensor) -> Tensor:
        """Return the slots (batch, slots, size) after the last vector.

        Args:
            vectors: s (batch, len, size).
            mask: (batch, len), true where there is a vector; a slot is left as it was where there is none.
            keys: w (batch, slots, size).
        """
        from_keys, from_vectors = self.key(keys), self.input(vectors).unsqueeze(2)
        like_keys, slots = vectors @ keys.transpose(1, 2), keys
        # The gradient of a slice is written into zeros of the whole, that of unbind is copied.
        parts = (part.unbind(1) for part in (vectors, like_keys, from_vectors, mask[..., None, None]))
        for vector, like_key, from_vector, is_known in zip(*parts, strict=True):
            gates = torch.sigmoid((slots @ vector.unsqueeze(2)).squeeze(2) + like_key)
            candidates = self.activation(self.memory(slots) + from_keys + from_vector)
            new = nn.functional.normalize(slots + gates.unsqueeze(2) * candidates, dim=2)
            slots = torch.where(is_known, new, slots)
        return slots
