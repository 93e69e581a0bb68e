"""The sequence-to-sequence model: embeddings, an encoder, a decoder with its attention, an output layer."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.attention import AttentionFactory, AttentionMechanism
from attnlab.decoders import Decoder, DecoderOutput, DecoderState
from attnlab.encoders import Encoder
from attnlab.errors import UserError
from attnlab.output import Output
from attnlab.seeding import initialize


class Embedding(nn.Embedding):
    """Token embeddings drawn from N(0, 1), padding zero.

    The scale decides how fast a recurrent model begins to learn: on Multi30k the loss after 300 steps is 3.7 nats, and 5.0 with
    a standard deviation of 1/√size. Where the matrix is that of an output layer too, which must be small, it is scaled by √size
    on the way in instead (Vaswani et al. 2017, section 3.4).
    """

    scale = 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """Look up ids (...); returns (..., size)."""
        embeddings = super().forward(ids)
        return embeddings if self.scale == 1.0 else embeddings * self.scale

    def share(self, output: nn.Linear) -> None:
        """Take an output layer's matrix for one's own."""
        self.weight = output.weight
        self.scale = self.embedding_dim**0.5


class SourceMemory(NamedTuple):
    """An encoded source: a tree of tensors, batch first."""

    attended: Any
    """What the decoder looks at."""
    copy_ids: Tensor | None
    """(batch, source_len): ids of the source tokens in the target vocabulary, which goes on after its end with the words of the
    sentence that it lacks; None in a model that does not copy."""


class Seq2Seq(nn.Module):
    """p(y_t | y_<t, x) = softmax(V readout_t + b), the readout coming from a decoder that attends to an encoded source.

    With an output that copies, the distribution goes on beyond the vocabulary; see :class:`attnlab.output.PointerGenerator`.

    Parameters:
        source_embedding, target_embedding: (vocabulary size, embedding_size).
        encoder, decoder, copying: their own.
        output: V (target vocabulary size, readout_size) and b.

    Args:
        source_vocabulary_size: types on the source side.
        target_vocabulary_size: types on the target side.
        padding_id: the id of padding on both sides.
        unknown_id: the id of an unknown target token, as which a copied one is read.
        seed: every parameter is drawn from this seed and its own name.
        encoder: makes the encoder from (embedding_size).
        attention: makes the attention from (query_size, memory_size, embedding_size).
        decoder: makes the decoder from (embedding_size, encoder, attention).
        output: makes what turns logits into a distribution, from (decoder, embedding_size, padding_id).
        embedding_size: size of the embeddings of both sides.
        dropout: on embeddings and on the readout, a probability.
        tied_embeddings: what shares one matrix: nothing, the target embedding and the output layer ("target": Press and Wolf
            2017), or the source embedding too ("all", which needs a shared vocabulary).

    Raises:
        UserError: sizes or vocabularies that cannot be tied.
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        padding_id: int,
        unknown_id: int,
        seed: int,
        *,
        encoder: Callable[[int], Encoder],
        attention: AttentionFactory,
        decoder: Callable[[int, Encoder, AttentionFactory], Decoder],
        output: Callable[[Decoder, int, int], Output],
        embedding_size: int,
        dropout: float = 0.0,
        tied_embeddings: Literal["none", "target", "all"] = "none",
    ) -> None:
        super().__init__()
        self.source_embedding = Embedding(source_vocabulary_size, embedding_size, padding_idx=padding_id)
        self.target_embedding = Embedding(target_vocabulary_size, embedding_size, padding_idx=padding_id)
        self.encoder = encoder(embedding_size)
        self.decoder = decoder(embedding_size, self.encoder, attention)
        self.output = nn.Linear(self.decoder.readout_size, target_vocabulary_size)
        self.copying = output(self.decoder, embedding_size, padding_id)
        self.unknown_id = unknown_id
        self.dropout = nn.Dropout(dropout)
        initialize(self, seed)
        self._tie(tied_embeddings)

    def _tie(self, tied_embeddings: str) -> None:
        if tied_embeddings not in ("none", "target", "all"):
            raise UserError(f"model.tied_embeddings is none, target or all, not {tied_embeddings!r}")
        if tied_embeddings == "none":
            return
        if self.output.weight.shape != self.target_embedding.weight.shape:
            raise UserError(
                f"model.tied_embeddings={tied_embeddings} needs a readout of the size of an embedding, but decoder.hidden_size "
                f"is {self.decoder.readout_size} and model.embedding_size {self.target_embedding.embedding_dim}"
            )
        self.target_embedding.share(self.output)
        if tied_embeddings == "all":
            if self.source_embedding.weight.shape != self.target_embedding.weight.shape:
                raise UserError("model.tied_embeddings=all needs one vocabulary: add datamodule.shared_vocabulary=true")
            self.source_embedding.share(self.output)

    @property
    def size(self) -> int:
        """Parameters, those that are shared counted once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def copies(self) -> bool:
        """Whether target tokens may be copied from the source."""
        return self.copying.copies

    @property
    def max_source_length(self) -> int | None:
        """The longest source sentence that every part can read, in tokens, its end symbol included, or None."""
        lengths = [m.max_length for m in self.modules() if isinstance(m, AttentionMechanism) and m.max_length is not None]
        return min(lengths, default=None)

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[SourceMemory, DecoderState]:
        """Read source sentences.

        Args:
            source: token ids (batch, source_len).
            lengths: (batch,), on the CPU.
            copy_ids: see :class:`SourceMemory`; needed by a model that copies.

        Returns:
            The memory that the decoder looks at, and its state before the first target token.
        """
        attended, state = self.decoder.start(self.encoder(self.dropout(self.source_embedding(source)), lengths))
        return SourceMemory(attended, copy_ids if self.copies else None), state

    def decode(self, tokens: Tensor, memory: SourceMemory, state: DecoderState) -> DecoderOutput:
        """Read target tokens (batch, target_len), one or a whole sentence; the readout at t is about the token after t."""
        if self.copies:
            tokens = tokens.where(tokens < self.target_embedding.num_embeddings, self.unknown_id)
        decoded: DecoderOutput = self.decoder(self.dropout(self.target_embedding(tokens)), memory.attended, state)
        return decoded

    def scores(self, decoded: DecoderOutput, memory: SourceMemory, chosen: Tensor | None = None) -> Tensor:
        """Score every token that may come next; the softmax of the scores is the distribution.

        Args:
            decoded: from :meth:`decode`.
            memory: from :meth:`encode`.
            chosen: boolean (batch, target_len): score these positions alone, since the output layer is the most expensive one.

        Returns:
            (batch, target_len, target vocabulary size, or more where words are copied), or without ``chosen``'s first two
            dimensions (positions, …).
        """
        copy_ids = memory.copy_ids
        if chosen is not None:
            # Every chosen position becomes a sentence of one token; what only a copy reads is not gathered for nothing.
            read = ("readouts", "weights", "contexts", "states", "embeddings") if self.copies else ("readouts",)
            decoded = decoded._replace(**{name: getattr(decoded, name)[chosen].unsqueeze(1) for name in read})
            copy_ids = None if copy_ids is None else copy_ids[chosen.nonzero()[:, 0]]
        logits = self.output(self.dropout(decoded.readouts))
        scores: Tensor = self.copying(logits, decoded, copy_ids)
        return scores if chosen is None else scores.squeeze(1)

    def step(self, tokens: Tensor, memory: SourceMemory, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """Advance a search by one token a hypothesis.

        Args:
            tokens: the last token of each hypothesis (batch,).
            memory: from :meth:`encode`.
            state: from :meth:`encode` or from the step before.

        Returns:
            Log-probabilities of the next token (batch, vocabulary size), attention weights (batch, source_len), the state.
        """
        decoded = self.decode(tokens.unsqueeze(1), memory, state)
        log_probabilities = torch.log_softmax(self.scores(decoded, memory).squeeze(1).float(), dim=-1)
        return log_probabilities, decoded.weights.squeeze(1), decoded.state

    def scheduled(self, target: Tensor, memory: SourceMemory, state: DecoderState, forced: Tensor) -> DecoderOutput:
        """Decode step by step, feeding the given token where ``forced`` and the model's own best token elsewhere.

        The choice of a token passes no gradient (Bengio et al. 2015, section 2.4).

        Args:
            target: given input tokens (batch, target_len), the first being the start symbol.
            memory: from :meth:`encode`.
            state: from :meth:`encode`.
            forced: boolean (batch, target_len); the first token is always the given one.
        """
        tokens = target[:, 0]
        steps: list[DecoderOutput] = []
        for position in range(target.shape[1]):
            if position:
                with torch.no_grad():
                    best = self.scores(steps[-1], memory).squeeze(1).argmax(-1)
                tokens = torch.where(forced[:, position], target[:, position], best)
            steps.append(self.decode(tokens.unsqueeze(1), memory, state))
            state = steps[-1].state
        parts = zip(*(step[:-1] for step in steps), strict=True)
        return DecoderOutput._make([*(torch.cat(part, 1) for part in parts), state])
