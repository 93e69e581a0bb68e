"""The runs of a study one by one, for whoever computes something else from them than its table."""

from attnlab.studies.collection import Study
from attnlab.studies.cost import known_costs


def list_runs(study: Study) -> tuple[list[str], list[list[float | str | None]]]:
    """Return a row for each finished run and test set: its variant, seed, metrics by their names, costs and folder.

    Args:
        study: whose runs are listed.

    Returns:
        Names of the columns, and the rows; None where a run has no such value.
    """
    finished = study.finished_variants
    results = [run.result for runs in finished.values() for run in runs]
    names = list(dict.fromkeys(name for result in results for test in result.tests.values() for name in test["metrics"]))
    costs = known_costs(results)
    rows: list[list[float | str | None]] = [
        [
            label,
            run.seed,
            test,
            *(run.value(test, name) for name in names),
            *(cost.read(run.result) for cost in costs),
            run.folder.place,
        ]
        for label, runs in finished.items()
        for run in runs
        for test in run.result.tests
    ]
    return ["variant", "seed", "test", *names, *(cost.label for cost in costs), "folder"], rows
