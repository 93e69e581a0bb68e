"""Where spaces go between tokens: as learned from text, or where pieces of words are not marked as such."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

UNSPACED = frozenset({"bo", "ja", "km", "lo", "my", "th", "yue", "zh"})
"""Languages that are written without spaces between words."""
LONG_CODES = {
    **{"bod": "bo", "tib": "bo", "jpn": "ja", "khm": "km", "lao": "lo", "mya": "my", "bur": "my", "tha": "th"},
    **{"zho": "zh", "chi": "zh", "cmn": "zh", "kor": "ko"},
}
"""Codes of three letters, of the languages that are measured in a way of their own."""


def short_code(language: str) -> str:
    """Return the code of a language as ISO 639-1 has it, without its region: ``zh`` of ``zh_CN`` or ``zho``."""
    code = re.split("[-_]", language.lower())[0]
    return LONG_CODES.get(code, code)


def is_unspaced(language: str) -> bool:
    """Tell whether a language is written without spaces between words, by its code."""
    return short_code(language) in UNSPACED


def join_pieces(line: str, joiner: str) -> str:
    """Join the pieces of words in a line: those that end with ``joiner`` to what follows; the last of a line just loses it."""
    return re.sub(rf"{re.escape(joiner)}(?:\s+|$)", "", line)


class Spacing:
    """Joins tokens to text as a training text did: is there a space between this token and the next?

    The most frequent answer of the training text for the most specific evidence there is: the two tokens themselves; their
    kinds, where a plain word is like any other and a mark, or a clitic such as ``'s``, is itself; the kind of the left one
    and of the right one alone, each of which can forbid a space. A straight quotation mark opens and closes in turn.

    Args:
        votes: what was learned: :meth:`state`.
    """

    def __init__(self, votes: Mapping[str, int] | None = None) -> None:
        self._votes: Counter[str] = Counter(votes)

    @classmethod
    def learn(cls, sentences: Iterable[tuple[Sequence[str], Sequence[bool]]]) -> "Spacing":
        """Learn from sentences.

        Args:
            sentences: of each its tokens and, for each token, whether a space follows.
        """
        pairs: Counter[tuple[str, str, bool]] = Counter()
        for tokens, spaces in sentences:
            marked = list(_mark_quotes(tokens))
            pairs.update(zip(marked, marked[1:], spaces, strict=False))
        spacing = cls()
        for (left, right, space), count in pairs.items():
            for evidence in _evidence(left, right):
                spacing._votes[evidence] += count if space else -count
        return spacing

    def join(self, tokens: Sequence[str]) -> str:
        """Join the tokens of one sentence."""
        text = list(tokens[:1])
        for (left, right), token in zip(pairwise(_mark_quotes(tokens)), tokens[1:], strict=True):
            text.append(f" {token}" if self._space(*_evidence(left, right)) else token)
        return "".join(text)

    def state(self) -> dict[str, Any]:
        """Return what was learned, as plain containers: of two tokens only where their kinds would answer otherwise."""
        return {item: votes for item, votes in self._votes.items() if not item.startswith("=") or self._is_exception(item)}

    def _is_exception(self, pair: str) -> bool:
        _, *kinds = _evidence(*pair[1:].split("\n" if "\n" in pair else " "))
        votes = self._votes[pair]
        return votes != 0 and (votes > 0) != self._space("", *kinds)

    def _space(self, pair: str, kinds: str, left: str, right: str) -> bool:
        votes = self._votes
        decided = votes[pair] or votes[kinds]
        return decided > 0 if decided else votes[left] >= 0 and votes[right] >= 0


def _evidence(left: str, right: str) -> tuple[str, str, str, str]:
    """Name the evidence of two neighbours: the pair itself, their kinds, the left kind, the right kind."""
    kinds = [("a" if token.isalpha() else "0" if token.isdigit() else token) for token in (left, right)]
    between = "\n" if " " in left + right else " "  # some languages have tokens that hold a space, and none a line feed
    return f"={left}{between}{right}", f"~{kinds[0]} {kinds[1]}", f"<{kinds[0]}", f">{kinds[1]}"


def _mark_quotes(tokens: Iterable[str]) -> Iterator[str]:
    """Mark straight quotation marks as opening or closing."""
    seen: Counter[str] = Counter()
    for token in tokens:
        if token in {'"', "'"}:
            seen[token] += 1
            yield f"{token}{'(' if seen[token] % 2 else ')'}"
        else:
            yield token
