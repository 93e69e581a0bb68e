"""Every reference fulfils its own annotations, and what breaks a phenomenon breaks its annotations and no others."""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from attnlab.evaluation.evidence import Evidence
from attnlab.tasks.translation.annotations import (
    Agreement,
    Annotation,
    Occurrence,
    Order,
    Split,
    Words,
    format_annotations,
    parse_annotations,
)
from attnlab.tasks.translation.grammar import GrammarCorpus, annotations
from attnlab.tasks.translation.grammar.annotations import list_annotations
from attnlab.tasks.translation.grammar.corpus import _join
from attnlab.tasks.translation.grammar.lexicon import NAMES
from attnlab.tasks.translation.grammar.sampling import Sampler
from attnlab.tasks.translation.phenomena import (
    AdjectiveEnding,
    Case,
    Copy,
    PhenomenaReached,
    Phenomenon,
    PronounGender,
    SeparablePrefix,
    VerbPosition,
)
from evaluation.made import predictions

Item = tuple[str, tuple[Annotation, ...]]
METRICS: tuple[Phenomenon, ...] = (VerbPosition(), Case(), AdjectiveEnding(), PronounGender(), SeparablePrefix(), Copy())


def sampled(language: str) -> list[Item]:
    flat = Sampler(random.Random(21), depths=[0, 1, 1, 2, 2, 2], open_names=0.1, joints=0.2)
    deep = Sampler(random.Random(22), depths=[3], open_names=0.0, joints=0.2, nesting=6.0)
    sentences = [flat.sentence() for _ in range(1800)] + [deep.sentence() for _ in range(300)]
    return [(_join(sentence.say(language)), list_annotations(sentence, language)) for sentence in sentences]


@pytest.fixture(scope="module")
def items() -> dict[str, list[Item]]:
    return {language: sampled(language) for language in ("en", "de")}


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_reference_fulfils_its_own_annotations(language: str, items: dict[str, list[Item]]) -> None:
    counts: Counter[str] = Counter()
    for line, own in items[language]:
        for annotation in own:
            assert annotation.judge(Words(line)) == "right", (line, annotation)
            assert annotation.judge(Words(line, lowercase=True)) == "right", (line, annotation)
            counts[annotation.phenomenon] += 1
    assert {*counts} == {metric.label for metric in (METRICS if language == "de" else (METRICS[0], METRICS[3], METRICS[5]))}
    assert min(counts.values()) > 200


def test_annotations_come_back_from_a_line_of_text(items: dict[str, list[Item]]) -> None:
    for language, found in items.items():
        for _, own in found[:500]:
            assert parse_annotations(format_annotations(own)) == own, language


def replaced(words: list[str], position: int, form: str) -> list[str]:
    return [*words[:position], form, *words[position + 1 :]]


def another_article(annotation: Annotation, words: list[str]) -> Iterator[list[str]]:
    if isinstance(annotation, Agreement) and annotation.phenomenon == annotations.CASE and "sein" not in annotation.articles:
        line = Words(" ".join(words))
        wrong = [form for form in annotation.articles if form not in annotation.right]
        for place in line.find(annotation.noun):
            nearest = max((p for p in line.find(annotation.articles) if p < place), default=0)
            if nearest in line.find(annotation.right) and place - nearest < 4:
                yield replaced(words, nearest, random.Random(len(words)).choice(wrong))


def another_ending(annotation: Annotation, words: list[str]) -> Iterator[list[str]]:
    if isinstance(annotation, Occurrence) and annotation.phenomenon == annotations.ADJECTIVE_ENDING:
        for position in Words(" ".join(words)).find(annotation.right):
            yield replaced(words, position, next(form for form in annotation.forms if form not in annotation.right))


def another_pronoun(annotation: Annotation, words: list[str]) -> Iterator[list[str]]:
    if isinstance(annotation, Occurrence) and annotation.phenomenon == annotations.PRONOUN_GENDER:
        places = Words(" ".join(words)).find(annotation.right)
        if len(places) == 1:  # else it could be the possessive
            yield replaced(words, places[0], next(form for form in annotation.forms if form not in annotation.right))


