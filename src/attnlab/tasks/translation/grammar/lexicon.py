"""The words of the grammar: each entry is one English and one German lexeme with what inflection needs to know."""

from dataclasses import dataclass, field
from typing import Literal

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
        kind: what it is, for verbs to choose by.
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


@dataclass(frozen=True)
class Verb:
    """A verb.

    Attributes:
        base, third, past, participle: English.
        infinitive, present, preterite, de_participle: German, third person singular where finite, without the prefix.
        prefix: German separable prefix, or nothing.
        auxiliary: of the German perfect.
        frame: what it takes: "none", "acc", "dat", "dat_acc", "prep", "to", "that", "whether", "infinitive".
        subjects: kinds of noun that may be its subject.
        objects: kinds of noun that may be its object.
        preposition: English preposition of the frame "prep".
        de_preposition: German preposition of the frame "prep".
        case: that the German preposition governs.
        places: whether a place can be added.
        stative: a state, which nobody tries to reach, and which goes with no time.
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

    @property
    def bare(self) -> str:
        """The German infinitive without the prefix, which is also the third person plural."""
        return self.infinitive.removeprefix(self.prefix)

    @property
    def zu_infinitive(self) -> list[str]:
        """The German infinitive with zu: one word if the verb is separable (anzurufen), else two."""
        return [f"{self.prefix}zu{self.bare}"] if self.prefix else ["zu", self.infinitive]


PERSON = frozenset({"person"})
ANIMATE = frozenset({"person", "animal"})
THINGS = frozenset({"tool", "vehicle", "furniture", "readable"})
"""What can be said to be red, heavy or expensive."""

_NOUNS = """
person    man men m Mann Männer Mannes m | woman women f Frau Frauen Frau f | boy boys m Junge Jungen Jungen* m
person    girl girls n Mädchen Mädchen Mädchens f | singer singers f Sängerin Sängerinnen Sängerin f
person    baker bakers m Bäcker Bäcker Bäckers m | bus_driver bus_drivers m Busfahrer Busfahrer Busfahrers m
+person   child children n Kind Kinder Kindes n | doctor doctors m Arzt Ärzte Arztes m
+person   teacher teachers m Lehrer Lehrer Lehrers m | student students m Student Studenten Studenten* m
+person   neighbor neighbors m Nachbar Nachbarn Nachbarn* m | friend friends m Freund Freunde Freundes m
+person   mother mothers f Mutter Mütter Mutter f | father fathers m Vater Väter Vaters m
+person   aunt aunts f Tante Tanten Tante f
+person   uncle uncles m Onkel Onkel Onkels m | sister sisters f Schwester Schwestern Schwester f
+person   brother brothers m Bruder Brüder Bruders m | daughter daughters f Tochter Töchter Tochter f
+person   son sons m Sohn Söhne Sohnes m
+animal   dog dogs m Hund Hunde Hundes n | cat cats f Katze Katzen Katze n | horse horses n Pferd Pferde Pferdes n
+animal   bird birds m Vogel Vögel Vogels n | cow cows f Kuh Kühe Kuh n | goat goats f Ziege Ziegen Ziege n
animal    mouse mice f Maus Mäuse Maus n | bear bears m Bär Bären Bären* n
+food     apple apples m Apfel Äpfel Apfels n | cake cakes m Kuchen Kuchen Kuchens n | egg eggs n Ei Eier Eies n
+food     potato potatoes f Kartoffel Kartoffeln Kartoffel n | sausage sausages f Wurst Würste Wurst n
+food     carrot carrots f Karotte Karotten Karotte n | apple_cake apple_cakes m Apfelkuchen Apfelkuchen Apfelkuchens n
+readable book books n Buch Bücher Buches n | letter letters m Brief Briefe Briefes n
+readable newspaper newspapers f Zeitung Zeitungen Zeitung n
+readable poem poems n Gedicht Gedichte Gedichtes n | school_book school_books n Schulbuch Schulbücher Schulbuches n
+readable city_map city_maps m Stadtplan Stadtpläne Stadtplanes n
+tool     key keys m Schlüssel Schlüssel Schlüssels n | knife knives n Messer Messer Messers n
+tool     lamp lamps f Lampe Lampen Lampe n | umbrella umbrellas m Regenschirm Regenschirme Regenschirmes n
+tool     camera cameras f Kamera Kameras Kamera n | guitar guitars f Gitarre Gitarren Gitarre n
+tool     hat hats m Hut Hüte Hutes n | bag bags f Tasche Taschen Tasche n
+tool     coffee_cup coffee_cups f Kaffeetasse Kaffeetassen Kaffeetasse n
+tool     house_key house_keys m Hausschlüssel Hausschlüssel Hausschlüssels n
+tool     kitchen_knife kitchen_knives n Küchenmesser Küchenmesser Küchenmessers n
+vehicle  car cars n Auto Autos Autos n | bicycle bicycles n Fahrrad Fahrräder Fahrrades n
+vehicle  ship ships n Schiff Schiffe Schiffes n
vehicle   school_bus school_buses m Schulbus Schulbusse Schulbusses n
vehicle   police_car police_cars n Polizeiauto Polizeiautos Polizeiautos n
+furniture table tables m Tisch Tische Tisches n | chair chairs m Stuhl Stühle Stuhles n
+furniture bed beds n Bett Betten Bettes n | door doors f Tür Türen Tür n
+furniture kitchen_table kitchen_tables m Küchentisch Küchentische Küchentisches n
+furniture garden_chair garden_chairs m Gartenstuhl Gartenstühle Gartenstuhles n
+furniture window windows n Fenster Fenster Fensters n | garden_door garden_doors f Gartentür Gartentüren Gartentür n
room      garden gardens m Garten Gärten Gartens n | kitchen kitchens f Küche Küchen Küche n
room      office offices n Büro Büros Büros n | library libraries f Bibliothek Bibliotheken Bibliothek n
place     house houses n Haus Häuser Hauses n | school schools f Schule Schulen Schule n
place     church churches f Kirche Kirchen Kirche n | park parks m Park Parks Parks n
place     forest forests m Wald Wälder Waldes n | village villages n Dorf Dörfer Dorfes n
place     city cities f Stadt Städte Stadt n | hospital hospitals n Krankenhaus Krankenhäuser Krankenhauses n
place     train_station train_stations m Bahnhof Bahnhöfe Bahnhofes n
"""
"""By kind: entries as in Noun; "+": someone can have it; "*": a weak noun; "_": a space."""

_ADJECTIVES = """
1 person animal: clever klug klug | friendly freundlich freundlich | brave mutig mutig | lazy faul faul
1 tool vehicle furniture readable: beautiful schön schön
1 tool vehicle furniture readable food: expensive teuer teur | cheap billig billig
1 readable: famous berühmt berühmt | boring langweilig langweilig
1 food: fresh frisch frisch | sweet süß süß | cold kalt kalt
1 place room: quiet ruhig ruhig | dark dunkel dunkl
2 person animal place room vehicle furniture tool food: small klein klein | big groß groß
2 tool vehicle furniture: heavy schwer schwer
2 readable: long lang lang
3 person animal: strong stark stark | hungry hungrig hungrig | tired müde müd | sick krank krank
4 person animal: young jung jung
4 person animal tool vehicle furniture readable place: old alt alt
4 tool vehicle furniture readable place: new neu neu
5 tool vehicle furniture: red rot rot | blue blau blau | green grün grün | black schwarz schwarz | white weiß weiß
"""
"""Rank and kinds of noun, then entries: English, German after "ist", German stem."""

_VERBS = """
none+ person animal: sleep sleeps slept slept = schlafen schläft schlief geschlafen
none+ person: work works worked worked = arbeiten arbeitet arbeitete gearbeitet
none+ person: dance dances danced danced = tanzen tanzt tanzte getanzt
none+ person: laugh laughs laughed laughed = lachen lacht lachte gelacht
none person animal: swim swims swam swum = schwimmen schwimmt schwamm geschwommen sein
none+ person animal: arrive arrives arrived arrived = an|kommen kommt kam angekommen sein
none person animal: get_up gets_up got_up got_up = auf|stehen steht stand aufgestanden sein
none+ person animal: fall_asleep falls_asleep fell_asleep fallen_asleep = ein|schlafen schläft schlief eingeschlafen sein
none person animal: come_back comes_back came_back come_back = zurück|kommen kommt kam zurückgekommen sein
acc+ person animal > person animal: see sees saw seen = sehen sieht sah gesehen
acc+ person animal > person animal: hear hears heard heard = hören hört hörte gehört
acc- person > person animal: love loves loved loved = lieben liebt liebte geliebt
acc+ person > person: visit visits visited visited = besuchen besucht besuchte besucht
acc person > person: call calls called called = an|rufen ruft rief angerufen
acc person > person: invite invites invited invited = ein|laden lädt lud eingeladen
acc+ person > person animal: pick_up picks_up picked_up picked_up = ab|holen holt holte abgeholt
acc- person > person: know knows knew known = kennen kennt kannte gekannt
acc+ person > tool vehicle furniture food readable animal: buy buys bought bought = kaufen kauft kaufte gekauft
acc+ person > tool vehicle furniture food readable animal: sell sells sold sold = verkaufen verkauft verkaufte verkauft
acc+ person > tool animal readable person: look_for looks_for looked_for looked_for = suchen sucht suchte gesucht
acc+ person animal > tool animal readable person: find finds found found = finden findet fand gefunden
acc+ person > tool readable: forget forgets forgot forgotten = vergessen vergisst vergaß vergessen
acc person > tool furniture food: carry carries carried carried = tragen trägt trug getragen
acc person > readable tool vehicle: describe describes described described = beschreiben beschreibt beschrieb beschrieben
acc+ person > readable: write writes wrote written = schreiben schreibt schrieb geschrieben
acc+ person > food: eat eats ate eaten = essen isst aß gegessen
acc+ animal > food: eat eats ate eaten = fressen frisst fraß gefressen
acc+ person > vehicle tool furniture: repair repairs repaired repaired = reparieren repariert reparierte repariert
acc+ person > furniture vehicle: clean cleans cleaned cleaned = putzen putzt putzte geputzt
acc person > tool furniture food: throw_away throws_away threw_away thrown_away = weg|werfen wirft warf weggeworfen
acc person > tool food readable: bring_along brings_along brought_along brought_along = mit|bringen bringt brachte mitgebracht
dat+ person animal > person: help helps helped helped = helfen hilft half geholfen
dat person > person: thank thanks thanked thanked = danken dankt dankte gedankt
dat person animal > person animal vehicle: follow follows followed followed = folgen folgt folgte gefolgt sein
dat person > person: listen_to listens_to listened_to listened_to = zu|hören hört hörte zugehört
dat- person > person: trust trusts trusted trusted = vertrauen vertraut vertraute vertraut
dat_acc person > tool food readable: give gives gave given = geben gibt gab gegeben
dat_acc person > tool readable vehicle animal: show shows showed shown = zeigen zeigt zeigte gezeigt
dat_acc person > tool readable food: send sends sent sent = schicken schickt schickte geschickt
prep person animal > person animal vehicle [for auf acc]: wait waits waited waited = warten wartet wartete gewartet
prep person > person animal [of an acc]: think thinks thought thought = denken denkt dachte gedacht
prep person > person animal [of von dat]: dream dreams dreamed dreamed = träumen träumt träumte geträumt
prep person > person animal readable [about über acc]: talk talks talked talked = sprechen spricht sprach gesprochen
to person animal > place room: go goes went gone = gehen geht ging gegangen sein
to person > place: drive drives drove driven = fahren fährt fuhr gefahren sein
to person animal > place room: run runs ran run = rennen rennt rannte gerannt sein
that- person: say says said said = sagen sagt sagte gesagt
that- person: believe believes believed believed = glauben glaubt glaubte geglaubt
that- person: know knows knew known = wissen weiß wusste gewusst
that- person: hope hopes hoped hoped = hoffen hofft hoffte gehofft
whether- person: ask asks asked asked = fragen fragt fragte gefragt
infinitive person animal: try tries tried tried = versuchen versucht versuchte versucht
infinitive person: forget forgets forgot forgotten = vergessen vergisst vergaß vergessen
infinitive person animal: begin begins began begun = beginnen beginnt begann begonnen
infinitive person: promise promises promised promised = versprechen verspricht versprach versprochen
"""
"""Frame, subjects, objects, prepositions and case, then forms; "+" after the frame, with places; "-", a state.

