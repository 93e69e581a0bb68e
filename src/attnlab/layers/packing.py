"""Packed sequences: recurrent networks read no padding, and no host waits for a GPU."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from attnlab.trees import move


def pack(sequences: Tensor, lengths: Tensor) -> PackedSequence:
    """Pack sequences of any lengths, as torch does; but the order, by length, is sent to a GPU without waiting for it.

    Args:
        sequences: (batch, len, size).
        lengths: (batch,), on the CPU.
    """
    lengths, order = lengths.sort(descending=True)
    order = move(order, sequences.device)
    packed = pack_padded_sequence(sequences.index_select(0, order), lengths, batch_first=True)
    return PackedSequence(packed.data, packed.batch_sizes, order)


def pad(packed: PackedSequence, length: int) -> Tensor:
    """Return packed sequences as (batch, length, size), in their own order, with zeros behind each.

    torch's ``pad_packed_sequence`` would ask a GPU for their lengths; and it writes slices, one for each length that there is,
    whose gradients are each as large as all of them.

    Args:
        packed: as :func:`pack` packs.
        length: at least that of the longest.
    """
    sizes = packed.batch_sizes
    steps = torch.arange(len(sizes)).repeat_interleave(sizes)
    ranks = torch.arange(len(steps)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    steps, ranks = move((steps, ranks), packed.data.device)
    order = packed.sorted_indices
    assert order is not None
    padded = packed.data.new_zeros(len(order) * length, packed.data.shape[1])
    return padded.index_copy(0, order[ranks] * length + steps, packed.data).view(len(order), length, -1)
