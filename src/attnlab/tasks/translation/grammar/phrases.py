"""Noun phrases, said in both languages.

Every phrase and clause is one abstract object with two linearisations. A word carries the keys of the parts of that object
that it expresses; two words are aligned if they share a key.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from attnlab.tasks.translation.grammar.inflection import (
    CONTRACTED,
    DEFINITE,
    DER_WORD,
    EIN_WORD,
    MIXED,
    PRONOUN,
    RELATIVE,
    STRONG,
    WEAK,
    noun_form,
)
from attnlab.tasks.translation.grammar.lexicon import PERSON, Adjective, Gender, Noun, Number

if TYPE_CHECKING:
    from attnlab.tasks.translation.grammar.clauses import Clause


class Word(NamedTuple):
    """One token of one language and the keys of what it expresses."""

    form: str
    keys: frozenset[Hashable] = frozenset()


def say(text: str, *keys: Hashable) -> list[Word]:
    """Say words that all express the same."""
    expressed = frozenset(keys)
    return [Word(form, expressed) for form in text.split()]


COMMA = Word(",")


@dataclass(eq=False, kw_only=True)
class Phrase(ABC):
    """Something that a clause can be about, third person.

    Attributes:
        plural: number.
        gender: German grammatical gender.
        natural: natural gender, for English pronouns.
        kind: what it is, for verbs to choose by.
    """

    plural: bool
    gender: Gender
    natural: Gender
    kind: str

    @property
    def is_plain(self) -> bool:
        """Whether its German nominative and accusative are the same."""
        return self.column != "m"

    @property
    def is_definite(self) -> bool:
        """Whether the hearer knows which is meant; German says that before what is new."""
        return True

    @property
    def english_column(self) -> str:
        """What English pronouns go by: the natural gender or, of several, plural."""
        return "p" if self.plural else self.natural

    @property
    def column(self) -> str:
        """The column of a German table that the phrase agrees with."""
        return "p" if self.plural else self.gender

    @abstractmethod
    def english(self, case: str) -> list[Word]:
        """Say it in English; the case matters to pronouns alone."""

    @abstractmethod
    def german(self, case: str) -> list[Word]:
        """Say it in German."""

    def german_head(self, case: str) -> list[Word]:
        """Say it in German without what can stand apart from it."""
        return self.german(case)

    def german_relative(self) -> list[Word]:
        """Say in German what can stand apart from it: a relative clause, between commas."""
        return []


@dataclass(eq=False, kw_only=True)
class Name(Phrase):
    """A name: the same in both languages, in every case but the genitive."""

    name: str

    @property
    @override
    def is_plain(self) -> bool:
        return True

    @override
    def english(self, case: str) -> list[Word]:
        return say(self.name, self)

    def english_genitive(self) -> list[Word]:
        """Say whose something is: Anna's, two words."""
        return [*self.english("gen"), Word("'s", frozenset({self}))]

    @override
    def german(self, case: str) -> list[Word]:
        return say(f"{self.name}s" if case == "gen" else self.name, self)


@dataclass(eq=False, kw_only=True)
class Who(Phrase):
    """Who as a subject: who calls Anna."""

    @override
    def english(self, case: str) -> list[Word]:
        return say("who", self)

    @override
    def german(self, case: str) -> list[Word]:
        return say("wer", self)


ENGLISH_PRONOUNS = {
    "m": ("he", "him", "his"),
    "f": ("she", "her", "her"),
    "n": ("it", "it", "its"),
    "p": ("they", "them", "their"),
}
"""Subject, object and possessive, by natural gender or plural."""


@dataclass(eq=False, kw_only=True)
class Pronoun(Phrase):
    """A pronoun, in English by natural gender, in German by the grammatical gender of what it stands for.

    Attributes:
        antecedent: what it stands for.
    """

    antecedent: Phrase

    @override
    def english(self, case: str) -> list[Word]:
        return say(ENGLISH_PRONOUNS[self.english_column][0 if case == "nom" else 1], self)

    @override
    def german(self, case: str) -> list[Word]:
        return say(PRONOUN[case][self.column], self)