No verb here has one English form for the present and the past (they read), nor is any sentence ambiguous otherwise.
"""

_NAMES = """
f Anna Maria Julia Laura Sarah Lena Emma Clara Nina Eva Paula Marta Helena Sofia Ida Greta Rosa Nora Alma Frieda Hanna Mila
m Peter Thomas Max Paul Martin David Simon Lukas Felix Oskar Anton Jonas Robert Karl Emil Hugo Leo Viktor Bruno Erik Jakob Kurt
- Berlin Hamburg London Paris Madrid Oslo Boston Dublin Bremen Chicago Toronto Sydney
"""

_FEMALE, _MALE, CITIES = (tuple(line.split()[1:]) for line in _NAMES.strip().splitlines())
"""First names and names of cities, the same in both languages."""

NAMES: dict[Gender, tuple[str, ...]] = {"f": _FEMALE, "m": _MALE}

NUMBERS = tuple(str(number) for number in (*range(2, 13), *range(14, 100, 7), 120, 150, 200, 250, 300, 500, 750))


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


_TIMES = """
present modal perfect:     today = heute
present modal:             now = jetzt
present past modal:        every day = jeden Tag | every morning = jeden Morgen
present past future modal: in_the evening = am Abend
past:                      yesterday = gestern | last week = letzte Woche | last year = letztes Jahr
future modal:              tomorrow = morgen | next week = nächste Woche
past future modal:         on Monday = am Montag | on Tuesday = am Dienstag | on Wednesday = am Mittwoch
past future modal:         on Thursday = am Donnerstag | on Friday = am Freitag | on Saturday = am Samstag
past future modal:         on Sunday = am Sonntag
"""
"""Tenses, then parts in English and in German, which correspond in order."""

_YEARS = range(1904, 2024, 10)

FREQUENCIES = (("often", "oft"), ("always", "immer"), ("sometimes", "manchmal"))

LOCATIVES = (("in", "in"), ("in front of", "vor"), ("behind", "hinter"), ("near", "bei"))
"""Prepositions of place, all with the dative."""

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
    for line in _TIMES.strip().splitlines():
        tenses, _, entries = line.partition(":")
        for entry in entries.split("|"):
            english, german = (tuple(part.replace("_", " ") for part in side.split()) for side in entry.split("="))
            times.append(Time(english, german, frozenset(tenses.split())))
    return tuple(times)


def _nouns() -> list[Noun]:
    nouns = []
    for line in _NOUNS.strip().splitlines():
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
    for line in _ADJECTIVES.strip().splitlines():
        selection, _, entries = line.partition(":")
        rank, *kinds = selection.split()
        for entry in entries.split("|"):
            english, german, stem = entry.split()
            adjectives.append(Adjective(english, german, stem, frozenset(kinds), int(rank)))
    return adjectives


def _verbs() -> list[Verb]:
    verbs = []
    for line in _VERBS.strip().splitlines():
        selection, _, forms = line.partition(":")
        selection, _, bracket = selection.partition("[")
        left, _, objects = selection.partition(">")
        frame, *subjects = left.split()
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
                frame.rstrip("+-"),
                frozenset(subjects),
                frozenset(objects.split()),
                prefix,
                auxiliary[0] if auxiliary else "haben",
                preposition,
                de_preposition,
                case,
                frame.endswith("+"),
                frame.endswith("-"),
            )
        )
    return verbs


@dataclass(frozen=True)
class Lexicon:
    """All words, indexed for sampling."""

    nouns: dict[str, list[Noun]] = field(default_factory=dict)
    adjectives: dict[str, list[Adjective]] = field(default_factory=dict)
    verbs: list[Verb] = field(default_factory=list)
    times: tuple[Time, ...] = ()


def lexicon() -> Lexicon:
    """Read the tables above."""
    words = Lexicon(verbs=_verbs(), times=_times())
    for noun in _nouns():
        words.nouns.setdefault(noun.kind, []).append(noun)
    for kind in words.nouns:
        words.adjectives[kind] = [adjective for adjective in _adjectives() if kind in adjective.kinds]
    return words
