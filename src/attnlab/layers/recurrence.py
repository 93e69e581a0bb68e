"""Stacked recurrent networks that can run over a whole sequence at once or one token at a time.

The parameters are those of ``torch.nn.LSTM``, ``GRU`` or ``RNN``. :meth:`Recurrence.sequence` is torch's fused run
over known inputs. :meth:`Recurrence.stepper` serves decoders whose input at one step depends on the step before (input
feeding, a context inside the cell): the part of the product that depends on known inputs leaves the loop.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear
from typing_extensions import override

from attnlab.errors import UserError
from attnlab.layers.networks import GRU, LSTM, RNN

RecurrentState = tuple[Tensor, ...]
"""(h,) or (h, c), each (batch, layers, hidden_size)."""

Stepper = Callable[[int, Tensor, RecurrentState], tuple[Tensor, RecurrentState]]


class StateSizes(NamedTuple):
    """Sizes of a recurrent state."""

    parts: int
    """Tensors: 1 (h), or 2 (h and c)."""
    layers: int
    hidden_size: int


def refuse_idle_dropout(num_layers: int, dropout: float) -> None:
    """Refuse dropout between layers where there is nothing between.

    Raises:
        UserError: dropout, and one layer.
    """
    if dropout and num_layers == 1:
        raise UserError(
            f"a dropout of {dropout} between layers has no effect on one layer: set it to 0, or num_layers to 2 or more"
        )


class Recurrence(nn.Module):
    """A stacked recurrent network whose input is a known part (embeddings) and a part known only at its step.

    Parameters:
        network: torch's own: in each layer W (gates · hidden_size, input size), U (gates · hidden_size, hidden_size), b and
            b', with 1 gate in an Elman network, 3 in a GRU and 4 in an LSTM, drawn from U(-1/√hidden_size, 1/√hidden_size).

    Args:
        input_size: size of the known input.
        step_size: size of the input that is known only when its step comes; may be 0.
        hidden_size: units.
        num_layers: stacked layers.
        dropout: between layers, a probability.

    Raises:
        UserError: dropout between the layers of one.
    """

    network_class: ClassVar[type[RNN] | type[GRU] | type[LSTM]]

    def __init__(self, input_size: int, step_size: int, hidden_size: int, *, num_layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        refuse_idle_dropout(num_layers, dropout)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.network = self.network_class(
            input_size + step_size,
            hidden_size,
            num_layers=num_layers,
            dropout=dropout,
            batch_first=True,
        )

    @property
    def state_parts(self) -> int:
        """Tensors in a state: 1 (h), or 2 (h and c)."""
        return self.network_class.state_parts

    @property
    def state_sizes(self) -> StateSizes:
        """Sizes of the state."""
        return StateSizes(self.state_parts, self.num_layers, self.hidden_size)

    def sequence(self, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Run over known inputs (batch, target_len, input_size + step_size) at once.

        Returns:
            The top layer's states (batch, target_len, hidden_size), and the state after the last step.
        """
        parts = tuple(part.transpose(0, 1).contiguous() for part in state)
        outputs, final = self.network(inputs, parts if self.state_parts > 1 else parts[0])
        final = final if isinstance(final, tuple) else (final,)
        # A network that mixed precision leaves in float32 takes a state of half precision, and shall not return another type.
        return outputs, tuple(part.transpose(0, 1).to(before.dtype) for part, before in zip(final, state, strict=True))

    def stepper(self, inputs: Tensor) -> Stepper:
        """Prepare to step over inputs (batch, target_len, input_size).

        Returns:
            A function of (step, step_input (batch, step_size), state) that returns the top layer's state (batch,
            hidden_size) and the new state. ``step`` counts from 0.
        """
        input_weight, bias = self._weights("ih", 0)
        known = linear(inputs, input_weight[:, : self.input_size], bias).unbind(1)
        step_weight = input_weight[:, self.input_size :].t()
        own = [self._weights("hh", layer) for layer in range(self.num_layers)]

        def step(index: int, step_input: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
            before = list(zip(*map(_split_layers, state), strict=True))
            gates = torch.addmm(known[index], step_input, step_weight)
            layers = [self._cell(gates, before[0], *own[0])]
            for layer in range(1, self.num_layers):
                below = dropout(layers[-1][0], self.network.dropout, self.training)
                gates = linear(below, *self._weights("ih", layer))
                layers.append(self._cell(gates, before[layer], *own[layer]))
            return layers[-1][0], tuple(map(_join_layers, zip(*layers, strict=True)))

        return step

    def _weights(self, part: str, layer: int) -> tuple[Tensor, Tensor]:
        return getattr(self.network, f"weight_{part}_l{layer}"), getattr(self.network, f"bias_{part}_l{layer}")

    def _cell(self, gates: Tensor, state: RecurrentState, weight: Tensor, bias: Tensor) -> RecurrentState:
        """Advance one layer by one step.

        Args:
            gates: the input's part of the gates, W x + b (batch, gates · hidden_size).
            state: the layer's state, each part (batch, hidden_size).
            weight: the layer's U.
            bias: the layer's b'.
        """
        return self.network.cell(gates, linear(state[0], weight, bias), state)


def _split_layers(part: Tensor) -> tuple[Tensor, ...]:
    # The gradient of a slice is written into zeros of the whole, that of unbind is copied, and that of squeeze is a view.
    return (part.squeeze(1),) if part.shape[1] == 1 else part.unbind(1)


def _join_layers(parts: tuple[Tensor, ...]) -> Tensor:
    return parts[0].unsqueeze(1) if len(parts) == 1 else torch.stack(parts, dim=1)


class TanhRecurrence(Recurrence):
    """Elman's network, h' = tanh(W x + b + U h + b') (Elman 1990; as ``torch.nn.RNN``)."""

    network_class = RNN


class GRURecurrence(Recurrence):
    """Gated recurrent unit (Cho et al. 2014, in the form of ``torch.nn.GRU``: the reset gate acts after U h).

    r, z = σ(W x + b + U h + b'); n = tanh(W_n x + b_n + r ∘ (U_n h + b'_n)); h' = (1 - z) ∘ n + z ∘ h.
    """

    network_class = GRU


class ResetFirstGRURecurrence(GRURecurrence):
    """Gated recurrent unit whose reset gate acts before the matrix, as first published (Bahdanau et al. 2015, appendix A.1.1).

    r, z = σ(W x + b + U h + b'); n = tanh(W_n x + b_n + U_n (r ∘ h) + b'_n); h' = (1 - z) ∘ n + z ∘ h. The paper's z is 1 - z
    here, which makes no difference to what can be learned. torch has no fused run for it: a sequence is stepped through.
    """

    @override
    def sequence(self, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        known, late = torch.split(inputs, [self.input_size, inputs.shape[2] - self.input_size], dim=2)
        advance, outputs = self.stepper(known), []
        for step, step_input in enumerate(late.unbind(1)):
            output, state = advance(step, step_input, state)
            outputs.append(output)
        return torch.stack(outputs, 1), state

    def _cell(self, gates: Tensor, state: RecurrentState, weight: Tensor, bias: Tensor) -> RecurrentState:
        (hidden,) = state
        sizes = [2 * self.hidden_size, self.hidden_size]
        input_gates, input_candidate = torch.split(gates.to(hidden.dtype), sizes, dim=1)
        (gate_weight, candidate_weight), (gate_bias, candidate_bias) = (torch.split(own, sizes) for own in (weight, bias))
        reset, update = torch.sigmoid(input_gates + linear(hidden, gate_weight, gate_bias)).chunk(2, dim=1)
        candidate = torch.tanh(input_candidate + linear(reset * hidden, candidate_weight, candidate_bias))
        return (candidate + update * (hidden - candidate),)


class LSTMRecurrence(Recurrence):
    """Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates; as ``torch.nn.LSTM``).

    i, f, o = σ(W x + b + U h + b'); g = tanh(W_g x + b_g + U_g h + b'_g); c' = f ∘ c + i ∘ g; h' = o ∘ tanh(c').
    """

    network_class = LSTM
