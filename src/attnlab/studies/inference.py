"""What the table of a study says of differences: which test was made, and what came of it."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

from attnlab.evaluation.significance.difference import LEVEL
from attnlab.evaluation.significance.improvement import Probability
from attnlab.evaluation.significance.multiplicity import clusters, holm
from attnlab.studies.collection import Study
from attnlab.studies.comparability import is_comparable
from attnlab.studies.contrasts import (
    NO_COMMON_SEED,
    NOT_COMPARABLE,
    ONE_SEED,
    Contrast,
    MeasuredVariants,
    Pair,
    compare,
    find_improvement,
    is_better,
    with_p,
)
from attnlab.studies.names import Significance, plural
from attnlab.studies.table import Note

IMPROVEMENT, ORDER, CLUSTER = "P(A > B)", "ε_min", "cluster"
"""What their columns are called, beside the test set."""
MOST_PAIRS = {"seeds": 20_000, "models": 300}
"""How many pairs of variants are compared for clusters; a test by exchanges takes long for more."""


@dataclass(frozen=True)
class Inference:
    """Differences in the metric that ranks.

    Attributes:
        significance: the test that was made.
        asked: the test that the study asks for.
        sets: the variants by test set.
        against: each other variant against the baseline, or why there is no comparison, by the test set and the variant.
        corrected: p of those after Holm's correction over all of them, on all test sets.
        improvements: P(A > B) of those, over seeds.
        orders: ε_min of those with a p and enough seeds.
        clusters: number of the cluster of each variant, by the test set; empty where none were made.
        apart: variants of one cluster that differ significantly all the same, the better one first, by the test set.
        pairs: of variants, on all test sets, that were compared for the clusters.
    """

    significance: Significance
    asked: Significance
    sets: Mapping[str, MeasuredVariants]
    against: Mapping[tuple[str, str], Contrast | str]
    corrected: Mapping[tuple[str, str], float]
    improvements: Mapping[tuple[str, str], Probability]
    orders: Mapping[tuple[str, str], float]
    clusters: Mapping[str, Mapping[str, int]]
    apart: Mapping[str, Sequence[tuple[str, str]]]
    pairs: int

    @property
    def is_tested(self) -> bool:
        """Whether any difference has a p."""
        return bool(self.corrected or self.clusters)


def infer(study: Study) -> Inference:
    """Compare the variants of a study with its baseline, and with each other, on every test set."""
    name, metric = study.ranking
    sets = {test: MeasuredVariants.of_study(study, test, name) for test in study.tests}
    significance = choose_significance(study.plan.significance, sets)
    asked = [
        Pair(test, label, study.baseline)
        for test, tested in sets.items()
        for label in tested.runs
        if study.baseline is not None and study.baseline in tested.runs and label != study.baseline
    ]
    against = {(pair.test, pair.one): found for pair, found in compare(significance, sets, asked).items()}
    corrected = holm({key: contrast.p for key, contrast in with_p(against).items()})
    confidence = 1 - LEVEL / max(1, len(corrected))
    has_direction = metric.higher_is_better is not None
    over_seeds = against if significance == "seeds" and has_direction else {}
    made = {key: one for key, one in over_seeds.items() if isinstance(one, Contrast)}
    improvements = {key: p for key, one in made.items() if (p := find_improvement(one, metric)) is not None}
    orders = {key: order for key, one in made.items() if (order := sets[key[0]].order(one, confidence)) is not None}
    ranked = {test: sets[test] for test in study.tests if has_direction and is_comparable(study, name, test)}
    numbers, apart, pairs = _cluster(ranked, significance)
    return Inference(
        significance, study.plan.significance, sets, against, corrected, improvements, orders, numbers, apart, pairs
    )


def choose_significance(asked: Significance, sets: Mapping[str, MeasuredVariants]) -> Significance:
    """Return the test that can be made: of trained models alone where variants were measured, but no two with several seeds."""
    several = [sum(len(runs) > 1 for runs in tested.runs.values()) for tested in sets.values()]
    is_measured = any(tested.runs for tested in sets.values())
    return asked if any(count > 1 for count in several) or not is_measured else "models"


def _cluster(
    sets: Mapping[str, MeasuredVariants], significance: Significance
) -> tuple[dict[str, dict[str, int]], dict[str, list[tuple[str, str]]], int]:
    """Number the clusters of variants on each test set whose values compare.

    Returns:
        The numbers, the pairs that differ significantly within a cluster, and how many pairs were compared.
    """
    least = 2 if significance == "seeds" else 1
    ranked = {test: _rank(tested, least) for test, tested in sets.items()}
    asked = [Pair(test, *pair) for test, labels in ranked.items() for pair in combinations(labels, 2)]
    if not 0 < len(asked) <= MOST_PAIRS[significance]:
        return {}, {}, len(asked)
    found = with_p(compare(significance, sets, asked))
    p_values = holm({pair: contrast.p for pair, contrast in found.items()})
    better = [pair for pair, one in found.items() if is_better(one, sets[pair.test].metric, p_values[pair])]
    apart = {test: [(pair.one, pair.other) for pair in better if pair.test == test] for test in ranked}
    tested = {pair.test for pair in found}
    numbers = {test: clusters(labels, apart[test]) for test, labels in ranked.items() if test in tested}
    within = {test: [(a, b) for a, b in apart[test] if own[a] == own[b]] for test, own in numbers.items()}
    return numbers, within, len(found)


def _rank(tested: MeasuredVariants, least: int) -> list[str]:
    """Return the variants with enough seeds, the best first."""
    sign = tested.metric.sign
    means = {label: sign * mean(run.value for run in runs) for label, runs in tested.runs.items() if len(runs) >= least}
    return sorted(means, key=lambda label: -means[label])


def difference_title(study: Study) -> str:
    """Return what a column of differences to the baseline is called, beside its test set."""
    return f"Δ{study.ranking[1].label}"


def describe(study: Study, inference: Inference) -> Iterator[Note]:
    """Say in words which test was made, over how many seeds, and what it speaks of."""
    title = difference_title(study)
    if tested := with_p(inference.against):
        test = tell_test(inference.significance, {count for found in tested.values() for count in found.seeds})
        yield Note(f"{title}: difference to {study.baseline}, {test}", (title,))
    elif any(isinstance(found, Contrast) for found in inference.against.values()):
        yield Note(f"{title}: difference to {study.baseline}, which nothing could be tested by", (title,))
    if inference.corrected:
        yield Note(
            f"{title}: [ ] is the 95 % confidence interval of a single difference; p is Holm-corrected over all "
            f"{plural(len(inference.corrected), 'comparison')} with {study.baseline}, on every test set; * p < {LEVEL}",
            (title,),
        )
    if inference.improvements:
        yield Note(
            f"{IMPROVEMENT}: probability that a newly trained run of the variant is better than one of {study.baseline}; "
            "with its 95 % confidence interval (Bouthillier et al. 2021, who call .75 and more meaningful)",
            (IMPROVEMENT,),
        )
    if inference.orders:
        yield Note(
            f"{ORDER}: 0 where the variant is stochastically better than {study.baseline}, 1 where it is worse; below 0.2 "
            "it is called almost stochastically better (Ulmer et al. 2022), as two equal variants with five seeds each are in "
            "3 to 6 of 100 comparisons (simulated): no test beside that of Δ",
            (ORDER,),
        )
    if inference.clusters:
        yield Note(
            f"{CLUSTER}: every variant of a cluster is significantly better than all of later clusters; within one some "
            f"pairs may differ too (Holm-corrected over {plural(inference.pairs, 'pair')} on all test sets)",
            (CLUSTER,),
        )
        if not inference.corrected:
            counts = {len(runs) for test in inference.clusters for runs in inference.sets[test].runs.values()}
            yield Note(f"{CLUSTER}: {tell_test(inference.significance, counts)}", (CLUSTER,))
        for test, apart in inference.apart.items():
            below = {better: [worse for one, worse in apart if one == better] for better, _ in apart}
            if below:
                told = "; ".join(f"{better} above {', '.join(worse)}" for better, worse in below.items())
                yield Note(f"significant differences within a cluster of {test}: {told}", (f"{test} {CLUSTER}",))
    elif inference.pairs:
        slow = " for a test of trained models by exchanges" if inference.significance == MODELS else ""
        yield Note(f"no clusters: {inference.pairs} pairs are too many{slow}")
    if study.ranking[1].higher_is_better is None:
        yield Note(f"no {IMPROVEMENT}, no {ORDER} and no clusters: neither way is better for {study.ranking[1].label}")
    if inference.asked != inference.significance:
        told = "; what is tested are these trained models alone" if inference.is_tested else ""
        yield Note(f"no test over seeds: no two variants have several, and nothing shows how far seeds lie apart{told}")
    yield from map(Note, _refusals(study, inference))


def tell_test(significance: Significance, counts: Collection[int]) -> str:
    """Say what a test speaks of, made over so many seeds of a variant."""
    seeds = " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))
    return TOLD[significance].format(seeds=plural(seeds, "seed"))


def _refusals(study: Study, inference: Inference) -> Iterator[str]:
    """Name the variants that were not compared."""
    for why, told in (
        (
            ONE_SEED,
            f"no test over seeds of variants with one seed (or against one): more seeds, or study.significance={MODELS}",
        ),
        (NOT_COMPARABLE, f"not tested against {study.baseline}: other examples or another form of the metric, see below"),
        (NO_COMMON_SEED, f"not tested against {study.baseline}, with which they have no seed in common"),
    ):
        labels = dict.fromkeys(label for (_, label), found in inference.against.items() if found == why)
        if labels:
            yield f"{told}: {', '.join(labels)}"
    made = {key: found for key, found in inference.against.items() if isinstance(found, Contrast)}
    fewer = dict.fromkeys(
        f"{label} on {test} (seeds: {contrast.seeds[0]})"
        for (test, label), contrast in made.items()
        for name, count in zip((label, study.baseline), contrast.seeds, strict=True)
        if count < len(inference.sets[test].runs[str(name)])
    )
    if fewer:
        yield (
            f"compared with {study.baseline} over the seeds that both have, which are not all that their means are of: "
            f"{', '.join(fewer)}"
        )
    if untold := [f"{label} on {test}" for (test, label), found in made.items() if math.isnan(found.p)]:
        yield (
            "no p, since too little varies, fewer than two examples add something, a value is missing where one is left out, "
            f"or values are too large for a variance: {', '.join(untold)}"
        )


MODELS: Significance = "models"
TOLD: dict[Significance, str] = {
    "seeds": (
        "tested over seeds and examples, so that it speaks of the variants, whatever seeds they are trained with ({seeds} a "
        "variant; Student's t with the variance between seeds and that between examples)"
    ),
    "models": (
        "tested over examples alone, so that it speaks of these trained models, and not of the variants with other seeds "
        "({seeds} a variant; paired approximate randomization over the examples of all)"
    ),
}
"""What the test that was made speaks of."""
