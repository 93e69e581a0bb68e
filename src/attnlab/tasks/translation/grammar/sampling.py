"""Drawing sentences from the grammar."""

import random
from collections.abc import Sequence

from typing_extensions import override

from attnlab.tasks.translation.grammar.aspect import can_repeat, ends_in_clause, fits, is_event
from attnlab.tasks.translation.grammar.clauses import Clause
from attnlab.tasks.translation.grammar.lexicon import (
    ANIMATE,
    CITY,
    FREQUENCIES,
    MODALS,
    NAME,
    PERSON,
    THINGS,
    Adjective,
    Verb,
)
from attnlab.tasks.translation.grammar.nominals import PhraseSampler
from attnlab.tasks.translation.grammar.phrases import NounPhrase, Phrase, Pronoun, Who
from attnlab.tasks.translation.grammar.reference import are_clear, english_pronoun, refer, refers, resolve
from attnlab.tasks.translation.grammar.sentences import Sentence

REASONS = (("because", "weil"), ("although", "obwohl"))
CONJUNCTIONS = {
    "present": (*REASONS, ("if", "falls"), ("when", "wenn"), ("while", "während")),
    "past": (*REASONS, ("when", "als"), ("while", "während"), ("before", "bevor")),
}
"""By tense: when is wenn in the present, and als in the past, where it is wenn too if it happened more than once."""

COMPLEMENTS = {"that", "whether", "infinitive"}
NOW = ("present",) * 4 + ("perfect",) * 2 + ("future",) * 2 + ("modal",) * 3
WITHIN = ("present",) * 3 + ("past",) * 2 + ("perfect", "future", "modal")
"""Tenses of a clause that tells of now, and of one within it. Where a clause tells of the past, so do those within it."""

OF_ONESELF = ("perfect", "future", "modal")
"""Tenses of what someone says of himself: he hopes that he will sleep, but not that he sleeps."""


