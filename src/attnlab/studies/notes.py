"""What has to be said below a comparison: what its figures are, and which of them do not compare."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import mean
from typing import Any

import numpy as np

from attnlab.config import WITHOUT_EFFECT, targets, without_keys
from attnlab.evaluation.metrics import AlignmentAnchor, AlignmentErrorRate
from attnlab.evaluation.significance.difference import LEVEL
from attnlab.runs.record import batch_limits
from attnlab.source import package_code
from attnlab.studies.calibration import tell_published
from attnlab.studies.collection import Study
from attnlab.studies.comparability import has_data_by_seed, has_same_examples, signatures
from attnlab.studies.contrasts import PAIRS, Contrast
from attnlab.studies.cost import known_costs
from attnlab.studies.inference import CLUSTER, Inference, describe, difference_title
from attnlab.studies.pace import equal_time, equal_time_title
from attnlab.studies.run import Run
from attnlab.studies.table import Note

SEEDS = ("seed", "data.seed")
"""Keys in which the runs of a variant differ, and no variants do."""

FEW_SEEDS, UNLIKE = 10, 5
"""Of fewer seeds than this a star is doubted where deviations differ by this factor; see docs/statistics.md."""

ReadConfig = Callable[[], Mapping[str, Any]]
"""Reads the config of a run, where it matters: of 500 runs that takes a second."""


def remarks(study: Study, inference: Inference) -> list[Note]:
    """Return the notes below the comparison of a study with a finished run."""
    return [
        *_of_metrics(study),
        *map(Note, _of_incomparable(study)),
        *map(Note, _of_growth(study, inference)),
        *map(Note, _of_missing(study)),
        *map(Note, _of_limits(study)),
        *map(Note, _of_overlap(study)),
        *map(Note, _of_examples(study)),
        *_of_alignments(study),
        *map(Note, _of_probes(study)),
        *map(Note, _of_seeds(study)),
        *map(Note, _of_strangers(study)),
        *describe(study, inference),
        *map(Note, _of_pairs(study, inference)),
        *_of_calibration(study, inference),
        *map(Note, _of_spreads(inference)),
        *_of_equal_time(study),
        *_of_costs(study),
        *map(Note, _of_match(study)),
        *map(Note, describe_tuning(study)),
        *map(Note, _of_origins(study)),
        *map(Note, _of_starts(study)),
        *map(Note, _of_kept(study)),
        *map(Note, _of_attempts(study)),
    ]


def _of_calibration(study: Study, inference: Inference) -> Iterator[Note]:
    if inference.is_tested and (told := tell_published(inference.significance)):
        yield Note(told, (difference_title(study), CLUSTER))


def _of_pairs(study: Study, inference: Inference) -> Iterator[str]:
    made = {found.pairs_share for found in inference.against.values() if isinstance(found, Contrast)}
    if inference.significance == "seeds" and "training" in made:
        yield PAIRS["training"]


def _of_spreads(inference: Inference) -> Iterator[str]:
    """Name the stars of few seeds between variants that spread so differently that small levels are exceeded."""
    told = []
    for (test, label), p in inference.corrected.items() if inference.significance == "seeds" else ():
        contrast = inference.against[test, label]
        if isinstance(contrast, Contrast) and contrast.pairs_share is None and min(contrast.seeds) < FEW_SEEDS:
            least, most = sorted(float(np.std(scores, ddof=1)) for scores in contrast.scores)
            if p < LEVEL and most > 0 and most >= UNLIKE * least:
                told.append(f"{label} on {test}")
    if told:
        yield (
            f"one variant's seeds lie {UNLIKE} times as far apart as the other's, or more, in the stars of {', '.join(told)}: "
            "where that is so, few seeds may give more stars than p says"
        )


def _of_metrics(study: Study) -> Iterator[Note]:
    for name, metric in study.metrics.items():
        found = {test: signatures(study, name, test) for test in study.tests}
        direction = "lower is better" if metric.higher_is_better is False else ""
        single = {test: forms[0] for test, forms in found.items() if len(forms) == 1 and forms[0]}
        one_form = len({*single.values()}) == 1
        told = [*single.values()][:1] if one_form else [f"on {test} {form}" for test, form in single.items()]
        facts = [metric.unit, direction, *told]
        if any(found.values()) and any(facts):
            yield Note(f"{metric.label}: {', '.join(filter(None, facts))}", (metric.label,))


def _of_incomparable(study: Study) -> Iterator[str]:
    apart: dict[str, list[str]] = {}
    for name, metric in study.metrics.items():
        forms = (found for test in study.tests if len(found := signatures(study, name, test)) > 1)
        for difference in dict.fromkeys(map(_differing_parts, forms)):
            apart.setdefault(difference, []).append(metric.label)
    for difference, labels in apart.items():
        yield f"not comparable between runs that differ in {difference}, and so not ranked or tested: {', '.join(labels)}"


def doubts(study: Study) -> Iterator[str]:
    """Tell what keeps the figures of a study, which may be a column of another one, from being what they look like."""
    yield from _of_growth(study)
    yield from _of_missing(study)
    yield from _of_origins(study)
    yield from _of_starts(study)
    yield from _of_kept(study)
    yield from _of_attempts(study)


def _of_growth(study: Study, inference: Inference | None = None) -> Iterator[str]:
    if not study.finished_runs or (inference is not None and not inference.corrected):
        return
    if left := sum(run.is_to_come for run in study.runs):
        yield (
            f"{left} of {len(study.runs)} runs are to come: stars are of what there is, and whoever looks after each new "
            "seed sees more of them than p says"
        )
    if damaged := study.count("damaged"):
        yield f"{damaged} of {len(study.runs)} runs are damaged: stars are of the others"


def _of_missing(study: Study) -> Iterator[str]:
    """Name the variants whose mean is of fewer runs than they have, since a metric has no value in the others."""
    for test in study.tests:
        for name, metric in study.metrics.items():
            known = {
                label: sum(run.value(test, name) is not None for run in runs) for label, runs in study.finished_variants.items()
            }
            counts = {label: (count, len(study.finished_variants[label])) for label, count in known.items()}
            if name == study.ranking[0] and not any(known.values()):
                yield f"no finished run has a value of {metric.label} on {test}"
            if told := [f"{count} of {whole} runs of {label}" for label, (count, whole) in counts.items() if 0 < count < whole]:
                yield f"{metric.label} on {test} has a value in {', '.join(told)} alone, of which its mean is"


def _of_limits(study: Study) -> Iterator[str]:
    """Tell of a training and of tests that were cut short, as one for debugging is; of many runs, by the first one's config."""
    if told := batch_limits(study.finished_runs[0].config):
        yield f"cut short, and no result of the whole data: {', '.join(told)}"


