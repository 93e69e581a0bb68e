"""What pronouns and possessives stand for, and whether a reader can tell."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from attnlab.tasks.translation.grammar.clauses import Clause
from attnlab.tasks.translation.grammar.inflection import PRONOUN
from attnlab.tasks.translation.grammar.lexicon import ANIMATE, PERSON
from attnlab.tasks.translation.grammar.phrases import ENGLISH_PRONOUNS, Coordination, NounPhrase, Phrase, Pronoun
from attnlab.tasks.translation.grammar.sentences import Sentence


@dataclass(frozen=True, eq=False)
class Mention:
    """A phrase in its place.

    Attributes:
        phrase: what is said.
        case: its German case; "own" if it is meant as the owner that a possessive takes up.
        kinds: of noun that could stand there.
        beside: the other phrases of its clause, which a pronoun there cannot mean (the man sees him).
    """

    phrase: Phrase
    case: str
    kinds: frozenset[str]
    beside: tuple[Phrase, ...]


def refer(about: Phrase) -> Pronoun:
    """Return the pronoun that takes a phrase up."""
    known = resolve(about)
    return Pronoun(plural=known.plural, gender=known.gender, natural=known.natural, kind=known.kind, antecedent=known)


def refers(phrase: Phrase) -> bool:
    """Tell whether a pronoun can take a phrase up."""
    return not isinstance(phrase, NounPhrase) or phrase.determiner not in ("no", "every")


def resolve(phrase: Phrase) -> Phrase:
    """Return what a phrase stands for: itself, or a pronoun's antecedent."""
    return phrase.antecedent if isinstance(phrase, Pronoun) else phrase


def english_pronoun(phrase: Phrase) -> str:
    """Return the English pronoun that would take a phrase up."""
    return ENGLISH_PRONOUNS[phrase.english_column][0]


def are_clear(clauses: Sequence[Clause]) -> bool:
    """Tell whether each pronoun and possessive of the last main clause has one antecedent alone, in both languages.

    Another phrase would be one if it stands before the pronoun, in either language, or before what that stands for, agrees
    with it in either language, and is of a kind that the verb could have there.
    """
    said = list(mentions(clauses[-1]))
    referring = [m for m in said if m.case == "own" or isinstance(m.phrase, Pronoun)]
    if not referring:
        return True
    everything = [list(mentions(clause)) for clause in clauses[:-1]] + [said]
    doubtful = [
        (pronoun, other)
        for pronoun in referring
        for other in _since(resolve(_meant(pronoun)), everything)
        if _could_mean(pronoun, other)
    ]
    if not doubtful:
        return True
    sentence = Sentence(clauses=list(clauses), joints=[("and", "und")] * (len(clauses) - 1))
    places = [_places(sentence, language) for language in ("en", "de")]
    return not any(_comes_first(other, pronoun, known) for pronoun, other in doubtful for known in places)


def mentions(clause: Clause, head: Phrase | None = None, *, subject: bool = True) -> Iterator[Mention]:
    """List the phrases of a clause and of all within it, but those of place.

    Args:
        clause: which.
        head: what it is a relative clause to.
        subject: whether its subject is said.
    """
    verb = clause.verb
    roles: list[tuple[Phrase, str, frozenset[str]]] = []
    if subject and clause.subject is not head:
        kinds = verb.subjects if verb is not None else clause.predicate.kinds if clause.predicate is not None else ANIMATE
        roles.append((clause.subject, "nom", kinds))
    for role, phrase in clause.objects.items():
        if verb is not None and role != "to":
            kinds = PERSON if (verb.frame, role) == ("dat_acc", "dat") else verb.objects
            roles.append((phrase, verb.case if role == "prep" else role, kinds))
    beside = (clause.subject, *clause.objects.values(), *([head] if head else []))
    for phrase, case, kinds in roles:
        yield from _within(phrase, case, kinds, beside)
    if clause.complement is not None and verb is not None:
        yield from mentions(clause.complement, subject=verb.frame != "infinitive")
    if clause.adjunct is not None:
        yield from mentions(clause.adjunct)


def _within(phrase: Phrase, case: str, kinds: frozenset[str], beside: tuple[Phrase, ...]) -> Iterator[Mention]:
    yield Mention(phrase, case, kinds, beside)
    if isinstance(phrase, Coordination):
        for part in (phrase.first, phrase.second):
            yield from _within(part, case, kinds, (*beside, phrase))
    if isinstance(phrase, NounPhrase):
        if phrase.determiner == "own":
            yield Mention(phrase, "own", PERSON if phrase.owner is not None and phrase.owner.kind in PERSON else ANIMATE, ())
        for inner in (phrase.possessor, phrase.companion):
            if inner is not None:
                yield from _within(inner, "dat", frozenset(), ())
        if phrase.relative is not None:
            yield from mentions(phrase.relative, phrase)


def _meant(mention: Mention) -> Phrase:
    owned = mention.phrase
    if mention.case == "own" and isinstance(owned, NounPhrase) and owned.owner is not None:
        return owned.owner
    return owned


def _since(meant: Phrase, said: Sequence[list[Mention]]) -> Iterable[Mention]:
    """Return what is said from the main clause on in which a phrase is said first."""
    start = next((i for i, part in enumerate(said) if any(m.phrase is meant for m in part)), 0)
    return [mention for part in said[start:] for mention in part]


def _places(sentence: Sentence, language: str) -> dict[object, int]:
    places: dict[object, int] = {}
    for position, word in enumerate(sentence.say(language)):
        for key in word.keys:
            places.setdefault(key, position)
    return places


def _place(phrase: Phrase, places: dict[object, int]) -> int:
    return _place(phrase.first, places) if isinstance(phrase, Coordination) else places[phrase]


def _could_mean(pronoun: Mention, other: Mention) -> bool:
    """Tell whether a pronoun could mean another phrase than it does, wherever that stands."""
    if other.case == "own" or isinstance(other.phrase, Pronoun):
        return False
    meant = resolve(_meant(pronoun))
    known = [meant, pronoun.phrase, *pronoun.beside, *([meant.first, meant.second] if isinstance(meant, Coordination) else [])]
    return other.phrase not in known and other.phrase.kind in pronoun.kinds and _agree(pronoun, other.phrase)


def _comes_first(other: Mention, pronoun: Mention, places: dict[object, int]) -> bool:
    """Tell whether a reader has met another phrase before the pronoun, or must wait for what it means."""
    at = places[(pronoun.phrase, "determiner")] if pronoun.case == "own" else places[pronoun.phrase]
    return _place(other.phrase, places) < at or at < _place(resolve(_meant(pronoun)), places)


def _agree(pronoun: Mention, phrase: Phrase) -> bool:
    meant = _meant(pronoun)
    if english_pronoun(meant) == english_pronoun(phrase):
        return True
    if pronoun.case == "own":
        return (meant.column in "fp") == (phrase.column in "fp")
    if pronoun.case == "nom" and meant.plural != phrase.plural:
        return False
    table = PRONOUN[pronoun.case]
    return table[meant.column] == table[phrase.column]