class Sampler(PhraseSampler):
    """Draws sentences.

    No sentence that it draws has two translations, in either direction. Where a phrase of time or place could belong to a
    relative clause at its left, it stands first in the sentence or is left out; where German could not tell the subject of a
    relative clause from its object (die Katze, die die Maus sieht), another is drawn; so is a main clause with a pronoun that
    has two antecedents.

    Args:
        generator: decides everything.
        depths: how deeply clauses and noun phrases may nest, one of which is drawn for each clause of a sentence.
        open_names: probability that a person's name is invented on the spot, so that no vocabulary holds it.
        joints: probability that one more clause is joined to a sentence.
        nesting: how many times likelier than in training something is to hold a clause.
    """

    def __init__(
        self, generator: random.Random, *, depths: Sequence[int], open_names: float, joints: float, nesting: float = 1.0
    ) -> None:
        super().__init__(generator, open_names=open_names, nesting=nesting)
        self.depths = depths
        self.joints = joints
        tenses = {tense for time in self.words.times for tense in time.tenses}
        self._times = {tense: [time for time in self.words.times if tense in time.tenses] for tense in tenses}
        self._fitting: dict[tuple[str, bool, bool, bool, str], dict[str, list[Verb]]] = {}
        self._taking: dict[str, list[Verb]] = {}
        self._past = False  # the clause being drawn tells of the past
        self._timed = False  # the main clause being drawn says somewhere when or how often

    def sentence(self) -> Sentence:
        """Draw a sentence."""
        self._past = self._chance(0.4)
        self._used.clear()
        if self._chance(0.1):
            return Sentence(clauses=[self._question()], question=True)
        clauses = [self._clear_main([])]
        joints: list[tuple[str, str]] = []
        while self._chance(self.joints) and len(clauses) < 5:
            clauses.append(self._clear_main(clauses))
            contrast = ("but", "aber")
            joints.append(contrast if contrast not in joints and self._chance(0.5) else ("and", "und"))
        return Sentence(clauses=clauses, joints=joints)

    # Clauses

    def _clear_main(self, before: list[Clause]) -> Clause:
        """Draw main clauses until no pronoun of one has two antecedents."""
        past, used = self._past, frozenset(self._used)
        while True:
            self._past, self._used = past, set(used)
            clause = self._main(self._pronoun(before[-1].subject, 0.35) if before and refers(before[-1].subject) else None)
            if are_clear([*before, clause]):
                return clause

    def _main(self, subject: Phrase | None) -> Clause:
        self._timed = False
        depth = self.random.choice(self.depths)
        clause = self._clause(depth, subject=subject, fronting=True)
        if depth and clause.complement is None and clause.tense in CONJUNCTIONS and self._chance(0.55):
            self._adjoin(clause, depth - 1)
        if not clause.adjunct_first and not clause.fronted and self._chance(0.5):
            clause.fronted = "time" if clause.time else "place" if clause.place else ""
        return clause

    def _question(self) -> Clause:
        self._timed = False
        drawn = self.random.random()
        if drawn < 0.2:
            return self._clause(0, subject=Who(plural=False, gender="m", natural="m", kind=NAME))
        if drawn < 0.55:
            # yes or no: the finite verb is first, so let it be one of few, for the sake of words that are rare with a capital
            self._past = False
            return self._clause(0, tenses=("perfect", "future", "modal"))
        clause = self._clause(0, known=True)
        words = [("why", "warum")]
        if not clause.negated and clause.verb is not None:
            if clause.tense != "perfect" and not (clause.time or clause.frequency or clause.verb.stative):
                words.append(("when", "wann"))
            if clause.verb.places and clause.place is None:
                words.append(("where", "wo"))
        clause.asking = self.random.choice(words)
        return clause

    def _adjoin(self, clause: Clause, depth: int) -> None:
        """Add a subordinate clause, which may speak of the main clause's subject or object."""
        happens = is_event(clause)
        if not happens and (clause.verb.stative if clause.verb else not clause.predicate or not clause.predicate.passes):
            return  # nobody is old, or knows someone, because
        repeats = clause.frequency is not None or (clause.time is not None and clause.time.repeats)
        conjunction = self.random.choice(CONJUNCTIONS[clause.tense] if happens else REASONS)
        if repeats and self._chance(0.6):
            conjunction = ("when", "wenn")
        is_reason = conjunction in REASONS
        subject = given = None
        if refers(clause.subject):
            subject = self._pronoun(clause.subject, 0.7 if is_reason else 0.3)
            given = None if subject or clause.subject.kind not in ANIMATE else self._pronoun(clause.subject, 0.25)
        if subject is None and given is None:
            subject = self._anaphor(clause, things=is_reason)
        if is_reason and subject is None and given is None:
            return  # a reason has to do with whom or what it is a reason for
        tenses = (clause.tense,)
        clause.adjunct = self._clause(depth, subject=subject, tenses=tenses, given=given, event=not is_reason)
        clause.conjunction = ("when", "wenn") if conjunction[0] == "when" and repeats else conjunction
        looks_back = given is not None or (subject is not None and english_pronoun(subject) != english_pronoun(clause.subject))
        clause.adjunct_first = not clause.fronted and not looks_back and self._chance(0.4)

    def _anaphor(self, clause: Clause, *, things: bool) -> Pronoun | None:
        """Perhaps take up an object, if its English pronoun is not the subject's."""
        for phrase in clause.objects.values():
            if isinstance(phrase, NounPhrase) and not clause.negated and refers(phrase) and self._chance(0.4):
                pronoun = refer(phrase)
                takes_up = phrase.kind in ANIMATE or (things and phrase.kind in THINGS and self._predicable(phrase))
                if takes_up and english_pronoun(pronoun) != english_pronoun(clause.subject):
                    return pronoun
        return None

    def _clause(
        self,
        depth: int,
        *,
        subject: Phrase | None = None,
        tenses: Sequence[str] = NOW,
        given: Phrase | None = None,
        fronting: bool = False,
        event: bool = False,
        positive: bool = False,
        known: bool = False,
        plain: bool = False,
    ) -> Clause:
        """Draw a clause.

        Args:
            depth: how deeply it may nest.
            subject: its subject, if that is known.
            tenses: to draw from, unless it tells of the past.
            given: its object, if that is known.
            fronting: whether a phrase of time may stand first.
            event: whether it must be something that happens, once.
            positive: whether it must not be negated.
            known: whether its subject must be definite.
            plain: whether it must have no clause, and no infinitive, as its object: nobody hopes that he forgets to sleep.
        """
        tense = "past" if self._past else self.random.choice(tenses)
        told, self._past = self._past, tense == "past"
        negated = not (event or positive) and self._chance(0.15)
        clause = None
        if given is None and not event and tense in CONJUNCTIONS:
            clause = self._predicate(depth, subject, tense, negated=negated, known=known)
        if clause is None:
            # "will know", "has loved" and "can trust" would not be said of what lasts
            happens = event or known or (tense != "past" and "present" not in tenses)
            verb = self._taker(given, event=happens) if given else self._verb(subject, depth=depth, event=happens, plain=plain)
            if (verb.frame in COMPLEMENTS or verb.stative) and tense != "past":
                tense = "present"
            negated = negated and not verb.positive
            subject = subject or self._phrase(verb.subjects, depth, negated=negated, nobody=not (negated or known), known=known)
            clause = Clause(subject=subject, verb=verb, tense=tense, negated=negated)
            if tense == "modal":
                obeys = subject.kind in PERSON and not verb.befalls
                fitting = MODALS if obeys else ("can", "want to")  # nobody permits a mouse anything
                clause.modal = self.random.choice([m for m in fitting if not negated or m not in ("can", "may")])
            self._fill(clause, depth, given, fronting=fronting)
            # a cake that someone always eats would be many
            once = event or (given is not None and not verb.objects <= ANIMATE)
            self._add_time(clause, fronting=fronting, once=once)
        self._past = told
        return clause

    def _predicate(self, depth: int, subject: Phrase | None, tense: str, *, negated: bool, known: bool) -> Clause | None:
        """Perhaps draw a clause without a verb of its own; always about things, which do nothing.

        What is asked about is what comes and goes: why someone is tired, not why he is old.
        """
        if not (subject and subject.kind in THINGS) and not self._chance(0.15):
            return None
        if isinstance(subject, Who):
            return None
        subject = subject or self._phrase(ANIMATE | THINGS, depth, negated=negated, known=known)
        fitting = [adjective for adjective in self._predicable(subject) if adjective.passes or not known]
        if not fitting:
            return None
        predicate = self.random.choice([a for a in fitting if a.english not in self._used] or fitting)
        self._used.add(predicate.english)
        return Clause(subject=subject, predicate=predicate, tense=tense, negated=negated)

    def _predicable(self, subject: Phrase) -> list[Adjective]:
        """Return what can be said of a subject that it is not called already."""
        known = resolve(subject)
        taken = {adjective.rank for adjective in known.adjectives} if isinstance(known, NounPhrase) else set()
        return [adjective for adjective in self.words.adjectives[known.kind] if adjective.rank not in taken]

    def _add_time(self, clause: Clause, *, fronting: bool, once: bool) -> None:
        """Perhaps say when or how often it happens; once for all clauses of a sentence, so that they agree."""
        if self._timed or clause.verb is None or clause.verb.stative:
            return
        must_front = clause.complement is not None or ends_in_clause(clause)
        can_front = fronting and not clause.fronted
        if (can_front or not must_front) and self._chance(0.4):
            time = self.random.choice(self._times[clause.tense])
            if fits(time, clause) and not (time.repeats and once) and (can_front or not (fronting and time.is_year)):
                self._timed = True
                clause.time = time
                # a year never ends a statement: spaCy would take "1964." for a German ordinal number
                clause.fronted = "time" if must_front or (fronting and time.is_year) else clause.fronted
        elif not once and can_repeat(clause) and self._chance(0.35):
            often, *_ = FREQUENCIES
            if clause.tense != "perfect":
                clause.frequency = self.random.choice(FREQUENCIES)
            elif clause.subject.is_definite:
                clause.frequency = often  # nobody has always or sometimes got up
            self._timed = clause.frequency is not None

    def _fill(self, clause: Clause, depth: int, given: Phrase | None = None, *, fronting: bool = False) -> None:
        """Give a verb what its frame takes, and perhaps a place."""
        verb = clause.verb
        assert verb is not None
        match verb.frame:
            case "acc" | "dat" | "prep":
                clause.objects[verb.frame] = given or self._phrase(
                    verb.objects,
                    0 if verb.creates else depth,
                    owner=clause.subject,
                    negated=clause.negated,
                    known=clause.negated and (verb.frame == "prep" or verb.stative),
                )
            case "dat_acc":
                accusative = self._phrase(verb.objects, depth, owner=clause.subject, negated=clause.negated)
                is_known = accusative.is_definite or clause.negated
                dative = self._phrase(PERSON, 0, owner=clause.subject, negated=clause.negated, known=is_known)
                clause.objects |= {"dat": dative, "acc": accusative}
            case "to":
                nouns = self.words.domains(verb.objects)
                to_city = CITY in verb.objects and (not nouns or self._chance(0.5))
                clause.objects["to"] = self._city() if to_city else self._place(verb.objects, known=clause.negated)
            case "that" | "whether":
                self._complete(clause, depth)
            case "infinitive":
                inner = self._verb(clause.subject, depth=0, matrix=verb.base)
                clause.complement = Clause(subject=clause.subject, verb=inner)
                self._fill(clause.complement, depth - 1)
        if verb.places and not ends_in_clause(clause) and self._chance(0.25):
            # "does not sleep in the garden" would deny the place alone
            if not clause.negated or clause.objects or fronting:
                clause.place = self._locative(known=clause.negated)
            if clause.negated and not clause.objects and fronting:
                clause.fronted = "place"

    def _complete(self, clause: Clause, depth: int) -> None:
        """Add what someone says, knows or asks."""
        assert clause.verb is not None
        about = self._pronoun(clause.subject, 0.4)
        if about is not None and self._past and clause.verb.base != "say":
            about = None
        clause.complement = self._clause(
            depth - 1,
            subject=about,
            tenses=WITHIN if about is None else OF_ONESELF,
            positive=clause.negated or clause.verb.frame == "whether",
            plain=about is not None or clause.verb.frame == "whether",
        )

    def _verb(self, subject: Phrase | None, *, depth: int, event: bool = False, plain: bool = False, matrix: str = "") -> Verb:
        """Draw a verb that a subject can have; the frame first, so that frames are equally frequent.

        Args:
            subject: its subject, if that is known.
            depth: whether clauses nest in it.
            event: whether it must be no state.
            plain: whether it must take no clause and no infinitive.
            matrix: the verb whose infinitive it is to be.
        """
        kind = "" if subject is None else subject.kind
        key = (kind, depth > 0, event, plain, matrix)
        if key not in self._fitting:
            refused = COMPLEMENTS if depth <= 0 or plain else set()
            fitting: dict[str, list[Verb]] = {}
            for verb in self.words.verbs:
                is_known = (not kind or kind in verb.subjects) and (not matrix or matrix in verb.under)
                if is_known and verb.frame not in refused and not (verb.stative and event):
                    fitting.setdefault(verb.frame, []).append(verb)
            self._fitting[key] = fitting
        fitting = self._fitting[key]
        weights = {"none": 2.0, "acc": 5.0, "dat": 2.0, "that": 1.5 * self.nesting, "whether": self.nesting}
        # an infinitive is a short clause: were it as much likelier, short and deep sentences would hold little else
        weights["infinitive"] = self.nesting**0.5
        # a sentence says each verb once
        fresh = {frame: verbs for frame, verbs in fitting.items() if any(v.base not in self._used for v in verbs)}
        fitting = fresh or fitting
        frame = self.random.choices(list(fitting), [weights.get(frame, 1.0) for frame in fitting])[0]
        return self._use(fitting[frame])

    def _taker(self, given: Phrase, *, event: bool = False) -> Verb:
        """Draw a verb that can have a phrase as its object."""
        return self._use([v for v in self._takers(given) if not (v.stative and event)])

    def _takers(self, given: Phrase) -> list[Verb]:
        if given.kind not in self._taking:
            taking = [verb for verb in self.words.verbs if verb.frame in ("acc", "dat") and given.kind in verb.objects]
            self._taking[given.kind] = taking
        return self._taking[given.kind]

    def _use(self, verbs: list[Verb]) -> Verb:
        verb = self.random.choice([verb for verb in verbs if verb.base not in self._used] or verbs)
        self._used.add(verb.base)
        return verb

    @override
    def _relate(self, phrase: NounPhrase, depth: int) -> None:
        """Add a relative clause in which the phrase is the subject, or an object in the accusative or the dative."""
        acts = phrase.kind in ANIMATE
        if self._takers(phrase) and (not acts or self._chance(0.5)):
            # a relative clause inside the subject of another is more than a reader can hold
            clause = self._clause(0, tenses=WITHIN, given=phrase)
            gap = next(iter(clause.objects))
            del clause.objects[gap]
            can_tell = gap == "dat" or not (phrase.is_plain and clause.subject.is_plain)
            if can_tell or phrase.plural != clause.subject.plural or not acts:
                phrase.gap, phrase.relative = gap, clause
        elif acts:
            phrase.relative = self._clause(depth, subject=phrase, tenses=WITHIN)

    def _pronoun(self, about: Phrase, probability: float) -> Pronoun | None:
        """Perhaps take up what was spoken of before."""
        if about.kind not in ANIMATE or not self._chance(probability):
            return None
        return refer(about)
