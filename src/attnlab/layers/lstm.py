"""torch's LSTM on every CPU."""

from typing import Any

import torch
from torch import nn
from typing_extensions import override

CPU_HAS_BFLOAT16: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
"""Whether oneDNN has products in bfloat16 for this CPU: it needs AVX-512."""


class LSTM(nn.LSTM):
    """``torch.nn.LSTM``, in float32 where mixed precision asks a CPU for a bfloat16 that it does not have.

    torch 2.13 looks at the type before autocast has changed it, takes oneDNN's LSTM for possible, and fails ("could not create
    a primitive descriptor"). Other networks run there in a bfloat16 that is emulated.
    """

    @override
    def forward(self, input: Any, hx: Any = None) -> Any:
        if CPU_HAS_BFLOAT16 or not torch.is_autocast_enabled("cpu") or self.weight_hh_l0.device.type != "cpu":
            return super().forward(input, hx)
        with torch.autocast("cpu", enabled=False):
            return super().forward(input.float(), None if hx is None else tuple(part.float() for part in hx))
