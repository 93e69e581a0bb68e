"""The grammar: constructions with their alignments, agreement, and properties of whole corpora."""

import random

import pytest
import spacy
from sacremoses import MosesTokenizer

from attnlab.data.grammar import GrammarCorpus
from attnlab.data.grammar.clauses import Clause, Sentence
from attnlab.data.grammar.lexicon import TIMES, lexicon
from attnlab.data.grammar.phrases import Name, NounPhrase, Phrase, Pronoun, align
from attnlab.data.grammar.sampling import Sampler
from attnlab.errors import UserError

SMALL = {"train_size": 600, "val_size": 60, "test_size": 60, "test_long_size": 40}
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
    return Clause(subject=subject, verb=verb(base), objects=objects or {}, **options)  # type: ignore[arg-type]


def anna() -> Name:
    return Name(name="Anna", plural=False, gender="f", natural="f", kind="person")


def he(about: Phrase) -> Pronoun:
    return Pronoun(plural=about.plural, gender=about.gender, natural=about.natural, kind=about.kind)


def related(phrase: NounPhrase, gap: str, relative: Clause) -> NounPhrase:
    phrase.gap, phrase.relative = gap, relative
    return phrase


def subject_relative() -> NounPhrase:
    dog = noun("dog", adjectives="small")
    return related(dog, "nom", clause(dog, "follow", {"dat": noun("cat")}))


def own_uncle() -> Clause:
    girl = noun("girl")
    return clause(girl, "visit", {"acc": noun("uncle", "own", owner=girl)}, tense="past")


def pronoun_because() -> Clause:
    mouse = noun("mouse")
    tired = next(a for a in WORDS.adjectives["animal"] if a.english == "tired")
    adjunct = Clause(subject=he(mouse), predicate=tired)
    return Clause(subject=mouse, verb=verb("sleep"), conjunction=("because", "weil"), adjunct=adjunct)


CONSTRUCTIONS = {
    "verb second, separable verb split": (
        lambda: clause(noun("man"), "call", {"acc": noun("woman")}),
        "The man calls the woman.|Der Mann ruft die Frau an.|0-0 1-1 2-2 2-5 3-3 4-4 5-6",
    ),
    "inversion after a fronted time": (
        lambda: clause(noun("man"), "fall asleep", time=TIMES[0], fronted="time"),
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
        lambda: clause(noun("aunt"), "thank", {"dat": noun("child", "", plural=True, number="12", adjectives="brave")}),
        "The aunt thanks 12 brave children.|Die Tante dankt 12 mutigen Kindern.|0-0 1-1 2-2 3-3 4-4 5-5 6-6",
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
        lambda: clause(anna(), "see", {"acc": noun("neighbor")}, tense="past", place=(("in", "in"), noun("garden"))),
        "Anna saw the neighbor in the garden.|Anna sah den Nachbarn im Garten.|0-0 1-1 2-2 3-3 4-4 5-4 6-5 7-6",
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_construction(name: str) -> None:
    make, expected = CONSTRUCTIONS[name]
    english, german, links = expected.split("|")
    sentence = Sentence(clauses=[make()])
    source, target = sentence.english(), sentence.german()
    assert " ".join(w.form for w in source).replace(" .", ".").replace(" ,", ",") == english
    assert " ".join(w.form for w in target).replace(" .", ".").replace(" ,", ",") == german
    assert " ".join(f"{s}-{t}" for s, t in align(source, target)) == links


def test_question() -> None:
    sentence = Sentence(clauses=[clause(noun("man"), "call", {"acc": anna()}, negated=True)], question=True)
    assert [w.form for w in sentence.english()] == ["Does", "the", "man", "not", "call", "Anna", "?"]
    assert [w.form for w in sentence.german()] == ["Ruft", "der", "Mann", "Anna", "nicht", "an", "?"]


def test_corpus_is_decided_by_its_seed_and_its_splits_do_not_overlap() -> None:
    first, again, other = (GrammarCorpus(seed=seed, **SMALL) for seed in (1, 1, 2))
    splits = first.load()
    assert splits == again.load()
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    assert splits["test"].source != other.load()["test"].source
    sources = [sentence for text in splits.values() for sentence in text.source]
    assert len(sources) == len(set(sources)) == sum(SMALL.values())
    larger = GrammarCorpus(seed=1, **{**SMALL, "train_size": 700})
    assert first.sizes != larger.sizes


def test_lengths_tokens_and_alignments() -> None:
    """Tokens are those of spaCy and of Moses; every word is aligned except English "do" and German commas."""
    english, german = spacy.blank("en").tokenizer, spacy.blank("de").tokenizer
    moses = [MosesTokenizer(lang=language) for language in ("en", "de")]
    for name, text in GrammarCorpus(open_names=0.2, **SMALL).load().items():
        low, high = (21, 60) if name == "test_long" else (3, 20)
        assert text.alignments is not None
        lengths = set()
        for source, target, links in zip(text.source, text.target, text.alignments, strict=True):
            tokens = [[t.text for t in english(source)], [t.text for t in german(target)]]
            assert tokens == [m.tokenize(s, escape=False) for m, s in zip(moses, (source, target), strict=True)]
            assert all(low <= len(side) <= high for side in tokens)
            lengths.add(len(tokens[0]))
            linked = [{link[side] for link in links} for side in (0, 1)]
            unaligned = [[t for i, t in enumerate(side) if i not in linked[s]] for s, side in enumerate(tokens)]
            assert set(map(str.lower, unaligned[0])) <= {"do", "does", "did", ","}, source
            assert set(unaligned[1]) <= {","}, target
            assert all(i < len(tokens[0]) and j < len(tokens[1]) for i, j in links)
        assert len(lengths) > (high - low) / 2


def test_german_to_english_is_the_mirror_image() -> None:
    """Names, numbers and alignments survive the swap."""
    text = GrammarCorpus(source="de", target="en", **SMALL).load()["test"]
    english = spacy.blank("en").tokenizer
    assert text.alignments is not None
    copied = 0
    for source, target, links in zip(text.source, text.target, text.alignments, strict=True):
        words = [t.text for t in english(target)]
        side = source.replace(",", " ,").replace(".", " .").replace("?", " ?").split()
        for i, j in links:
            if side[i].isdigit():
                assert words[j] == side[i]
                copied += 1
    assert copied > 5


def test_invented_names_are_copied() -> None:
    sampler = Sampler(random.Random(1), max_depth=1, open_names=1.0, joints=0.0)
    names = {sampler._name().name for _ in range(200)}
    assert len(names) > 150


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "fr"}, "speaks en and de"),
        ({"source": "de", "target": "de"}, "speaks en and de"),
        ({"val_size": 0}, "data.val_size must be 1 or more"),
        ({"max_depth": 0}, "max_depth"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        GrammarCorpus(**options)  # type: ignore[arg-type]
