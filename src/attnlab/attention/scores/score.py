"""What a score promises to an attention."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from attnlab.attention.mechanism import Part
from attnlab.attention.trial import are_close, preserve_state
from attnlab.errors import UserError, locate


class Score(Part, ABC):
    """A score function e(q, k).

    Args:
        query_size: size of a query, from the decoder.
        memory_size: size of an encoder state, from the encoder.

    Attributes:
        linear_keys: whether :meth:`project_keys` is linear, so that a history may add to the keys after it.
        content_based: whether it compares the query with the keys; if not, it sees their number alone.
        is_separable: whether it is the sum of a term of the query and one of the key, the first of which a softmax cancels.
        is_product: whether it is a product of query and key, so that :meth:`as_product` may be called.
        pair_size: numbers that it makes of each pair of query and key on the way to their score, by which an attention limits
            what it holds (``score_memory``); 0 leaves it without a limit.
    """

    pair_size: int = 0
    linear_keys: ClassVar[bool] = True
    content_based: ClassVar[bool] = True
    is_separable: ClassVar[bool] = False
    is_product: ClassVar[bool] = False

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.query_size = query_size
        self.memory_size = memory_size

    def project_keys(self, states: Tensor) -> Tensor:
        """Turn encoder states (batch, source_len, memory_size) into keys (batch, source_len, key_size)."""
        return states

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score queries (batch, target_len, query_size) against keys; returns (batch, target_len, source_len)."""

    def as_product(self, query: Tensor) -> tuple[Tensor, float]:
        """Return vectors (batch, target_len, key_size) and a number: e is the number times their products with the keys."""
        raise TypeError(f"the score {type(self).__name__} is no product of query and key")


def validate_score(score: Score) -> None:
    """Try what a score promises, on a few numbers: a logit of every query and key, by themselves, from which it learns.

    What depends on other queries would see tokens that are not written yet; on other keys, padding; on other examples of the
    batch, what stands beside it by chance.

    Raises:
        UserError: it does not keep its promise.
    """
    name = type(score).__name__
    if not isinstance(score.pair_size, int) or score.pair_size < 0:
        raise UserError(f"the score {name} has a pair_size of {score.pair_size!r}: it is a whole number, 0 or above")
    draw = torch.Generator().manual_seed(0)
    query = torch.randn(2, 3, score.query_size, generator=draw)
    positions = min(4, score.max_length or 4)
    states = torch.randn(2, positions, score.memory_size, generator=draw)
    try:
        with preserve_state(score):
            with torch.enable_grad():
                trained = score.train()(query, score.project_keys(states))
                if not isinstance(trained, Tensor):
                    raise UserError(f"the score {name} gives {type(trained).__name__}: forward returns one tensor, the logits")
                unused = find_unreached(score, trained)
            score.eval()
            keys = score.project_keys(states)
            logits = score(query, keys)
            again = score(query, keys)
            parts = {
                "queries": (score(query[:, :1], keys), logits[:, :1]),
                "keys": (score(query, keys[:, :-1]), logits[..., :-1]),
                "examples of the batch": (score(query[:1], keys[:1]), logits[:1]),
            }
            means = score.project_keys(states.mean(0, keepdim=True)), keys.mean(0, keepdim=True)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"the score {name} cannot score queries (2, 3, {score.query_size}): {locate(error, score)}") from error
    for found in (logits, trained):
        if found.shape != (2, 3, positions) or found.dtype != query.dtype:
            raise UserError(
                f"the score {name} gives {found.dtype} {tuple(found.shape)} for 2 examples of 3 queries and {positions} keys: "
                "logits are of the queries' type and (batch, target_len, source_len)"
            )
    if not bool(logits.isfinite().all()):
        raise UserError(f"the score {name} gives logits that are no finite numbers for queries and keys from N(0, 1)")
    if not are_close(again, logits):
        raise UserError(f"the score {name} gives other logits for the same queries and keys, also where nothing is trained")
    if unused:
        raise UserError(f"no gradient reaches {unused} of the score {name}, which would not learn")
    for others, (alone, among) in parts.items():
        if not are_close(alone, among):
            raise UserError(f"the score {name} of a query and a key changes with the other {others}, which it must not see")
    if score.linear_keys and not are_close(*means):
        raise UserError(
            f"the key of a mean is not the mean of the keys that the score {name} projects, so that a history could not add to "
            "them: let its class say linear_keys = False"
        )


def find_unreached(module: nn.Module, output: Tensor) -> str | None:
    """Return the name of a parameter that the output of a module does not depend on; None if there is none."""
    learned = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    if not learned or not output.requires_grad:
        return next(iter(learned), None)
    gradients = torch.autograd.grad(output.sum(), [*learned.values()], allow_unused=True)
    return next((name for name, gradient in zip(learned, gradients, strict=True) if gradient is None), None)


MEBIBYTE = 2**20


def score_within(score: Score, query: Tensor, keys: Tensor, mebibytes: float) -> Tensor:
    """Score queries against keys with a limit on what is held at a time of the numbers made of each pair.

    Beyond the limit the queries are scored some at a time, one at least, and what was made of their pairs is made again for the
    gradients (Chen et al. 2016, "Training deep nets with sublinear memory cost"). Scores and gradients stay what they are.

    Args:
        score: scores each query by itself.
        query: (batch, target_len, query_size).
        keys: (batch, source_len, key_size).
        mebibytes: the limit.

    Returns:
        (batch, target_len, source_len).
    """
    row = len(query) * keys.shape[1] * score.pair_size * query.element_size()
    rows = max(int(mebibytes * MEBIBYTE) // row, 1) if row else query.shape[1]
    if rows >= query.shape[1]:
        logits: Tensor = score(query, keys)
        return logits
    parts = torch.split(query, rows, dim=1)
    return torch.cat([checkpoint(score, part, keys, use_reentrant=False) for part in parts], dim=1)


class EqualSizes(Score, ABC):
    """A score that compares vectors of one size.

    Raises:
        UserError: the query and the encoder states differ in size.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        if query_size != memory_size:
            raise UserError(
                f"the score {type(self).__name__} compares vectors of one size, but query size {query_size} does not match key "
                f"size {memory_size}: make them equal, or choose a score that compares different sizes, such as general"
            )