def _of_overlap(study: Study) -> Iterator[str]:
    for test in study.tests:
        known = {run.result.tests.get(test, {}).get("overlap") or 0 for run in study.finished_runs}
        if most := max(known):
            yield f"{most} examples of {test} are in training too: figures on them tell what was learned by heart"


def _differing_parts(found: Sequence[str]) -> str:
    """Return the parts of signatures that are not the same in all of them, as ``tokens (bpe-mixed-800, spacy-mixed-500)``."""
    parts = [dict(part.split(":", 1) for part in told.split("|") if ":" in part) for told in found]
    values = {name: sorted({one.get(name, "unknown") for one in parts}) for name in {n: None for one in parts for n in one}}
    return ", ".join(f"{name} ({', '.join(told)})" for name, told in values.items() if len(told) > 1) or "; ".join(found)


def _of_examples(study: Study) -> Iterator[str]:
    if has_data_by_seed(study):
        yield PAIRS["examples"]
        if not all(has_same_examples(study, test) for test in study.tests):
            yield "not ranked: not all variants have the same seeds, and so not the same test examples"
        return
    for test in study.tests:
        if len({run.example_order(test)[0] for run in study.finished_runs if test in run.result.tests}) > 1:
            yield (
                f"not comparable: not all runs were tested on the same examples of {test}; variants are tested where each seed "
                "has examples of its own that are the same for all, and the runs of a seed are pairs then"
            )


def _of_alignments(study: Study) -> Iterator[Note]:
    """Tell beside an error rate what it is compared with, where the table has no column for it."""
    shown = [metric for metric in study.metrics.values() if type(metric) is AlignmentErrorRate]
    anchors = {n: m for n, m in study.known_metrics.items() if isinstance(m, AlignmentAnchor) and n not in study.metrics}
    for test in study.tests if shown else ():
        told = []
        for name, metric in anchors.items():
            if found := [value for run in study.finished_runs if (value := run.value(test, name)) is not None]:
                told.append(f"{metric.label} {mean(found):.1f} %")
        if told:
            yield Note(f"{test}: {'; '.join(told)}", tuple(metric.label for metric in shown))


