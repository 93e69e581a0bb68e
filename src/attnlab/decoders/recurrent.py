"""What recurrent decoders with an attention share: their start, and the loop over target tokens."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from typing_extensions import override

from attnlab.attention import AttentionFactory, Memory
from attnlab.decoders.decoder import Decoder, DecoderOutput, DecoderState
from attnlab.decoders.initial import InitialState
from attnlab.decoders.readout import Readout
from attnlab.encoders import Encoder, EncoderOutput
from attnlab.layers.recurrence import Recurrence, Stepper


class Step(NamedTuple):
    """What came of one step of a recurrent decoder."""

    output: Tensor
    """s_t (batch, hidden_size)."""
    context: Tensor
    """c_t (batch, 1, context_size)."""
    weights: Tensor
    """(batch, 1, source_len)."""
    state: DecoderState
    """The state after the step."""


class Trace(NamedTuple):
    """What came of all steps, for what can be computed of all of them at once."""

    start: DecoderState
    """The state before the first step."""
    feedbacks: Sequence[Tensor]
    """What of each step's result enters the next (batch, feedback_size)."""
    states: Tensor
    """s_t (batch, target_len, hidden_size)."""
    contexts: Tensor
    """c_t (batch, target_len, context_size)."""
    embeddings: Tensor
    """E y_{t-1} (batch, target_len, embedding_size)."""

    def previous_states(self) -> Tensor:
        """Return s_{t-1} (batch, target_len, hidden_size)."""
        return torch.cat([self.start.hidden[0][:, -1:], self.states[:, :-1]], dim=1)


class RecurrentDecoder(Decoder):
    """A decoder whose state is that of a recurrent network, made from the encoded source; it writes one step.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: makes the attention.
        hidden_size: units; also the size of the readout and of the query.

    Attributes:
        recurrence: the network, or the first of several.
        initial_state: makes its state before the first token.
        feedback_size: size of what of a step's result enters the next; zeros before the first.
    """

    recurrence: Recurrence
    initial_state: InitialState
    feedback_size: int = 0

    def __init__(self, embedding_size: int, encoder: Encoder, attention: AttentionFactory, hidden_size: int) -> None:
        super().__init__(encoder, hidden_size)
        self.attention = attention(hidden_size, encoder.output_size, embedding_size)

    @property
    @override
    def reads_source(self) -> bool:
        return bool(self.attention.context_size) or self.initial_state.reads_source

    @override
    def start(self, encoded: EncoderOutput) -> tuple[Memory, DecoderState]:
        memory = self.attention.memory(encoded.states, encoded.mask, encoded.values)._replace(language=encoded.language)
        feedback = encoded.states.new_zeros(len(encoded.states), self.feedback_size)
        return memory, DecoderState(self.initial_state(encoded), feedback, self.attention.start(memory))

    def steppers(self, embeddings: Tensor) -> Sequence[Stepper]:
        """Return what steps through each network; what depends on the embeddings alone is computed for all steps at once."""
        return [self.recurrence.stepper(embeddings)]

    @abstractmethod
    def step(self, index: int, embedding: Tensor, steppers: Sequence[Stepper], memory: Memory, state: DecoderState) -> Step:
        """Read one target token.

        Args:
            index: its number in what :meth:`steppers` was given, from 0.
            embedding: (batch, 1, embedding_size).
            steppers: from :meth:`steppers`.
            memory: from :meth:`start`.
            state: the state before.
        """

    @abstractmethod
    def readouts(self, trace: Trace) -> Tensor:
        """Return the readouts of all steps (batch, target_len, readout_size)."""

    @override
    def forward(self, embeddings: Tensor, memory: Memory, state: DecoderState) -> DecoderOutput:
        steppers = self.steppers(embeddings)
        steps: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []  # without states, of which some grow with every step
        last = state
        for index, embedding in enumerate(torch.split(embeddings, 1, dim=1)):
            output, context, weight, last = self.step(index, embedding, steppers, memory, last)
            steps.append((output, context, weight, last.feedback))
        outputs, contexts, weights, feedbacks = zip(*steps, strict=True)
        trace = Trace(state, feedbacks, torch.stack(outputs, 1), torch.cat(contexts, 1), embeddings)
        return DecoderOutput(self.readouts(trace), torch.cat(weights, 1), trace.contexts, trace.states, embeddings, last)


class ReadoutDecoder(RecurrentDecoder):
    """A recurrent decoder whose readouts are made by a part of its own, readout_t = g(s_{t-1}, s_t, E y_{t-1}, c_t)."""

    readout: Readout

    @override
    def readouts(self, trace: Trace) -> Tensor:
        readouts: Tensor = self.readout(trace.previous_states(), trace.states, trace.embeddings, trace.contexts)
        return readouts
