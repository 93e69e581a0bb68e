"""What a model is trained for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from attnlab.attention import Attention, ContextGate
from attnlab.errors import UserError
from attnlab.heads import Head
from attnlab.model import Seq2Seq
from attnlab.training.auxiliary import AuxiliaryLoss


@dataclass(frozen=True)
class TeacherForcing:
    """How often the decoder is told the right previous token in training (Bengio et al. 2015; Williams and Zipser 1989).

    Attributes:
        ratio: probability of the right token; 1 is teacher forcing throughout.
        per: what the coin is tossed for: each example, or each token.

    Raises:
        UserError: a ratio outside 0 to 1, or an unknown ``per``.
    """

    ratio: float = 1.0
    per: Literal["example", "token"] = "example"

    def __post_init__(self) -> None:
        if not 0.0 <= self.ratio <= 1.0:
            raise UserError(f"ratio is a probability from 0 to 1, not {self.ratio}")
        if self.per not in ("example", "token"):
            raise UserError(f"per is example or token, not {self.per!r}")

    def draw(self, batch_size: int, target_len: int, generator: torch.Generator) -> Tensor:
        """Return where the right token is given, boolean (batch_size, target_len)."""
        width = 1 if self.per == "example" else target_len
        coins = torch.rand(batch_size, width, generator=generator) < self.ratio
        return coins.expand(batch_size, target_len)


class Objective:
    """Maximum likelihood, with losses on the attention beside it: L = -Σ_t log p(y_t | y_<t, x) / T + Σ_i w_i L_i.

    Args:
        label_smoothing: probability spread evenly over all tokens (Szegedy et al. 2016, section 7).
        teacher_forcing: how often the right previous token is given; None is always.

    Attributes:
        auxiliary: losses on the attention's weights, by name.

    Raises:
        UserError: a probability that is none.
    """

    def __init__(self, *, label_smoothing: float = 0.0, teacher_forcing: TeacherForcing | None = None) -> None:
        if not 0.0 <= label_smoothing < 1.0:
            raise UserError(f"label_smoothing is a probability from 0 to below 1, not {label_smoothing}")
        self.label_smoothing = label_smoothing
        self.teacher_forcing = teacher_forcing or TeacherForcing()
        self.auxiliary: Mapping[str, AuxiliaryLoss] = {}

    def validate(self, model: Seq2Seq) -> None:
        """Refuse a model that the objective does not suit.

        Raises:
            UserError: such a model.
        """
        if self.label_smoothing and not model.head.all_tokens_possible:
            raise UserError(
                "label smoothing spreads probability over tokens that this head gives none: set label_smoothing to 0, or "
                "choose another head"
            )
        if self.teacher_forcing.ratio < 1 and not _reads_previous_tokens(model):
            raise UserError("no previous token is read here, right or written: leave teacher_forcing.ratio at 1")
        for name, loss in self.auxiliary.items():
            loss.validate(name, model.decoder.attention)

    def loss(self, head: Head, scores: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss of scores (labels, tokens) against labels (labels,), in nats a token; see :meth:`Head.loss`."""
        return head.loss(scores, labels, label_smoothing=self.label_smoothing)


def _reads_previous_tokens(model: Seq2Seq) -> bool:
    """Tell whether the tokens before decide anything: through the decoder, the query of an attention, a gate or the head."""
    decoder = model.decoder
    asks = any(
        isinstance(part, ContextGate) or (isinstance(part, Attention) and part.reads_query and "embedding" in part.query_parts)
        for part in decoder.attention.modules()
    )
    return model.target_frontend.reads_tokens and (decoder.reads_targets or asks or "embeddings" in model.head.reads)
