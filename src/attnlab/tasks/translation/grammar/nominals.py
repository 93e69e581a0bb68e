"""Drawing noun phrases from the grammar."""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable

from attnlab.tasks.translation.grammar.lexicon import (
    ANIMATE,
    CITIES,
    CITY,
    DOMAIN,
    LOCATIVES,
    NAME,
    NAMES,
    NUMBERS,
    NUMERALS,
    PERSON,
    WITHIN_CITY,
    WORN,
    Adjective,
    Gender,
    Locative,
    Noun,
    lexicon,
)
from attnlab.tasks.translation.grammar.phrases import Coordination, Name, NounPhrase, Phrase, Who

OWNERS = 8
"""First names of each gender that own something, few enough for each genitive to be learnt."""


class PhraseSampler(ABC):
    """Draws noun phrases.

    Args:
        generator: decides everything.
        open_names: probability that a person's name is invented on the spot, so that no vocabulary holds it.
        nesting: how many times likelier than in training something is to hold a clause.
    """

    def __init__(self, generator: random.Random, *, open_names: float, nesting: float = 1.0) -> None:
        self.random = generator
        self.open_names = open_names
        self.nesting = nesting
        self.words = lexicon()
        self._calling: dict[tuple[str, str], list[Adjective]] = {}
        self._used: set[str] = set()  # words of the main clause being drawn

    @abstractmethod
    def _relate(self, phrase: NounPhrase, depth: int) -> None:
        """Add a relative clause to a phrase, perhaps."""

    def _phrase(
        self,
        kinds: Iterable[str],
        depth: int,
        *,
        owner: Phrase | None = None,
        negated: bool = False,
        nobody: bool = False,
        known: bool = False,
    ) -> Phrase:
        """Draw a noun phrase, a name or two phrases joined.

        Args:
            kinds: one of which it must be; domains are drawn first, so that these are equally frequent.
            depth: how deeply it may nest.
            owner: the subject of the clause whose object it is; None if it is a subject itself.
            negated: whether its clause is, so that it must not mean all, some or none.
            nobody: whether it may be negative: no man.
            known: whether it must be definite: the man, but not a man.
        """
        nouns = self.random.choice(self.words.domains(kinds))
        is_person = nouns[0].kind in PERSON
        if is_person and self._chance(0.3):
            return self._name()
        noun = self._noun(nouns)
        alike = self.words.nouns[noun.kind]
        if depth > 0 and not negated and not known and len(alike) > 1 and self._chance(0.1):
            first = self._name() if is_person and self._chance(0.3) else self._noun_phrase(noun, 0, plain=True)
            second = self._noun_phrase(self._noun(alike), 0, plain=True)
            return Coordination(first=first, second=second, plural=True, gender="n", natural="n", kind=noun.kind)
        return self._noun_phrase(noun, depth, owner=owner, negated=negated, nobody=nobody, known=known)

    def _noun_phrase(
        self,
        noun: Noun,
        depth: int,
        *,
        owner: Phrase | None = None,
        negated: bool = False,
        nobody: bool = False,
        known: bool = False,
        plain: bool = False,
    ) -> NounPhrase:
        """Draw a noun phrase, as in :meth:`_phrase`; a plain one has the simplest determiners."""
        plural = self._chance(0.3)
        weights: dict[str, float] = {"the": 9, "this": 2}
        if plural and not negated and not known and not plain:
            weights |= {"some": 1.5, "many": 1.5, "number": 3}
            if owner is not None:
                weights |= {"": 1.5}  # not in front, where the noun would have a capital in English, and be rare
        if not plural and not known:
            weights |= {"a": 5}
            if not negated and not plain:
                weights |= {"every": 1}
            if nobody:
                weights |= {"no": 0.7}
        if noun.owned and not (plural and noun.kind == "parent"):
            weights |= {"my": 1.5}
            if owner is not None and _could_own(owner, noun):
                weights |= {"own": 2.5}
        determiner = self.random.choices(list(weights), list(weights.values()))[0]
        phrase = NounPhrase(
            noun=noun, plural=plural, gender=noun.gender, natural=noun.natural, kind=noun.kind, determiner=determiner
        )
        if determiner == "number":
            # nobody begins a sentence with digits, or has so many aunts or beds
            many = owner is not None and DOMAIN[noun.kind] in {"food", "text", "tool", "animal"}
            phrase.determiner, phrase.number = "", self.random.choice(NUMERALS + NUMBERS if many else NUMERALS)
        if determiner == "own":
            phrase.owner = owner
        fitting = self._adjectives(noun)
        fitting = [adjective for adjective in fitting if adjective.english not in self._used] or fitting
        count = self.random.choices([0, 1, 2], [0.52, 0.38, 0.1])[0]
        adjectives = {a.rank: a for a in self.random.sample(fitting, min(count, len(fitting)))}
        phrase.adjectives = [adjectives[rank] for rank in sorted(adjectives)]
        self._used.update(adjective.english for adjective in phrase.adjectives)
        if depth > 0:
            self._modify(phrase, depth)
        return phrase

    def _adjectives(self, noun: Noun) -> list[Adjective]:
        """Return what a noun can be called: nobody speaks of a friendly friend."""
        key = noun.kind, noun.singular
        if key not in self._calling:
            every = self.words.adjectives[noun.kind]
            self._calling[key] = [adjective for adjective in every if not adjective.english.startswith(noun.singular)]
        return self._calling[key]

    def _modify(self, phrase: NounPhrase, depth: int) -> None:
        """Put something beside the noun, perhaps."""
        drawn = self.random.random()
        if drawn < 0.1 and phrase.determiner == "the" and phrase.noun.owned:
            self._give_owner(phrase)
        elif drawn < 0.15 and phrase.kind in PERSON:
            companion = self._noun_phrase(self._noun(self.random.choice(self.words.domains(WORN))), 0, plain=True)
            companion.plural, companion.determiner = phrase.plural, "" if phrase.plural else self.random.choice(("a", "the"))
            phrase.companion = companion
        elif drawn < min(0.15 + 0.33 * self.nesting, 0.9) and phrase.determiner not in {"my", "own"}:
            self._relate(phrase, depth - 1)

    def _give_owner(self, phrase: NounPhrase) -> None:
        if self._chance(0.6):
            owner: Phrase = self._name(owning=True)
            phrase.adjectives = []  # Annas altem Hund: endings too rare to be learnt
        else:
            owner = self._noun_phrase(self._noun(self.random.choice(self.words.domains(PERSON))), 0, plain=True, known=True)
        if _could_own(owner, phrase.noun) and not (phrase.plural and phrase.kind == "parent"):
            phrase.possessor = owner

    def _noun(self, nouns: list[Noun]) -> Noun:
        """Draw a noun that the sentence has not used, if luck allows."""
        for _ in range(8):
            noun = self.random.choice(nouns)
            if noun.singular not in self._used:
                break
        self._used.add(noun.singular)
        return noun

    def _name(self, *, owning: bool = False) -> Name:
        """Draw a first name; that of an owner is a known one with a plain genitive: Annas, but not Max'."""
        genders: list[Gender] = ["f", "m"]
        gender = self.random.choice(genders)
        known = [name for name in NAMES[gender] if name[-1] not in "sx"][:OWNERS] if owning else NAMES[gender]
        for _ in range(8):
            name = self._invent_name() if not owning and self._chance(self.open_names) else self.random.choice(known)
            if name not in self._used:
                break
        self._used.add(name)
        return Name(name=name, plural=False, gender=gender, natural=gender, kind=NAME)

    def _invent_name(self) -> str:
        syllables = [
            self.random.choice("bdfgklmnprstvz") + self.random.choice("aeiou") for _ in range(self.random.randint(2, 4))
        ]
        return "".join(syllables).capitalize()

    def _city(self) -> Name:
        return Name(name=self.random.choice(CITIES), plural=False, gender="n", natural="n", kind=CITY)

    def _place(self, kinds: Iterable[str], *, known: bool = False) -> NounPhrase:
        nouns = self.random.choice(self.words.domains(kinds))
        phrase = self._noun_phrase(self._noun(nouns), 0, plain=True, known=known)
        phrase.plural = False
        return phrase

    def _locative(self, *, known: bool) -> tuple[Locative, Phrase]:
        """Draw where something happens."""
        if self._chance(0.25):
            return WITHIN_CITY, self._city()
        locative = self.random.choice(LOCATIVES)
        return locative, self._place(locative.kinds, known=known)

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability


def _could_own(owner: Phrase, noun: Noun) -> bool:
    """Tell whether someone can have something: animals have food alone, and children no children."""
    if isinstance(owner, Who):
        return False
    if owner.kind not in PERSON:
        return owner.kind in ANIMATE and DOMAIN[noun.kind] == "food"
    return not (owner.kind == "child" and noun.kind in {"child", "offspring"})
