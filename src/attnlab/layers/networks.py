"""torch's recurrent networks, as mixed precision needs them and faster where they learn packed sequences, and their cells."""

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear
from torch.nn.utils.rnn import PackedSequence
from typing_extensions import override

from attnlab.precision import is_mixed, state_type

State = tuple[Tensor, ...]
"""h, or h and c."""
CPU_HAS_BFLOAT16: bool = hasattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported") and torch.ops.mkldnn._is_mkldnn_bf16_supported()
"""Whether torch has oneDNN, as on macOS it may not, and that has products in bfloat16 for this CPU: it needs AVX-512."""


def lstm_cell(gates: Tensor, recurrent: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Return h' and c' of ``torch.nn.LSTM``, whose four gates lie in the order i, f, g, o.

    Args:
        gates: W x + b (batch, 4 · hidden_size).
        recurrent: U h + b' (batch, 4 · hidden_size).
        cell: c (batch, hidden_size), of the type in which the cell computes.
    """
    gates, recurrent = gates.to(cell.dtype), recurrent.to(cell.dtype)
    if _is_fused(cell):
        fused: tuple[Tensor, Tensor, Tensor] = torch.ops.aten._thnn_fused_lstm_cell(gates, recurrent, cell)
        return fused[:2]
    in_gate, forget, candidate, out = (gates + recurrent).chunk(4, dim=1)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(in_gate) * torch.tanh(candidate)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def gru_cell(gates: Tensor, recurrent: Tensor, hidden: Tensor) -> Tensor:
    """Return h' of ``torch.nn.GRU``, whose gates lie in the order r, z, n.

    Args:
        gates: W x + b (batch, 3 · hidden_size).
        recurrent: U h + b' (batch, 3 · hidden_size).
        hidden: h (batch, hidden_size), of the type in which the cell computes.
    """
    gates, recurrent = gates.to(hidden.dtype), recurrent.to(hidden.dtype)
    if _is_fused(hidden):
        fused: Tensor = torch.ops.aten._thnn_fused_gru_cell(gates, recurrent, hidden)[0]
        return fused
    size = hidden.shape[1]
    input_gates, input_candidate = torch.split(gates, [2 * size, size], dim=1)
    gates, candidate = torch.split(recurrent, [2 * size, size], dim=1)
    reset, update = torch.sigmoid(input_gates + gates).chunk(2, dim=1)
    candidate = torch.tanh(input_candidate + reset * candidate)  # as in torch's own network, to the last bit
    return candidate + update * (hidden - candidate)


def _is_fused(state: Tensor) -> bool:
    """Return whether torch's own kernel of a cell serves: one in place of a dozen, on a GPU where nothing else joins them."""
    return state.is_cuda and not torch.compiler.is_compiling()


class _Network(nn.RNNBase):
    """One of torch's networks, in the type of its weights where mixed precision would give it another than it was asked for.

    On a GPU torch's autocast casts what cuDNN runs to float16, whatever type was asked for; without a scaled loss, gradients
    vanish in it.

    Where a CPU computes gradients, packed sequences run step by step here, with the same numbers: torch cuts each step's inputs
    out as a slice, whose gradient it writes into zeros as large as the inputs of all steps. In mixed precision they run so
    without gradients too, since oneDNN would carry the state in half precision.
    """

    state_parts: ClassVar[int] = 1

    @override
    def forward(self, input: Any, hx: Any = None) -> Any:
        weight: Any = self.weight_hh_l0
        device = weight.device.type
        if not is_mixed(device) or self._can_be_cast(device):
            return self._run(input, hx)
        with torch.autocast(device, enabled=False):
            dtype = weight.dtype  # float32, unless FSDP has cast the parameters
            state = tuple(part.to(dtype) for part in hx) if isinstance(hx, tuple) else hx if hx is None else hx.to(dtype)
            return self._run(input.to(dtype), state)

    def _can_be_cast(self, device: str) -> bool:
        """Return whether autocast gives it the type that is asked for."""
        return device != "cuda" or torch.get_autocast_dtype(device) == torch.float16

    def _run(self, input: Any, hx: Any) -> Any:
        on_cpu, is_start = self.weight_hh_l0.device.type == "cpu", hx is None and not self.proj_size
        if isinstance(input, PackedSequence) and on_cpu and is_start and (torch.is_grad_enabled() or is_mixed("cpu")):
            return self._step_through(input)
        return super().forward(input, hx)

    def _step_through(self, packed: PackedSequence) -> tuple[PackedSequence, Any]:
        data, sizes, finals = packed.data, packed.batch_sizes.tolist(), []
        for layer in range(self.num_layers):
            if layer:
                data = dropout(data, self.dropout, self.training)
            directions = [self._read(data, sizes, layer, backward=bool(way)) for way in range(1 + self.bidirectional)]
            data = torch.cat([outputs for outputs, _ in directions], dim=1)
            finals += [final for _, final in directions]
        state = tuple(torch.stack(parts) for parts in zip(*finals, strict=True))
        hidden: Any = state if len(state) > 1 else state[0]
        return packed._replace(data=data), self.permute_hidden(hidden, packed.unsorted_indices)

    def _read(self, data: Tensor, sizes: list[int], layer: int, *, backward: bool) -> tuple[Tensor, State]:
        """Read in one direction, ``sizes[t]`` sequences at step t, the longest first; return the outputs and last states."""
        suffix = f"l{layer}_reverse" if backward else f"l{layer}"
        inputs = torch.split(linear(data, *self._weights("ih", suffix)), sizes)
        recurrent = self._weights("hh", suffix)
        zeros = data.new_zeros(sizes[0], self.hidden_size, dtype=state_type(data))
        order = range(len(sizes))[:: -1 if backward else 1]
        state: State = (zeros[: sizes[order[0]]],) * self.state_parts
        outputs, ended = [], []
        for step in order:
            rows = len(state[0])
            if sizes[step] < rows:
                state, last = zip(*(torch.split(part, [sizes[step], rows - sizes[step]]) for part in state), strict=True)
                ended.append(last)
            elif sizes[step] > rows:
                state = tuple(torch.cat([part, zeros[rows : sizes[step]]]) for part in state)
            state = self.cell(inputs[step], linear(state[0], *recurrent), state)
            outputs.append(state[0])
        final = tuple(torch.cat(parts[::-1]) for parts in zip(*ended, state, strict=True))
        return torch.cat(outputs[:: -1 if backward else 1]), final

    def _weights(self, part: str, suffix: str) -> tuple[Tensor, Tensor | None]:
        return getattr(self, f"weight_{part}_{suffix}"), getattr(self, f"bias_{part}_{suffix}", None)

    @abstractmethod
    def cell(self, gates: Tensor, recurrent: Tensor, state: State) -> State:
        """Return the next state, the output first.

        Args:
            gates: W x + b (batch, gates · hidden_size).
            recurrent: U h + b', likewise.
            state: each part (batch, hidden_size).
        """


class RNN(_Network, nn.RNN):
    """``torch.nn.RNN``, also in mixed precision on a GPU."""

    @override
    def cell(self, gates: Tensor, recurrent: Tensor, state: State) -> State:
        return ((torch.relu if self.mode == "RNN_RELU" else torch.tanh)((gates + recurrent).to(state[0].dtype)),)


class GRU(_Network, nn.GRU):
    """``torch.nn.GRU``, also in mixed precision on a GPU."""

    @override
    def cell(self, gates: Tensor, recurrent: Tensor, state: State) -> State:
        return (gru_cell(gates, recurrent, state[0]),)


class LSTM(_Network, nn.LSTM):
    """``torch.nn.LSTM``, also in mixed precision on a GPU, and on a CPU that has no bfloat16.

    torch 2.13 looks at the type before autocast has changed it, takes oneDNN's LSTM for possible, and fails ("could not create
    a primitive descriptor"). Other networks run there in a bfloat16 that is emulated.
    """

    state_parts = 2

    @override
    def _can_be_cast(self, device: str) -> bool:
        return CPU_HAS_BFLOAT16 if device == "cpu" else super()._can_be_cast(device)

    @override
    def cell(self, gates: Tensor, recurrent: Tensor, state: State) -> State:
        return lstm_cell(gates, recurrent, state[1])
