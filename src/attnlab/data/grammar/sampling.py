"""Drawing sentences from the grammar."""

import random
from collections.abc import Iterable, Sequence

from attnlab.data.grammar.clauses import Clause, Sentence
from attnlab.data.grammar.lexicon import (
    ANIMATE,
    CITIES,
    EXCLUSIVE,
    FREQUENCIES,
    LOCATIVES,
    MODALS,
    NAMES,
    NUMBERS,
    PERSON,
    TIMES,
    Gender,
    Verb,
    lexicon,
)
from attnlab.data.grammar.phrases import Coordination, Name, NounPhrase, Phrase, Pronoun

CONJUNCTIONS = {
    "present": (("because", "weil"), ("although", "obwohl"), ("when", "wenn"), ("while", "während"), ("if", "wenn")),
    "past": (("because", "weil"), ("although", "obwohl"), ("when", "als"), ("while", "während"), ("before", "bevor")),
}
"""By tense: when is wenn in the present and als in the past."""

COMPLEMENTS = {"that", "whether", "infinitive"}
CLAUSE_TENSES = ("present",) * 4 + ("past",) * 4 + ("perfect",) * 2 + ("future",) * 2 + ("modal",) * 3


class Sampler:
    """Draws sentences.

    Args:
        generator: decides everything.
        max_depth: how deeply clauses and noun phrases nest.
        open_names: probability that a person's name is invented on the spot, so that no vocabulary holds it.
        joints: probability that one more clause is joined to a sentence.
    """

    def __init__(self, generator: random.Random, *, max_depth: int, open_names: float, joints: float) -> None:
        self.random = generator
        self.max_depth = max_depth
        self.open_names = open_names
        self.joints = joints
        self.words = lexicon()
        self._fitting: dict[tuple[frozenset[str], bool], dict[str, list[Verb]]] = {}

    def sentence(self) -> Sentence:
        """Draw a sentence."""
        if self._chance(0.06):
            return Sentence(clauses=[self._clause(0, tenses=("present", "past", "modal"))], question=True)
        clauses = [self._main()]
        joints = []
        while self._chance(self.joints) and len(clauses) < 5:
            subject = self._pronoun(clauses[-1].subject, 0.3)
            clauses.append(self._main(subject))
            joints.append(self.random.choice([("and", "und"), ("but", "aber")]))
        return Sentence(clauses=clauses, joints=joints)

    def _main(self, subject: Phrase | None = None) -> Clause:
        depth = self.random.randint(0, self.max_depth)
        clause = self._clause(depth, subject=subject)
        if depth and clause.complement is None and clause.tense in CONJUNCTIONS and self._chance(0.35):
            clause.conjunction = self.random.choice(CONJUNCTIONS[clause.tense])
            about = self._pronoun(clause.subject, 0.5)
            clause.adjunct = self._clause(depth - 1, subject=about, tenses=(clause.tense,))
            clause.adjunct_first = self._chance(0.4)
        if not clause.adjunct_first and self._chance(0.5):
            clause.fronted = "time" if clause.time else "place" if clause.place else ""
        return clause

    def _clause(
        self,
        depth: int,
        *,
        subject: Phrase | None = None,
        tenses: Sequence[str] = CLAUSE_TENSES,
        verb: Verb | None = None,
    ) -> Clause:
        """Draw a clause, about a given subject, in one of some tenses, with a given verb."""
        tense = self.random.choice(tenses)
        if verb is None and tense in ("present", "past") and self._chance(0.12):
            subject = subject or self._phrase(ANIMATE | {"tool", "vehicle", "furniture"}, depth)
            adjectives = self.words.adjectives.get(subject.kind)
            if adjectives:
                predicate = self.random.choice(adjectives)
                return Clause(subject=subject, predicate=predicate, tense=tense, negated=self._chance(0.15))
        kinds = None if subject is None else {subject.kind}
        verb = verb or self._verb(kinds, complement=depth > 0)
        if verb.frame in COMPLEMENTS and tense not in ("present", "past"):
            tense = self.random.choice([t for t in tenses if t in ("present", "past")] or ["present"])
        negated = self._chance(0.15)
        subject = subject or self._phrase(verb.subjects, depth, nobody=not negated)
        modals = [modal for modal in MODALS if not (negated and modal == "can")]
        clause = Clause(subject=subject, verb=verb, tense=tense, negated=negated)
        clause.modal = self.random.choice(modals) if tense == "modal" else ""
        self._fill(clause, depth)
        if self._chance(0.3):
            clause.time = self.random.choice([time for time in TIMES if tense in time.tenses])
        elif not negated and self._chance(0.15):
            clause.frequency = self.random.choice(FREQUENCIES)
        return clause

    def _fill(self, clause: Clause, depth: int) -> None:
        """Give a verb what its frame takes, and perhaps a place."""
        verb = clause.verb
        assert verb is not None
        match verb.frame:
            case "acc" | "dat" | "prep":
                clause.objects[verb.frame] = self._phrase(verb.objects, depth, clause=clause)
            case "dat_acc":
                clause.objects["dat"] = self._phrase(PERSON, 0, clause=clause)
                clause.objects["acc"] = self._phrase(verb.objects, depth, clause=clause)
            case "to":
                clause.objects["to"] = self._city() if self._chance(0.3) else self._place()
            case "that" | "whether":
                about = self._pronoun(clause.subject, 0.4)
                clause.complement = self._clause(depth - 1, subject=about)
            case "infinitive":
                kinds = {clause.subject.kind}
                clause.complement = Clause(subject=clause.subject, verb=self._verb(kinds, complement=False))
                self._fill(clause.complement, depth - 1)
        if verb.frame in ("none", "acc", "dat") and self._chance(0.2):
            clause.place = (("in", "in"), self._city()) if self._chance(0.25) else self._locative()

    def _verb(self, subjects: Iterable[str] | None, *, complement: bool) -> Verb:
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
        return self.random.choice(fitting[frame])

    def _phrase(self, kinds: Iterable[str], depth: int, *, clause: Clause | None = None, nobody: bool = False) -> Phrase:
        """Draw a noun phrase, a name or two phrases joined.

        Args:
            kinds: one of which it must be.
            depth: how deeply it may nest.
            clause: whose object it is; None if it is a subject.
            nobody: whether it may be negative: no man.
        """
        kind = self.random.choice(sorted(kinds))
        if depth > 0 and self._chance(0.1):
            first, second = self._phrase([kind], 0, clause=clause), self._phrase([kind], 0, clause=clause)
            return Coordination(first=first, second=second, plural=True, gender="n", natural="n", kind=kind)
        if kind == "person" and self._chance(0.3):
            return self._name()
        return self._noun_phrase(kind, depth, clause=clause, nobody=nobody)

    def _noun_phrase(self, kind: str, depth: int, *, clause: Clause | None = None, nobody: bool = False) -> NounPhrase:
        noun = self.random.choice(self.words.nouns[kind])
        plural = self._chance(0.3)
        negated = clause is not None and clause.negated
        weights = {"the": 9, "this": 2, "my": 1.5}
        if plural and not negated:
            weights |= {"some": 1.5, "many": 1.5, "number": 3, "": 1.5}
        if not plural:
            weights |= {"a": 5}
            if not negated:
                weights |= {"every": 1}
            if nobody:
                weights |= {"no": 0.7}
        if clause is not None:
            weights |= {"own": 2}
        determiner = self.random.choices(list(weights), list(weights.values()))[0]
        phrase = NounPhrase(
            noun=noun, plural=plural, gender=noun.gender, natural=noun.natural, kind=kind, determiner=determiner
        )
        if determiner == "number":
            phrase.determiner, phrase.number = "", self.random.choice(NUMBERS)
        if determiner == "own" and clause is not None:
            phrase.owner = clause.subject
        count = self.random.choices([0, 1, 2], [0.6, 0.32, 0.08])[0]
        drawn = self.random.sample(self.words.adjectives[kind], count)
        clash = any(group.issuperset(adjective.english for adjective in drawn) for group in EXCLUSIVE)
        phrase.adjectives = drawn[:1] if clash else drawn
        if depth > 0:
            self._modify(phrase, depth)
        return phrase

    def _modify(self, phrase: NounPhrase, depth: int) -> None:
        """Put something after the noun, perhaps."""
        drawn = self.random.random()
        if drawn < 0.08 and phrase.determiner == "the":
            phrase.possessor = self._name() if self._chance(0.4) else self._noun_phrase("person", 0)
            if isinstance(phrase.possessor, NounPhrase):
                phrase.possessor.determiner, phrase.possessor.number = self.random.choice(["the", "this", "my"]), ""
        elif drawn < 0.14 and phrase.kind == "person":
            phrase.companion = self._noun_phrase("tool", 0)
        elif drawn < 0.44:
            self._relate(phrase, depth - 1)

    def _relate(self, phrase: NounPhrase, depth: int) -> None:
        """Add a relative clause in which the phrase is the subject, or an object in the accusative or the dative."""
        tenses = ("present", "present", "past", "past", "perfect")
        takers = [v for v in self.words.verbs if v.frame in ("acc", "dat") and phrase.kind in v.objects]
        acts = phrase.kind in ANIMATE
        if takers and (not acts or self._chance(0.5)):
            verb = self.random.choice(takers)
            clause = self._clause(depth, tenses=tenses, verb=verb)
            del clause.objects[verb.frame]
            phrase.gap = verb.frame
            phrase.relative = clause
        elif acts:
            phrase.relative = self._clause(depth, subject=phrase, tenses=tenses)

    def _pronoun(self, about: Phrase, probability: float) -> Pronoun | None:
        """Perhaps take up what was spoken of before; things do nothing, so no verb is about them."""
        if about.kind not in ANIMATE or not self._chance(probability):
            return None
        return Pronoun(plural=about.plural, gender=about.gender, natural=about.natural, kind=about.kind)

    def _name(self) -> Name:
        genders: list[Gender] = ["f", "m"]
        gender = self.random.choice(genders)
        name = self._invented() if self._chance(self.open_names) else self.random.choice(NAMES[gender])
        return Name(name=name, plural=False, gender=gender, natural=gender, kind="person")

    def _invented(self) -> str:
        syllables = [
            self.random.choice("bdfgklmnprstvz") + self.random.choice("aeiou") for _ in range(self.random.randint(2, 4))
        ]
        return "".join(syllables).capitalize()

    def _city(self) -> Name:
        return Name(name=self.random.choice(CITIES), plural=False, gender="n", natural="n", kind="place")

    def _place(self) -> NounPhrase:
        phrase = self._noun_phrase("place", 0)
        phrase.plural, phrase.number = False, ""
        if phrase.determiner not in ("the", "a", "this", "my"):
            phrase.determiner = "the"
        return phrase

    def _locative(self) -> tuple[tuple[str, str], Phrase]:
        return self.random.choice(LOCATIVES), self._place()

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability
