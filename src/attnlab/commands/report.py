"""``attnlab report``."""

import click

from attnlab.commands._complete import complete_study_folder
from attnlab.commands._sweep import show_report, study_folder
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError


@click.command(short_help="Report the runs of a study, also while they run.")
@click.argument("name", shell_complete=complete_study_folder)
@click.option("--wandb", is_flag=True, help="Also log the comparison to Weights & Biases, where the runs were logged.")
@trust_option
def command(name: str, wandb: bool) -> int:
    """Report the runs in runs/NAME, or in the folder NAME, again, or for the first time while they run."""
    folder = study_folder(name)
    _, logged = show_report(folder, log=wandb)
    if wandb and not logged:
        raise UserError(f"--wandb: no finished run in {folder} was logged to Weights & Biases, so the comparison is not either")
    return 0