def another_prefix(annotation: Annotation, words: list[str]) -> Iterator[list[str]]:
    if isinstance(annotation, Split):
        for position in Words(" ".join(words)).find((annotation.prefix,)):
            if not words[position + 1][0].isalnum():
                yield replaced(words, position, "um")


def another_name(annotation: Annotation, words: list[str]) -> Iterator[list[str]]:
    if isinstance(annotation, Occurrence) and annotation.phenomenon == annotations.COPY:
        places = Words(" ".join(words)).find(annotation.right)
        unused = "99" if annotation.right[0].isdigit() else next(name for name in NAMES["f"] if name not in " ".join(words))
        if len(places) == 1:  # else a verb could stand behind the one and before the other
            yield replaced(words, places[0], unused)


def moved_verb(annotation: Annotation, words: list[str]) -> Iterator[list[str]]:
    """To the other side of the nearest word that it stands behind or, where that is none, before."""
    if isinstance(annotation, Order):
        line = Words(" ".join(words))
        verbs = line.find(annotation.verb)
        beside = [line.find(forms) for forms in (*annotation.before, *annotation.after)]
        if len(verbs) > 1 or any(len(places) > 1 for places in beside):
            return  # that another such word stands there would do
        first = words[0][0].lower() + words[0][1:]
        small = any(first in forms for forms in (*annotation.before, *annotation.after))
        rest = [first if small and not position else word for position, word in enumerate(words) if position != verbs[0]]
        behind = [place for (place,) in beside if place < verbs[0]]
        ahead = [place for (place,) in beside if place > verbs[0]]
        target = max(behind) if behind else min(ahead)
        yield [*rest[:target], words[verbs[0]], *rest[target:]]


CORRUPTIONS: dict[str, Callable[[Annotation, list[str]], Iterator[list[str]]]] = {
    annotations.CASE: another_article,
    annotations.ADJECTIVE_ENDING: another_ending,
    annotations.PRONOUN_GENDER: another_pronoun,
    annotations.SEPARABLE_PREFIX: another_prefix,
    annotations.COPY: another_name,
    annotations.VERB_POSITION: moved_verb,
}


@pytest.mark.few(4)
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("phenomenon", CORRUPTIONS)
def test_what_breaks_a_phenomenon_breaks_its_annotations_and_no_others(
    phenomenon: str, language: str, items: dict[str, list[Item]]
) -> None:
    tried = 0
    for line, own in items[language]:
        for annotation in (annotation for annotation in own if annotation.phenomenon == phenomenon):
            for corrupted in CORRUPTIONS[phenomenon](annotation, Words(line).forms):
                words = Words(" ".join(corrupted))
                broken = {other.phenomenon for other in own if other.judge(words) != "right"}
                assert broken == {phenomenon}, (line, words.forms, annotation, [p for p in own if p.judge(words) != "right"])
                tried += 1
    exists = any(annotation.phenomenon == phenomenon for _, own in items[language] for annotation in own)
    assert tried > 100 if exists else not tried


def evidence(lines: list[str], own: list[tuple[Annotation, ...]] | None) -> Evidence:
    return Evidence(predictions(lines), lines, [], {"lowercase": False}, annotations=own)


def test_metrics_count_the_annotations_of_each_example(items: dict[str, list[Item]]) -> None:
    lines, own = map(list, zip(*items["de"][:300], strict=True))
    for metric in METRICS:
        right = metric.statistics(evidence(lines, own))
        assert right is not None
        assert right.shape == (300, 2)
        assert right[:, 1].tolist() == [sum(p.phenomenon == metric.label for p in each) for each in own]
        assert metric.value(right.sum(0)) == 100.0
        shifted = metric.statistics(evidence([*lines[1:], ""], own))
        assert shifted is not None
        assert np.array_equal(shifted[:, 1], right[:, 1]), "what is missing counts as wrong"
        assert metric.value(shifted.sum(0)) < 30.0
    reached = PhenomenaReached().statistics(evidence([*lines[1:], ""], own))
    assert reached is not None
    assert reached[-1, 0] == 0.0
    assert PhenomenaReached().value(reached.sum(0)) > 1.0


