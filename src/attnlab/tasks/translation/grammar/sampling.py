"""Drawing sentences from the grammar."""

import random
from collections.abc import Iterable, Sequence

from attnlab.tasks.translation.grammar.clauses import Clause, Sentence
from attnlab.tasks.translation.grammar.lexicon import (
    ANIMATE,
    CITIES,
    FREQUENCIES,
    LOCATIVES,
    MODALS,
    NAMES,
    NUMBERS,
    PERSON,
    THINGS,
    Gender,
    Noun,
    Time,
    Verb,
    lexicon,
)
from attnlab.tasks.translation.grammar.phrases import ENGLISH_PRONOUNS, Coordination, Name, NounPhrase, Phrase, Pronoun, Who

REASONS = (("because", "weil"), ("although", "obwohl"))
CONJUNCTIONS = {
    "present": (*REASONS, ("if", "falls"), ("when", "wenn"), ("while", "während")),
    "past": (*REASONS, ("when", "als"), ("while", "während"), ("before", "bevor")),
}
"""By tense: when is wenn in the present and als in the past."""

COMPLEMENTS = {"that", "whether", "infinitive"}
NOW = ("present",) * 4 + ("perfect",) * 2 + ("future",) * 2 + ("modal",) * 3
WITHIN = ("present",) * 3 + ("past",) * 2 + ("perfect", "future", "modal")
"""Tenses of a clause that tells of now, and of one within it. Where a clause tells of the past, so do those within it."""


