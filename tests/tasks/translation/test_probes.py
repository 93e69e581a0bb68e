"""Probes of phenomena: every reference fulfils its own, and what breaks a phenomenon breaks its probes and no others."""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from attnlab.data.probes import Agreement, Occurrence, Order, Probe, Split, Words, format_probes, parse_probes
from attnlab.evaluation.evidence import Evidence
from attnlab.tasks.translation.grammar import GrammarCorpus, probes
from attnlab.tasks.translation.grammar.corpus import _join
from attnlab.tasks.translation.grammar.lexicon import NAMES
from attnlab.tasks.translation.grammar.probes import list_probes
from attnlab.tasks.translation.grammar.sampling import Sampler
from attnlab.tasks.translation.phenomena import (
    AdjectiveEnding,
    Case,
    Copy,
    Phenomenon,
    ProbesReached,
    PronounGender,
    SeparablePrefix,
    VerbPosition,
)
from evaluation.made import predictions

Item = tuple[str, tuple[Probe, ...]]
METRICS: tuple[Phenomenon, ...] = (VerbPosition(), Case(), AdjectiveEnding(), PronounGender(), SeparablePrefix(), Copy())


def sampled(language: str) -> list[Item]:
    flat = Sampler(random.Random(21), depths=[0, 1, 1, 2, 2, 2], open_names=0.1, joints=0.2)
    deep = Sampler(random.Random(22), depths=[3], open_names=0.0, joints=0.2, nesting=6.0)
    sentences = [flat.sentence() for _ in range(1800)] + [deep.sentence() for _ in range(300)]
    return [(_join(sentence.say(language)), list_probes(sentence, language)) for sentence in sentences]


@pytest.fixture(scope="module")
def items() -> dict[str, list[Item]]:
    return {language: sampled(language) for language in ("en", "de")}


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_reference_fulfils_its_own_probes(language: str, items: dict[str, list[Item]]) -> None:
    counts: Counter[str] = Counter()
    for line, own in items[language]:
        for probe in own:
            assert probe.judge(Words(line)) == "right", (line, probe)
            assert probe.judge(Words(line, lowercase=True)) == "right", (line, probe)
            counts[probe.phenomenon] += 1
    assert {*counts} == {metric.label for metric in (METRICS if language == "de" else (METRICS[0], METRICS[3], METRICS[5]))}
    assert min(counts.values()) > 200


def test_probes_come_back_from_a_line_of_text(items: dict[str, list[Item]]) -> None:
    for language, found in items.items():
        for _, own in found[:500]:
            assert parse_probes(format_probes(own)) == own, language


def replaced(words: list[str], position: int, form: str) -> list[str]:
    return [*words[:position], form, *words[position + 1 :]]


def another_article(probe: Probe, words: list[str]) -> Iterator[list[str]]:
    if isinstance(probe, Agreement) and probe.phenomenon == probes.CASE and "sein" not in probe.articles:
        line = Words(" ".join(words))
        wrong = [form for form in probe.articles if form not in probe.right]
        for place in line.find(probe.noun):
            nearest = max((p for p in line.find(probe.articles) if p < place), default=0)
            if nearest in line.find(probe.right) and place - nearest < 4:
                yield replaced(words, nearest, random.Random(len(words)).choice(wrong))


def another_ending(probe: Probe, words: list[str]) -> Iterator[list[str]]:
    if isinstance(probe, Occurrence) and probe.phenomenon == probes.ADJECTIVE_ENDING:
        for position in Words(" ".join(words)).find(probe.right):
            yield replaced(words, position, next(form for form in probe.forms if form not in probe.right))


def another_pronoun(probe: Probe, words: list[str]) -> Iterator[list[str]]:
    if isinstance(probe, Occurrence) and probe.phenomenon == probes.PRONOUN_GENDER:
        places = Words(" ".join(words)).find(probe.right)
        if len(places) == 1:  # else it could be the possessive
            yield replaced(words, places[0], next(form for form in probe.forms if form not in probe.right))


def another_prefix(probe: Probe, words: list[str]) -> Iterator[list[str]]:
    if isinstance(probe, Split):
        for position in Words(" ".join(words)).find((probe.prefix,)):
            if not words[position + 1][0].isalnum():
                yield replaced(words, position, "um")


def another_name(probe: Probe, words: list[str]) -> Iterator[list[str]]:
    if isinstance(probe, Occurrence) and probe.phenomenon == probes.COPY:
        places = Words(" ".join(words)).find(probe.right)
        unused = "99" if probe.right[0].isdigit() else next(name for name in NAMES["f"] if name not in " ".join(words))
        if len(places) == 1:  # else a verb could stand behind the one and before the other
            yield replaced(words, places[0], unused)


