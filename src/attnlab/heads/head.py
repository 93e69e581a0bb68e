"""What a head promises to a model."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnlab.decoders import Decoder, DecoderOutput
from attnlab.encoders import EncoderOutput
from attnlab.precision import widen
from attnlab.trees import select


class TargetSpace(NamedTuple):
    """What a target may hold. A head may add ids of its own after these, which depend on the source."""

    size: int
    """Ids that every target may hold: of a vocabulary, or the reserved symbols alone."""
    padding_id: int
    unknown_id: int
    end_id: int
    numbers: int = 0
    """How many numbers an element of a target has; 0 where it is an id."""
    tells_language: bool = False
    """Whether a target begins with the symbol of its language, one of several."""


class Head(nn.Module, ABC):
    """Turns what a decoder read into scores of every token that may come next; their softmax is the distribution.

    Args:
        decoder: the decoder, for its sizes.
        embedding_size: size of a target embedding.
        targets: what a target may hold.

    Attributes:
        needs_copy_ids: whether a token may be copied from the source, so that it may lie outside the vocabulary.
        all_tokens_possible: whether no token has a score of -inf, which smoothing of labels would make an infinite loss of.
        writes_positions: whether a token beyond the targets' own is a position of the source.
        writes_values: whether it writes numbers, and no token.
        reads: fields of the decoder's output that the scores are made from.
        scores_all: whether all positions are scored where only some are asked for, so that what :meth:`prepare` returned need
            not be copied for each of them.
        source_length: how long every source must be, or None where it may have any length.
    """

    needs_copy_ids: ClassVar[bool] = False
    all_tokens_possible: ClassVar[bool] = True
    writes_positions: ClassVar[bool] = False
    writes_values: ClassVar[bool] = False
    reads: ClassVar[tuple[str, ...]] = ("readouts",)
    scores_all: ClassVar[bool] = False
    source_length: int | None = None

    def __init__(self, decoder: Decoder, embedding_size: int, targets: TargetSpace) -> None:
        super().__init__()
        self.targets = targets

    @property
    def output_matrix(self) -> nn.Linear | None:
        """The matrix that target embeddings may share, or None."""
        return None

    def prepare(self, encoded: EncoderOutput, copy_ids: Tensor | None) -> Any:
        """Return what of the source the scores are made from: a tree of tensors, batch first, or None; once a source.

        Args:
            encoded: what the encoder made of the source.
            copy_ids: ids of the source tokens in the target vocabulary, which goes on after its end with the source's tokens
                that it lacks (batch, source_len); None where nothing is copied.
        """
        return None

    def read(self, tokens: Tensor) -> Tensor:
        """Return the tokens (batch, target_len) as the target frontend may read them."""
        return tokens

    def loss(self, scores: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
        """Return the mean loss of scores (labels, tokens) against labels (labels,): of tokens in nats a token.

        Args:
            scores: from :meth:`forward`.
            labels: what is right; numbers are (labels, numbers).
            label_smoothing: probability spread evenly over all tokens.
        """
        return cross_entropy(widen(scores), labels, label_smoothing=label_smoothing)

    def best(self, scores: Tensor, given: Tensor) -> Tensor:
        """Return the best of what may come next (batch,), as :meth:`read` reads it.

        Args:
            scores: of one step (batch, tokens).
            given: what would be read there in teacher forcing (batch, …), for all that the model does not write itself.
        """
        written = scores.clone()
        written[..., self.targets.padding_id] = -math.inf  # as in a search
        return written.argmax(-1)

    def score_chosen(self, decoded: DecoderOutput, memory: Any, dropout: nn.Module, positions: Tensor) -> Tensor:
        """Return the scores (positions, tokens) that :meth:`forward` gives of some positions, since a head costs most of all.

        Args:
            decoded: what the decoder made of the tokens before.
            memory: from :meth:`prepare`.
            dropout: to be applied to the readouts.
            positions: (positions,), counted row by row through (batch, target_len).
        """
        if self.scores_all:
            every: Tensor = self(decoded, memory, dropout)
            return every.flatten(0, 1).index_select(0, positions)
        # Every position becomes a sequence of one token; what the head does not read is not gathered for nothing.
        fields = {name: getattr(decoded, name) for name in self.reads}
        read = {name: field.flatten(0, 1).index_select(0, positions).unsqueeze(1) for name, field in fields.items()}
        own = select(memory, positions // fields[self.reads[0]].shape[1])
        scores: Tensor = self(decoded._replace(**read), own, dropout)
        return scores.squeeze(1)

    @abstractmethod
    def forward(self, decoded: DecoderOutput, memory: Any, dropout: nn.Module) -> Tensor:
        """Return scores of all tokens that may come next (batch, target_len, tokens); -inf for those that may not.

        Args:
            decoded: what the decoder made of the tokens before.
            memory: from :meth:`prepare`.
            dropout: to be applied to the readouts.
        """