@dataclass(eq=False, kw_only=True)
class NounPhrase(Phrase):
    """A noun and what goes with it: the two small dogs with the red hat, which ...

    Attributes:
        noun: the head.
        determiner: "the", "a", "this", "every", "no", "some", "many", "my" or, with ``owner``, "own"; nothing with a number.
        owner: whose it is, for "own": his, her, its, their.
        number: a numeral.
        adjectives: before the noun.
        possessor: a name in the determiner's place (Anna's, Annas), or a phrase after the noun (of the man, des Mannes).
        companion: after the noun: with the man, mit dem Mann.
        relative: a relative clause; the phrase itself stands in it as ``gap``.
        gap: the phrase's case in its relative clause.
    """

    noun: Noun
    determiner: str = "the"
    owner: Phrase | None = None
    number: Number | None = None
    adjectives: list[Adjective] = field(default_factory=list)
    possessor: Phrase | None = None
    companion: Phrase | None = None
    relative: "Clause | None" = None
    gap: str = "nom"

    @property
    @override
    def is_definite(self) -> bool:
        return self.determiner in {"the", "this", "my", "own"} or isinstance(self.possessor, Name)

    @override
    def english(self, case: str) -> list[Word]:
        rest = say(self.number.english, (self, "number")) if self.number else []
        for adjective in self.adjectives:
            rest += say(adjective.english, (self, adjective))
        rest += say(self.noun.plural if self.plural else self.noun.singular, self)
        if isinstance(self.possessor, Name):
            words = self.possessor.english_genitive() + rest
        else:
            words = say(self._english_determiner(rest[0].form), (self, "determiner")) + rest
            if self.possessor is not None:
                words += say("of", (self, "of")) + self.possessor.english("acc")
        if self.companion is not None:
            words += say("with", (self, "with")) + self.companion.english("acc")
        if self.relative is not None:
            pronoun = "that" if self.kind not in PERSON else "who" if self.gap == "nom" else "whom"
            words += say(pronoun, (self, "relative")) + self.relative.english_relative(subject=self.gap == "nom")
        return words

    @override
    def german(self, case: str) -> list[Word]:
        return self.german_head(case) + self.german_relative()

    @override
    def german_head(self, case: str) -> list[Word]:
        named = self.possessor if isinstance(self.possessor, Name) else None
        words = named.german("gen") if named else say(self._german_determiner(case), (self, "determiner"))
        words += say(self.number.german, (self, "number")) if self.number else []
        endings = self._adjective_endings()
        for adjective in self.adjectives:
            words += say(adjective.stem + endings[case][self.column], (self, adjective))
        words += say(noun_form(self.noun, case, plural=self.plural), self)
        if self.possessor is not None and named is None:
            first, *others = self.possessor.german("gen")
            words += [Word(first.form, first.keys | {(self, "of")}), *others]
        if self.companion is not None:
            words += say("mit", (self, "with")) + self.companion.german("dat")
        return words

    @override
    def german_relative(self) -> list[Word]:
        if self.relative is None:
            return []
        pronoun = say(RELATIVE[self.gap][self.column], (self, "relative"))
        return [COMMA, *pronoun, *self.relative.german_final(subject=self.gap != "nom"), COMMA]

    def _english_determiner(self, following: str) -> str:
        if self.determiner == "a":
            return "an" if following[0] in "aeiou" else "a"
        if self.determiner == "this":
            return "these" if self.plural else "this"
        if self.determiner == "own":
            assert self.owner is not None
            return ENGLISH_PRONOUNS[self.owner.english_column][2]
        return self.determiner

    def _german_determiner(self, case: str) -> str:
        column = self.column
        match self.determiner:
            case "the":
                return DEFINITE[case][column]
            case "this":
                return f"dies{DER_WORD[case][column]}"
            case "every":
                return f"jed{DER_WORD[case][column]}"
            case "some":
                return f"einig{STRONG[case][column]}"
            case "many":
                return f"viel{STRONG[case][column]}"
            case "own":
                assert self.owner is not None
                stem = "ihr" if self.owner.plural or self.owner.gender == "f" else "sein"
                return stem + EIN_WORD[case][column]
            case "a" | "no" | "my":
                return {"a": "ein", "no": "kein", "my": "mein"}[self.determiner] + EIN_WORD[case][column]
        return ""

    def _adjective_endings(self) -> dict[str, dict[str, str]]:
        if isinstance(self.possessor, Name):
            return STRONG
        if self.determiner in {"the", "this", "every"}:
            return WEAK
        return MIXED if self.determiner in {"a", "no", "my", "own"} else STRONG


@dataclass(eq=False, kw_only=True)
class Coordination(Phrase):
    """Two phrases joined by and."""

    first: Phrase
    second: Phrase

    @property
    @override
    def is_definite(self) -> bool:
        return self.first.is_definite and self.second.is_definite

    @override
    def english(self, case: str) -> list[Word]:
        return self.first.english(case) + say("and", (self, "and")) + self.second.english(case)

    @override
    def german(self, case: str) -> list[Word]:
        return self.first.german(case) + say("und", (self, "and")) + self.second.german(case)


def after(preposition: str, phrase: Phrase, key: Hashable, case: str = "dat") -> list[Word]:
    """Say a phrase in German after a preposition, the article drawn into it where that is usual: im Garten, ins Büro.

    Its relative clause is left out.
    """
    words = phrase.german_head(case)
    contracted = CONTRACTED.get((preposition, words[0].form))
    if contracted and isinstance(phrase, NounPhrase) and phrase.determiner == "the" and phrase.relative is None:
        return [Word(contracted, words[0].keys | {key}), *words[1:]]
    return say(preposition, key) + words


def align(source: Iterable[Word], target: Iterable[Word]) -> list[tuple[int, int]]:
    """Link every two words that express the same."""
    target = list(target)
    return [(i, j) for i, s in enumerate(source) for j, t in enumerate(target) if s.keys & t.keys]
