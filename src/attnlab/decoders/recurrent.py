"""What recurrent decoders with an attention share."""

from typing_extensions import override

from attnlab.attention import Memory
from attnlab.decoders.decoder import Decoder, DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.encoders import EncoderOutput
from attnlab.layers.recurrence import Recurrence


class RecurrentDecoder(Decoder):
    """A decoder whose state is that of a recurrent network, made from the encoded source.

    Attributes:
        recurrence: the network, or the first of several.
        initial_state: makes its state before the first token.
        carried_size: size of what else is passed on to the next step; zeros before the first.
    """

    recurrence: Recurrence
    initial_state: InitialState
    carried_size: int = 0

    @override
    def start(self, encoded: EncoderOutput) -> tuple[Memory, DecoderState]:
        memory = self.attention.memory(encoded.states, encoded.mask, encoded.values)
        carried = encoded.states.new_zeros(len(encoded.states), self.carried_size)
        return memory, DecoderState(self.initial_state(encoded), carried, self.attention.start(memory))
