"""What a clause tells of: whether it happens once or often, and which time goes with it."""

from attnlab.tasks.translation.grammar.clauses import Clause
from attnlab.tasks.translation.grammar.lexicon import ANIMATE, Time
from attnlab.tasks.translation.grammar.phrases import NounPhrase, Phrase


def is_event(clause: Clause) -> bool:
    """Tell whether something happens."""
    return clause.verb is not None and not clause.verb.stative and not clause.negated


def ends_in_clause(clause: Clause) -> bool:
    """Tell whether an object ends in a relative clause, so that what came after it could belong to that."""
    return any(isinstance(phrase, NounPhrase) and phrase.relative is not None for phrase in clause.objects.values())


def can_repeat(clause: Clause) -> bool:
    """Tell whether it can happen often: nobody often throws away the lamp, or does not often."""
    done = clause.complement if clause.verb is not None and clause.verb.frame == "infinitive" else clause
    if clause.negated or done is None or done.verb is None:
        return False
    said = [phrase for phrase in done.objects.values() if isinstance(phrase, NounPhrase)]
    if any(phrase.number or phrase.determiner in ("every", "some", "many") for phrase in said):
        return False
    # the same person can be called often, but not the same cake eaten
    free = done.verb.objects <= ANIMATE or "to" in done.objects
    if free:
        return True
    told = [phrase for role, phrase in done.objects.items() if role != "dat"]
    return not any(phrase.is_definite or (isinstance(phrase, NounPhrase) and phrase.relative) for phrase in told)


def _is_counted(phrase: Phrase) -> bool:
    return isinstance(phrase, NounPhrase) and phrase.number is not None


def fits(time: Time, clause: Clause) -> bool:
    """Keep "every day" from what happens once, and years from numbers, which they could meet."""
    if time.repeats:
        return can_repeat(clause)
    return not (time.is_year and any(_is_counted(phrase) for phrase in (clause.subject, *clause.objects.values())))
