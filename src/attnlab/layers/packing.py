"""Packed sequences: recurrent networks read no padding, and no host waits for a GPU."""

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from attnlab.layers.trees import move


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
    """Return packed sequences as (batch, length, size), in their own order; torch would also ask a GPU for their lengths."""
    states, _ = pad_packed_sequence(packed._replace(unsorted_indices=None), batch_first=True, total_length=length)
    return states if packed.unsorted_indices is None else states.index_select(0, packed.unsorted_indices)
