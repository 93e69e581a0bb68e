"""Outputs: where the next target token may come from, the vocabulary alone or the source sentence too."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from attnlab.attention.normalizers import Hard
from attnlab.decoders import Decoder, DecoderOutput
from attnlab.errors import UserError


class Output(nn.Module, ABC):
    """Makes a distribution over target tokens out of the vocabulary's logits and whatever else a decoder knows.

    Args:
        decoder: the decoder, for its sizes.
        embedding_size: size of a target embedding.
        padding_id: of padding in what can be copied.

    Attributes:
        copies: whether a token may come from the source sentence, so that it may lie outside the vocabulary.
    """

    copies: ClassVar[bool] = False

    def __init__(self, decoder: Decoder, embedding_size: int, padding_id: int) -> None:
        super().__init__()
        self.padding_id = padding_id

    @abstractmethod
    def forward(self, logits: Tensor, decoded: DecoderOutput, copy_ids: Tensor | None) -> Tensor:
        """Return logits or log-probabilities of all tokens that may come next; their softmax is the distribution.

        Args:
            logits: of the vocabulary (n, target_len, vocabulary size).
            decoded: what the decoder made of the same tokens, (n, target_len, …).
            copy_ids: ids of the source tokens in the target vocabulary, which goes on after its end with the words of the
                sentence that it lacks (n, source_len); None where nothing is copied.
        """


class VocabularyOutput(Output):
    """p(y_t) = softmax(V readout_t + b): the vocabulary alone.

    No parameters beside the output layer's.
    """

    @override
    def forward(self, logits: Tensor, decoded: DecoderOutput, copy_ids: Tensor | None) -> Tensor:
        return logits


class PointerGenerator(Output):
    """Generate a word or copy it from the source (See et al. 2017, equations 8 and 9; after Gulcehre et al. 2016).

    p(w) = p_gen softmax(V readout_t + b)_w + (1 - p_gen) Σ_{j: x_j = w} a_tj, with p_gen = sigmoid(w_cᵀ c_t + w_sᵀ s_t + w_xᵀ E
    y_{t-1} + b). A source word that the target vocabulary lacks has an id of its own beyond it, and is read as an unknown word
    when it comes back as the previous token.

    Parameters:
        switch: [w_c; w_s; w_x] (context_size + hidden_size + embedding_size) and b, initialised as a ``torch.nn.Linear`` is.

    Raises:
        UserError: an attention without weights that sum to one, which make no distribution to copy from, or one that puts all
            weight on one position, from which no other word could be learned.
    """

    copies = True

    def __init__(self, decoder: Decoder, embedding_size: int, padding_id: int) -> None:
        super().__init__(decoder, embedding_size, padding_id)
        if not decoder.attention.sums_to_one:
            raise UserError(
                "output=pointer_generator copies with the attention's weights, which here do not sum to one: attention=none "
                "and the windows local_p, monotonic and mocha have no place beside it"
            )
        if any(isinstance(part, Hard) for part in decoder.attention.modules()):
            raise UserError(
                "output=pointer_generator learns from the weights of words that are not chosen, and attention/normalizer=hard "
                "gives them none: choose another normalizer"
            )
        self.switch = nn.Linear(decoder.attention.context_size + decoder.hidden_size + embedding_size, 1)

    @override
    def forward(self, logits: Tensor, decoded: DecoderOutput, copy_ids: Tensor | None) -> Tensor:
        if copy_ids is None:
            raise ValueError("a model that copies must be told what: pass copy_ids to encode()")
        precise = torch.promote_types(logits.dtype, torch.float32)
        features = torch.cat([decoded.contexts, decoded.states, decoded.embeddings], dim=-1)
        switch = self.switch(features).to(precise)
        size = logits.shape[-1]
        beyond = max(0, int(copy_ids.max()) + 1 - size)
        # Not -inf: where both ways are closed, the gradient of their sum would be NaN.
        closed = torch.finfo(precise).min / 4
        generated = nn.functional.logsigmoid(switch) + logits.to(precise).log_softmax(dim=-1)
        generated = nn.functional.pad(generated, (0, beyond), value=closed)
        words = copy_ids.unsqueeze(1).expand_as(decoded.weights)
        attended = torch.zeros_like(generated).scatter_add(2, words, decoded.weights.to(precise))
        present = torch.zeros(len(copy_ids), size + beyond, dtype=torch.bool, device=copy_ids.device).scatter(1, copy_ids, True)
        present[:, self.padding_id] = False
        copied = nn.functional.logsigmoid(-switch) + attended.clamp(min=1e-6).log()
        copied = copied.masked_fill(~present.unsqueeze(1), closed)
        reachable = present | (torch.arange(size + beyond, device=copy_ids.device) < size)
        return torch.logaddexp(generated, copied).masked_fill(~reachable.unsqueeze(1), -torch.inf)
