"""Decoders that answer a question: the source's last element asks, and the decoder reads nothing that was written before."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention import AttentionFactory, Composition, Memory, Query, validate_composition
from attnlab.attention.scores import Score
from attnlab.decoders.decoder import Decoder, DecoderOutput, DecoderState
from attnlab.encoders import Encoder, EncoderOutput
from attnlab.encoders.encoder import last_state
from attnlab.errors import UserError
from attnlab.layers.entities import EntityMemory


class AnswerMemory(NamedTuple):
    """What stays the same for a whole target sequence."""

    question: Tensor
    """q (batch, hidden_size)."""
    attention: Memory
    """Of the attention."""
    keys: Tensor | None = None
    """(batch, slots, key_size): what the question is compared with, where there are slots."""
    slots: Tensor | None = None
    """(batch, slots, hidden_size)."""


class QuestionDecoder(Decoder):
    """What asks with the state h_n of the source's last element, q = P h_n, and answers y = φ(q + H u), u being what was found.

    Parameters:
        projection: P (hidden_size, encoder output_size), no bias, initialised as a ``torch.nn.Linear`` is, unless the sizes
            are equal.
        activation: the slope of the PReLU φ, from 1.

    Args:
        encoder: the encoder, for its sizes.
        hidden_size: size of q and of the readout.
    """

    reads_targets = False

    def __init__(self, encoder: Encoder, hidden_size: int) -> None:
        super().__init__(encoder, hidden_size)
        equal = encoder.output_size == hidden_size
        self.projection = nn.Identity() if equal else nn.Linear(encoder.output_size, hidden_size, bias=False)
        self.activation = nn.PReLU(init=1.0)

    def _start(self, question: Tensor, attention: Memory) -> DecoderState:
        return DecoderState((question.unsqueeze(1),), question[:, :0], self.attention.start(attention))


class AnswerDecoder(QuestionDecoder):
    """The question asks the other elements once, as in a memory network: readout = φ(q + H c), c = attention(q).

    q = P h_n is the state of the source's last element, which the attention does not look at unless there is no other; φ is a
    PReLU. That is the output module of Henaff et al. (2017, equation 6) with any attention in the place of its softmax of
    products; without an attention the readout is φ(q). Every target token is read from the same q: what tells them apart
    is an attention that counts them, remembers, or asks with the token before.

    Parameters:
        combine: H (hidden_size, context_size), no bias, initialised as a ``torch.nn.Linear`` is; none without a context.
        projection, activation: see :class:`QuestionDecoder`.
        attention: its own.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: makes the attention.
        hidden_size: size of q, of the query and of the readout.
    """

    def __init__(self, embedding_size: int, encoder: Encoder, attention: AttentionFactory, *, hidden_size: int) -> None:
        super().__init__(encoder, hidden_size)
        self.attention = attention(hidden_size, encoder.output_size, embedding_size)
        size = self.attention.context_size
        self.combine = nn.Linear(size, hidden_size, bias=False) if size else None

    @override
    def start(self, encoded: EncoderOutput) -> tuple[AnswerMemory, DecoderState]:
        question, others = _split(encoded)
        others[:, 0] |= encoded.mask.sum(dim=1) == 1
        question, memory = self.projection(question), self.attention.memory(encoded.states, others, encoded.values)
        memory = memory._replace(language=encoded.language)
        return AnswerMemory(question, memory), self._start(question, memory)

    @override
    def forward(self, embeddings: Tensor, memory: AnswerMemory, state: DecoderState) -> DecoderOutput:
        asked = memory.question.unsqueeze(1).expand(-1, embeddings.shape[1], -1)
        contexts, weights, attention = self.attention(Query(asked, embeddings), memory.attention, state.attention)
        readouts = self.activation(asked if self.combine is None else asked + self.combine(contexts))
        after = DecoderState(state.hidden, state.feedback, attention)  # torch 2.11 compiles _replace to an empty tuple
        return DecoderOutput(readouts, weights, contexts, asked, embeddings, after)


class EntityDecoder(QuestionDecoder):
    """The recurrent entity network (Henaff et al. 2017): slots read the source, one element after another, and are asked.

    s_t = P h_t for the states of the encoder, q = P h_n for the last one. The slots read s_1, …, s_(n-1) as equations 2 to 5
    have it (:class:`attnlab.layers.entities.EntityMemory`); then (equation 6)

        p_j = softmax(score(q, h_j)), u = Σ_j p_j h_j, readout = φ(q + H u)

    where the paper's score is the product qᵀ h_j. The answer is y = R readout, R being the head's. In the paper s_t and q are
    sums of masked embeddings, with no network between: ``encoder=embeddings``. Slots are no positions of the source, so there
    are no weights to report, and no place for another attention.

    Parameters:
        memory: its own.
        keys: w (slots, hidden_size), from N(0, 0.1²), unless they are tied.
        score: its own.
        combine: H (hidden_size, hidden_size), no bias, initialised as a ``torch.nn.Linear`` is.
        projection, activation: see :class:`QuestionDecoder`.

    Args:
        embedding_size: size of a target embedding.
        encoder: the encoder, for its sizes.
        attention: must make one without a context.
        score: makes the score from (hidden_size, hidden_size).
        hidden_size: size of vectors, keys, slots and readout.
        slots: how many there are.
        tied: the keys are the first elements of the source, one a slot, which are then not read: the named entities of a task
            that puts them there.

    Raises:
        UserError: an attention with a context, or a score that does not look at the slots.
    """

    def __init__(
        self,
        embedding_size: int,
        encoder: Encoder,
        attention: AttentionFactory,
        *,
        score: Callable[[int, int], Score],
        hidden_size: int,
        slots: int = 20,
        tied: bool = False,
    ) -> None:
        super().__init__(encoder, hidden_size)
        if slots < 1:
            raise UserError(f"slots must be 1 or more, not {slots}")
        self.attention = attention(hidden_size, encoder.output_size, embedding_size)
        if self.attention.context_size:
            raise UserError("an entity network has an attention of its own, over its slots: choose none beside it")
        self.slots = slots
        self.tied = tied
        self.tied_entities = slots if tied else 0
        if not tied:
            self.keys = nn.Parameter(torch.empty(slots, hidden_size))
        self.memory = EntityMemory(hidden_size)
        self.score = score(hidden_size, hidden_size)
        validate_composition(Composition(self.score, comparison="slots"))
        self.combine = nn.Linear(hidden_size, hidden_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the keys."""
        if not self.tied:
            nn.init.normal_(self.keys, std=0.1)

    @override
    def start(self, encoded: EncoderOutput) -> tuple[AnswerMemory, DecoderState]:
        question, others = _split(encoded)
        question, vectors = self.projection(question), self.projection(encoded.states)
        if self.tied:
            known = others[:, : self.slots].unsqueeze(2)
            keys = vectors[:, : self.slots] * known
            vectors, others = vectors[:, self.slots :], others[:, self.slots :]
        else:
            keys = self.keys.repeat(len(question), 1, 1)  # a view of a parameter stops torch's counter of operations
        slots = self.memory(vectors, others, keys)
        nothing = self.attention.memory(encoded.states, encoded.mask)
        return AnswerMemory(question, nothing, self.score.project_keys(slots), slots), self._start(question, nothing)

    @override
    def forward(self, embeddings: Tensor, memory: AnswerMemory, state: DecoderState) -> DecoderOutput:
        assert memory.keys is not None, "start() put them there"
        assert memory.slots is not None, "start() put them there"
        asked = memory.question.unsqueeze(1).expand(-1, embeddings.shape[1], -1)
        found = self.score(asked, memory.keys).softmax(dim=-1) @ memory.slots
        contexts, weights, _ = self.attention(Query(asked, embeddings), memory.attention, None)
        return DecoderOutput(self.activation(asked + self.combine(found)), weights, contexts, asked, embeddings, state)


def _split(encoded: EncoderOutput) -> tuple[Tensor, Tensor]:
    """Return the state of each source's last element (batch, output_size), and where the others are (batch, source_len)."""
    positions = torch.arange(encoded.mask.shape[1], device=encoded.mask.device)
    last = encoded.mask.sum(dim=1) - 1
    return last_state(encoded.states, encoded.mask), positions < last.unsqueeze(1)
