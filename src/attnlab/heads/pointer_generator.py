"""A token comes from the target vocabulary or from the source."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.normalizers import Normalizer
from attnlab.decoders import Decoder, DecoderOutput
from attnlab.encoders import EncoderOutput
from attnlab.errors import UserError
from attnlab.heads.head import TargetSpace
from attnlab.heads.vocabulary import VocabularyHead
from attnlab.precision import wide_type


class CopyMemory(NamedTuple):
    """What may be copied: found once for a source, for to look at it in a step would stop a GPU."""

    ids: Tensor
    """(batch, source_len): ids of the source tokens."""
    present: Tensor
    """Boolean (batch, tokens): which tokens may be copied, of all that vocabulary and sources have together."""


class PointerGeneratorHead(VocabularyHead):
    """Generate a token or copy it from the source (See et al. 2017, equations 8 and 9; after Gulcehre et al. 2016).

    p(w) = p_gen softmax(V readout_t + b)_w + (1 - p_gen) Σ_{j: x_j = w} a'_tj, with p_gen = sigmoid(w_cᵀ c_t + w_sᵀ s_t + w_xᵀ
    E y_{t-1} + b). The sum is 10⁻⁶ at least for a token of the source, so that the loss of one without weight is finite; below
    that no gradient reaches the weights. The end symbol of the source, which the paper's sources do not have, and a symbol of
    the target language are never copied: a'_tj is a_tj over its sum over the other tokens, as if the attention were masked
    there. A source token that the target vocabulary lacks has an id of its own after its end, and is read as an unknown one
    when it comes back as the previous token.

    Parameters:
        projection: V (vocabulary size, readout_size) and b.
        switch: [w_c; w_s; w_x] (context_size + hidden_size + embedding_size) and b. Both are initialised as a
            ``torch.nn.Linear`` is.

    Raises:
        UserError: an attention without weights that sum to one, which make no distribution to copy from, or one that puts all
            weight on one position, from which no other token could be learned.
    """

    needs_copy_ids = True
    all_tokens_possible = False
    reads = ("readouts", "weights", "contexts", "states", "embeddings")

    def __init__(self, decoder: Decoder, embedding_size: int, targets: TargetSpace) -> None:
        super().__init__(decoder, embedding_size, targets)
        attention = decoder.attention
        if not attention.sums_to_one:
            losing = sorted({type(part).__name__ for part in attention.parts if not part.sums_to_one})
            raise UserError(
                "a pointer-generator copies with the attention's weights, which do not sum to one with "
                f"{' and '.join(losing) or type(attention).__name__}: choose another attention, or a vocabulary head"
            )
        one_hot = next((part for part in attention.parts if isinstance(part, Normalizer) and part.one_hot), None)
        if one_hot is not None:
            raise UserError(
                f"a pointer-generator learns from the weights of tokens that are not chosen, and a {type(one_hot).__name__} "
                "normalizer gives them none: choose another normalizer"
            )
        self.switch = nn.Linear(decoder.attention.context_size + decoder.hidden_size + embedding_size, 1)

    @override
    def prepare(self, encoded: EncoderOutput, copy_ids: Tensor | None) -> CopyMemory:
        if copy_ids is None:
            raise ValueError("a head that copies must be told what: pass copy_ids")
        # Each element may be a token of its own; to ask how many are would be to wait for a GPU.
        total = self.targets.size + copy_ids.shape[1]
        present = torch.zeros(len(copy_ids), total, dtype=torch.bool, device=copy_ids.device).scatter(1, copy_ids, True)
        for token in (self.targets.padding_id, self.targets.end_id):
            present[:, token] = False
        return CopyMemory(copy_ids, present)

    @override
    def read(self, tokens: Tensor) -> Tensor:
        return tokens.where(tokens < self.targets.size, self.targets.unknown_id)

    @override
    def forward(self, decoded: DecoderOutput, memory: CopyMemory, dropout: nn.Module) -> Tensor:
        present, logits = memory.present.unsqueeze(1), super().forward(decoded, None, dropout)
        precise = wide_type(logits)
        features = torch.cat([decoded.contexts, decoded.states, decoded.embeddings], dim=-1)
        switch = self.switch(features).to(precise)
        generated = nn.functional.logsigmoid(switch) + logits.to(precise).log_softmax(dim=-1)
        generated = nn.functional.pad(generated, (0, present.shape[-1] - self.targets.size), value=-torch.inf)
        tokens = memory.ids.unsqueeze(1).expand_as(decoded.weights)
        no_word = (tokens == self.targets.end_id) | (tokens == self.targets.padding_id)  # such as a symbol of a language
        looked = decoded.weights.to(precise).masked_fill(no_word, 0.0)
        # Far above the smallest number, by which the gradient of the division would be infinite.
        shares = looked / looked.sum(dim=-1, keepdim=True).clamp(min=1e-20)
        weights = torch.zeros_like(generated).scatter_add(2, tokens, shares)
        copied = nn.functional.logsigmoid(-switch) + weights.clamp(min=1e-6).log()
        # What is copied is finite: where both ways were closed, the gradient of their sum would be NaN.
        return torch.where(present, torch.logaddexp(generated, copied), generated)
