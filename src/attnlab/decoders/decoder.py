"""What a decoder promises to a model and to a search."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from attnlab.attention import AttentionMechanism
from attnlab.encoders import Encoder, EncoderOutput


class DecoderState(NamedTuple):
    """What a decoder passes on from one target token to the next: a tree of tensors, batch first.

    A search reorders all of it with one function.
    """

    hidden: Any
    """Of a recurrent decoder a tuple of tensors (batch, layers, hidden_size), h and, for an LSTM, c; else a tree of tensors."""
    feedback: Tensor
    """(batch, size): what of a step's result enters the next one, such as Luong's attentional vector; size may be 0."""
    attention: Any
    """The attention's own state, or None."""


class DecoderOutput(NamedTuple):
    """What came of a target sequence, or of one step of it."""

    readouts: Tensor
    """(batch, target_len, readout_size): what the head reads."""
    weights: Tensor
    """(batch, target_len, source_len): the attention's weights."""
    contexts: Tensor
    """(batch, target_len, context_size): the attention's contexts."""
    states: Tensor
    """(batch, target_len, hidden_size): the decoder's own states s_t, before any readout."""
    embeddings: Tensor
    """(batch, target_len, embedding_size): what was read."""
    state: DecoderState
    """The state after the last token."""


class Decoder(nn.Module, ABC):
    """Writes a target sequence, one token after another, looking at the source through an attention.

    Args:
        encoder: the encoder, for its sizes.
        hidden_size: size of a state, and of a readout.

    Attributes:
        attention: what it was given to look with.
        memory_size: size of an encoder state.
        hidden_size: size of a state.
        readout_size: size of what the head reads.
        reads_targets: whether it reads the tokens that were written before, beside what its attention does.
        tied_entities: elements at the beginning of every source that it takes for parts of its own, and does not read.
        leaves_out_weights: whether it asks some attention for contexts alone, which is what kernels compute.
        source_length: how long every source must be, or None where it may have any length.
    """

    attention: AttentionMechanism
    reads_targets: ClassVar[bool] = True
    tied_entities: int = 0
    leaves_out_weights: bool = False
    source_length: int | None = None

    def __init__(self, encoder: Encoder, hidden_size: int) -> None:
        super().__init__()
        self.memory_size = encoder.output_size
        self.hidden_size = self.readout_size = hidden_size

    @property
    def reads_source(self) -> bool:
        """Whether what it writes depends on the source."""
        return True

    @abstractmethod
    def start(self, encoded: EncoderOutput) -> tuple[Any, DecoderState]:
        """Return the memory, a tree of tensors, batch first, which stays the same for the whole sequence, and the state before
        the first token."""

    @abstractmethod
    def forward(self, embeddings: Tensor, memory: Any, state: DecoderState) -> DecoderOutput:
        """Read target tokens: all of a sequence under teacher forcing, or one in a search. The code is the same.

        Args:
            embeddings: (batch, target_len, embedding_size), of the tokens before those to be predicted.
            memory: from :meth:`start`.
            state: from :meth:`start` or from the call before.
        """
