"""Where spaces go between tokens, learned from text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any


class Spacing:
    """Joins tokens to text as a training text did: is there a space between this token and the next?

    The most frequent answer of the training text for the most specific evidence there is: the two tokens themselves; their
    kinds, where a plain word is like any other and a mark, or a clitic such as ``'s``, is itself; the kind of the left one
    and of the right one alone, each of which can forbid a space. A straight quotation mark opens and closes in turn.
    """

    def __init__(self) -> None:
        self._votes: Counter[str] = Counter()

    def observe(self, tokens: Sequence[str], spaces: Sequence[bool]) -> None:
        """Learn from a sentence.

        Args:
            tokens: of the sentence.
            spaces: for each token, whether a space follows it.
        """
        for evidence, space in zip(_evidence(tokens), spaces, strict=False):
            for item in evidence:
                self._votes[item] += 1 if space else -1

    def join(self, tokens: Sequence[str]) -> str:
        """Join the tokens of one sentence."""
        text = list(tokens[:1])
        for evidence, token in zip(_evidence(tokens), tokens[1:], strict=True):
            text.append(f" {token}" if self._space(*evidence) else token)
        return "".join(text)

    def state(self) -> dict[str, Any]:
        """Return what was learned, as plain containers: of two tokens only where their kinds would answer otherwise."""
        return {item: votes for item, votes in self._votes.items() if not item.startswith("=") or self._is_exception(item)}

    def _is_exception(self, pair: str) -> bool:
        _, *kinds = _of_pair(*pair[1:].split(" "))
        votes = self._votes[pair]
        return votes != 0 and (votes > 0) != self._space("", *kinds)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Spacing":
        """Make one from :meth:`state`."""
        spacing = cls()
        spacing._votes = Counter(state)
        return spacing

    def _space(self, pair: str, kinds: str, left: str, right: str) -> bool:
        votes = self._votes
        decided = votes[pair] or votes[kinds]
        return decided > 0 if decided else votes[left] >= 0 and votes[right] >= 0


def _evidence(tokens: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """For every neighbouring pair of tokens: the pair itself, their kinds, the left kind, the right kind."""
    marked = list(_marked(tokens))
    return (_of_pair(left, right) for left, right in pairwise(marked))


def _of_pair(left: str, right: str) -> tuple[str, str, str, str]:
    kinds = [("a" if token.isalpha() else "0" if token.isdigit() else token) for token in (left, right)]
    return f"={left} {right}", f"~{kinds[0]} {kinds[1]}", f"<{kinds[0]}", f">{kinds[1]}"


def _marked(tokens: Iterable[str]) -> Iterator[str]:
    """Mark straight quotation marks as opening or closing."""
    seen: Counter[str] = Counter()
    for token in tokens:
        if token in {'"', "'"}:
            seen[token] += 1
            yield f"{token}{'(' if seen[token] % 2 else ')'}"
        else:
            yield token
