"""``attnlab evaluate``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnlab.commands._io import check_input, check_writable
from attnlab.commands._links import Pairs
from attnlab.commands._models import FILE, ModelOptions, bootstrap_option, check_label, model_options
from attnlab.commands._tests import print_tests
from attnlab.errors import UserError, warn

if TYPE_CHECKING:
    from attnlab.data.examples import Examples
    from attnlab.evaluation.metric import Metric
    from attnlab.runs.evaluation import TestEvaluation
    from attnlab.runs.folder import RunFolder
    from attnlab.tasks.task import Task


@click.command(short_help="Measure a trained model on any test set.")
@model_options
@click.option("--test", metavar="NAME,...", help="Test sets of the run's data, or val.  [default: all its test sets]")
@click.option("--files", nargs=2, type=FILE, metavar="SOURCE TARGET", help="Two line-aligned files instead.")
@bootstrap_option
@click.option("--label", default="default", show_default=True, help="Name of what is written into evaluations/.")
def command(
    test: str | None,
    files: tuple[Path, Path] | None,
    bootstrap: int,
    label: str,
    **options: Any,
) -> int:
    """Measure a trained model on its test sets or on any other, without training it again.

    Each RUN is the folder of a finished run; several are an ensemble, whose evaluation is written into the first one's folder.
    metrics=OPTION measures by others than the run's own, such as metrics=comet.
    """
    models = ModelOptions.of(options, measures=True)
    if files and test is not None:
        raise UserError("--files are a test set of their own: leave out --test, or --files")
    if models.to is not None and not files:
        raise UserError("--to is the language of --files; a test set has its own, such as --test test_fr: leave it out")
    check_label(label)
    check_input(*(files or ()))
    predictor = models.load()
    from attnlab.runs.evaluation import REPORTED, check_metrics, choose_shifts, divide, evaluate
    from attnlab.runs.folder import RunFolder
    from attnlab.runs.tested import describe_origin, read_earlier_tests, warn_of_other_data, write_tests

    folders = [RunFolder(run) for run in models.runs]
    folder = folders[0]
    task = predictor.task
    chosen = _choose_metrics(task, folder, models)
    if files:
        pairs = Pairs.read(*files)
        tests = {files[0].stem: task.parse(pairs.sources, pairs.targets)}
    else:
        tests = _read_tests(task, folder, test)
        for run in folders:
            warn_of_other_data(run, task)
    divisions = {} if files else {part: task.examples(part) for name in tests for part in task.divisions(name)}
    sets = {**tests, **divisions}
    paths = dict.fromkeys(sets, [str(path.resolve()) for path in files] if files else None)
    settings = {
        "others": [str(run.resolve()) for run in models.runs[1:]],
        "search": models.search,
        "checkpoint": models.checkpoint,
        "precision": models.precision,
        "replace_unknown": models.replace_unknown,
        **({} if models.to is None else {"to": models.to}),
        **describe_origin(folders, task),
        "metrics": chosen,
        "bootstrap": bootstrap,
    }
    read_earlier_tests(folder, label, settings, paths)  # before hours of work
    check_writable(folder.evaluations)
    check_metrics(task, sets.values(), "evaluation")
    shift = choose_shifts(predictor).get(REPORTED) if predictor.attends and not files else None
    found: dict[str, TestEvaluation] = {}
    for test_name, examples in tests.items():
        results = predictor.examine(examples, "evaluation")
        for name, own in ({test_name: results} if files else divide(task, test_name, results)).items():
            found[name] = evaluate(task, sets[name], own, occasion="evaluation", shift=shift, samples=bootstrap)
    measured = {name for evaluation in found.values() for name in evaluation.measurements}
    if missing := [task.metrics[name].label for name in chosen if name not in measured]:
        told = f"not measured, since what it takes is not there: {', '.join(missing)}"
        warn(told)
    _show(task.metrics, _find_monitored(folder), found)
    write_tests(folder, label, settings, found, sets, paths)
    print(f"written to {folder.evaluation_file(label)}")
    return 0


def _choose_metrics(task: "Task", folder: "RunFolder", models: ModelOptions) -> dict[str, Any]:
    """Let the task have the metrics that overrides ask for, and return the nodes of those that are not the run's own."""
    from attnlab.config import amend, targets, trust
    from attnlab.runs.building import load_metrics, read_trusted_config

    if not models.metrics:
        return {}
    recorded = read_trusted_config(folder)
    nodes = amend("metrics", recorded, models.metrics, models.places)
    with trust(targets(nodes)):  # the user's own words
        task.metrics = load_metrics(nodes, folder.config_file)
    return {name: node for name, node in nodes.items() if node != recorded["metrics"].get(name)}


def _read_tests(task: "Task", folder: "RunFolder", names: str | None) -> dict[str, "Examples"]:
    known = task.test_names if names is None else names.split(",")
    try:
        return {name: task.examples(name) for name in known}
    except UserError as error:
        if folder.is_exported and {*known} <= {*task.test_names, "train", "val"}:
            raise UserError(f"{error}; {folder.path} was exported without its data: put it there, or name --files") from error
        raise


def _find_monitored(folder: "RunFolder") -> str:
    from attnlab.runs.record import metric_name

    return metric_name(str(folder.read_config().get("monitor", "")))


def _show(metrics: Mapping[str, "Metric"], monitored: str, found: Mapping[str, "TestEvaluation"]) -> None:
    from attnlab.evaluation.measurement import LengthBuckets

    further = []
    if monitored in metrics:
        metric = metrics[monitored]
        cells = [
            "\n".join(
                f"{bucket.low} to {bucket.high}: {bucket.value:.{metric.digits}f} ({bucket.examples})"
                for bucket in LengthBuckets(evaluation.lengths).measure(metric, evaluation.statistics[monitored])
            )
            if monitored in evaluation.statistics
            else ""
            for evaluation in found.values()
        ]
        units = " or ".join(dict.fromkeys(evaluation.unit for evaluation in found.values()))
        further.append((f"{metric.title}\nby source {units} (examples)", cells))
    examples = {test: len(evaluation.hypotheses) for test, evaluation in found.items()}
    print_tests(metrics, examples, {test: evaluation.measurements for test, evaluation in found.items()}, further)
