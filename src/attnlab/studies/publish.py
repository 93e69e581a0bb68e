"""The comparison of a study at Weights & Biases, beside the runs that it compares."""

import hashlib
from typing import Any

import matplotlib.pyplot  # noqa: F401  # Weights & Biases looks for it when it is given a figure
import wandb
from omegaconf import OmegaConf

from attnlab.evaluation import plots
from attnlab.studies.collection import Study
from attnlab.studies.comparison import Comparison


def publish(study: Study, comparison: Comparison) -> bool:
    """Log the table and the plots of a study whose runs were logged to Weights & Biases, to the same project and group.

    Returns:
        Whether its runs were logged there.
    """
    runs = [run for found in study.done().values() for run in found]
    logger = OmegaConf.create(runs[0].config).logger
    if not str(logger.get("_target_", "")).endswith(".wandb_logger"):
        return False
    # Weights & Biases would take the texts of spreads for other columns than the numbers; the text is what is read there.
    data: list[list[Any]] = [[cell.text for cell in row] for row in comparison.rows]
    first = {label: found[0] for label, found in study.done().items()}
    figures = {"curves": plots.curves({label: run.curve for label, run in first.items()}, "val/bleu")}
    for test in study.tests:
        buckets = {label: run.result["tests"][test]["by_length"] for label, run in first.items()}
        figures[f"{test} by length"] = plots.by_length(buckets, title=test)
    with wandb.init(
        project=logger.project,
        entity=logger.entity,
        mode=logger.mode,
        id=hashlib.sha256(f"report of {study.name}".encode()).hexdigest()[:16],
        resume="allow",
        group=study.name,
        name=f"{study.name}: comparison",
        job_type="report",
        dir=study.folder.resolve(),
        settings=wandb.Settings(silent=True, console="off"),
        reinit="finish_previous",
    ) as run:
        table = wandb.Table(columns=list[Any](comparison.header), data=data)
        run.log({"comparison": table, **{name: wandb.Image(figure) for name, figure in figures.items()}})
    return True