def _of_probes(study: Study) -> Iterator[str]:
    for test in study.tests:
        probes = [(run, found) for run in study.finished_runs if (found := run.probe(test)) is not None]
        told = sorted({probe.signature for _, probe in probes})
        if any(differing_origins([(_reader(run), {"code": str(probe.code)}) for run, probe in probes])):
            yield f"not comparable, for other code probed the attention of some runs on {test}: attnlab probe does it again"
        if told:
            apart = "not comparable, for the attention was probed in several ways" if len(told) > 1 else "attention probed"
            yield f"{apart} on {test}: {'; '.join(told)}"


def _of_seeds(study: Study) -> Iterator[str]:
    if any(len(runs) > 1 for runs in study.finished_variants.values()):
        yield (
            "± is the standard deviation over seeds; [ ] is Student's 95 % confidence interval of the mean over seeds, as far "
            "as the metric goes"
        )
    if study.plan.baseline is not None and study.baseline is None:
        yield f"no differences: there is no variant {study.plan.baseline}, which is to be the baseline"
    name, metric = study.ranking
    own = study.finished_variants.get(study.baseline or "", [])
    for test in study.tests if study.baseline is not None else ():
        if all(run.value(test, name) is None for run in own):
            yield f"no differences on {test}: no finished run of {study.baseline}, the baseline, has {metric.label}"


def _of_strangers(study: Study) -> Iterator[str]:
    """Name variants that the last command did not plan: they are compared, and corrected for, as all others are."""
    planned = {run.folder for run in study.plan.planned_runs}
    if told := [
        label for label, runs in study.finished_variants.items() if planned and not any(r.folder.place in planned for r in runs)
    ]:
        yield f"compared though the study, as it was last run, does not have them: {', '.join(told)}"


def _of_equal_time(study: Study) -> Iterator[Note]:
    if pace := equal_time(study):
        title = equal_time_title(study.ranking[1])
        yield Note(
            f"{title}: the best on the validation set within the first {pace.seconds:,.1f} s of training, "
            f"after which all runs of the variant {pace.fastest} had ended; the time of validation is not counted",
            (title,),
        )


def _of_costs(study: Study) -> Iterator[Note]:
    for cost in known_costs(run.result for run in study.finished_runs):
        if cost.note:
            yield Note(cost.note, (cost.label,))


def _of_match(study: Study) -> Iterator[str]:
    if study.plan.match is None:
        return
    key, target = study.plan.match["key"], study.plan.match["parameters"]
    multiple = f", in multiples of {study.plan.match['multiple']}" if study.plan.match["multiple"] > 1 else ""
    counts = [run.result.parameters for run in study.finished_runs]
    yield (
        f"{key} of every variant is set for {target:,} parameters, as nearly as it can be{multiple}: there are "
        f"{min(counts):,} to {max(counts):,}"
    )


def describe_tuning(study: Study) -> Iterator[str]:
    """Tell how the variants of a study were tuned, if they were."""
    if study.plan.tune is None:
        return
    trials = study.plan.tune["trials"]
    yield (
        f"every variant is tuned ({', '.join(trials[0])}) by {len(trials)} trial{'s' if len(trials) != 1 else ''} on the "
        f"validation set before its runs; what was chosen stands under Tuning{' of each column' if study.plan.columns else ''}"
    )


def _of_origins(study: Study) -> Iterator[str]:
    by_seed = has_data_by_seed(study)
    kinds = ("version", "code") if by_seed else ("data", "version", "code")
    origins = [{kind: getattr(run.result, kind) for kind in kinds} for run in study.finished_runs]
    yield from differing_origins(list(zip(map(_reader, study.finished_runs), origins, strict=True)))
    if told := _of_other_base(study):
        yield (
            "not comparable: a config that all variants share, such as the study's file, was edited between their runs, after "
            f"those of {', '.join(told)}; run the study again"
        )
    for label, runs in study.finished_variants.items():
        recipes = {_settings(run.config) if by_seed else run.record.recipe for run in runs if run.record}
        if len(recipes) > 1:
            yield f"not comparable: the seeds of {label} differ in more than their seed; run the study again"


