"""Constructions of the grammar, said in both languages, with their alignments and endings."""

import pytest

from attnlab.tasks.translation.grammar.clauses import Clause
from attnlab.tasks.translation.grammar.lexicon import LOCATIVES, NUMERALS, Number, lexicon
from attnlab.tasks.translation.grammar.phrases import Coordination, Name, NounPhrase, Phrase, Pronoun, Who, align
from attnlab.tasks.translation.grammar.sentences import Sentence

WORDS = lexicon()


def noun(english: str, determiner: str = "the", *, plural: bool = False, adjectives: str = "", **options: object) -> NounPhrase:
    found = next(n for nouns in WORDS.nouns.values() for n in nouns if n.singular == english)
    chosen = [next(a for a in WORDS.adjectives[found.kind] if a.english == name) for name in adjectives.split()]
    return NounPhrase(
        noun=found,
        plural=plural,
        gender=found.gender,
        natural=found.natural,
        kind=found.kind,
        determiner=determiner,
        adjectives=chosen,
        **options,  # type: ignore[arg-type]
    )


def verb(base: str, frame: str | None = None):  # type: ignore[no-untyped-def]
    return next(v for v in WORDS.verbs if v.base == base and frame in (None, v.frame))


def clause(subject: Phrase, base: str, objects: dict[str, Phrase] | None = None, **options: object) -> Clause:
    return Clause(subject=subject, objects=objects or {}, **{"verb": verb(base), **options})  # type: ignore[arg-type]


def time(english: str):  # type: ignore[no-untyped-def]
    return next(t for t in WORDS.times if " ".join(t.english) == english)


def anna() -> Name:
    return Name(name="Anna", plural=False, gender="f", natural="f", kind="person")


def counted(english: str) -> Number:
    return next(numeral for numeral in NUMERALS if numeral.english == english)


def where(preposition: str, place: Phrase):  # type: ignore[no-untyped-def]
    return next(locative for locative in LOCATIVES if locative.english == preposition), place


def he(about: Phrase) -> Pronoun:
    return Pronoun(plural=about.plural, gender=about.gender, natural=about.natural, kind=about.kind, antecedent=about)


def related(phrase: NounPhrase, gap: str, relative: Clause) -> NounPhrase:
    phrase.gap, phrase.relative = gap, relative
    return phrase


def subject_relative() -> NounPhrase:
    dog = noun("dog", adjectives="small")
    return related(dog, "nom", clause(dog, "follow", {"dat": noun("cat")}))


def subject_relative_last() -> Clause:
    cow = noun("cow", "my", plural=True)
    relative = clause(cow, "fall asleep", tense="modal", modal="want to")
    return clause(noun("mother"), "wait", {"prep": related(cow, "nom", relative)}, tense="future")


def object_relative_last() -> NounPhrase:
    return related(noun("hat", "a", adjectives="cheap new"), "acc", clause(anna(), "find", tense="perfect"))


def taken_up() -> Clause:
    """The subject is the object of the subordinate clause."""
    man = noun("man")
    adjunct = clause(noun("child", "many", plural=True, adjectives="small"), "help", {"dat": he(man)}, tense="past")
    adjunct.time = time("yesterday")
    return clause(man, "laugh", tense="past", conjunction=("when", "als"), adjunct=adjunct, adjunct_first=True)


def object_taken_up() -> Clause:
    hat = noun("hat")
    adjunct = Clause(subject=he(hat), predicate=next(a for a in WORDS.adjectives["wear"] if a.english == "red"))
    return clause(anna(), "buy", {"acc": hat}, conjunction=("although", "obwohl"), adjunct=adjunct)


def two_objects(dative: str) -> Clause:
    objects: dict[str, Phrase] = {"dat": noun("friend", dative), "acc": noun("lamp", "a")}
    return clause(noun("girl", "some", plural=True), "give", objects, tense="modal", modal="should", negated=True)


def called(*, repeatedly: bool) -> Clause:
    adjunct = clause(anna(), "call", {"acc": noun("man")}, tense="past")
    often = {"frequency": ("always", "immer")} if repeatedly else {}
    conjunction = ("when", "wenn" if repeatedly else "als")
    return clause(noun("dog"), "sleep", tense="past", conjunction=conjunction, adjunct=adjunct, adjunct_first=True, **often)


