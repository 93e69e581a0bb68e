"""``attnlab study``."""

from typing import Any

import click

from attnlab.commands._complete import complete_study
from attnlab.commands._sweep import HydraOptions, sweep, sweep_options
from attnlab.errors import UserError


@click.command(short_help="Run a study and report it, or list the studies.")
@click.argument("name", required=False, shell_complete=complete_study)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_study)
@click.option("-m", "--multirun", is_flag=True, hidden=True)
@sweep_options
def command(
    name: str | None, overrides: tuple[str, ...], multirun: bool, dry_run: bool, keep_results: bool, **options: Any
) -> int:
    """Run a study, or what is missing of it, and report it; without NAME list the studies and how much of each is done.

    NAME is a file in experiments/, such as scores or scores/full, or the path of a file elsewhere. Every key of its config and
    every axis of its sweep can be set.
    """
    from attnlab.studies.files import find_study, is_override, study_places

    if name is None and not (dry_run or overrides or keep_results or any(options.values())):
        return _list()
    if name is None or is_override(name):
        raise UserError("name a study first: attnlab study NAME [KEY=VALUE ...]; attnlab study alone lists what there is")
    root, config_name = find_study(name, study_places())
    chosen = [*overrides, *(["keep_results=true"] if keep_results else [])]
    return sweep(root, config_name, chosen, HydraOptions.of(options), dry_run=dry_run)


def _list() -> int:
    from rich.table import Table

    from attnlab.studies.collection import collect, tally
    from attnlab.studies.files import list_studies, study_places
    from attnlab.studies.folder import StudyFolder
    from attnlab.terminal import Terminal

    table = Table("study", "question", "runs")
    for study in list_studies(study_places()):
        try:
            done = tally(run.state for run in collect(study.folder).runs)
        except UserError:
            done = "damaged" if StudyFolder(study.folder).plan_file.is_file() else "not begun"
        table.add_row(study.name, study.question, done)
    Terminal().print(table)
    return 0
