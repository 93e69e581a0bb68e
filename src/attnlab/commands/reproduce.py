"""``attnlab reproduce``."""

from pathlib import Path

import click

from attnlab.commands._complete import complete_run
from attnlab.commands._models import FILE
from attnlab.commands._trust import trust_option

SHOWN = 20
"""Differences that are told one by one."""


@click.command(short_help="Run a recorded run again, and compare every figure.")
@click.argument("run", type=FILE, shell_complete=complete_run)
@trust_option
def command(run: Path) -> int:
    """Carry out RUN, the folder of a finished run, once more as it was recorded, and tell whether every figure is the same."""
    from attnlab.runs.reproduction import REPRODUCTION, reproduce
    from attnlab.terminal import tell

    compared, differences, elsewhere = reproduce(run)
    for difference in differences[:SHOWN]:
        tell(f"{difference.name}: {difference.recorded!r} was recorded, and is {difference.found!r} now")
    if elsewhere:
        named = ", ".join(f"{d.name} ({d.recorded} then, {d.found} now)" for d in elsewhere[: SHOWN // 2])
        tell(f"it ran elsewhere: {named}{' and more' if len(elsewhere) > SHOWN // 2 else ''}")
    if differences:
        print(f"{len(differences)} of {compared} figures differ; the new run is in {run / REPRODUCTION}")
        return 1
    if compared:  # another process than the first of a distributed run compares nothing
        print(f"all {compared} figures are the same, to the last digit")
    return 0
