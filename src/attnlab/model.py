"""The sequence-to-sequence model: frontends, an encoder, a decoder with its attention, a head."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attnlab.attention import Attention, AttentionFactory, Part
from attnlab.attention.kernels import KERNELS
from attnlab.decoders import Decoder, DecoderOutput, DecoderState
from attnlab.decoders.validation import validate_decoder
from attnlab.encoders import Encoder, EncoderOutput
from attnlab.encoders.validation import LENGTHS, validate_encoder
from attnlab.errors import UserError
from attnlab.heads import Head, TargetSpace
from attnlab.heads.validation import validate_head
from attnlab.layers.frontend import SourceFrontend, TargetFrontend
from attnlab.precision import widen
from attnlab.seeding import initialize


class SourceMemory(NamedTuple):
    """What is known of a source, a tree of tensors, batch first; the same for every target token."""

    decoder: Any
    """What the decoder looks at."""
    head: Any
    """What the head needs of the source, or None."""
    source: Tensor | None
    """(batch, source_len, size): the source's vectors, where the target frontend reads them."""


class Seq2Seq(nn.Module):
    """p(y_t | y_<t, x) = softmax(head(readout_t)), the readout coming from a decoder that attends to an encoded source.

    Parameters:
        source_frontend, target_frontend, encoder, decoder, head: their own.

    Args:
        source_frontend: makes what turns a source into vectors, from (embedding_size).
        target_frontend: makes what turns target tokens into vectors, from (embedding_size).
        targets: what a target may hold.
        seed: every parameter is drawn from this seed and its own name.
        encoder: makes the encoder from (size of a source vector).
        attention: makes the attention from (query_size, memory_size, size of a target vector).
        decoder: makes the decoder from (size of a target vector, encoder, attention).
        head: makes the head from (decoder, size of a target vector, targets).
        embedding_size: asked of both frontends.
        dropout: on the vectors of both sides and on the readout, a probability.
        memory_dropout: on the encoder's states, before decoder and attention read them, a probability; the last states,
            by which a bridge starts the decoder, are not among them.
        tied_embeddings: what shares one matrix: nothing, the target embedding and the head ("target": Press and Wolf 2017), or
            the source embedding too ("all", which needs one vocabulary for both).

    Raises:
        UserError: frontends, or a head, that cannot share a matrix, or of which one alone deals with positions of the source,
            or with numbers; a target language that nothing would read, or a source.
    """

    def __init__(
        self,
        source_frontend: Callable[[int], SourceFrontend],
        target_frontend: Callable[[int], TargetFrontend],
        targets: TargetSpace,
        seed: int,
        *,
        encoder: Callable[[int], Encoder],
        attention: AttentionFactory,
        decoder: Callable[[int, Encoder, AttentionFactory], Decoder],
        head: Callable[[Decoder, int, TargetSpace], Head],
        embedding_size: int,
        dropout: float,
        memory_dropout: float = 0.0,
        tied_embeddings: Literal["none", "target", "all"] = "none",
    ) -> None:
        super().__init__()
        self.targets = targets
        self.source_frontend = source_frontend(embedding_size)
        self.target_frontend = target_frontend(embedding_size)
        self.encoder = encoder(self.source_frontend.size)
        self.decoder = decoder(self.target_frontend.size, self.encoder, attention)
        self.head = head(self.decoder, self.target_frontend.size, targets)
        self._check_source()
        self._check_targets()
        self._check_language()
        self._check_kernel()
        self._check_entities()
        self._check_statistics()
        self.dropout = nn.Dropout(dropout)
        self.memory_dropout = nn.Dropout(memory_dropout)
        initialize(self, seed)
        self._try_parts()
        self._tie(tied_embeddings)

    def _try_parts(self) -> None:
        parts = self.encoder, self.decoder, self.head
        only = next((part.source_length for part in parts if part.source_length), None)
        first, second = (length + self.decoder.tied_entities for length in LENGTHS)
        longest = only or min(first, self.max_source_length or first)
        encoded = validate_encoder(self.encoder, self.source_frontend.size, (longest, only or max(min(second, longest - 1), 1)))
        validate_head(self.head, encoded, validate_decoder(self.decoder, encoded, self.target_frontend.size))

    def _check_source(self) -> None:
        if not self.decoder.reads_source and not self.head.writes_positions:
            raise UserError(
                "without an attention a decoder that starts from zeros is told nothing of the source: choose an attention, or "
                "another initial state"
            )

    def _check_targets(self) -> None:
        if self.targets.numbers and not self.head.writes_values:
            raise UserError(
                f"the targets here are numbers, which a {type(self.head).__name__} does not write: choose one that does"
            )
        name, reads_source = type(self.head).__name__, self.target_frontend.reads_source
        if self.head.writes_positions and not reads_source:
            raise UserError(f"a {name} writes positions of the source, which the targets here are not: choose another head")
        if reads_source and not self.head.writes_positions:
            raise UserError(
                f"the targets here are positions of the source, which a {name} does not write: choose one that points"
            )

    def _check_language(self) -> None:
        asks = self.decoder.attention.asks_language
        if asks and not (self.source_frontend.tells_language or self.targets.tells_language):
            raise UserError(
                "the query of the attention is made of the target language, and there is one language, which nothing tells: "
                "leave it out of the query"
            )
        if self.source_frontend.tells_attention_alone and not asks:
            raise UserError(
                "the target language is told to the query of the attention alone, and this attention does not ask with it: let "
                "its query be made of state and language, or tell the language in another way"
            )

    def _check_kernel(self) -> None:
        parts = (part for part in self.decoder.attention.modules() if isinstance(part, Attention))
        named = {part.kernel for part in parts} & KERNELS.keys()
        if named and not self.decoder.leaves_out_weights:
            raise UserError(
                f"the kernel {named.pop()} computes contexts whose weights nobody reads, and this decoder reports all weights: "
                "leave the kernel at auto, or take a decoder of several layers of attention"
            )

    def _check_entities(self) -> None:
        tied, there = self.decoder.tied_entities, self.source_frontend.entities
        if tied and tied != there:
            raise UserError(
                f"{tied} slots are tied to the entities that sources begin with, of which there are {there or 'none'}: name as "
                "many entities as there are slots"
            )

    def _check_statistics(self) -> None:
        shared = (name for name, part in self.named_modules() if isinstance(part, _BatchNorm))
        if name := next(shared, None):
            raise UserError(
                f"{name} normalises over a batch, so that it sees other sources, padding, and tokens that are not written yet: "
                "take a torch.nn.LayerNorm"
            )

    def _tie(self, tied_embeddings: str) -> None:
        if tied_embeddings not in ("none", "target", "all"):
            raise UserError(f"tied_embeddings is none, target or all, not {tied_embeddings!r}")
        if tied_embeddings == "none":
            return
        matrix = self.head.output_matrix
        if matrix is None:
            raise UserError(f"a {type(self.head).__name__} has no matrix that embeddings could share: leave them untied")
        self.target_frontend.tie(matrix)
        if tied_embeddings == "all":
            self.source_frontend.tie(matrix)

    @property
    def size(self) -> int:
        """Parameters, those that are shared counted once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def needs_copy_ids(self) -> bool:
        """Whether target tokens may be copied from the source, so that :meth:`encode` must be told their ids."""
        return self.head.needs_copy_ids

    @property
    def max_source_length(self) -> int | None:
        """The longest source that every part can read, in elements, its end included, or None."""
        parts = (module for module in self.modules() if isinstance(module, Part))
        return min((part.max_length for part in parts if part.max_length is not None), default=None)

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[SourceMemory, DecoderState]:
        """Read sources.

        Args:
            source: (batch, source_len, …), as the source frontend reads them.
            lengths: (batch,), on the CPU.
            copy_ids: see :meth:`attnlab.heads.Head.prepare`; needed where ``needs_copy_ids``.

        Returns:
            What stays the same for every target token, and the decoder's state before the first.
        """
        vectors = self.source_frontend(source)
        encoded = self.encoder(self.dropout(vectors), lengths)
        encoded = self._thin(encoded)
        language = self.source_frontend.language(source)
        if language is not None:
            encoded = encoded._replace(language=self.dropout(language))
        memory, state = self.decoder.start(encoded)
        own = vectors if self.target_frontend.reads_source else None
        return SourceMemory(memory, self.head.prepare(encoded, copy_ids), own), state

    def _thin(self, encoded: EncoderOutput) -> EncoderOutput:
        values = None if encoded.values is None else self.memory_dropout(encoded.values)
        return encoded._replace(states=self.memory_dropout(encoded.states), values=values)

    def decode(self, tokens: Tensor, memory: SourceMemory, state: DecoderState) -> DecoderOutput:
        """Read target tokens (batch, target_len, …), one or a whole sequence; the readout at t is about the token after t."""
        vectors = self.target_frontend(self.head.read(tokens), memory.source)
        decoded: DecoderOutput = self.decoder(self.dropout(vectors), memory.decoder, state)
        return decoded

    def scores(self, decoded: DecoderOutput, memory: SourceMemory, positions: Tensor | None = None) -> Tensor:
        """Score every token that may come next; the softmax of the scores is the distribution.

        Args:
            decoded: from :meth:`decode`.
            memory: from :meth:`encode`.
            positions: (positions,), counted row by row through (batch, target_len): score these alone, since the head is the
                most expensive part.

        Returns:
            (batch, target_len, tokens), or with ``positions`` (positions, tokens).
        """
        if positions is None:
            scores: Tensor = self.head(decoded, memory.head, self.dropout)
            return scores
        return self.head.score_chosen(decoded, memory.head, self.dropout, positions)

    def step(self, tokens: Tensor, memory: SourceMemory, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """Advance a search by one token a hypothesis.

        Args:
            tokens: the last token of each hypothesis (batch,).
            memory: from :meth:`encode`.
            state: from :meth:`encode` or from the step before.

        Returns:
            Log-probabilities of the next token (batch, tokens), attention weights (batch, source_len), the state.
        """
        decoded = self.decode(tokens.unsqueeze(1), memory, state)
        log_probabilities = torch.log_softmax(widen(self.scores(decoded, memory).squeeze(1)), dim=-1)
        return log_probabilities, decoded.weights.squeeze(1), decoded.state

    def decode_scheduled(self, target: Tensor, memory: SourceMemory, state: DecoderState, forced: Tensor) -> DecoderOutput:
        """Decode step by step, feeding the given token where ``forced`` and the model's own best token elsewhere.

        The choice of a token passes no gradient (Bengio et al. 2015, section 2.4).

        Args:
            target: given input tokens (batch, target_len, …), the first being the start symbol.
            memory: from :meth:`encode`.
            state: from :meth:`encode`.
            forced: boolean (batch, target_len); the first token is always the given one.
        """
        per_element = [1] * (target.ndim - 2)
        decoded = self.decode(target[:, :1], memory, state)
        steps = [decoded[:-1]]  # without states, of which some grow with every step
        for position in range(1, target.shape[1]):
            with torch.no_grad():
                best = self.head.best(self.scores(decoded, memory).squeeze(1), target[:, position])
            tokens = torch.where(forced[:, position].view(-1, *per_element), target[:, position], best)
            decoded = self.decode(tokens.unsqueeze(1), memory, decoded.state)
            steps.append(decoded[:-1])
        return DecoderOutput._make([*(torch.cat(part, 1) for part in zip(*steps, strict=True)), decoded.state])
