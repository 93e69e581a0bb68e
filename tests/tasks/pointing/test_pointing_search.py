"""Search visits only what is still allowed."""

from itertools import pairwise, permutations
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.data.symbols import BOS, EOS, RESERVED
from attnlab.search import BeamSearch, GreedySearch, SamplingSearch, Search
from attnlab.tasks.pointing.problems import Visits
from attnlab.tasks.pointing.visits import PointingPredictor, VisitingModel


class Table:
    """Says the same of every position at every step, whatever came before; the state counts the steps."""

    def __init__(self, scores: Tensor) -> None:
        self.scores = scores

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Any, Any]:
        real = torch.arange(source.shape[1]) < lengths.unsqueeze(1) - 1
        positions = self.scores[: source.shape[1]].expand(len(source), -1).masked_fill(~real, -torch.inf)
        reserved = torch.full((len(source), RESERVED), -torch.inf)
        reserved[:, EOS] = self.scores[-1]
        return torch.cat([reserved, positions], dim=1).log_softmax(dim=1), torch.zeros(len(source), dtype=torch.long)

    def step(self, tokens: Tensor, memory: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        assert torch.equal(tokens == BOS, state == 0)
        return memory, torch.zeros(len(tokens), memory.shape[1] - RESERVED), state + 1


def found(visits: Visits, search: Search, scores: list[float], lengths: list[int]) -> list[list[list[int]]]:
    model = VisitingModel(Table(torch.tensor(scores)), visits)
    source = torch.zeros(len(lengths), max(lengths), 3)
    every = search(model, source, torch.tensor(lengths), bos=BOS, eos=EOS)
    return [[[token - RESERVED for token in one.tokens[:-1]] for one in own] for own in every]


SEARCHES = [GreedySearch(), BeamSearch(width=3), SamplingSearch(samples=2)]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_all_elements_are_visited_once(search: Search) -> None:
    """Although the model would point at the same position for ever, or end at once."""
    for end in (9.0, -9.0):
        every = found("all", search, [0.1, 0.3, 3.0, 0.2, end], [5, 3, 2])
        for own, size in zip(every, (4, 2, 1), strict=True):
            assert own
            assert all(sorted(one) == list(range(size)) for one in own)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_no_element_is_visited_twice_and_the_end_waits(search: Search) -> None:
    for own in found(3, search, [0.1, 0.3, 3.0, 0.2, 9.0], [5, 5]):
        assert all(len(one) == 3 and len(set(one)) == 3 for one in own)
    (own,) = found(3, search, [0.1, 0.3, 3.0, 0.2, -9.0], [5])
    assert all(sorted(one) == [0, 1, 2, 3] for one in own)
    (own,) = found(3, search, [0.1, 0.3, 9.0], [3])
    assert all(sorted(one) == [0, 1] for one in own), "a smaller problem is visited as a whole"


def test_a_wide_beam_finds_the_best_tour_of_all() -> None:
    torch.manual_seed(1)
    transitions = torch.randn(5, 5).log_softmax(-1)

    class Markov(Table):
        def step(self, tokens: Tensor, memory: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            rows = transitions[torch.where(tokens == BOS, 4, tokens - RESERVED)]
            reserved = torch.full((len(tokens), RESERVED), -torch.inf)
            reserved[:, EOS] = rows[:, 4]
            scores = torch.cat([reserved, rows[:, :4], torch.full((len(tokens), 1), -torch.inf)], dim=1)
            return scores, torch.zeros(len(tokens), 5), state

    model = VisitingModel(Markov(torch.zeros(6)), "all")
    ((best, *_),) = BeamSearch(width=200)(model, torch.zeros(1, 5, 3), torch.tensor([5]), bos=BOS, eos=EOS)

    def score(order: tuple[int, ...]) -> float:
        path = [4, *order, 4]
        return sum(float(transitions[a, b]) for a, b in pairwise(path))

    order = max(permutations(range(4)), key=score)
    assert [token - RESERVED for token in best.tokens[:-1]] == list(order)
    assert best.log_probability == pytest.approx(score(order), rel=1e-6)


@pytest.mark.parametrize(
    ("visits", "tokens", "factor", "wrapped"), [("all", 1.0, 2.0, True), (3, 1.0, 2.0, True), ("any", 6.0, 6.0, False)]
)
def test_a_predictor_searches_as_its_problem_allows(visits: Visits, tokens: float, factor: float, wrapped: bool) -> None:
    problems: Any = SimpleNamespace(visits=visits, tokens_per_element=tokens)
    model: Any = SimpleNamespace()
    task: Any = None
    predictor = PointingPredictor(task, [model], BeamSearch(width=2), problems)
    assert isinstance(predictor.model, VisitingModel) == wrapped
    assert isinstance(predictor.search, BeamSearch)
    assert (predictor.search.max_length_factor, predictor.search.width) == (factor, 2)