def moved_verb(probe: Probe, words: list[str]) -> Iterator[list[str]]:
    """To the other side of the nearest word that it stands behind or, where that is none, before."""
    if isinstance(probe, Order):
        line = Words(" ".join(words))
        verbs = line.find(probe.verb)
        beside = [line.find(forms) for forms in (*probe.before, *probe.after)]
        if len(verbs) > 1 or any(len(places) > 1 for places in beside):
            return  # that another such word stands there would do
        first = words[0][0].lower() + words[0][1:]
        small = any(first in forms for forms in (*probe.before, *probe.after))
        rest = [first if small and not position else word for position, word in enumerate(words) if position != verbs[0]]
        behind = [place for (place,) in beside if place < verbs[0]]
        ahead = [place for (place,) in beside if place > verbs[0]]
        target = max(behind) if behind else min(ahead)
        yield [*rest[:target], words[verbs[0]], *rest[target:]]


CORRUPTIONS: dict[str, Callable[[Probe, list[str]], Iterator[list[str]]]] = {
    probes.CASE: another_article,
    probes.ADJECTIVE_ENDING: another_ending,
    probes.PRONOUN_GENDER: another_pronoun,
    probes.SEPARABLE_PREFIX: another_prefix,
    probes.COPY: another_name,
    probes.VERB_POSITION: moved_verb,
}


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("phenomenon", CORRUPTIONS)
def test_what_breaks_a_phenomenon_breaks_its_probes_and_no_others(
    phenomenon: str, language: str, items: dict[str, list[Item]]
) -> None:
    tried = 0
    for line, own in items[language]:
        for probe in (probe for probe in own if probe.phenomenon == phenomenon):
            for corrupted in CORRUPTIONS[phenomenon](probe, Words(line).forms):
                words = Words(" ".join(corrupted))
                broken = {other.phenomenon for other in own if other.judge(words) != "right"}
                assert broken == {phenomenon}, (line, words.forms, probe, [p for p in own if p.judge(words) != "right"])
                tried += 1
    exists = any(probe.phenomenon == phenomenon for _, own in items[language] for probe in own)
    assert tried > 100 if exists else not tried


def evidence(lines: list[str], own: list[tuple[Probe, ...]] | None) -> Evidence:
    return Evidence(predictions(lines), lines, [], {"lowercase": False}, probes=own)


def test_metrics_count_the_probes_of_each_example(items: dict[str, list[Item]]) -> None:
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
    reached = ProbesReached().statistics(evidence([*lines[1:], ""], own))
    assert reached is not None
    assert reached[-1, 0] == 0.0
    assert ProbesReached().value(reached.sum(0)) > 1.0


def test_without_probes_there_are_no_such_metrics(items: dict[str, list[Item]]) -> None:
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
        Order(probes.VERB_POSITION, rufen, (("gestern",),), (("Mann", "Mannes"), ("Anna",)), False),
        Order(probes.VERB_POSITION, sehen, (pronouns, ("Hund", "Hundes")), (), True),
        Agreement(probes.CASE, ("der",), definite, ("Mann",), ("Mann", "Mannes")),
        Agreement(probes.CASE, ("den",), definite, ("Hund",), ("Hund", "Hundes")),
        Occurrence(probes.ADJECTIVE_ENDING, ("alte",), ("alte", "alten")),
        Occurrence(probes.ADJECTIVE_ENDING, ("jungen",), ("junge", "jungen", "jungem")),
        Occurrence(probes.PRONOUN_GENDER, ("sie", "ihr"), pronouns),
        Split(probes.SEPARABLE_PREFIX, rufen, "an"),
        Occurrence(probes.COPY, ("Anna", "Annas"), ("Anna", "Annas")),
    ]
    assert Counter(probe.judge(Words(prediction)) for probe in own) == verdicts


def test_a_corpus_hands_probes_on_of_all_that_is_measured() -> None:
    sizes = dict.fromkeys(("val_size", "test_size", "test_long_size", "test_deep_size", "test_long_deep_size"), 4)
    for source, target in (("en", "de"), ("de", "en")):
        for name, text in GrammarCorpus(source=source, target=target, train_size=4, **sizes).load().items():
            assert (text.probes is None) == (name == "train")
            for line, own in zip(text.target, text.probes or (), strict=False):
                assert own
                assert {probe.judge(Words(line)) for probe in own} == {"right"}
