"""The sequence-to-sequence model: embeddings, an encoder, a decoder with its attention, an output layer."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from attnlab.attention import AttentionMechanism, Memory
from attnlab.decoders import Decoded, Decoder, DecoderState
from attnlab.encoders import Encoder
from attnlab.errors import UserError
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


class Seq2Seq(nn.Module):
    """p(y_t | y_<t, x) = softmax(V readout_t + b), the readout coming from a decoder that attends to an encoded source.

    Parameters:
        source_embedding, target_embedding: (vocabulary size, embedding_size).
        encoder, decoder: their own.
        output: V (target vocabulary size, readout_size) and b.

    Args:
        source_vocabulary_size: types on the source side.
        target_vocabulary_size: types on the target side.
        padding_id: the id of padding on both sides.
        seed: every parameter is drawn from this seed and its own name.
        encoder: makes the encoder from (embedding_size).
        attention: makes the attention from (query_size, memory_size).
        decoder: makes the decoder from (embedding_size, encoder, attention).
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
        seed: int,
        *,
        encoder: Callable[[int], Encoder],
        attention: Callable[[int, int], AttentionMechanism],
        decoder: Callable[[int, Encoder, Callable[[int, int], AttentionMechanism]], Decoder],
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

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Memory, DecoderState]:
        """Read source sentences.

        Args:
            source: token ids (batch, source_len).
            lengths: (batch,), on the CPU.

        Returns:
            The memory that the decoder looks at, and its state before the first target token.
        """
        return self.decoder.start(self.encoder(self.dropout(self.source_embedding(source)), lengths))

    def decode(self, tokens: Tensor, memory: Memory, state: DecoderState) -> Decoded:
        """Read target tokens (batch, target_len), one or a whole sentence; the readout at t is about the token after t."""
        decoded: Decoded = self.decoder(self.dropout(self.target_embedding(tokens)), memory, state)
        return decoded

    def logits(self, readouts: Tensor) -> Tensor:
        """Score every target type for readouts (..., readout_size); returns (..., target vocabulary size)."""
        logits: Tensor = self.output(self.dropout(readouts))
        return logits

    def step(self, tokens: Tensor, memory: Memory, state: DecoderState) -> tuple[Tensor, Tensor, DecoderState]:
        """Advance a search by one token a hypothesis.

        Args:
            tokens: the last token of each hypothesis (batch,).
            memory: from :meth:`encode`.
            state: from :meth:`encode` or from the step before.

        Returns:
            Log-probabilities of the next token (batch, vocabulary size), attention weights (batch, source_len), the state.
        """
        decoded = self.decode(tokens.unsqueeze(1), memory, state)
        log_probabilities = torch.log_softmax(self.logits(decoded.readouts.squeeze(1)).float(), dim=-1)
        return log_probabilities, decoded.weights.squeeze(1), decoded.state

    def scheduled(self, target: Tensor, memory: Memory, state: DecoderState, forced: Tensor) -> Decoded:
        """Decode step by step, feeding the given token where ``forced`` and the model's own best token elsewhere.

        The choice of a token passes no gradient (Bengio et al. 2015, section 2.4).

        Args:
            target: given input tokens (batch, target_len), the first being the start symbol.
            memory: from :meth:`encode`.
            state: from :meth:`encode`.
            forced: boolean (batch, target_len); the first token is always the given one.
        """
        tokens = target[:, 0]
        readouts: list[Tensor] = []
        weights: list[Tensor] = []
        for position in range(target.shape[1]):
            if position:
                with torch.no_grad():
                    best = self.logits(readouts[-1].squeeze(1)).argmax(-1)
                tokens = torch.where(forced[:, position], target[:, position], best)
            decoded = self.decode(tokens.unsqueeze(1), memory, state)
            state = decoded.state
            readouts.append(decoded.readouts)
            weights.append(decoded.weights)
        return Decoded(torch.cat(readouts, 1), torch.cat(weights, 1), state)