def _of_other_base(study: Study) -> list[str]:
    """Return the variants with a run that shared another config with the others than the runs of the last command do."""
    newest = {None, study.plan.base or None}
    is_other = {
        label: any(run.record and run.record.base not in newest for run in runs)
        for label, runs in study.finished_variants.items()
    }
    return [label for label, told in is_other.items() if told and study.plan.base]


def differs_in_code(study: Study) -> bool:
    """Tell whether runs are of other code than that of classes of the user's own, which some of them name."""
    return any(differing_origins([(_reader(run), {"code": run.result.code}) for run in study.finished_runs]))


def _settings(config: Mapping[str, Any]) -> str:
    """Write down what the seeds of a variant share whose data go by the seed: the config without seeds."""
    return json.dumps(without_keys(config, {"name", *SEEDS, *WITHOUT_EFFECT}), sort_keys=True, default=str)


def differing_origins(runs: Sequence[tuple[ReadConfig, Mapping[str, str]]]) -> Iterator[str]:
    """Tell in what figures of several runs do not compare.

    Args:
        runs: of each what reads its config, and what its figures come from by what it is, such as data and code.
    """
    for kind in dict.fromkeys(kind for _, origin in runs for kind in origin):
        if len({origin[kind] for _, origin in runs}) == 1:
            continue
        if kind.startswith("code") and len({package_code(origin[kind]) for _, origin in runs}) == 1:
            found: dict[frozenset[str], set[str]] = {}
            for read_config, origin in runs:  # those alone that name the same classes of the user's own can be of one code
                found.setdefault(frozenset(_foreign_targets(read_config())), set()).add(origin[kind])
        else:
            found = {frozenset(): {origin[kind] for _, origin in runs}}
        for values in found.values():
            if len(values) > 1:
                yield f"not comparable: these runs differ in {kind} ({', '.join(sorted(values))})"


def _of_starts(study: Study) -> Iterator[str]:
    yield from differing_starts({run.folder.place: (_reader(run), run.starts) for run in study.finished_runs})


def _reader(run: Run) -> ReadConfig:
    return lambda: run.config


def differing_starts(runs: Mapping[str, tuple[ReadConfig, Sequence[Mapping[str, Any]]]]) -> Iterator[str]:
    """Tell what runs were started in that changes figures, if it was not the same for all runs, or for all starts of one.

    Args:
        runs: by what they are called, of each what reads its config, and its starts, the newest last.
    """
    for kind in ("torch", "threads", "device", "precision"):
        found: dict[str, tuple[str, ...]] = {}
        for name, (_, starts) in runs.items():
            known = [(start.get("packages") or {}).get(kind) if kind == "torch" else start.get(kind) for start in starts]
            found[name] = tuple(dict.fromkeys(str(value) for value in known if value is not None))
        if kind == "threads" and len({*chain(*found.values())}) > 1:  # if they were asked for, they are a setting like others
            found = {name: values for name, values in found.items() if runs[name][0]().get("threads") is None}
        for name, values in found.items():
            if len(values) > 1:
                yield f"not of one kind: {name} was started again with other {kind} ({', then '.join(values)})"
        told = sorted({*chain(*found.values())})
        if len({values for values in found.values() if values}) > 1:
            yield f"not of one kind: these runs differ in {kind} ({', '.join(told)}), by which figures differ too"


def _foreign_targets(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a config names that is not attnlab's own."""
    yield from (target for target in map(str, targets(config)) if not target.startswith("attnlab."))


def _of_attempts(study: Study) -> Iterator[str]:
    if told := [
        f"{label}, seed {run.seed}" for label, runs in study.finished_variants.items() for run in runs if run.has_failed
    ]:
        yield f"as they were before a later attempt at them failed: {'; '.join(told)}"


def _of_kept(study: Study) -> Iterator[str]:
    kept: dict[str, list[str]] = {}
    for label, runs in study.finished_variants.items():
        for run in runs:
            if run.record and run.record.accepted_code:
                kept.setdefault(label, []).append(str(run.seed))
    if kept:
        told = "; ".join(f"{label}, seed {', '.join(seeds)}" for label, seeds in kept.items())
        yield f"kept on request (--keep-results) although the code changed since: {told}"
