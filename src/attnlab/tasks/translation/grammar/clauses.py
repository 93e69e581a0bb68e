"""Clauses, said in both languages: English in its fixed order, German with the verb second, last or first."""

from dataclasses import dataclass, field

from attnlab.tasks.translation.grammar.inflection import preterite
from attnlab.tasks.translation.grammar.lexicon import MODALS, Adjective, Time, Verb
from attnlab.tasks.translation.grammar.phrases import COMMA, Name, NounPhrase, Phrase, Pronoun, Who, Word, after, say

AUXILIARY = {"haben": ("hat", "haben"), "sein": ("ist", "sind")}
BE = {"present": (("is", "are"), ("ist", "sind")), "past": (("was", "were"), ("war", "waren"))}


@dataclass(eq=False, kw_only=True)
class Clause:
    """Who does what to whom, when, where and how often.

    Attributes:
        subject: who.
        verb: does what; None with a ``predicate``.
        predicate: what the subject is: is tired.
        tense: "present", "past", "perfect", "future" or "modal"; a predicate has the first two.
        modal: an English modal, with the tense "modal".
        negated: not.
        objects: what the verb's frame takes, by case or as "prep" and "to".
        complement: the clause after that and whether, or the one whose verb is an infinitive.
        time: when.
        frequency: how often, English and German.
        place: a preposition of place, English and German, and a phrase.
        fronted: what stands first: "", "time" or "place".
        asking: what a question begins with, English and German: why, when, where; nothing if yes or no is the answer.
        conjunction: joins ``adjunct``, English and German.
        adjunct: a subordinate clause.
        adjunct_first: whether it stands before the main clause.
    """

    subject: Phrase
    verb: Verb | None = None
    predicate: Adjective | None = None
    tense: str = "present"
    modal: str = ""
    negated: bool = False
    objects: dict[str, Phrase] = field(default_factory=dict)
    complement: "Clause | None" = None
    time: Time | None = None
    frequency: tuple[str, str] | None = None
    place: tuple[tuple[str, str], Phrase] | None = None
    fronted: str = ""
    asking: tuple[str, str] = ("", "")
    conjunction: tuple[str, str] = ("", "")
    adjunct: "Clause | None" = None
    adjunct_first: bool = False

    # English

    def english(self) -> list[Word]:
        """Say it as a statement."""
        front, back = self._english_adjunct()
        opening: list[Word] = []
        if self.fronted == "time":
            opening = self._english_time()
        elif self.fronted == "place":
            opening = self._english_place()
        return front + opening + self.subject.english("nom") + self._english_predicate() + back

    def english_question(self) -> list[Word]:
        """Say it as a question: who sleeps, why does the man sleep, will the man sleep."""
        if isinstance(self.subject, Who):
            return self.english()
        auxiliary, rest = self._english_verb(inverted=True)
        return (
            say(self.asking[0], (self, "asking"))
            + auxiliary
            + self.subject.english("nom")
            + self._english_adverbs()
            + rest
            + self._english_rest()
        )

    def english_relative(self, *, subject: bool) -> list[Word]:
        """Say it after a relative pronoun, which is the subject or an object."""
        words = [] if subject else self.subject.english("nom")
        return words + self._english_predicate()

    def english_infinitive(self) -> list[Word]:
        """Say it without subject and tense: to call the man."""
        assert self.verb is not None
        return say("to", (self, "zu")) + say(self.verb.base, self) + self._english_rest()

    def _english_adjunct(self) -> tuple[list[Word], list[Word]]:
        if self.adjunct is None:
            return [], []
        words = say(self.conjunction[0], (self, "conjunction")) + self.adjunct.english()
        return ([*words, Word(",", frozenset({(self, "comma")}))], []) if self.adjunct_first else ([], words)

    def _english_predicate(self) -> list[Word]:
        auxiliary, rest = self._english_verb(inverted=False)
        return auxiliary + self._english_adverbs() + rest + self._english_rest()

    def _english_adverbs(self) -> list[Word]:
        negation = say("not", (self, "not")) if self.negated else []
        return negation + (say(self.frequency[0], (self, "frequency")) if self.frequency else [])

    def _english_verb(self, *, inverted: bool) -> tuple[list[Word], list[Word]]:
        """Return what stands before "not" and what stands after it."""
        plural = self.subject.plural
        if self.predicate is not None:
            be = BE["past" if self.tense == "past" else "present"][0][plural]
            return say(be, (self, "finite")), say(self.predicate.english, (self, "predicate"))
        verb = self.verb
        assert verb is not None
        match self.tense:
            case "perfect":
                return say("have" if plural else "has", (self, "finite")), say(verb.participle, self)
            case "future":
                return say("will", (self, "finite")), say(verb.base, self)
            case "modal" if self.modal == "want to":
                if self.negated or inverted:
                    return say("do" if plural else "does"), say("want to", (self, "finite")) + say(verb.base, self)
                return [], say("want to" if plural else "wants to", (self, "finite")) + say(verb.base, self)
            case "modal":
                return say(self.modal, (self, "finite")), say(verb.base, self)
            case "past":
                return (say("did"), say(verb.base, self)) if self.negated or inverted else ([], say(verb.past, self))
        if self.negated or inverted:
            return say("do" if plural else "does"), say(verb.base, self)
        return [], say(verb.base if plural else verb.third, self)

    def _english_rest(self) -> list[Word]:
        words: list[Word] = []
        for role in ("dat", "acc"):
            if role in self.objects:
                words += self.objects[role].english("acc")
        if "prep" in self.objects and self.verb is not None:
            words += say(self.verb.preposition, (self, "preposition")) + self.objects["prep"].english("acc")
        if "to" in self.objects:
            words += say("to", (self, "to")) + self.objects["to"].english("acc")
        if self.place and self.fronted != "place":
            words += self._english_place()
        if self.time and self.fronted != "time":
            words += self._english_time()
        if self.complement is not None and self.verb is not None:
            if self.verb.frame == "infinitive":
                words += self.complement.english_infinitive()
            else:
                words += say(self.verb.frame, (self, "complementizer")) + self.complement.english()
        return words

    def _english_time(self) -> list[Word]:
        assert self.time is not None
        return [word for part, text in enumerate(self.time.english) for word in say(text, (self, "time", part))]

    def _english_place(self) -> list[Word]:
        assert self.place is not None
        (preposition, _), phrase = self.place
        return say(preposition, (self, "place")) + phrase.english("acc")

    # German

    def german(self) -> list[Word]:
        """Say it as a statement: the verb is second, whatever comes first."""
        front, back = self._german_adjunct()
        if front:
            return front + self._german_inverted() + back
        if self.fronted == "time":
            return self._german_time() + self._german_inverted(skip="time") + back
        if self.fronted == "place":
            return self._german_place() + self._german_inverted(skip="place") + back
        finite, nonfinite = self._german_verb(main=True)
        return self.subject.german("nom") + finite + self._german_middle() + nonfinite + self._german_after() + back

    def german_question(self) -> list[Word]:
        """Say it as a question: the verb is first, or follows the question word."""
        if isinstance(self.subject, Who):
            return self.german()
        return say(self.asking[1], (self, "asking")) + self._german_inverted()

    def german_final(self, *, subject: bool = True) -> list[Word]:
        """Say it after a conjunction or a relative pronoun: the verb is last.

        Args:
            subject: say the subject too; it is left out where the relative pronoun was it.
        """
        finite, nonfinite = self._german_verb(main=False)
        first = self.subject.german("nom") if subject else []
        _, back = self._german_adjunct()
        return first + self._german_middle() + nonfinite + finite + self._german_after() + back

    def german_infinitive(self) -> list[Word]:
        """Say it without subject and tense: den Mann anzurufen."""
        assert self.verb is not None
        *zu, infinitive = self.verb.zu_infinitive
        particle = say(" ".join(zu), (self, "zu"))
        keys = [self] if particle else [self, (self, "zu")]
        return self._german_middle() + particle + say(infinitive, *keys)

    def _german_inverted(self, skip: str = "") -> list[Word]:
        finite, nonfinite = self._german_verb(main=True)
        return finite + self.subject.german("nom") + self._german_middle(skip) + nonfinite + self._german_after()

    def _german_adjunct(self) -> tuple[list[Word], list[Word]]:
        if self.adjunct is None:
            return [], []
        words = say(self.conjunction[1], (self, "conjunction")) + self.adjunct.german_final()
        if self.adjunct_first:
            return [*words, Word(",", frozenset({(self, "comma")}))], []
        return [], [COMMA, *words, COMMA]

    def _german_verb(self, *, main: bool) -> tuple[list[Word], list[Word]]:
        """Return the finite verb and what stands at the end; a separable prefix leaves the verb in a main clause alone."""
        plural = self.subject.plural
        if self.predicate is not None:
            be = BE["past" if self.tense == "past" else "present"][1][plural]
            return say(be, (self, "finite")), say(self.predicate.german, (self, "predicate"))
        verb = self.verb
        assert verb is not None
        match self.tense:
            case "perfect":
                return say(AUXILIARY[verb.auxiliary][plural], (self, "finite")), say(verb.de_participle, self)
            case "future":
                return say("werden" if plural else "wird", (self, "finite")), say(verb.infinitive, self)
            case "modal":
                # "must not" forbids: darf nicht
                modal = "may" if self.modal == "must" and self.negated else self.modal
                return say(MODALS[modal][plural], (self, "finite")), say(verb.infinitive, self)
            case "past":
                form = preterite(verb, plural=plural)
            case _:
                form = verb.bare if plural else verb.present
        if main:
            return say(form, self), say(verb.prefix, self)
        return say(verb.prefix + form, self), []

    def _german_middle(self, skip: str = "") -> list[Word]:
        """Say what stands between the verbs: pronouns, time, how often, objects, negation, place."""
        words: list[Word] = []
        nouns: list[Word] = []
        merged = False
        for role in ("dat", "acc"):
            if role not in self.objects:
                continue
            phrase = self.objects[role]
            said = phrase.german(role)
            if self.negated and not merged and isinstance(phrase, NounPhrase) and phrase.determiner == "a":
                # not a dog: keinen Hund
                said[0] = Word(f"k{said[0].form}", said[0].keys | {(self, "not")})
                merged = True
            if isinstance(phrase, Pronoun):
                words += said
            else:
                nouns += said
        if self.time and skip != "time":
            words += self._german_time()
        if self.frequency:
            words += say(self.frequency[1], (self, "frequency"))
        words += nouns
        if self.negated and not merged:
            words += say("nicht", (self, "not"))
        if "prep" in self.objects and self.verb is not None:
            words += self._german_preposition(self.verb, self.objects["prep"])
        if "to" in self.objects:
            phrase = self.objects["to"]
            words += after("nach" if isinstance(phrase, Name) else "zu", phrase, (self, "to"))
        if self.place and skip != "place":
            words += self._german_place()
        return words

    def _german_preposition(self, verb: Verb, phrase: Phrase) -> list[Word]:
        key = (self, "preposition")
        if verb.case == "dat":
            return after(verb.de_preposition, phrase, key)
        return say(verb.de_preposition, key) + phrase.german(verb.case)

    def _german_after(self) -> list[Word]:
        """Say what stands behind the whole clause: a complement."""
        if self.complement is None or self.verb is None:
            return []
        if self.verb.frame == "infinitive":
            return [COMMA, *self.complement.german_infinitive(), COMMA]
        word = {"that": "dass", "whether": "ob"}[self.verb.frame]
        return [COMMA, *say(word, (self, "complementizer")), *self.complement.german_final(), COMMA]

    def _german_time(self) -> list[Word]:
        assert self.time is not None
        return [word for part, text in enumerate(self.time.german) for word in say(text, (self, "time", part))]

    def _german_place(self) -> list[Word]:
        assert self.place is not None
        (_, preposition), phrase = self.place
        return after(preposition, phrase, (self, "place"))


