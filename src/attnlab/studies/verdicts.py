"""What the runs of a study say of its claims."""

import math
from collections.abc import Sequence
from dataclasses import replace

from attnlab.evaluation.significance.difference import LEVEL
from attnlab.studies.claims import UNDECIDED, Claim, Verdict, combine, parse_claims
from attnlab.studies.collection import Study, find_variant
from attnlab.studies.contrasts import CONTRASTS, Contrast, MeasuredVariants
from attnlab.studies.inference import choose_significance
from attnlab.studies.names import plural
from attnlab.studies.run import Run


def judge_claims(study: Study) -> list[Verdict]:
    """Judge each claim by confidence intervals of the study's test, corrected for the number of claims (Bonferroni)."""
    claims = parse_claims(list(study.plan.claims))
    return [_judge(study, claim, LEVEL / len(claims)) for claim in claims]


def _judge(study: Study, claim: Claim, level: float) -> Verdict:
    known = {runs[0].overrides: label for label, runs in study.variants.items()}
    names = [find_variant(label, known) for label in claim.labels]
    if missing := [label for label, name in zip(claim.labels, names, strict=True) if name is None]:
        return Verdict(claim.text, UNDECIDED, f"there is no variant {missing[0]}")
    one = str(names[0])
    others = [str(name) for name in names[1:]] or study.others(one)
    if not others:
        return Verdict(claim.text, UNDECIDED, "there is no other variant")
    # Another column may have another metric of this name.
    study = replace(study, variants={label: study.variants[label] for label in (one, *others)})
    if claim.test not in study.tests or claim.metric not in study.known_metrics:
        return Verdict(claim.text, UNDECIDED, f"no finished run has {claim.metric} of {claim.test}")
    tested = MeasuredVariants.of_study(study, claim.test, claim.metric)
    asked = study.plan.significance
    significance = choose_significance(asked, {claim.test: tested})
    counts = [(len(study.finished_variants.get(label, ())), len(tested.runs.get(label, ()))) for label in (one, *others)]
    unmeasured = sum(finished - measured for finished, measured in counts)
    if significance != asked and any(finished > 1 for finished, _ in counts) and unmeasured:
        return Verdict(claim.text, UNDECIDED, f"{plural(unmeasured, 'finished run')} with no value of {tested.metric.label}")
    differences = {}
    for other in others:
        contrast = CONTRASTS[significance](tested, one, other)
        if not isinstance(contrast, Contrast):
            lacking = [label for label in (one, other) if label not in tested.runs]
            return Verdict(claim.text, UNDECIDED, f"{' and '.join(lacking or (one, other))}: {contrast}")
        differences[other] = contrast.difference
    if claim.other is None and tested.metric.higher_is_better is None:
        return Verdict(claim.text, UNDECIDED, f"neither way is better for {tested.metric.label}")
    if claim.other is None and tested.metric.sign < 0:
        claim = replace(claim, low=-claim.high, high=0.0)
    intervals, strict = (
        {other: difference.shown_interval(1 - level / share) for other, difference in differences.items()}
        for share in (1, len(differences))
    )
    verdict = combine(claim, intervals, strict, tested.metric.digits)
    told = " (of these trained models)" if significance == "models" else ""
    verdict = replace(verdict, reason=f"{verdict.reason}{told}")
    if unmeasured:
        told = f"without {plural(unmeasured, 'finished run')} with no value of {tested.metric.label}"
        verdict = replace(verdict, reason=f"{verdict.reason}, {told}")
    runs = [run for label in (one, *others) for run in study.variants[label]]
    diverged = sum(run.is_done and math.isinf(run.result.metric(claim.test, claim.metric) or 0.0) for run in runs)
    return _qualify(verdict, runs, diverged)


def _qualify(verdict: Verdict, runs: Sequence[Run], diverged: int) -> Verdict:
    """Decide nothing while runs are missing that were asked for: whoever looks after each new seed, and stops where he likes
    what he sees, finds differences more often than the level says. Neither while runs have failed or have an infinite value:
    trainings that diverge are a result of their variant, which would look better without them; nor while runs are damaged, for
    what they were is not known.
    """
    counts = {
        "are to come": sum(run.is_to_come for run in runs),
        "failed": sum(run.state == "failed" for run in runs),
        "are damaged": sum(run.state == "damaged" for run in runs),
        "have an infinite value": diverged,
    }
    missing = [f"{count} of {len(runs)} runs {what}" for what, count in counts.items() if count]
    if not missing:
        return verdict
    return replace(verdict, verdict=UNDECIDED, reason=f"{', '.join(missing)}; without them {verdict.reason}")
