"""Clauses, said in both languages: English in its fixed order, German with the verb second, last or first."""

from dataclasses import dataclass, field
from typing import NamedTuple

from attnlab.tasks.translation.grammar.inflection import preterite
from attnlab.tasks.translation.grammar.lexicon import MODALS, TOWARD, Adjective, Locative, Time, Verb
from attnlab.tasks.translation.grammar.phrases import COMMA, Name, NounPhrase, Phrase, Pronoun, Who, Word, after, say

AUXILIARY = {"haben": ("hat", "haben"), "sein": ("ist", "sind")}
BE = {"present": (("is", "are"), ("ist", "sind")), "past": (("was", "were"), ("war", "waren"))}

OBJECT_REACH = 2
SUBJECT_REACH = 4
"""How many times the words that it passes a relative clause must have to move behind the verbs, by what it belongs to."""


class Piece(NamedTuple):
    """A part of what stands between the German verbs.

    Attributes:
        words: what it says.
        relative: its relative clause, or nothing.
        reach: how heavy that must be to move; 0 where it stays.
    """

    words: list[Word]
    relative: list[Word]
    reach: int = 0

    @property
    def said(self) -> list[Word]:
        """All of it, in place."""
        return self.words + self.relative


def close(pieces: list[Piece], negation: list[Word], rest: list[Piece], verbs: list[Word]) -> list[Word]:
    """Say what stands between the German verbs, and those at the end.

    The relative clause of the last noun phrase moves behind the verbs where it is long and they are short, as in "Er hat die
    Katze gesehen, die Anna sucht", and stays where both are natural and it is no longer: "dass er die Katze, die schläft, nicht
    gesehen hat" (Uszkoreit et al. 1998). So order is a function of the source, and no other noun stands between.
    """
    last = (pieces + rest)[-1:]
    behind: list[Word] = []
    if last:
        is_zu = any(word.form == "zu" for word in verbs[:-1])  # with the infinitive behind it, one word to a reader
        passed = len(verbs) - is_zu + (0 if rest else len(negation))
        weight = sum(word.form != "," for word in last[0].relative)
        if passed and last[0].reach and weight >= last[0].reach * passed:
            behind = last[0].relative
            kept = Piece(last[0].words, [])
            pieces, rest = (pieces, [*rest[:-1], kept]) if rest else ([*pieces[:-1], kept], rest)
    front, back = ([word for piece in part for word in piece.said] for part in (pieces, rest))
    return front + negation + back + verbs + behind


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
        place: a preposition of place and a phrase.
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
    place: tuple[Locative, Phrase] | None = None
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
            + self._english_rest(rest)
        )

    def english_relative(self, *, subject: bool) -> list[Word]:
        """Say it after a relative pronoun, which is the subject or an object."""
        words = [] if subject else self.subject.english("nom")
        return words + self._english_predicate()

    def english_infinitive(self) -> list[Word]:
        """Say it without subject and tense: to call the man."""
        assert self.verb is not None
        return say("to", (self, "zu")) + self._english_rest(say(self.verb.base, self))

    def _english_adjunct(self) -> tuple[list[Word], list[Word]]:
        if self.adjunct is None:
            return [], []
        words = say(self.conjunction[0], (self, "conjunction")) + self.adjunct.english()
        return ([*words, Word(",", frozenset({(self, "comma")}))], []) if self.adjunct_first else ([], words)

    def _english_predicate(self) -> list[Word]:
        auxiliary, rest = self._english_verb(inverted=False)
        return auxiliary + self._english_adverbs() + self._english_rest(rest)

    def _english_adverbs(self) -> list[Word]:
        negation = say("not", (self, "not")) if self.negated else []
        return negation + (say(self.frequency[0], (self, "frequency")) if self.frequency else [])

    def _english_verb(self, *, inverted: bool) -> tuple[list[Word], list[Word]]:
        """Return what stands before "not" and what stands after it."""
        plural = self.subject.plural
        if self.predicate is not None:
            be = BE[self.tense][0][plural]
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

    def _english_rest(self, verb: list[Word]) -> list[Word]:
        """Say the verb, but for what stands before "not", and all after it."""
        is_split = self.verb is not None and self.verb.particle and isinstance(self.objects.get("acc"), Pronoun)
        words, particle = (verb[:-1], verb[-1:]) if is_split else (verb, [])
        for role in ("dat", "acc"):
            if role in self.objects:
                words = words + self.objects[role].english("acc")
        words = words + particle
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
        preposition, phrase = self.place
        return say(preposition.english, (self, "place")) + phrase.english("acc")

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
        return self.subject.german("nom") + finite + self._german_closed([], nonfinite) + self._german_after() + back

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
        first = [self._german_subject()] if subject else []
        return self._german_closed(first, nonfinite + finite) + self._german_after()

    def german_infinitive(self) -> list[Word]:
        """Say it without subject and tense: den Mann anzurufen."""
        assert self.verb is not None
        *zu, infinitive = self.verb.zu_infinitive
        particle = say(" ".join(zu), (self, "zu"))
        keys = [self] if particle else [self, (self, "zu")]
        return self._german_closed([], particle + say(infinitive, *keys))

    def _german_inverted(self, skip: str = "") -> list[Word]:
        finite, nonfinite = self._german_verb(main=True)
        return finite + self._german_closed([self._german_subject()], nonfinite, skip) + self._german_after()

    def _german_subject(self) -> Piece:
        stays = self.predicate is not None or self.complement is not None
        return Piece(self.subject.german_head("nom"), self.subject.german_relative(), 0 if stays else SUBJECT_REACH)

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
            be = BE[self.tense][1][plural]
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

    def _german_closed(self, first: list[Piece], verbs: list[Word], skip: str = "") -> list[Word]:
        """Say what stands between the verbs, and those at the end.

        In this order: pronouns, names, time, what is known, how often, place, what is new, negation, phrases with prepositions.
        """
        leading: list[Piece] = []
        known: list[Piece] = []
        new: list[Piece] = []
        merged = False
        denied = "acc" if "acc" in self.objects else "dat"
        for role in ("dat", "acc"):
            if role not in self.objects:
                continue
            phrase = self.objects[role]
            said = phrase.german_head(role)
            if self.negated and role == denied and isinstance(phrase, NounPhrase) and phrase.determiner == "a":
                # not a dog: keinen Hund
                said[0] = Word(f"k{said[0].form}", said[0].keys | {(self, "not")})
                merged = True
            piece = Piece(said, phrase.german_relative(), OBJECT_REACH)
            is_known = phrase.is_definite and not piece.relative  # what is heavy stands as late as what is new
            group = leading if isinstance(phrase, Pronoun | Name) else known if is_known else new
            group.append(piece)
        time = [Piece(self._german_time(), [])] if self.time and skip != "time" else []
        often = [Piece(say(self.frequency[1], (self, "frequency")), [])] if self.frequency else []
        before = 0 if leading else 1
        place = [Piece(self._german_place(), [])] if self.place and skip != "place" else []
        negation = say("nicht", (self, "not")) if self.negated and not merged else []
        pieces = [*first, *leading, *time, *known[:before], *often, *known[before:], *place, *new]
        return close(pieces, negation, self._german_prepositions(), verbs)

    def _german_prepositions(self) -> list[Piece]:
        pieces = []
        if "prep" in self.objects and self.verb is not None:
            phrase = self.objects["prep"]
            words = after(self.verb.de_preposition, phrase, (self, "preposition"), self.verb.case)
            pieces.append(Piece(words, phrase.german_relative(), OBJECT_REACH))
        if "to" in self.objects:
            phrase = self.objects["to"]
            preposition = TOWARD[phrase.kind]
            case = "acc" if preposition == "in" else "dat"
            pieces.append(Piece(after(preposition, phrase, (self, "to"), case), []))
        return pieces

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
        preposition, phrase = self.place
        return after(preposition.german, phrase, (self, "place"), preposition.case)
