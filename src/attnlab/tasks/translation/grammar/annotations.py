"""What a translation of a sentence must show of each phenomenon, known from how the sentence was derived."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from attnlab.tasks.translation.annotations import (
    ADJECTIVE_ENDING,
    CASE,
    COPY,
    PRONOUN_GENDER,
    SEPARABLE_PREFIX,
    VERB_POSITION,
    Agreement,
    Annotation,
    Forms,
    Occurrence,
    Order,
    Split,
    Words,
)
from attnlab.tasks.translation.grammar.clauses import AUXILIARY, BE, Clause
from attnlab.tasks.translation.grammar.derivation import ClausePlace, list_clauses
from attnlab.tasks.translation.grammar.inflection import (
    CASES,
    CONTRACTED,
    DEFINITE,
    DER_WORD,
    EIN_WORD,
    PRONOUN,
    STRONG,
    noun_form,
    preterite,
)
from attnlab.tasks.translation.grammar.lexicon import MODALS, Adjective, Noun, Verb, lexicon
from attnlab.tasks.translation.grammar.phrases import (
    ENGLISH_PRONOUNS,
    Coordination,
    Name,
    NounPhrase,
    Phrase,
    Pronoun,
    Who,
    Word,
)
from attnlab.tasks.translation.grammar.sentences import Sentence

PREFIXES = tuple(dict.fromkeys(verb.prefix for verb in lexicon().verbs if verb.prefix))
PERSONAL: dict[str, dict[str, Forms]] = {
    "en": {column: forms[:2] for column, forms in ENGLISH_PRONOUNS.items()},
    "de": {column: tuple(dict.fromkeys(PRONOUN[case][column] for case in ("nom", "acc", "dat"))) for column in "mfnp"},
}
"""Personal pronouns by gender or plural, in any case."""
ENGLISH_OWN = {column: forms[2] for column, forms in ENGLISH_PRONOUNS.items()}
CONTRACTIONS = {contracted: article for (_, article), contracted in CONTRACTED.items()}
DEFINITES = tuple(dict.fromkeys(form for row in DEFINITE.values() for form in row.values())) + tuple(CONTRACTIONS)
STEMS: dict[str, tuple[Forms, dict[str, dict[str, str]]]] = {
    "this": (("dies",), DER_WORD),
    "every": (("jed",), DER_WORD),
    "some": (("einig",), STRONG),
    "many": (("viel",), STRONG),
    "a": (("ein", "kein"), EIN_WORD),
    "no": (("kein", "ein"), EIN_WORD),
    "my": (("mein",), EIN_WORD),
    "own": (("sein", "ihr"), EIN_WORD),
}
"""German stems of a determiner, and its endings; "not a" is "kein"."""


def list_annotations(sentence: Sentence, language: str) -> tuple[Annotation, ...]:
    """Return the annotations of a sentence in one language.

    They are about words that the derivation says there. A prediction that differs elsewhere, in another article, tense or noun,
    is still judged by what it shows of the phenomenon.

    Args:
        sentence: the derivation.
        language: "en" or "de".
    """
    said = sentence.say(language)
    found: list[Annotation] = []
    for place in list_clauses(sentence):
        found += _of_clause(place, said, language)
    places = {key: position for position, word in reversed([*enumerate(said)]) for key in word.keys}
    for position, word in enumerate(said):
        form = word.form if position else word.form[0].lower() + word.form[1:]
        for key in word.keys:
            found += _of_any(word.form, key, language)
            if isinstance(key, tuple) and isinstance(key[0], NounPhrase):
                phrase, part = key
                noun = said[places[phrase]].form
                found += _of_english(phrase, part) if language == "en" else _of_german(phrase, part, form, noun)
        if word.form.isdigit():
            found.append(Occurrence(COPY, (word.form,), (word.form,)))
    return tuple(_count(found, Words(" ".join(word.form for word in said))))


def _count(annotations: Sequence[Annotation], target: Words) -> Iterator[Annotation]:
    """Tell apart annotations that the same words fulfil: each asks for one word more than the one before it.

    The last asks for as many as the target has, so that a word which is there for another reason fulfils none.
    """
    alike, seen = Counter(annotations), Counter[Annotation]()
    for annotation in annotations:
        seen[annotation] += 1
        if isinstance(annotation, Occurrence):
            yield replace(annotation, times=len(target.find(annotation.right)) - alike[annotation] + seen[annotation])
        elif isinstance(annotation, Agreement):
            yield replace(annotation, times=seen[annotation])
        elif isinstance(annotation, Split):
            yield replace(annotation, times=annotation.count(target))
        else:
            yield annotation


# Words and phrases


def _of_any(form: str, key: object, language: str) -> Iterator[Annotation]:
    match key:
        case Name() if form != "'s":
            forms = _head_forms(key, language)
            yield Occurrence(COPY, forms, forms)
        case Pronoun():
            column = key.english_column if language == "en" else key.column
            yield Occurrence(PRONOUN_GENDER, PERSONAL[language][column], _any_pronoun(language))


def _of_english(phrase: NounPhrase, part: object) -> Iterator[Annotation]:
    if part == "determiner" and phrase.determiner == "own" and phrase.owner is not None:
        own = ENGLISH_OWN[phrase.owner.english_column]
        forms = _noun_forms(phrase.noun, "en")
        yield Agreement(PRONOUN_GENDER, (own,), tuple(ENGLISH_OWN.values()), forms, forms)


def _of_german(phrase: NounPhrase, part: object, form: str, noun: str) -> Iterator[Annotation]:
    if isinstance(part, Adjective):
        yield Occurrence(ADJECTIVE_ENDING, (form,), _inflect((part.stem,), STRONG))
    elif part == "determiner":
        nouns = _noun_forms(phrase.noun, "de")
        if phrase.determiner == "the":
            yield Agreement(CASE, _definite(CONTRACTIONS.get(form, form)), DEFINITES, (noun,), nouns)
            return
        stems, table = STEMS[phrase.determiner]
        stem = next(stem for stem in stems if form.startswith(stem))
        articles = _inflect(stems, table)
        yield Agreement(CASE, tuple(s + form.removeprefix(stem) for s in stems), articles, (noun,), nouns)
        if phrase.determiner == "own":
            yield Agreement(PRONOUN_GENDER, _inflect((stem,), table), articles, nouns, nouns)


def _definite(article: str) -> Forms:
    return (article, *(form for form, own in CONTRACTIONS.items() if own == article))


def _inflect(stems: Forms, table: dict[str, dict[str, str]]) -> Forms:
    endings = dict.fromkeys(ending for row in table.values() for ending in row.values())
    return tuple(stem + ending for stem in stems for ending in endings)


# Clauses


def _of_clause(place: ClausePlace, said: Sequence[Word], language: str) -> Iterator[Annotation]:
    clause = place.clause
    verbs = [position for position, word in enumerate(said) if clause in word.keys]
    finite = [position for position, word in enumerate(said) if (clause, "finite") in word.keys]
    verb = (finite or verbs)[0]
    beside: dict[int, Forms] = {}
    for phrase in place.phrases:
        for part in (phrase.first, phrase.second) if isinstance(phrase, Coordination) else (phrase,):
            position = next(position for position, word in enumerate(said) if part in word.keys)
            beside[position] = _head_forms(part, language)
    adverbials: list[object] = [(clause, name) for name in ("frequency", "predicate", "asking")]
    if clause.time is not None:
        adverbials.append((clause, "time", len(clause.time.english) - 1))
    for key in adverbials:
        positions = [position for position, word in enumerate(said) if key in word.keys]
        if positions:
            form = said[positions[-1]].form
            beside[positions[-1]] = tuple(dict.fromkeys((form, form[0].lower() + form[1:])))
    if finite and verbs:
        beside[verbs[0]] = (said[verbs[0]].form,)
    if beside:
        before = tuple(forms for position, forms in sorted(beside.items()) if position < verb)
        after = tuple(forms for position, forms in sorted(beside.items()) if position > verb)
        is_last = language == "de" and place.role != "main"
        yield Order(VERB_POSITION, _verb_forms(place, language), before, after, is_last)
    if language == "de" and clause.verb is not None and clause.verb.prefix:
        yield _of_prefix(clause.verb, place)


def _of_prefix(verb: Verb, place: ClausePlace) -> Annotation:
    simple = _simple_forms(verb)
    whole = tuple(verb.prefix + form for form in simple)
    (infinitive,) = verb.zu_infinitive
    if place.role == "infinitive":
        right: Forms = (infinitive,)
    else:
        match place.clause.tense:
            case "perfect":
                right = (verb.de_participle,)
            case "future" | "modal":
                right = (verb.infinitive,)
            case _ if place.role == "main":
                return Split(SEPARABLE_PREFIX, simple, verb.prefix)
            case _:
                right = whole
    return Occurrence(SEPARABLE_PREFIX, right, (*simple, *whole, verb.de_participle, infinitive))


def _verb_forms(place: ClausePlace, language: str) -> Forms:
    """Return the forms of what is finite in a clause, or of its infinitive: in any number, and in present and past."""
    clause, verb = place.clause, place.clause.verb
    if verb is None:
        return tuple(form for tense in BE.values() for form in tense[language == "de"])
    if language == "en":
        return tuple(form.split()[0] for form in _english_forms(clause, verb, place.role))
    if place.role == "infinitive":
        return (verb.zu_infinitive[-1],)
    match clause.tense:
        case "perfect":
            return AUXILIARY[verb.auxiliary]
        case "future":
            return ("wird", "werden")
        case "modal":
            return MODALS["may" if clause.modal == "must" and clause.negated else clause.modal]
    simple = _simple_forms(verb)
    if place.role == "main" or not verb.prefix:
        return simple
    return tuple(prefix + form for prefix in PREFIXES for form in simple)  # whichever the prediction takes: it is about order


def _english_forms(clause: Clause, verb: Verb, role: str) -> Forms:
    if role != "infinitive":
        match clause.tense:
            case "perfect":
                return ("has", "have")
            case "future":
                return ("will",)
            case "modal":
                return ("want", "wants") if clause.modal == "want to" else (clause.modal,)
    return (verb.base, verb.third, verb.past)


def _simple_forms(verb: Verb) -> Forms:
    return (verb.present, verb.bare, *(preterite(verb, plural=plural) for plural in (False, True)))


def _head_forms(phrase: Phrase, language: str) -> Forms:
    """Return all forms of what a phrase is called by."""
    match phrase:
        case NounPhrase():
            return _noun_forms(phrase.noun, language)
        case Name():
            return (phrase.name,) if language == "en" else (phrase.name, f"{phrase.name}s")
        case Who():
            return ("who",) if language == "en" else ("wer",)
    return _any_pronoun(language)


def _noun_forms(noun: Noun, language: str) -> Forms:
    if language == "en":
        return tuple(form.split()[-1] for form in (noun.singular, noun.plural))
    return tuple(dict.fromkeys(noun_form(noun, case, plural=plural) for plural in (False, True) for case in CASES))


def _any_pronoun(language: str) -> Forms:
    return tuple(dict.fromkeys(form for forms in PERSONAL[language].values() for form in forms))
