"""``attnlab report``."""

import click

from attnlab.commands._complete import complete_study_folder
from attnlab.commands._sweep import show_results
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError


@click.command(short_help="Report the runs of a study, also while they run.")
@click.argument("name", shell_complete=complete_study_folder)
@click.option("--wandb", is_flag=True, help="Also log the comparison to Weights & Biases, where the runs were logged.")
@trust_option
def command(name: str, wandb: bool) -> int:
    """Report the runs in runs/NAME, or in the folder NAME, again, or for the first time while they run."""
    from attnlab.studies.folder import find_folder
    from attnlab.studies.sweep import log_results, report_folder

    folder = find_folder(name)
    results = report_folder(folder)
    show_results(results)
    if wandb and not log_results(results):
        raise UserError(f"--wandb: no finished run in {folder} was logged to Weights & Biases, so the comparison is not either")
    return 0
