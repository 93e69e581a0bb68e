"""A token is a position of the source."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention import Composition, validate_composition
from attnlab.attention.scores import Score
from attnlab.decoders import Decoder, DecoderOutput
from attnlab.encoders import EncoderOutput
from attnlab.heads.head import Head, TargetSpace


class PointingMemory(NamedTuple):
    """What may be pointed at."""

    keys: Tensor
    """(batch, source_len, key_size)."""
    elements: Tensor
    """(batch, source_len), true where the source has an element that is not its end."""
    end: Tensor
    """(batch,): the position of its end."""


class PointingHead(Head):
    """A token is a position of the source, p(y_t = j) = softmax(e_t)_j with e_tj = score(readout_t, h_j) (Vinyals et al. 2015,
    section 2.3, equation 3).

    The paper's score is the additive one, u_j = vᵀ tanh(W_1 e_j + W_2 d_i), with e_j the encoder's state and d_i the decoder's.
    The last element of every source is its end: to point there is to write the end symbol. Scores are those of the reserved
    symbols, of which only the end symbol is ever possible, followed by those of the positions: id ``targets.size`` + j is
    position j.

    Parameters:
        score: its own.

    Args:
        decoder: the decoder, for its sizes.
        embedding_size: size of a target embedding, not used.
        targets: the reserved symbols.
        score: makes the score from (readout_size, memory_size).

    Raises:
        UserError: a score that does not look at the encoder's states.
    """

    writes_positions = True
    all_tokens_possible = False
    scores_all = True

    def __init__(
        self, decoder: Decoder, embedding_size: int, targets: TargetSpace, *, score: Callable[[int, int], Score]
    ) -> None:
        super().__init__(decoder, embedding_size, targets)
        self.score = score(decoder.readout_size, decoder.memory_size)
        validate_composition(Composition(self.score, comparison="positions to point at"))

    @override
    def prepare(self, encoded: EncoderOutput, copy_ids: Tensor | None) -> PointingMemory:
        end = encoded.mask.sum(dim=1) - 1
        positions = torch.arange(encoded.mask.shape[1], device=end.device)
        return PointingMemory(self.score.project_keys(encoded.states), positions < end.unsqueeze(1), end)

    @override
    def forward(self, decoded: DecoderOutput, memory: PointingMemory, dropout: nn.Module) -> Tensor:
        logits: Tensor = self.score(dropout(decoded.readouts), memory.keys)
        reserved = logits.new_full((*logits.shape[:2], self.targets.size), -torch.inf)
        end = memory.end.view(-1, 1, 1).expand(-1, logits.shape[1], 1)
        reserved[..., self.targets.end_id] = logits.gather(2, end).squeeze(2)
        return torch.cat([reserved, logits.masked_fill(~memory.elements.unsqueeze(1), -torch.inf)], dim=-1)
