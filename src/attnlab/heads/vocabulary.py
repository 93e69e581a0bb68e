"""Every token comes from the target vocabulary."""

from typing import Any

from torch import Tensor, nn
from typing_extensions import override

from attnlab.decoders import Decoder, DecoderOutput
from attnlab.heads.head import Head, TargetSpace
from attnlab.layers.aligned import AlignedLinear


class VocabularyHead(Head):
    """p(y_t) = softmax(V readout_t + b): the vocabulary alone.

    Parameters:
        projection: V (vocabulary size, readout_size) and b, initialised as a ``torch.nn.Linear`` is.
    """

    def __init__(self, decoder: Decoder, embedding_size: int, targets: TargetSpace) -> None:
        super().__init__(decoder, embedding_size, targets)
        self.projection = AlignedLinear(decoder.readout_size, targets.size)

    @property
    @override
    def output_matrix(self) -> nn.Linear:
        return self.projection

    @override
    def forward(self, decoded: DecoderOutput, memory: Any, dropout: nn.Module) -> Tensor:
        logits: Tensor = self.projection(dropout(decoded.readouts))
        return logits
