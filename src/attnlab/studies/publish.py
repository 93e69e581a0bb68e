"""The comparison of a study at Weights & Biases, beside the runs that it compares."""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from attnlab.studies.collection import Study
from attnlab.studies.lengths import measure_runs_by_length
from attnlab.studies.table import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def publish(study: Study, comparison: Comparison) -> bool:
    """Log the table and the plots of a study whose runs were logged to Weights & Biases, to the same project and group.

    Returns:
        Whether its runs were logged there.
    """
    loggers = [run.config.get("logger") or {} for run in study.finished_runs]
    logger = next((one for one in loggers if str(one.get("_target_", "")).endswith(".wandb_logger")), None)
    if logger is None:
        return False
    import wandb  # not before: runs that log elsewhere need neither this nor Matplotlib

    from attnlab.evaluation import plots
    from attnlab.training.loggers import wandb_session

    # Weights & Biases would take the texts of spreads for other columns than the numbers; the text is what is read there.
    data: list[list[Any]] = [[cell.text for cell in row] for row in comparison.rows]
    drawn = {} if study.plan.columns else figures(study)  # of several tasks there is no common curve
    with wandb_session(
        mode=logger.get("mode"),
        project=logger["project"],
        entity=logger.get("entity"),
        id=hashlib.sha256(f"report of {study.name}".encode()).hexdigest()[:16],
        group=study.name,
        name=f"{study.name}: comparison",
        job_type="report",
        dir=study.folder.path.resolve(),
    ) as run:
        logged: dict[str, Any] = {"comparison": wandb.Table(columns=list[Any](comparison.header), data=data)}
        with TemporaryDirectory() as scratch:
            for number, (name, figure) in enumerate(drawn.items()):
                path = Path(scratch, f"{number}.png")
                plots.save(figure, path)
                logged[name] = wandb.Image(str(path))
            run.log(logged)
    return True


def figures(study: Study) -> "dict[str, Figure]":
    """Draw the learning curves, and the metric that ranks by source length, of the first finished run of each variant."""
    from attnlab.evaluation import plots

    first = {label: runs[0] for label, runs in study.finished_variants.items()}
    drawn = (
        {"curves": plots.plot_curves({label: run.curve for label, run in first.items()}, study.monitor)}
        if study.monitor
        else {}
    )
    name, metric = study.ranking
    for test in study.tests:
        buckets = dict(zip(first, measure_runs_by_length([*first.values()], test, name, metric), strict=True))
        drawn[f"{test} by length"] = plots.plot_by_length(buckets, metric.title, study.length_unit(test), title=test)
    return drawn