def seen(weight: str, **options: object) -> Clause:
    cat = noun("cat")
    relative = {"light": clause(cat, "sleep"), "heavy": clause(cat, "follow", {"dat": noun("dog", "a")})}[weight]
    return clause(anna(), "see", {"acc": related(cat, "nom", relative)}, tense="perfect", **options)


def said(complement: Clause) -> Clause:
    return Clause(subject=noun("man"), verb=verb("say"), complement=complement)


def picked_up() -> Clause:
    uncle = noun("uncle")
    adjunct = clause(anna(), "pick up", {"acc": he(uncle)}, tense="past")
    return clause(uncle, "dance", tense="past", conjunction=("before", "bevor"), adjunct=adjunct)


def own_uncle() -> Clause:
    girl = noun("girl")
    return clause(girl, "visit", {"acc": noun("uncle", "own", owner=girl)}, tense="past")


def pronoun_because() -> Clause:
    mouse = noun("mouse")
    tired = next(a for a in WORDS.adjectives["pet"] if a.english == "tired")
    adjunct = Clause(subject=he(mouse), predicate=tired)
    return Clause(subject=mouse, verb=verb("sleep"), conjunction=("because", "weil"), adjunct=adjunct)


CONSTRUCTIONS = {
    "verb second, separable verb split": (
        lambda: clause(noun("man"), "call", {"acc": noun("woman")}),
        "The man calls the woman.|Der Mann ruft die Frau an.|0-0 1-1 2-2 2-5 3-3 4-4 5-6",
    ),
    "inversion after a fronted time": (
        lambda: clause(noun("man"), "fall asleep", time=time("today"), fronted="time"),
        "Today the man falls asleep.|Heute schläft der Mann ein.|0-0 1-2 2-3 3-1 3-4 4-1 4-4 5-5",
    ),
    "participle of a separable verb at the end": (
        lambda: clause(noun("boy", plural=True), "pick up", {"acc": anna()}, tense="perfect"),
        "The boys have picked up Anna.|Die Jungen haben Anna abgeholt.|0-0 1-1 2-2 3-4 4-4 5-3 6-5",
    ),
    "perfect with to be, verb last after that": (
        lambda: Clause(subject=anna(), verb=verb("say"), complement=clause(noun("bear"), "arrive", tense="perfect")),
        "Anna says that the bear has arrived.|Anna sagt, dass der Bär angekommen ist.|0-0 1-1 2-3 3-4 4-5 5-7 6-6 7-8",
    ),
    "infinitive with zu inside a separable verb": (
        lambda: Clause(
            subject=anna(),
            verb=verb("try"),
            complement=clause(anna(), "call", {"acc": noun("student", "a", adjectives="old")}),
        ),
        "Anna tries to call an old student.|Anna versucht, einen alten Studenten anzurufen.|0-0 1-1 2-6 3-6 4-3 5-4 6-5 7-7",
    ),
    "dative verb, weak adjective": (
        lambda: clause(noun("child", "this"), "help", {"dat": noun("friend", adjectives="old")}),
        "This child helps the old friend.|Dieses Kind hilft dem alten Freund.|0-0 1-1 2-2 3-3 4-4 5-5 6-6",
    ),
    "dative plural with a number, strong adjective": (
        lambda: clause(
            noun("aunt"), "thank", {"dat": noun("child", "", plural=True, number=counted("twelve"), adjectives="brave")}
        ),
        "The aunt thanks twelve brave children.|Die Tante dankt zwölf mutigen Kindern.|0-0 1-1 2-2 3-3 4-4 5-5 6-6",
    ),
    "subject relative clause": (
        lambda: clause(subject_relative(), "sleep"),
        "The small dog that follows the cat sleeps.|Der kleine Hund, der der Katze folgt, schläft."
        "|0-0 1-1 2-2 3-4 4-7 5-5 6-6 7-9 8-10",
    ),
    "object relative clause in the dative": (
        lambda: clause(noun("man"), "see", {"acc": related(noun("woman"), "dat", clause(noun("boy"), "help", tense="past"))}),
        "The man sees the woman whom the boy helped.|Der Mann sieht die Frau, der der Junge half."
        "|0-0 1-1 2-2 3-3 4-4 5-6 6-7 7-8 8-9 9-10",
    ),
    "not a is kein": (
        lambda: clause(noun("man"), "buy", {"acc": noun("kitchen table", "a", adjectives="new")}, negated=True),
        "The man does not buy a new kitchen table.|Der Mann kauft keinen neuen Küchentisch."
        "|0-0 1-1 3-3 4-2 5-3 6-4 7-5 8-5 9-6",
    ),
    "must not is darf nicht": (
        lambda: clause(noun("man"), "forget", {"acc": noun("key")}, negated=True, tense="modal", modal="must"),
        "The man must not forget the key.|Der Mann darf den Schlüssel nicht vergessen.|0-0 1-1 2-2 3-5 4-6 5-3 6-4 7-7",
    ),
    "pronoun by grammatical gender": (
        pronoun_because,
        "The mouse sleeps because it is tired.|Die Maus schläft, weil sie müde ist.|0-0 1-1 2-2 3-4 4-5 5-7 6-6 7-8",
    ),
    "possessive by the owner's gender": (
        own_uncle,
        "The girl visited her uncle.|Das Mädchen besuchte seinen Onkel.|0-0 1-1 2-2 3-3 4-4 5-5",
    ),
    "genitive, article drawn into the preposition": (
        lambda: clause(noun("dog", possessor=noun("man", adjectives="old")), "go", {"to": noun("school")}),
        "The dog of the old man goes to the school.|Der Hund des alten Mannes geht zur Schule."
        "|0-0 1-1 2-2 3-2 4-3 5-4 6-5 7-6 8-6 9-7 10-8",
    ),
    "weak noun in a place": (
        lambda: clause(anna(), "see", {"acc": noun("neighbor")}, tense="past", place=where("in", noun("garden"))),
        "Anna saw the neighbor in the garden.|Anna sah den Nachbarn im Garten.|0-0 1-1 2-2 3-3 4-4 5-4 6-5 7-6",
    ),
    "modal in a relative clause": (
        subject_relative_last,
        "The mother will wait for my cows that want to fall asleep."
        "|Die Mutter wird auf meine Kühe warten, die einschlafen wollen."
        "|0-0 1-1 2-2 3-6 4-3 5-4 6-5 7-8 8-10 9-10 10-9 11-9 12-11",
    ),
    "object relative clause in the accusative, mixed adjectives": (
        lambda: clause(noun("student"), "carry", {"acc": object_relative_last()}, tense="past"),
        "The student carried a cheap new hat that Anna has found."
        "|Der Student trug einen billigen neuen Hut, den Anna gefunden hat."
        "|0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-8 8-9 9-11 10-10 11-12",
    ),
    "clause first, pronoun as an object": (
        taken_up,
        "When many small children helped him yesterday, the man laughed."
        "|Als viele kleine Kinder ihm gestern halfen, lachte der Mann."
        "|0-0 1-1 2-2 3-3 4-6 5-4 6-5 7-7 8-9 9-10 10-8 11-11",
    ),
    "pronoun by the object's gender": (
        object_taken_up,
        "Anna buys the hat although it is red.|Anna kauft den Hut, obwohl er rot ist.|0-0 1-1 2-2 3-3 4-5 5-6 6-8 7-7 8-9",
    ),
    "no one at the accusative": (
        lambda: two_objects("my"),
        "Some girls should not give my friend a lamp.|Einige Mädchen sollten meinem Freund keine Lampe geben."
        "|0-0 1-1 2-2 3-5 4-7 5-3 6-4 7-5 8-6 9-8",
    ),
    "no one at the accusative, not at the dative": (
        lambda: two_objects("a"),
        "Some girls should not give a friend a lamp.|Einige Mädchen sollten einem Freund keine Lampe geben."
        "|0-0 1-1 2-2 3-5 4-7 5-3 6-4 7-5 8-6 9-8",
    ),
    "no one at a dative alone": (
        lambda: clause(anna(), "help", {"dat": noun("child", "a")}, negated=True),
        "Anna does not help a child.|Anna hilft keinem Kind.|0-0 2-2 3-1 4-2 5-3 6-4",
    ),
    "als of what happened once": (
        lambda: called(repeatedly=False),
        "When Anna called the man, the dog slept.|Als Anna den Mann anrief, schlief der Hund."
        "|0-0 1-1 2-4 3-2 4-3 5-5 6-7 7-8 8-6 9-9",
    ),
    "wenn of what happened more than once": (
        lambda: called(repeatedly=True),
        "When Anna called the man, the dog always slept.|Wenn Anna den Mann anrief, schlief der Hund immer."
        "|0-0 1-1 2-4 3-2 4-3 5-5 6-7 7-8 8-9 9-6 10-10",
    ),
    "not behind the place": (
        lambda: clause(anna(), "find", {"acc": noun("key")}, negated=True, place=where("in", noun("garden"))),
        "Anna does not find the key in the garden.|Anna findet den Schlüssel im Garten nicht."
        "|0-0 2-6 3-1 4-2 5-3 6-4 7-4 8-5 9-7",
    ),
    "what is new behind the place": (
        lambda: clause(anna(), "find", {"acc": noun("key", "a")}, place=where("near", noun("house"))),
        "Anna finds a key near the house.|Anna findet in der Nähe des Hauses einen Schlüssel."
        "|0-0 1-1 2-7 3-8 4-2 4-3 4-4 5-5 6-6 7-9",
    ),
    "movement into a room": (
        lambda: clause(anna(), "go", {"to": noun("office")}, tense="past"),
        "Anna went to the office.|Anna ging ins Büro.|0-0 1-1 2-2 3-2 4-3 5-4",
    ),
    "movement into a room, feminine": (
        lambda: clause(anna(), "run", {"to": noun("kitchen")}, negated=True),
        "Anna does not run to the kitchen.|Anna rennt nicht in die Küche.|0-0 2-2 3-1 4-3 5-4 6-5 7-6",
    ),
    "one travels to a city": (
        lambda: clause(anna(), "travel", {"to": Name(name="Oslo", plural=False, gender="n", natural="n", kind="metropolis")}),
        "Anna travels to Oslo.|Anna reist nach Oslo.|0-0 1-1 2-2 3-3 4-4",
    ),
    "a relative clause behind a participle": (
        lambda: seen("light"),
        "Anna has seen the cat that sleeps.|Anna hat die Katze gesehen, die schläft.|0-0 1-1 2-4 3-2 4-3 5-6 6-7 7-8",
    ),
    "a light relative clause in place, before negation, participle and verb": (
        lambda: said(seen("light", negated=True)),
        "The man says that Anna has not seen the cat that sleeps."
        "|Der Mann sagt, dass Anna die Katze, die schläft, nicht gesehen hat."
        "|0-0 1-1 2-2 3-4 4-5 5-14 6-12 7-13 8-6 9-7 10-9 11-10 12-15",
    ),
    "a heavy relative clause behind participle and verb": (
        lambda: said(seen("heavy")),
        "The man says that Anna has seen the cat that follows a dog."
        "|Der Mann sagt, dass Anna die Katze gesehen hat, die einem Hund folgt."
        "|0-0 1-1 2-2 3-4 4-5 5-9 6-8 7-6 8-7 9-11 10-14 11-12 12-13 13-15",
    ),
    "a name in the genitive": (
        lambda: clause(noun("student", possessor=anna(), adjectives="tired old"), "sleep"),
        "Anna's tired old student sleeps.|Annas müder alter Student schläft.|0-0 1-0 2-1 3-2 4-3 5-4 6-5",
    ),
    "a pronoun inside an English verb": (
        picked_up,
        "The uncle danced before Anna picked him up.|Der Onkel tanzte, bevor Anna ihn abholte."
        "|0-0 1-1 2-2 3-4 4-5 5-7 6-6 7-7 8-8",
    ),
    "animals eat otherwise, year, number": (
        lambda: clause(
            noun("goat", plural=True),
            "eat",
            {"acc": noun("apple cake", "", plural=True, number=counted("three"), adjectives="fresh")},
            verb=next(v for v in WORDS.verbs if v.infinitive == "fressen"),
            time=time("in the year 2004"),
            fronted="time",
            tense="past",
        ),
        "In the year 2004 the goats ate three fresh apple cakes.|Im Jahr 2004 fraßen die Ziegen drei frische Apfelkuchen."
        "|0-0 1-0 2-1 3-2 4-4 5-5 6-3 7-6 8-7 9-8 10-8 11-9",
    ),
    "joined phrases, negated movement": (
        lambda: clause(
            Coordination(first=anna(), second=noun("baker"), plural=True, gender="n", natural="n", kind="person"),
            "drive",
            {"to": noun("train station", adjectives="old")},
            negated=True,
        ),
        "Anna and the baker do not drive to the old train station.|Anna und der Bäcker fahren nicht zum alten Bahnhof."
        "|0-0 1-1 2-2 3-3 5-5 6-4 7-6 8-6 9-7 10-8 11-8 12-9",
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_construction(name: str) -> None:
    make, expected = CONSTRUCTIONS[name]
    english, german, links = expected.split("|")
    sentence = Sentence(clauses=[make()])
    source, target = sentence.english(), sentence.german()
    for said_words, expected_text in ((source, english), (target, german)):
        text = " ".join(w.form for w in said_words)
        assert text.replace(" .", ".").replace(" ,", ",").replace(" 's", "'s") == expected_text
    assert " ".join(f"{s}-{t}" for s, t in align(source, target)) == links


QUESTIONS = {
    "Why does the man not call Anna?|Warum ruft der Mann Anna nicht an?|0-0 2-2 3-3 4-5 5-1 5-6 6-4 7-7": lambda: clause(
        noun("man"), "call", {"acc": anna()}, negated=True, asking=("why", "warum")
    ),
    "Will the dogs come back tomorrow?|Werden die Hunde morgen zurückkommen?|0-0 1-1 2-2 3-4 4-4 5-3 6-5": lambda: clause(
        noun("dog", plural=True), "come back", tense="future", time=time("tomorrow")
    ),
    "Who often listens to this woman?|Wer hört dieser Frau oft zu?|0-0 1-4 2-1 2-5 3-1 3-5 4-2 5-3 6-6": lambda: clause(
        Who(plural=False, gender="m", natural="m", kind="person"),
        "listen to",
        {"dat": noun("woman", "this")},
        frequency=("often", "oft"),
    ),
}


@pytest.mark.parametrize("expected", QUESTIONS)
def test_question(expected: str) -> None:
    sentence = Sentence(clauses=[QUESTIONS[expected]()], question=True)
    source, target = sentence.english(), sentence.german()
    links = " ".join(f"{s}-{t}" for s, t in align(source, target))
    assert "|".join((*(" ".join(w.form for w in side).replace(" ?", "?") for side in (source, target)), links)) == expected


DECLENSIONS = [
    (noun("dog", adjectives="small"), "der kleine Hund|den kleinen Hund|dem kleinen Hund|des kleinen Hundes"),
    (noun("child", "a", adjectives="small"), "ein kleines Kind|ein kleines Kind|einem kleinen Kind|eines kleinen Kindes"),
    (noun("dog", "my", adjectives="old"), "mein alter Hund|meinen alten Hund|meinem alten Hund|meines alten Hundes"),
    (noun("cat", "no", adjectives="old"), "keine alte Katze|keine alte Katze|keiner alten Katze|keiner alten Katze"),
    (noun("boy", "every"), "jeder Junge|jeden Jungen|jedem Jungen|jedes Jungen"),
    (
        noun("house", "this", adjectives="dark"),
        "dieses dunkle Haus|dieses dunkle Haus|diesem dunklen Haus|dieses dunklen Hauses",
    ),
    (noun("car", "", plural=True, adjectives="expensive"), "teure Autos|teure Autos|teuren Autos|teurer Autos"),
    (
        noun("father", "many", plural=True, adjectives="big"),
        "viele große Väter|viele große Väter|vielen großen Vätern|vieler großer Väter",
    ),
    (noun("bear", plural=True, adjectives="tired"), "die müden Bären|die müden Bären|den müden Bären|der müden Bären"),
]


@pytest.mark.parametrize(("phrase", "expected"), DECLENSIONS, ids=[expected.split("|")[0] for _, expected in DECLENSIONS])
def test_declension(phrase: NounPhrase, expected: str) -> None:
    cases = [" ".join(w.form for w in phrase.german(case)) for case in ("nom", "acc", "dat", "gen")]
    assert "|".join(cases) == expected
