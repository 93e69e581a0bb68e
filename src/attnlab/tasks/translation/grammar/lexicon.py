"""The words of the grammar: each entry is one English and one German lexeme with what inflection needs to know."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from attnlab.tasks.translation.grammar import wordlist

Gender = Literal["m", "f", "n"]


@dataclass(frozen=True)
class Noun:
    """A noun.

    Attributes:
        singular, plural: English; a compound is two words.
        gender: German grammatical gender.
        de_singular, de_plural: German nominatives.
        genitive: German genitive singular.
        weak: all other German cases are the genitive's form (der Junge, den Jungen).
        kind: what it is, for verbs and adjectives to choose by.
        natural: natural gender, for English pronouns.
        owned: whether someone can have it: my uncle, but not my woman.
    """

    singular: str
    plural: str
    gender: Gender
    de_singular: str
    de_plural: str
    genitive: str
    weak: bool
    kind: str
    natural: Gender
    owned: bool


@dataclass(frozen=True)
class Adjective:
    """An adjective.

    Attributes:
        english: its form.
        german: the form after "ist".
        stem: what endings are added to.
        kinds: of noun that it goes with.
        rank: its place among several, the same in both languages; two of one rank exclude each other.
    """

    english: str
    german: str
    stem: str
    kinds: frozenset[str]
    rank: int

    @property
    def passes(self) -> bool:
        """Whether it tells of what comes and goes, and so can have a reason: tired, friendly; not red, old or big."""
        return self.rank in (1, 3)


@dataclass(frozen=True)
class Verb:
    """A verb.

    Attributes:
        base, third, past, participle: English.
        infinitive, present, preterite, de_participle: German, third person singular where finite, without the prefix.
        frame: what it takes: "none", "acc", "dat", "dat_acc", "prep", "to", "that", "whether", "infinitive".
        subjects: kinds of noun that may be its subject.
        objects: kinds of noun that may be its object.
        prefix: German separable prefix, or nothing.
        auxiliary: of the German perfect.
        preposition: English preposition of the frame "prep".
        de_preposition: German preposition of the frame "prep".
        case: that the German preposition governs.
        places: whether a place can be added.
        stative: a state, which nobody tries to reach, and which goes with no time.
        positive: not negated: nobody "does not hope".
        befalls: it happens to people, and nobody must or may do it: see, fall asleep.
        creates: its object was not there before, so that nothing can be told of it: write.
        under: bases of the verbs whose infinitive it can be.
    """

    base: str
    third: str
    past: str
    participle: str
    infinitive: str
    present: str
    preterite: str
    de_participle: str
    frame: str
    subjects: frozenset[str]
    objects: frozenset[str] = frozenset()
    prefix: str = ""
    auxiliary: str = "haben"
    preposition: str = ""
    de_preposition: str = ""
    case: str = ""
    places: bool = False
    stative: bool = False
    positive: bool = False
    befalls: bool = False
    creates: bool = False
    under: frozenset[str] = frozenset()

    @property
    def bare(self) -> str:
        """The German infinitive without the prefix, which is also the third person plural."""
        return self.infinitive.removeprefix(self.prefix)

    @property
    def particle(self) -> str:
        """What an English pronoun stands before: pick him up, but look for him."""
        last = self.base.split()[-1]
        return last if self.frame == "acc" and last in {"up", "away", "along"} else ""

    @property
    def zu_infinitive(self) -> list[str]:
        """The German infinitive with zu: one word if the verb is separable (anzurufen), else two."""
        return [f"{self.prefix}zu{self.bare}"] if self.prefix else ["zu", self.infinitive]


@dataclass(frozen=True)
class Time:
    """A phrase of time: its parts in English, the same parts in German, and the tenses that it goes with."""

    english: tuple[str, ...]
    german: tuple[str, ...]
    tenses: frozenset[str]

    @property
    def is_year(self) -> bool:
        """Whether it ends in a number."""
        return self.english[-1].isdigit()

    @property
    def repeats(self) -> bool:
        """Whether it is every day or the like, which nothing that is negated goes with."""
        return self.english[0] == "every"


class Locative(NamedTuple):
    """A preposition of place: English, German, the German case, and the kinds of place that it goes with."""

    english: str
    german: str
    case: str
    kinds: frozenset[str]


class Number(NamedTuple):
    """A numeral: a word up to twelve, digits above."""

    english: str
    german: str


_KINDS = {domain: frozenset(kinds) for domain, *kinds in (line.split() for line in wordlist.DOMAINS.strip().splitlines())}
DOMAIN = {kind: domain for domain, kinds in _KINDS.items() for kind in kinds}
"""The domain of each kind."""


def _expand(selection: str) -> frozenset[str]:
    """Return the kinds that a list of kinds and domains names."""
    return frozenset[str]().union(*(_KINDS.get(name, frozenset({name})) for name in selection.split()))


PERSON = _expand("person")
ANIMATE = _expand("person animal")
THINGS = _expand("text tool transport fittings")
"""What can be said to be red, heavy or expensive."""
WORN = _expand("wear instrument")
"""What a person is known by: the girl with the hat."""

NAME = "adult"
CITY = "metropolis"
"""The kinds of a first name and of the name of a city."""

_FEMALE, _MALE, CITIES = (tuple(line.split()[1:]) for line in wordlist.NAMES.strip().splitlines())
NAMES: dict[Gender, tuple[str, ...]] = {"f": _FEMALE, "m": _MALE}

_NUMERALS = wordlist.NUMERALS.split()
NUMERALS = tuple(Number(*pair) for pair in zip(_NUMERALS[::2], _NUMERALS[1::2], strict=True))
NUMBERS = tuple(Number(str(n), str(n)) for n in range(13, 33, 2))
"""Numerals as words, and those in digits."""

_YEARS = range(1904, 2024, 10)

FREQUENCIES = (("often", "oft"), ("always", "immer"), ("sometimes", "manchmal"))

LOCATIVES = (
    Locative("in", "in", "dat", _expand("place")),
    Locative("in front of", "vor", "dat", _expand("building hall room")),
    Locative("behind", "hinter", "dat", _expand("building hall nature")),
    Locative("near", "in der Nähe", "gen", _expand("building hall nature town")),
)
WITHIN_CITY = Locative("in", "in", "dat", frozenset({CITY}))

TOWARD = {"nature": "in", "town": "in", "hall": "in", "room": "in", "building": "zu", CITY: "nach"}
"""What German says for "to" by kind of place: in den Park, zur Schule, nach Paris."""

MODALS = {
    "can": ("kann", "können"),
    "must": ("muss", "müssen"),
    "should": ("sollte", "sollten"),
    "may": ("darf", "dürfen"),
    "want to": ("will", "wollen"),
}
"""English modal to German third persons, singular and plural; "must not" is "darf nicht", and "may not" is not said."""


def _times() -> tuple[Time, ...]:
    times = [Time(("in the", "year", str(year)), ("im", "Jahr", str(year)), frozenset({"past"})) for year in _YEARS]
    for line in wordlist.TIMES.strip().splitlines():
        tenses, _, entries = line.partition(":")
        for entry in entries.split("|"):
            english, german = (tuple(part.replace("_", " ") for part in side.split()) for side in entry.split("="))
            times.append(Time(english, german, frozenset(tenses.split())))
    return tuple(times)


def _nouns() -> list[Noun]:
    nouns = []
    for line in wordlist.NOUNS.strip().splitlines():
        kind, _, entries = line.partition(" ")
        for entry in entries.split("|"):
            singular, plural, gender, de_singular, de_plural, genitive, natural = entry.split()
            nouns.append(
                Noun(
                    singular.replace("_", " "),
                    plural.replace("_", " "),
                    gender,  # type: ignore[arg-type]
                    de_singular,
                    de_plural,
                    genitive.removesuffix("*"),
                    genitive.endswith("*"),
                    kind.removeprefix("+"),
                    natural,  # type: ignore[arg-type]
                    kind.startswith("+"),
                )
            )
    return nouns


def _adjectives() -> list[Adjective]:
    adjectives = []
    for line in wordlist.ADJECTIVES.strip().splitlines():
        selection, _, entries = line.partition(":")
        rank, _, kinds = selection.partition(" ")
        for entry in entries.split("|"):
            english, german, stem = entry.split()
            adjectives.append(Adjective(english, german, stem, _expand(kinds), int(rank)))
    return adjectives


def _verbs() -> list[Verb]:
    verbs = []
    for line in wordlist.VERBS.strip().splitlines():
        head, selection, forms = line.split(":")
        frame, *traits = head.split()
        selection, _, bracket = selection.partition("[")
        subjects, _, objects = selection.partition(">")
        english, _, german = forms.partition("=")
        base, third, past, participle = (form.replace("_", " ") for form in english.split())
        infinitive, present, preterite, de_participle, *auxiliary = german.split()
        prefix = infinitive.partition("|")[0] if "|" in infinitive else ""
        preposition, de_preposition, case = bracket.removesuffix("]").split() if bracket else ("", "", "")
        verbs.append(
            Verb(
                base,
                third,
                past,
                participle,
                infinitive.replace("|", ""),
                present,
                preterite,
                de_participle,
                frame,
                _expand(subjects),
                _expand(objects),
                prefix,
                auxiliary[0] if auxiliary else "haben",
                preposition,
                de_preposition,
                case,
                "place" in traits,
                "state" in traits,
                "positive" in traits,
                "befalls" in traits,
                "creates" in traits,
                frozenset(traits) - {"place", "state", "positive", "befalls", "creates"},
            )
        )
    return verbs


@dataclass(frozen=True)
class Lexicon:
    """All words, indexed for sampling: nouns and adjectives by kind."""

    nouns: dict[str, list[Noun]] = field(default_factory=dict)
    adjectives: dict[str, list[Adjective]] = field(default_factory=dict)
    verbs: list[Verb] = field(default_factory=list)
    times: tuple[Time, ...] = ()
    _domains: dict[frozenset[str], list[list[Noun]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def domains(self, kinds: Iterable[str]) -> Sequence[list[Noun]]:
        """Return the nouns of some kinds, those of each domain together."""
        key = frozenset(kinds)
        if key not in self._domains:
            found: dict[str, list[Noun]] = {}
            for kind in sorted(key):
                found.setdefault(DOMAIN.get(kind, kind), []).extend(self.nouns.get(kind, ()))
            self._domains[key] = [nouns for nouns in found.values() if nouns]
        return self._domains[key]


def lexicon() -> Lexicon:
    """Read the tables of :mod:`wordlist`."""
    words = Lexicon(verbs=_verbs(), times=_times())
    for noun in _nouns():
        words.nouns.setdefault(noun.kind, []).append(noun)
    adjectives = _adjectives()
    for kind in words.nouns:
        words.adjectives[kind] = [adjective for adjective in adjectives if kind in adjective.kinds]
    return words
