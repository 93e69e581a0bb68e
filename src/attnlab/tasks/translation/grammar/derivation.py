"""The clauses of a derivation, each with its place in the sentence."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from attnlab.tasks.translation.grammar.clauses import Clause
from attnlab.tasks.translation.grammar.phrases import Coordination, NounPhrase, Phrase
from attnlab.tasks.translation.grammar.sentences import Sentence

Role = Literal["main", "subordinate", "infinitive"]


class ClausePlace(NamedTuple):
    """A clause in its place.

    Attributes:
        clause: which.
        role: of a main clause, of a subordinate one (relative clauses among them), or of one whose verb is an infinitive.
        depth: how many clauses it is in.
        phrases: that it says itself: its subject, objects and place, but not the subject of an infinitive, nor what a relative
            pronoun stands for.
    """

    clause: Clause
    role: Role
    depth: int
    phrases: tuple[Phrase, ...]


def list_clauses(sentence: Sentence) -> Iterator[ClausePlace]:
    """Yield every clause of a sentence, the outer before the inner."""
    for clause in sentence.clauses:
        yield from _list(clause, "main", 0, has_subject=True)


def nesting(sentence: Sentence) -> int:
    """Return how many clauses the innermost clause is in: 0 where there are main clauses alone."""
    return max(place.depth for place in list_clauses(sentence))


def _list(clause: Clause, role: Role, depth: int, *, has_subject: bool) -> Iterator[ClausePlace]:
    phrases = (*((clause.subject,) if has_subject else ()), *clause.objects.values(), *((clause.place or ())[1:]))
    yield ClausePlace(clause, role, depth, phrases)
    for phrase in phrases:
        for noun in nouns(phrase):
            if isinstance(noun, NounPhrase) and noun.relative is not None:
                yield from _list(noun.relative, "subordinate", depth + 1, has_subject=noun.gap != "nom")
    if clause.complement is not None:
        is_infinitive = clause.verb is not None and clause.verb.frame == "infinitive"
        inner: Role = "infinitive" if is_infinitive else "subordinate"
        yield from _list(clause.complement, inner, depth + 1, has_subject=not is_infinitive)
    if clause.adjunct is not None:
        yield from _list(clause.adjunct, "subordinate", depth + 1, has_subject=True)


def nouns(phrase: Phrase) -> Iterator[Phrase]:
    """Yield a phrase and the phrases in it, but for what is joined: its parts alone."""
    if isinstance(phrase, Coordination):
        yield from nouns(phrase.first)
        yield from nouns(phrase.second)
        return
    yield phrase
    if isinstance(phrase, NounPhrase):
        for inner in (phrase.possessor, phrase.companion):
            if inner is not None:
                yield from nouns(inner)
