"""Networks that step through packed sequences, and their padding, against torch's own, to the last bit; cells, against plain
loops.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from attnlab.layers.networks import GRU, LSTM, RNN, gru_cell, lstm_cell
from attnlab.layers.packing import pack, pad


class Case(NamedTuple):
    num_layers: int = 1
    bidirectional: bool = True
    dropout: float = 0.0
    bias: bool = True
    dtype: torch.dtype = torch.float32


CASES = [
    Case(),
    Case(num_layers=2, dropout=0.3),
    Case(num_layers=3, bidirectional=False, bias=False),
    Case(dtype=torch.float64),
    Case(num_layers=2, dtype=torch.bfloat16),
]


@pytest.mark.parametrize("length", [6, 9])
def test_padding_is_that_of_torch(length: int) -> None:
    lengths = torch.tensor([3, 6, 1, 6, 2])
    sequences, weights = torch.randn(5, 6, 4), torch.randn(5, length, 4)
    results = []
    for ours in (True, False):
        leaf = sequences.clone().requires_grad_()
        if ours:
            padded = pad(pack(leaf, lengths), length)
        else:
            packed = pack_padded_sequence(leaf, lengths, batch_first=True, enforce_sorted=False)
            padded, _ = pad_packed_sequence(packed, batch_first=True, total_length=length)
        (padded * weights).sum().backward()
        assert leaf.grad is not None
        results.append((padded, leaf.grad))
    assert all(map(torch.equal, *results))


def learn(network: nn.RNNBase, data: Tensor, lengths: Tensor) -> tuple[PackedSequence, list[Tensor | None]]:
    """Return the outputs, and with the final states all gradients of a loss of both."""
    data = data.clone().requires_grad_()
    torch.manual_seed(5)
    outputs, final = network(pack_padded_sequence(data, lengths, batch_first=True, enforce_sorted=False))
    states = final if isinstance(final, tuple) else (final,)
    (outputs.data.double().square().sum() + sum(part.double().cos().sum() for part in states)).backward()
    return outputs, [*states, data.grad, *(parameter.grad for parameter in network.parameters())]


@pytest.mark.parametrize("kinds", [(nn.LSTM, LSTM), (nn.GRU, GRU), (nn.RNN, RNN)], ids=["lstm", "gru", "rnn"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_states_and_gradients_are_those_of_torch(case: Case, kinds: tuple[type[nn.RNNBase], ...]) -> None:
    torch.manual_seed(0)
    networks = [kind(8, 64, batch_first=True, **case._asdict()) for kind in kinds]  # others are rounded differently in a GRU
    networks[1].load_state_dict(networks[0].state_dict())
    data, lengths = torch.randn(7, 5, 8, dtype=case.dtype), torch.tensor([3, 5, 1, 5, 2, 2, 4])
    (expected, tensors), (outputs, own) = (learn(network, data, lengths) for network in networks)
    for one, other in zip([*outputs, *own], [*expected, *tensors], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("kind", [LSTM, GRU, RNN])
def test_in_mixed_precision_a_state_is_summed_in_float32_whether_or_not_it_learns(kind: type[LSTM | GRU | RNN]) -> None:
    torch.manual_seed(0)
    network = kind(8, 64, num_layers=2, batch_first=True, bidirectional=True)
    packed = pack(torch.randn(7, 40, 8), torch.tensor([30, 5, 1, 40, 2, 2, 4]))
    found = []
    for learns in (True, False):
        with torch.set_grad_enabled(learns), torch.autocast("cpu", torch.bfloat16):
            outputs, final = network(packed)
        found.append([outputs.data, *(final if isinstance(final, tuple) else (final,))])
    precise = network(packed)[0].data
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
        assert one.dtype == torch.float32
    torch.testing.assert_close(found[0][0], precise, rtol=0, atol=0.02)


@pytest.mark.parametrize(("cell", "gates"), [(lstm_cell, 4), (gru_cell, 3)], ids=["lstm", "gru"])
def test_cells_are_their_equations(cell: Callable[..., Any], gates: int, device: torch.device) -> None:
    torch.manual_seed(0)
    parts = [torch.randn(7, size, dtype=torch.float64, requires_grad=True) for size in (5 * gates, 5 * gates, 5)]
    moved = [part.to(device) for part in parts]
    found = cell(*moved) if gates == 4 else (cell(*moved),)
    expected = plain_lstm(*parts) if gates == 4 else (plain_gru(*parts),)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
        gradients = [
            torch.autograd.grad(states.sin().sum(), parts, retain_graph=True, allow_unused=True) for states in (ours, theirs)
        ]
        torch.testing.assert_close(*gradients)


def plain_lstm(gates: Tensor, recurrent: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """A unit at a time."""
    rows, units = cell.shape
    hidden, new = torch.empty_like(cell), torch.empty_like(cell)
    for row in range(rows):
        for unit in range(units):
            i, f, g, o = (gates[row, unit + k * units] + recurrent[row, unit + k * units] for k in range(4))
            new[row, unit] = f.sigmoid() * cell[row, unit] + i.sigmoid() * g.tanh()
            hidden[row, unit] = o.sigmoid() * new[row, unit].tanh()
    return hidden, new


def plain_gru(gates: Tensor, recurrent: Tensor, hidden: Tensor) -> Tensor:
    """A unit at a time."""
    rows, units = hidden.shape
    new = torch.empty_like(hidden)
    for row in range(rows):
        for unit in range(units):
            r, z = ((gates[row, unit + k * units] + recurrent[row, unit + k * units]).sigmoid() for k in range(2))
            n = (gates[row, unit + 2 * units] + r * recurrent[row, unit + 2 * units]).tanh()
            new[row, unit] = (1 - z) * n + z * hidden[row, unit]
    return new
