"""Trained models of pointing in use: search visits only what is still allowed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attnlab.data.symbols import EOS, RESERVED
from attnlab.model import Seq2Seq
from attnlab.search import Search
from attnlab.search.search import Model
from attnlab.tasks.pointing.problems import Problems, Visits
from attnlab.tasks.predictor import Predictor
from attnlab.tasks.task import Task
from attnlab.trees import move


class VisitingModel:
    """A model that a search steps through, without the elements that were visited before, and without the end too early.

    What remains keeps its own log-probability, as with every limit of a search.

    Args:
        model: or an ensemble.
        visits: elements before the end, at least: a number, or "all"; a source that has fewer is visited as a whole.
    """

    def __init__(self, model: Model, visits: Visits) -> None:
        self.model = model
        self.visits = visits

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Any, Any]:
        """Read sources; nothing of them has been visited."""
        memory, state = self.model.encode(source, lengths, copy_ids)
        elements = move(lengths, source.device) - 1
        missing = elements if isinstance(self.visits, str) else elements.clamp(max=self.visits)
        return memory, (state, torch.zeros(source.shape[:2], dtype=torch.bool, device=source.device), missing)

    def step(self, tokens: Tensor, memory: Any, state: Any) -> tuple[Tensor, Tensor, Any]:
        """Note what was visited last, and return log-probabilities, weights and the new state."""
        inner, visited, missing = state
        positions = torch.arange(visited.shape[1], device=tokens.device)
        visited = visited | (positions == (tokens - RESERVED).unsqueeze(1))
        missing = missing - (tokens >= RESERVED).long()
        log_probabilities, weights, inner = self.model.step(tokens, memory, inner)
        forbidden = torch.zeros_like(log_probabilities, dtype=torch.bool)
        forbidden[:, RESERVED:] = visited
        forbidden[:, EOS] = missing > 0
        return log_probabilities.masked_fill(forbidden, -torch.inf), weights, (inner, visited, missing)


class PointingPredictor(Predictor):
    """One or several models of pointing, and a search that visits only what is still allowed.

    The search allows at least as many tokens as the longest answer has, whatever its own limit is.

    Args:
        task: prepared, or with its state loaded.
        models: several are searched as an ensemble.
        search: finds answers.
        problems: of the task.
        batch_size: sources in a batch.
    """

    def __init__(
        self, task: Task, models: Sequence[Seq2Seq], search: Search, problems: Problems, *, batch_size: int = 64
    ) -> None:
        factor = max(search.max_length_factor, problems.tokens_per_element)
        super().__init__(task, models, replace(search, max_length_factor=factor), batch_size=batch_size)
        if problems.visits != "any":
            self.model = VisitingModel(self.model, problems.visits)
