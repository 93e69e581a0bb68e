"""Accuracy of single phenomena, where a corpus knows which words of a translation show them."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import override

from attnlab.evaluation.evidence import Evidence
from attnlab.evaluation.metric import Share, Statistics
from attnlab.evaluation.metrics import case_of, statistics_of
from attnlab.tasks.translation import annotations
from attnlab.tasks.translation.annotations import Annotation, Verdict, Words


class AnnotationRatio(Share):
    """A share of the annotations of all references, or of those about one phenomenon: Σ_i fulfilled_i / Σ_i annotations_i.

    Without annotations, or where no reference has such a one, there is no value.
    """

    @abstractmethod
    def concerns(self, annotation: Annotation) -> bool:
        """Tell whether an annotation counts."""

    @abstractmethod
    def fulfils(self, verdict: Verdict) -> bool:
        """Tell whether a verdict counts as fulfilled."""

    @override
    def statistics(self, evidence: Evidence) -> Statistics | None:
        lowercase = bool(evidence.facts.get("lowercase"))

        def count(example: tuple[str, Iterable[Annotation]]) -> tuple[float, float]:
            words = Words(example[0], lowercase=lowercase)
            verdicts = [annotation.judge(words) for annotation in example[1] if self.concerns(annotation)]
            return sum(map(self.fulfils, verdicts)), len(verdicts)

        if evidence.annotations is None:
            return None
        texts = [prediction.text for prediction in evidence.predictions]
        found = statistics_of(zip(texts, evidence.annotations, strict=True), count)
        return found if found is not None and found[:, 1].any() else None

    @override
    def signature(self, facts: Mapping[str, Any]) -> str:
        return f"case:{case_of(facts.get('lowercase'))}"


class Phenomenon(AnnotationRatio):
    """Share of the annotations of one phenomenon that a translation fulfils; one that lacks the word altogether does not."""

    @override
    def concerns(self, annotation: Annotation) -> bool:
        return annotation.phenomenon == self.label

    @override
    def fulfils(self, verdict: Verdict) -> bool:
        return verdict == "right"


class VerbPosition(Phenomenon):
    """Share of clauses whose verb stands where it must among those words of the clause that the translation has.

    In German: second in main clauses, last in subordinate ones, first in questions; in English: behind the subject.
    """

    label = annotations.VERB_POSITION


class Case(Phenomenon):
    """Share of German noun phrases whose article, and whose noun, have the form of their case, gender and number.

    Any contraction with the article counts as the article (*dem*, *im*), and *kein* as *ein*.
    """

    label = annotations.CASE


class AdjectiveEnding(Phenomenon):
    """Share of German adjectives before a noun that occur with their right ending: weak, strong or mixed."""

    label = annotations.ADJECTIVE_ENDING


class PronounGender(Phenomenon):
    """Share of personal and possessive pronouns with the gender and number of what they stand for, in whatever case.

    In German the gender is grammatical, in English natural.
    """

    label = annotations.PRONOUN_GENDER


class SeparablePrefix(Phenomenon):
    """Share of German separable verbs whose prefix is where it must be: at the end of a main clause, else at the verb.

    In a main clause some form of the verb without its prefix must come first.
    """

    label = annotations.SEPARABLE_PREFIX


class Copy(Phenomenon):
    """Share of names, of people and cities, and of numbers in digits that are copied."""

    label = annotations.COPY


class PhenomenaReached(AnnotationRatio):
    """Share of annotations whose word the translation has in some form: what lacks here is missing words, not wrong ones."""

    label = "phenomena reached"

    @override
    def concerns(self, annotation: Annotation) -> bool:
        return True

    @override
    def fulfils(self, verdict: Verdict) -> bool:
        return verdict != "not reached"
