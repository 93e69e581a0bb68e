"""Which parts of an attention go together: one table of what is refused, since a part would have no effect or never learn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from attnlab.attention.histories import History, Temporal
from attnlab.attention.keys import Keys
from attnlab.attention.mechanism import AttentionMechanism
from attnlab.attention.normalizers import Normalizer, StatelessNormalizer
from attnlab.attention.scores import Score
from attnlab.attention.windows import Region, Window
from attnlab.errors import UserError, attempt


@dataclass(frozen=True)
class Composition:
    """What the rules are about; None stands for what is absent."""

    score: Score | None = None
    window: Window | None = None
    normalizer: Normalizer | None = None
    keys: Keys | None = None
    history: History | None = None
    chunk: Normalizer | None = None
    """What normalises a part of the weights, such as those inside a chunk."""
    query: Sequence[str] | None = None
    """What the query of several heads is made of."""
    comparison: str | None = None
    """What needs a score that compares, in words."""
    outer: AttentionMechanism | None = None
    """An attention around another."""
    inner: AttentionMechanism | None = None
    """The attention inside it."""

    @property
    def ignores_score(self) -> bool:
        """Whether the normalizer reads no logits."""
        return self.normalizer is not None and not self.normalizer.reads_logits

    @property
    def ignores_keys(self) -> bool:
        """Whether the score does not look at keys."""
        return self.score is not None and not self.score.content_based

    @property
    def learned_keys(self) -> bool:
        """Whether keys are made with parameters."""
        return self.keys is not None and any(True for _ in self.keys.parameters())

    @property
    def changed_keys(self) -> bool:
        """Whether the history adds to the keys."""
        return self.history is not None and self.history.changes_keys

    @property
    def biased(self) -> bool:
        """Whether the window adds to the logits."""
        return self.window is not None and _example(self.window).bias is not None

    @property
    def weighed(self) -> bool:
        """Whether the window multiplies the weights."""
        return self.window is not None and _example(self.window).prior is not None


def _example(window: Window) -> Region:
    """Ask a window for the region of one query on one position."""
    query, mask = torch.zeros(1, 1, window.query_size), torch.ones(1, 1, dtype=torch.bool)
    with attempt(f"the window {type(window).__name__}", window):
        region: Region = window(query, mask, torch.zeros(1, dtype=torch.long))
    return region


class Rule(NamedTuple):
    """A combination that is refused."""

    applies: Callable[[Composition], bool]
    message: str
    """With the names of the parts in braces."""


RULES = (
    Rule(
        lambda parts: parts.ignores_score and parts.history is not None and parts.history.sequential,
        "a {normalizer} normalizer ignores the score, so that a {history} history would have no effect: choose no history, or "
        "another normalizer",
    ),
    Rule(
        lambda parts: parts.ignores_score and parts.biased,
        "a {normalizer} normalizer ignores the score, so that a {window} window, which adds to it, would have no effect: "
        "choose another window, or another normalizer",
    ),
    Rule(
        lambda parts: parts.ignores_score and parts.learned_keys,
        "a {normalizer} normalizer ignores the score, so that nothing would compare {keys} keys and their parameters never "
        "learn: choose keys without parameters, or another normalizer",
    ),
    Rule(
        lambda parts: parts.ignores_score and parts.comparison is not None,
        "a {normalizer} normalizer ignores the score, but {comparison} need one that compares: choose another normalizer",
    ),
    Rule(
        lambda parts: parts.ignores_keys and parts.learned_keys,
        "a {score} score does not look at keys, so that the parameters of {keys} keys would never learn: choose keys without "
        "parameters, or a score that compares, such as general",
    ),
    Rule(
        lambda parts: parts.ignores_keys and parts.changed_keys,
        "a {score} score does not look at keys, which is where a {history} history enters: choose no history, or a score that "
        "compares, such as additive",
    ),
    Rule(
        lambda parts: parts.ignores_keys and parts.comparison is not None,
        "a {score} score does not look at keys, but {comparison} need one that compares: choose another, such as general",
    ),
    Rule(
        lambda parts: parts.score is not None and parts.score.is_separable and isinstance(parts.history, Temporal),
        "a {score} score gives a position the same logit at every token, of which a {history} history makes equal weights: "
        "choose no history, or a score that compares, such as additive",
    ),
    Rule(
        lambda parts: parts.changed_keys and parts.score is not None and not parts.score.linear_keys,
        "a {score} score does not project its keys linearly, so that a {history} history cannot add to them: choose no "
        "history, or another score, such as additive",
    ),
    Rule(
        lambda parts: parts.chunk is not None and not isinstance(parts.chunk, StatelessNormalizer),
        "a {chunk} normalizer reads more than scores, so that it cannot normalise some of them by itself: choose another, such "
        "as softmax",
    ),
    Rule(
        lambda parts: parts.query is not None and "state" not in parts.query,
        "{comparison} project the decoder's state, which must be a part of their query",
    ),
    Rule(
        lambda parts: parts.inner is not None and not parts.inner.context_size,
        "{outer} around an attention without a context would hide the source from the decoder: choose another attention inside",
    ),
)


KERNEL_RULES = (
    Rule(lambda parts: parts.score is None or not parts.score.is_product, "the score {score} is no product of query and key"),
    Rule(
        lambda parts: parts.normalizer is None or parts.normalizer.softmax_temperature is None,
        "a {normalizer} normalizer is no softmax",
    ),
    Rule(lambda parts: parts.history is not None and parts.history.sequential, "a {history} history changes at every token"),
    Rule(lambda parts: parts.weighed, "a {window} window multiplies the weights after the softmax"),
)
"""What keeps a composition from being a softmax over products, which kernels compute."""


def kernel_obstacle(parts: Composition) -> str | None:
    """Return why no kernel computes a composition, or None where one may."""
    return _broken(KERNEL_RULES, parts)


def validate_composition(parts: Composition) -> None:
    """Refuse parts of which one would have no effect or never learn.

    Raises:
        UserError: the message of the first rule that applies.
    """
    message = _broken(RULES, parts)
    if message is not None:
        raise UserError(message)


def _broken(rules: Sequence[Rule], parts: Composition) -> str | None:
    """Return the message of the first rule that applies, or None."""
    for rule in rules:
        if rule.applies(parts):
            names = {name: part if isinstance(part, str) else type(part).__name__ for name, part in vars(parts).items()}
            return rule.message.format_map(names)
    return None