class Sampler:
    """Draws sentences.

    No sentence that it draws has two translations, in either direction. Where a phrase of time or place could belong to a
    relative clause at its left, it stands first in the sentence or is left out; where German could not tell the subject of a
    relative clause from its object (die Katze, die die Maus sieht), another is drawn.

    Args:
        generator: decides everything.
        depths: how deeply clauses and noun phrases may nest, one of which is drawn for each clause of a sentence.
        open_names: probability that a person's name is invented on the spot, so that no vocabulary holds it.
        joints: probability that one more clause is joined to a sentence.
    """

    def __init__(self, generator: random.Random, *, depths: Sequence[int], open_names: float, joints: float) -> None:
        self.random = generator
        self.depths = depths
        self.open_names = open_names
        self.joints = joints
        self.words = lexicon()
        tenses = {tense for time in self.words.times for tense in time.tenses}
        self._times = {tense: [time for time in self.words.times if tense in time.tenses] for tense in tenses}
        self._fitting: dict[tuple[frozenset[str], bool], dict[str, list[Verb]]] = {}
        self._past = False  # the clause being drawn tells of the past
        self._timed = False  # the main clause being drawn has a phrase of time somewhere
        self._used: set[str] = set()  # nouns and names of the main clause being drawn

    def sentence(self) -> Sentence:
        """Draw a sentence."""
        self._past = self._chance(0.4)
        if self._chance(0.1):
            return Sentence(clauses=[self._question()], question=True)
        clauses = [self._main()]
        joints = []
        while self._chance(self.joints) and len(clauses) < 5:
            about = clauses[-1].subject
            has_referent = not isinstance(about, NounPhrase) or about.determiner not in ("no", "every")
            clauses.append(self._main(self._pronoun(about, 0.3) if has_referent else None))
            joints.append(self.random.choice([("and", "und"), ("but", "aber")]))
        return Sentence(clauses=clauses, joints=joints)

    # Clauses

    def _main(self, subject: Phrase | None = None) -> Clause:
        self._start()
        depth = self.random.choice(self.depths)
        clause = self._clause(depth, subject=subject, fronting=True)
        if depth and clause.complement is None and clause.tense in CONJUNCTIONS and self._chance(0.35):
            self._adjoin(clause, depth - 1)
        if not clause.adjunct_first and not clause.fronted and self._chance(0.5):
            clause.fronted = "time" if clause.time else "place" if clause.place else ""
        return clause

    def _start(self) -> None:
        self._timed = False
        self._used.clear()

    def _question(self) -> Clause:
        self._start()
        drawn = self.random.random()
        if drawn < 0.2:
            return self._clause(0, subject=Who(plural=False, gender="m", natural="m", kind="person"))
        if drawn < 0.55:
            # yes or no: the finite verb is first, so let it be one of few, for the sake of words that are rare with a capital
            self._past = False
            return self._clause(0, tenses=("perfect", "future", "modal"))
        clause = self._clause(0)
        words = [("why", "warum")]
        if not clause.negated and clause.verb is not None:
            if not (clause.time or clause.frequency or clause.verb.stative):
                words.append(("when", "wann"))
            if clause.verb.places and clause.place is None:
                words.append(("where", "wo"))
        clause.asking = self.random.choice(words)
        return clause

    def _adjoin(self, clause: Clause, depth: int) -> None:
        """Add a subordinate clause, which may speak of the main clause's subject or object."""
        subject = self._pronoun(clause.subject, 0.4)
        given = None if subject else self._pronoun(clause.subject, 0.25)
        if subject is None and given is None:
            subject = self._anaphor(clause)
        tenses = (clause.tense,)
        if given is not None:
            takers = [v for v in self.words.verbs if v.frame in ("acc", "dat") and given.kind in v.objects]
            clause.adjunct = self._clause(depth, tenses=tenses, verb=self.random.choice(takers), given=given)
        else:
            clause.adjunct = self._clause(depth, subject=subject, tenses=tenses)
        adjunct = clause.adjunct
        are_events = all(c.verb is not None and not c.verb.stative and not c.negated for c in (clause, adjunct))
        clause.conjunction = self.random.choice(CONJUNCTIONS[clause.tense] if are_events else REASONS)
        looks_back = given is not None or (subject is not None and _english(subject) != _english(clause.subject))
        clause.adjunct_first = not clause.fronted and not looks_back and self._chance(0.4)

    def _anaphor(self, clause: Clause) -> Pronoun | None:
        """Perhaps take up an object, if its English pronoun is not the subject's."""
        for phrase in clause.objects.values():
            if isinstance(phrase, NounPhrase) and not clause.negated and phrase.determiner != "every" and self._chance(0.4):
                pronoun = _refer(phrase)
                if phrase.kind in ANIMATE | THINGS and _english(pronoun) != _english(clause.subject):
                    return pronoun
        return None

    def _clause(
        self,
        depth: int,
        *,
        subject: Phrase | None = None,
        tenses: Sequence[str] = NOW,
        verb: Verb | None = None,
        given: Phrase | None = None,
        fronting: bool = False,
    ) -> Clause:
        """Draw a clause.

        Args:
            depth: how deeply it may nest.
            subject: its subject, if that is known.
            tenses: to draw from, unless it tells of the past.
            verb: its verb, if that is known.
            given: its object, if that is known.
            fronting: whether a phrase of time may stand first.
        """
        tense = "past" if self._past else self.random.choice(tenses)
        told, self._past = self._past, tense == "past"
        clause = self._predicate(depth, subject, tense) if verb is None and tense in CONJUNCTIONS else None
        if clause is None:
            kinds = None if subject is None else {subject.kind}
            verb = verb or self._verb(kinds, complement=depth > 0)
            if verb.frame in COMPLEMENTS and tense != "past":
                tense = "present"
            elif verb.stative and tense == "modal":
                tense = "perfect"
            negated = self._chance(0.15)
            subject = subject or self._phrase(verb.subjects, depth, negated=negated, nobody=not negated)
            clause = Clause(subject=subject, verb=verb, tense=tense, negated=negated)
            if tense == "modal":
                clause.modal = self.random.choice([modal for modal in MODALS if not negated or modal not in ("can", "may")])
            self._fill(clause, depth, given)
            self._add_time(clause, fronting=fronting)
        self._past = told
        return clause

    def _predicate(self, depth: int, subject: Phrase | None, tense: str) -> Clause | None:
        """Perhaps draw a clause without a verb of its own; always about things, which do nothing."""
        if not (subject and subject.kind in THINGS) and not self._chance(0.15):
            return None
        negated = self._chance(0.15)
        subject = subject or self._phrase(ANIMATE | THINGS, depth, negated=negated)
        known = subject.antecedent if isinstance(subject, Pronoun) else subject
        taken = {adjective.rank for adjective in known.adjectives} if isinstance(known, NounPhrase) else set()
        fitting = [adjective for adjective in self.words.adjectives[subject.kind] if adjective.rank not in taken]
        return Clause(subject=subject, predicate=self.random.choice(fitting), tense=tense, negated=negated)

    def _add_time(self, clause: Clause, *, fronting: bool) -> None:
        """Perhaps say when or how often it happens."""
        if clause.verb is None or clause.verb.stative:
            return
        must_front = clause.complement is not None or _ends_in_clause(clause)
        if not self._timed and (fronting or not must_front) and self._chance(0.4):
            time = self.random.choice(self._times[clause.tense])
            if _fits(time, clause):
                self._timed = True
                clause.time = time
                # a year never ends a statement: spaCy would take "1964." for a German ordinal number
                clause.fronted = "time" if must_front or (fronting and time.is_year) else ""
        elif not clause.negated and self._chance(0.15):
            clause.frequency = self.random.choice(FREQUENCIES)

    def _fill(self, clause: Clause, depth: int, given: Phrase | None = None) -> None:
        """Give a verb what its frame takes, and perhaps a place."""
        verb = clause.verb
        assert verb is not None
        match verb.frame:
            case "acc" | "dat" | "prep":
                clause.objects[verb.frame] = given or self._phrase(
                    verb.objects, depth, owner=clause.subject, negated=clause.negated
                )
            case "dat_acc":
                clause.objects["dat"] = self._phrase(PERSON, 0, owner=clause.subject, negated=clause.negated)
                clause.objects["acc"] = self._phrase(verb.objects, depth, owner=clause.subject, negated=clause.negated)
            case "to":
                clause.objects["to"] = self._city() if self._chance(0.3) else self._place(verb.objects)
            case "that" | "whether":
                about = self._pronoun(clause.subject, 0.4)
                clause.complement = self._clause(depth - 1, subject=about, tenses=WITHIN)
            case "infinitive":
                kinds = {clause.subject.kind}
                clause.complement = Clause(subject=clause.subject, verb=self._verb(kinds, complement=False, stative=False))
                self._fill(clause.complement, depth - 1)
        if verb.places and not _ends_in_clause(clause) and self._chance(0.25):
            clause.place = (("in", "in"), self._city()) if self._chance(0.25) else self._locative()

    def _verb(self, subjects: Iterable[str] | None, *, complement: bool, stative: bool = True) -> Verb:
        """Draw a verb that any of some kinds of subject can have; the frame first, so that frames are equally frequent."""
        key = (frozenset(subjects or ()), complement)
        if key not in self._fitting:
            fitting: dict[str, list[Verb]] = {}
            self._fitting[key] = fitting
            for verb in self.words.verbs:
                if (not key[0] or verb.subjects & key[0]) and (complement or verb.frame not in COMPLEMENTS):
                    fitting.setdefault(verb.frame, []).append(verb)
        fitting = self._fitting[key]
        weights = {"none": 2.0, "acc": 5.0, "dat": 2.0, "that": 1.5}
        frame = self.random.choices(list(fitting), [weights.get(frame, 1.0) for frame in fitting])[0]
        return self.random.choice([verb for verb in fitting[frame] if stative or not verb.stative])

    # Phrases

    def _phrase(
        self,
        kinds: Iterable[str],
        depth: int,
        *,
        owner: Phrase | None = None,
        negated: bool = False,
        nobody: bool = False,
    ) -> Phrase:
        """Draw a noun phrase, a name or two phrases joined.

        Args:
            kinds: one of which it must be.
            depth: how deeply it may nest.
            owner: the subject of the clause whose object it is; None if it is a subject itself.
            negated: whether its clause is, so that it must not mean all, some or none.
            nobody: whether it may be negative: no man.
        """
        kind = self.random.choice(sorted(kinds))
        if depth > 0 and not negated and self._chance(0.1):
            first, second = (
                self._name() if kind == "person" and self._chance(0.3) else self._noun_phrase(kind, 0, plain=True)
                for _ in range(2)
            )
            return Coordination(first=first, second=second, plural=True, gender="n", natural="n", kind=kind)
        if kind == "person" and self._chance(0.3):
            return self._name()
        return self._noun_phrase(kind, depth, owner=owner, negated=negated, nobody=nobody)

    def _noun_phrase(
        self,
        kind: str,
        depth: int,
        *,
        owner: Phrase | None = None,
        negated: bool = False,
        nobody: bool = False,
        plain: bool = False,
    ) -> NounPhrase:
        """Draw a noun phrase, as in :meth:`_phrase`; a plain one has the simplest determiners."""
        noun = self._noun(kind)
        plural = self._chance(0.3)
        weights: dict[str, float] = {"the": 9, "this": 2}
        if plural and not negated and not plain:
            weights |= {"some": 1.5, "many": 1.5, "number": 3}
            if owner is not None:
                weights |= {"": 1.5}  # not in front, where the noun would have a capital in English, and be rare
        if not plural:
            weights |= {"a": 5}
            if not negated and not plain:
                weights |= {"every": 1}
            if nobody:
                weights |= {"no": 0.7}
        if noun.owned:
            weights |= {"my": 1.5}
            if owner is not None and not isinstance(owner, Who):
                weights |= {"own": 2.5}
        determiner = self.random.choices(list(weights), list(weights.values()))[0]
        phrase = NounPhrase(
            noun=noun, plural=plural, gender=noun.gender, natural=noun.natural, kind=kind, determiner=determiner
        )
        if determiner == "number":
            phrase.determiner, phrase.number = "", self.random.choice(NUMBERS)
        if determiner == "own":
            phrase.owner = owner
        count = self.random.choices([0, 1, 2], [0.52, 0.38, 0.1])[0]
        adjectives = {a.rank: a for a in self.random.sample(self.words.adjectives[kind], count)}
        phrase.adjectives = [adjectives[rank] for rank in sorted(adjectives)]
        if depth > 0:
            self._modify(phrase, depth)
        return phrase

    def _modify(self, phrase: NounPhrase, depth: int) -> None:
        """Put something after the noun, perhaps."""
        drawn = self.random.random()
        if drawn < 0.1 and phrase.determiner == "the" and phrase.noun.owned:
            phrase.possessor = self._name() if self._chance(0.4) else self._noun_phrase("person", 0, plain=True)
            if isinstance(phrase.possessor, NounPhrase) and phrase.possessor.determiner == "a":
                phrase.possessor.determiner = "the"
        elif drawn < 0.15 and phrase.kind == "person":
            phrase.companion = self._noun_phrase("tool", 0, plain=True)
        elif drawn < 0.48:
            self._relate(phrase, depth - 1)

    def _relate(self, phrase: NounPhrase, depth: int) -> None:
        """Add a relative clause in which the phrase is the subject, or an object in the accusative or the dative."""
        takers = [v for v in self.words.verbs if v.frame in ("acc", "dat") and phrase.kind in v.objects]
        acts = phrase.kind in ANIMATE
        if takers and (not acts or self._chance(0.5)):
            clause = self._clause(depth, tenses=WITHIN, verb=self.random.choice(takers), given=phrase)
            gap = next(iter(clause.objects))
            del clause.objects[gap]
            is_clear = gap == "dat" or not (phrase.is_plain and clause.subject.is_plain)
            if is_clear or phrase.plural != clause.subject.plural or not acts:
                phrase.gap, phrase.relative = gap, clause
        elif acts:
            phrase.relative = self._clause(depth, subject=phrase, tenses=WITHIN)

    def _pronoun(self, about: Phrase, probability: float) -> Pronoun | None:
        """Perhaps take up what was spoken of before."""
        if about.kind not in ANIMATE or not self._chance(probability):
            return None
        return _refer(about)

    def _noun(self, kind: str) -> Noun:
        """Draw a noun that the sentence has not used, if luck allows."""
        for _ in range(8):
            noun = self.random.choice(self.words.nouns[kind])
            if noun.singular not in self._used:
                break
        self._used.add(noun.singular)
        return noun

    def _name(self) -> Name:
        genders: list[Gender] = ["f", "m"]
        gender = self.random.choice(genders)
        for _ in range(8):
            name = self._invented() if self._chance(self.open_names) else self.random.choice(NAMES[gender])
            if name not in self._used:
                break
        self._used.add(name)
        return Name(name=name, plural=False, gender=gender, natural=gender, kind="person")

    def _invented(self) -> str:
        syllables = [
            self.random.choice("bdfgklmnprstvz") + self.random.choice("aeiou") for _ in range(self.random.randint(2, 4))
        ]
        return "".join(syllables).capitalize()

    def _city(self) -> Name:
        return Name(name=self.random.choice(CITIES), plural=False, gender="n", natural="n", kind="place")

    def _place(self, kinds: Iterable[str]) -> NounPhrase:
        phrase = self._noun_phrase(self.random.choice(sorted(kinds)), 0, plain=True)
        phrase.plural = False
        return phrase

    def _locative(self) -> tuple[tuple[str, str], Phrase]:
        return self.random.choice(LOCATIVES), self._place(("place", "room"))

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability


def _refer(about: Phrase) -> Pronoun:
    antecedent = about.antecedent if isinstance(about, Pronoun) else about
    return Pronoun(plural=about.plural, gender=about.gender, natural=about.natural, kind=about.kind, antecedent=antecedent)


def _english(phrase: Phrase) -> str:
    """Return the English pronoun that would take a phrase up."""
    return "they" if phrase.plural else ENGLISH_PRONOUNS[phrase.natural][0]


def _ends_in_clause(clause: Clause) -> bool:
    """Tell whether an object ends in a relative clause, so that what came after it could belong to that."""
    return any(isinstance(phrase, NounPhrase) and phrase.relative is not None for phrase in clause.objects.values())


def _fits(time: Time, clause: Clause) -> bool:
    """Keep "every day" from what is negated, and years from numbers, which they could meet."""
    if time.repeats:
        return not clause.negated
    phrases = (clause.subject, *clause.objects.values())
    return not (time.is_year and any(isinstance(phrase, NounPhrase) and phrase.number for phrase in phrases))
