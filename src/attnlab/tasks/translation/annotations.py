"""Annotations: what a prediction must show of one phenomenon, and how that is told from its words."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from typing_extensions import override

Forms = tuple[str, ...]
"""Words, any one of which is meant."""
Verdict = Literal["right", "wrong", "not reached"]
"""Not reached is an annotation whose word the prediction lacks in all its forms: it shows nothing of the phenomenon."""

VERB_POSITION, CASE, ADJECTIVE_ENDING = "verb position", "case", "adjective ending"
PRONOUN_GENDER, SEPARABLE_PREFIX, COPY = "pronoun gender", "separable prefix", "copy"
"""Phenomena: what annotations are about, and what their metrics are called."""
NEAR = 5
"""How many words before a noun its article is looked for: a number, two adjectives and one to spare."""


class Words:
    """The words and punctuation marks of a line of text, in order.

    Args:
        line: of text.
        lowercase: whether the text is in lower case throughout, so that case tells nothing.
    """

    def __init__(self, line: str, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase
        self.forms = re.findall(r"\w+|[^\w\s]", line.lower() if lowercase else line)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.forms)

    def find(self, forms: Forms) -> list[int]:
        """Return the positions of all words that have one of some forms; the first may have a capital letter besides."""
        sought = {form.lower() for form in forms} if self.lowercase else {*forms}
        found = [position for position, form in enumerate(self.forms) if form in sought]
        if self.forms and not self.lowercase and 0 not in found and _lower_first(self.forms[0]) in sought:
            found.insert(0, 0)
        return found

    def is_mark(self, position: int) -> bool:
        """Tell whether a punctuation mark stands at a position; the end of the line counts as one."""
        return position >= len(self) or not re.match(r"\w", self.forms[position])


def _lower_first(form: str) -> str:
    return form[0].lower() + form[1:]


@dataclass(frozen=True)
class Annotation(ABC):
    """What a prediction must show of one phenomenon.

    Attributes:
        phenomenon: its name.
    """

    phenomenon: str

    kind: ClassVar[str]

    @abstractmethod
    def judge(self, words: Words) -> Verdict:
        """Tell whether a prediction shows it."""


@dataclass(frozen=True)
class Occurrence(Annotation):
    """A word occurs in one of its right forms.

    Attributes:
        right: these.
        forms: all forms of the word.
        times: how many words of the right forms there must be, since the target may have several.
    """

    right: Forms
    forms: Forms
    times: int = 1

    kind = "occurrence"

    @override
    def judge(self, words: Words) -> Verdict:
        if len(words.find(self.right)) >= self.times:
            return "right"
        return "wrong" if words.find(self.forms) else "not reached"


@dataclass(frozen=True)
class Agreement(Annotation):
    """A noun has its right article: the last one before it, with no punctuation mark and only a few words between.

    Attributes:
        right: forms of the article.
        articles: all forms of the article.
        noun: right forms of the noun.
        nouns: all forms of the noun.
        times: how many such nouns there must be.
    """

    right: Forms
    articles: Forms
    noun: Forms
    nouns: Forms
    times: int = 1

    kind = "agreement"

    @override
    def judge(self, words: Words) -> Verdict:
        articles, agreeing, nouns = ({*words.find(forms)} for forms in (self.articles, self.right, self.noun))
        pairs = [(_last_before(place, articles, words), place) for place in words.find(self.nouns)]
        pairs = [(article, place) for article, place in pairs if article is not None]
        right = sum(article in agreeing and place in nouns for article, place in pairs)
        return "right" if right >= self.times else "wrong" if pairs else "not reached"


def _last_before(place: int, articles: set[int], words: Words) -> int | None:
    for position in range(place - 1, max(-1, place - 1 - NEAR), -1):
        if words.is_mark(position):
            return None
        if position in articles:
            return position
    return None


@dataclass(frozen=True)
class Order(Annotation):
    """A verb stands behind some words of its clause and before others.

    Those that the prediction lacks do not count. If it lacks all of them, something must stand on the side where they belong.

    Attributes:
        verb: its forms.
        before: words that stand before it, each by its forms.
        after: words that stand behind it.
        is_last: whether it ends its clause: a punctuation mark follows.
    """

    verb: Forms
    before: tuple[Forms, ...]
    after: tuple[Forms, ...]
    is_last: bool

    kind = "order"

    @override
    def judge(self, words: Words) -> Verdict:
        places = words.find(self.verb)
        if not places:
            return "not reached"
        before, after = ([found for forms in side if (found := words.find(forms))] for side in (self.before, self.after))
        return "right" if any(self._fits(place, before, after, words) for place in places) else "wrong"

    def _fits(self, place: int, before: list[list[int]], after: list[list[int]], words: Words) -> bool:
        if self.is_last and not words.is_mark(place + 1):
            return False
        if not (before or after):
            has_room = place > 0 or not self.before
            return has_room and (place + 1 < len(words) - 1 or not self.after)
        return all(min(found) < place for found in before) and all(max(found) > place for found in after)


@dataclass(frozen=True)
class Split(Annotation):
    """A verb and, later, its prefix, which ends the clause: a punctuation mark follows.

    Attributes:
        verb: forms of the verb without its prefix.
        prefix: alone.
        times: how often the prefix must end a clause behind the verb.
    """

    verb: Forms
    prefix: str
    times: int = 1

    kind = "split"

    @override
    def judge(self, words: Words) -> Verdict:
        verbs = words.find(self.verb)
        if not verbs:
            return "not reached"
        return "right" if self.count(words) >= self.times else "wrong"

    def count(self, words: Words) -> int:
        """Return how often the prefix ends a clause behind the verb."""
        verbs, prefixes = words.find(self.verb), words.find((self.prefix,))
        return sum(words.is_mark(place + 1) and place > verbs[0] for place in prefixes) if verbs else 0


KINDS: dict[str, Callable[..., Annotation]] = {kind.kind: kind for kind in (Occurrence, Agreement, Order, Split)}


def format_annotations(annotations: Sequence[Annotation]) -> str:
    """Return the annotations of one example as a line of JSON: a list for each, its kind and then its fields in order."""
    rows = [[annotation.kind, *vars(annotation).values()] for annotation in annotations]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def parse_annotations(line: str) -> tuple[Annotation, ...]:
    """Read what :func:`format_annotations` wrote."""
    return tuple(KINDS[kind](*map(_freeze, fields)) for kind, *fields in json.loads(line))


def _freeze(value: object) -> object:
    return tuple(map(_freeze, value)) if isinstance(value, list) else value