def test_without_annotations_there_are_no_such_metrics(items: dict[str, list[Item]]) -> None:
    lines, own = map(list, zip(*items["en"][:50], strict=True))
    assert all(metric.statistics(evidence(lines, None)) is None for metric in METRICS)
    assert Case().statistics(evidence(lines, own)) is None, "English shows no case"


GERMAN = "Gestern rief der alte Mann Anna an, weil sie den jungen Hund in Paris sah."


@pytest.mark.parametrize(
    ("prediction", "verdicts"),
    [
        (GERMAN, {"right": 9}),
        ("Gestern ruft ein alte Mann Anna an, weil sie den jungen Hund in Paris sah.", {"right": 8, "not reached": 1}),
        ("Gestern rief der alte Mann an Anna, weil sie den jungen Hund in Paris sah.", {"right": 8, "wrong": 1}),
        ("Gestern der alte Mann rief Anna an, weil sie den jungen Hund in Paris sah.", {"right": 8, "wrong": 1}),
        ("Gestern rief der alte Mann Anna an, weil sie sah den jungem Hund in Paris.", {"right": 7, "wrong": 2}),
        ("Gestern rief den alte Mann Anna an, weil er den jungen Hund in Paris sah.", {"right": 7, "wrong": 2}),
        ("", {"not reached": 9}),
    ],
)
def test_partly_right_predictions(prediction: str, verdicts: dict[str, int]) -> None:
    rufen, sehen = ("ruft", "rufen", "rief", "riefen"), ("sieht", "sehen", "sah", "sahen")
    definite = ("der", "die", "das", "den", "dem", "des")
    pronouns = ("er", "ihn", "ihm", "sie", "ihr", "es", "ihnen")
    own = [
        Order(annotations.VERB_POSITION, rufen, (("gestern",),), (("Mann", "Mannes"), ("Anna",)), False),
        Order(annotations.VERB_POSITION, sehen, (pronouns, ("Hund", "Hundes")), (), True),
        Agreement(annotations.CASE, ("der",), definite, ("Mann",), ("Mann", "Mannes")),
        Agreement(annotations.CASE, ("den",), definite, ("Hund",), ("Hund", "Hundes")),
        Occurrence(annotations.ADJECTIVE_ENDING, ("alte",), ("alte", "alten")),
        Occurrence(annotations.ADJECTIVE_ENDING, ("jungen",), ("junge", "jungen", "jungem")),
        Occurrence(annotations.PRONOUN_GENDER, ("sie", "ihr"), pronouns),
        Split(annotations.SEPARABLE_PREFIX, rufen, "an"),
        Occurrence(annotations.COPY, ("Anna", "Annas"), ("Anna", "Annas")),
    ]
    assert Counter(annotation.judge(Words(prediction)) for annotation in own) == verdicts


def test_a_corpus_hands_annotations_on_of_all_that_is_measured() -> None:
    sizes = dict.fromkeys(("val_size", "test_size", "test_long_size", "test_deep_size", "test_long_deep_size"), 4)
    for source, target in (("en", "de"), ("de", "en")):
        for name, text in GrammarCorpus(source=source, target=target, train_size=4, **sizes).load().items():
            assert (text.annotations is None) == (name == "train")
            for line, own in zip(text.target, text.annotations, strict=True) if text.annotations else ():
                assert own
                assert {annotation.judge(Words(line)) for annotation in own} == {"right"}


def test_a_model_of_lower_case_need_not_write_capital_letters() -> None:
    lines, own = ["gestern kam anna"], [(Occurrence("copy", ("Anna",), ("Anna",)),)]
    for lowercase, right in ((True, 1.0), (False, 0.0)):
        found = Copy().statistics(Evidence(predictions(lines), lines, [], {"lowercase": lowercase}, annotations=own))
        assert found is not None
        assert found.tolist() == [[right, 1.0]]
