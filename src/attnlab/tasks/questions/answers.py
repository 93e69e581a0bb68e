"""A search for an answer of one token."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attnlab.data.symbols import BOS, EOS, RESERVED
from attnlab.model import Seq2Seq
from attnlab.search import Search
from attnlab.search.search import Model
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.task import Task


class AnswerModel:
    """A model as a search sees it: it writes one answer, and then certainly the end.

    Args:
        model: predicts the answer.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Any, Any]:
        """Read sources; see :meth:`Seq2Seq.encode`."""
        return self.model.encode(source, lengths, copy_ids)

    def step(self, tokens: Tensor, memory: Any, state: Any) -> tuple[Tensor, Tensor, Any]:
        """Return log-probabilities of the next token; reserved ones are no answers."""
        log_probabilities, weights, state = self.model.step(tokens, memory, state)
        reserved = torch.arange(log_probabilities.shape[1], device=tokens.device) < RESERVED
        answers = log_probabilities.masked_fill(reserved, -torch.inf)
        end = torch.full_like(log_probabilities, -torch.inf)
        end[:, EOS] = 0.0
        return torch.where((tokens == BOS).unsqueeze(1), answers, end), weights, state


class AnswerPredictor(Predictor):
    """Predicts answers of one token, whatever the search and its own limit."""

    def __init__(self, task: Task, models: Sequence[Seq2Seq], search: Search, *, batch_size: int = 64) -> None:
        offset = max(search.max_length_offset, 2)  # the answer and the end
        super().__init__(task, models, replace(search, max_length_offset=offset), batch_size=batch_size)
        self.model = AnswerModel(self.model)