@dataclass(eq=False, kw_only=True)
class Sentence:
    """One clause or more, joined by and or but; or a question.

    Attributes:
        clauses: one after another.
        joints: what joins each to the one before: ("and", "und") or ("but", "aber").
        question: whether the only clause is asked.
    """

    clauses: list[Clause]
    joints: list[tuple[str, str]] = field(default_factory=list)
    question: bool = False

    def say(self, language: str) -> list[Word]:
        """Say it in "en" or "de"."""
        return self.english() if language == "en" else self.german()

    def english(self) -> list[Word]:
        """Say it in English, with a capital letter and a full stop or a question mark."""
        words = self.clauses[0].english_question() if self.question else self.clauses[0].english()
        for clause, (joint, _) in zip(self.clauses[1:], self.joints, strict=True):
            words += [Word(",", frozenset({(clause, "joint comma")})), *say(joint, (clause, "joint")), *clause.english()]
        return _finish(words, self)

    def german(self) -> list[Word]:
        """Say it in German, with a capital letter and a full stop or a question mark."""
        words = self.clauses[0].german_question() if self.question else self.clauses[0].german()
        for clause, (_, joint) in zip(self.clauses[1:], self.joints, strict=True):
            words += [Word(",", frozenset({(clause, "joint comma")})), *say(joint, (clause, "joint")), *clause.german()]
        return _finish(words, self)


def _finish(words: list[Word], sentence: Sentence) -> list[Word]:
    said: list[Word] = []
    for word in words:
        if word.form == "," and said and said[-1].form == ",":
            said[-1] = Word(",", said[-1].keys | word.keys)  # clauses that end together share one comma
        else:
            said.append(word)
    if said[-1].form == ",":
        said.pop()
    first = said[0]
    said[0] = Word(first.form[0].upper() + first.form[1:], first.keys)
    return [*said, Word("?" if sentence.question else ".", frozenset({(sentence, "end")}))]
