"""The LSTM that steps through packed sequences, against torch's own, to the last bit."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from attnlab.layers.networks import LSTM


class Case(NamedTuple):
    num_layers: int = 1
    bidirectional: bool = True
    dropout: float = 0.0
    bias: bool = True
    dtype: torch.dtype = torch.float32
    mixed: bool = False


CASES = [
    Case(),
    Case(num_layers=2, dropout=0.3),
    Case(num_layers=3, bidirectional=False, bias=False),
    Case(dtype=torch.float64),
    Case(num_layers=2, dtype=torch.bfloat16),
    Case(num_layers=2, mixed=True),
]


def learn(network: nn.LSTM, case: Case, data: Tensor, lengths: Tensor) -> tuple[PackedSequence, list[Tensor | None]]:
    """Return the outputs, and with the final states all gradients of a loss of both."""
    data = data.clone().requires_grad_()
    torch.manual_seed(5)
    with torch.autocast("cpu", torch.bfloat16, enabled=case.mixed):
        outputs, final = network(pack_padded_sequence(data, lengths, batch_first=True, enforce_sorted=False))
    hidden, cell = (part.double() for part in final)
    (outputs.data.double().square().sum() + hidden.cos().sum() + cell.sin().sum()).backward()
    return outputs, [*final, data.grad, *(parameter.grad for parameter in network.parameters())]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_states_and_gradients_are_those_of_torch(case: Case) -> None:
    torch.manual_seed(0)
    kept = {key: value for key, value in case._asdict().items() if key != "mixed"}
    networks = [kind(8, 16, batch_first=True, **kept) for kind in (nn.LSTM, LSTM)]
    networks[1].load_state_dict(networks[0].state_dict())
    data, lengths = torch.randn(7, 5, 8, dtype=case.dtype), torch.tensor([3, 5, 1, 5, 2, 2, 4])
    (expected, tensors), (outputs, own) = (learn(network, case, data, lengths) for network in networks)
    for one, other in zip([*outputs, *own], [*expected, *tensors], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
