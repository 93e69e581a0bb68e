"""Is one system better than another, or was it luck?"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sacrebleu.significance import PairedTest, Result

from attnlab.evaluation.bleu import bleu_metric

Test = Literal["bootstrap", "randomization"]


@dataclass(frozen=True)
class Comparison:
    """One system against the baseline.

    Attributes:
        value: its BLEU.
        difference: to the baseline's.
        p: probability of a difference at least as large if both were equally good.
        corrected: p after Holm's correction for all comparisons made at once.
    """

    value: float
    difference: float
    p: float
    corrected: float


def compare(
    baseline: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    *,
    test: Test = "randomization",
    lowercase: bool = False,
    language: str = "",
    samples: int = 10_000,
    seed: int = 12345,
) -> dict[str, Comparison]:
    """Compare systems with a baseline on the same sentences, by sacreBLEU's paired tests.

    Several seeds of one variant are compared by setting their hypotheses one after another, seed by seed.

    Args:
        baseline: its hypotheses.
        systems: the hypotheses of each other system.
        references: as many.
        test: paired bootstrap resampling (Koehn 2004) or paired approximate randomization (Riezler and Maxwell 2005).
        lowercase: ignore case.
        language: code of the target language; see :func:`attnlab.evaluation.bleu.bleu_metric`.
        samples: resamplings or shufflings.
        seed: of these.
    """
    os.environ["SACREBLEU_SEED"] = str(seed)
    named: list[tuple[str, Sequence[str]]] = [("baseline", list(baseline))]
    named += [(name, list(hypotheses)) for name, hypotheses in systems.items()]
    metric = bleu_metric(lowercase=lowercase, language=language)
    kind = {"bootstrap": "bs", "randomization": "ar"}[test]
    _, results = PairedTest(named, {"BLEU": metric}, [list(references)], kind, samples)()
    scores = [result for result in results["BLEU"] if isinstance(result, Result)]
    # sacreBLEU counts what is strictly larger than no difference at all, and finds two equal systems different.
    p_values = {
        name: 1.0 if list(hypotheses) == list(baseline) else float(result.p_value or 0.0)
        for (name, hypotheses), result in zip(named[1:], scores[1:], strict=True)
    }
    corrected = holm(p_values)
    return {
        name: Comparison(result.score, result.score - scores[0].score, p_values[name], corrected[name])
        for (name, _), result in zip(named[1:], scores[1:], strict=True)
    }


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Correct p-values for having made several comparisons (Holm 1979): step-down Bonferroni, never decreasing."""
    corrected: dict[str, float] = {}
    before = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        before = max(before, min(1.0, (len(p_values) - rank) * p_values[name]))
        corrected[name] = before
    return corrected
