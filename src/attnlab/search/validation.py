"""What a search promises, tried on a small model before anything is trained."""

import math

import torch
from torch import Tensor

from attnlab.errors import UserError, attempt
from attnlab.search.search import Hypothesis, Search
from attnlab.source import is_users_own

PADDING, BOS, EOS, TOKENS = 0, 2, 3, 8
"""Symbols of the small model, and how many there are: a search is told them, and any will do."""
LENGTHS = (5, 3)
"""Of the sources, of which the search must not find other targets where it is given one alone."""
ENDS = (-2.0, 0.0, 2.0, 4.0)
"""Logit of the end symbol, by step: several tokens are found, but not so many that a search of long targets takes long."""


class _Table:
    """A model whose next token depends on the step, on the source's first element and on the last token."""

    def __init__(self) -> None:
        logits = torch.randn(2, TOKENS, TOKENS, generator=torch.Generator().manual_seed(0))
        steps = logits.repeat(len(ENDS), 1, 1, 1)
        steps[..., EOS] = torch.tensor(ENDS).view(-1, 1, 1)
        self.table = steps.log_softmax(-1)

    def encode(self, source: Tensor, lengths: Tensor, copy_ids: Tensor | None = None) -> tuple[Tensor, Tensor]:
        real = torch.arange(source.shape[1]) < lengths.unsqueeze(1)
        memory = torch.cat([source[:, :1].double(), real / lengths.unsqueeze(1)], dim=1)
        return memory, torch.zeros(len(source), dtype=torch.long)

    def step(self, tokens: Tensor, memory: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.table[state, memory[:, 0].long(), tokens], memory[:, 1:].float(), (state + 1).clamp(max=len(ENDS) - 1)

    def score(self, source: int, tokens: list[int]) -> float:
        """Return the log-probability of a target."""
        steps = torch.arange(len(tokens)).clamp(max=len(ENDS) - 1)
        return float(self.table[steps, source, torch.tensor([BOS, *tokens[:-1]]), torch.tensor(tokens)].double().sum())


def validate_search(search: Search) -> None:
    """Try what a search promises, if it is a user's own: hypotheses of each source, whatever else is in the batch.

    Raises:
        UserError: it raises, or does not keep a promise.
    """
    if is_users_own(type(search)):
        try_search(search)


def try_search(search: Search) -> None:
    """Try what a search promises; see :func:`validate_search`."""
    name = f"the search {type(search).__name__}"
    together = _search(name, search, LENGTHS)
    for row, length in enumerate(LENGTHS):
        (alone,) = _search(name, search, (length,), first=row)
        if [found.tokens for found in alone] != [found.tokens for found in together[row]]:
            raise UserError(f"{name} finds other targets for a source that is alone in its batch: they must be the same")
    wanted = 4
    for hypotheses in _search(name, search, LENGTHS, target_length=wanted):
        if not search.no_repeat_ngram and any(len(found.tokens) != wanted for found in hypotheses):
            raise UserError(f"{name} finds other lengths than target_lengths asks for")


def _search(
    name: str, search: Search, lengths: tuple[int, ...], *, first: int = 0, target_length: int | None = None
) -> list[list[Hypothesis]]:
    model, count = _Table(), torch.tensor(lengths)
    source = torch.arange(max(lengths)).repeat(len(lengths), 1)
    source[:, 0] = torch.arange(first, first + len(lengths))
    asked = None if target_length is None else torch.full_like(count, target_length)
    with attempt(name, search):
        found = search(model, source, count, bos=BOS, eos=EOS, padding=PADDING, target_lengths=asked)
        longest = search.limits(count) if asked is None else asked
        if not isinstance(found, list) or len(found) != len(lengths):
            raise UserError(f"{name} returns no list with the hypotheses of each of {len(lengths)} sources")
        for row, hypotheses in enumerate(found):
            if not 0 < len(hypotheses) <= search.max_hypotheses:
                told = f"{len(hypotheses)} hypotheses of a source, and says {search.max_hypotheses} at most"
                raise UserError(f"{name} finds {told}")
            for hypothesis in hypotheses:
                _check_hypothesis(name, hypothesis, source.shape[1], int(longest[row]))
                right = model.score(first + row, hypothesis.tokens)
                if not math.isclose(hypothesis.log_probability, right, rel_tol=1e-4):
                    told = f"{hypothesis.log_probability}, and it is {right}"
                    raise UserError(f"{name} says that the log-probability of a hypothesis is {told}")
            scores = [hypothesis.score for hypothesis in hypotheses]
            if scores != sorted(scores, reverse=True):
                raise UserError(f"{name} returns the scores {scores} for a source: the best comes first")
    return found


def _check_hypothesis(name: str, found: Hypothesis, source_len: int, longest: int) -> None:
    if not isinstance(found, Hypothesis):
        raise UserError(f"{name} finds {type(found).__name__}: it finds Hypothesis")
    tokens = found.tokens
    if not isinstance(tokens, list) or EOS not in tokens or tokens.index(EOS) != len(tokens) - 1 or PADDING in tokens:
        raise UserError(f"{name} finds the tokens {tokens}: a list that ends with the end symbol, {EOS}, and holds no padding")
    if len(tokens) > longest:
        raise UserError(f"{name} finds {len(tokens)} tokens where {longest} are allowed, with the end symbol")
    if tuple(found.weights.shape) != (len(tokens), source_len):
        raise UserError(
            f"{name} finds weights {tuple(found.weights.shape)} for {len(tokens)} tokens and {source_len} source positions"
        )
