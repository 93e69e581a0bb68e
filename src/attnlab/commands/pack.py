"""``attnlab pack``."""

from pathlib import Path

import click

from attnlab.commands._complete import complete_study_folder
from attnlab.commands._io import check_output
from attnlab.commands._models import FILE
from attnlab.errors import UserError

ENDING = ".tar.xz"


@click.command(short_help="Put the finished runs of a study into one small file.")
@click.argument("name", shell_complete=complete_study_folder)
@click.option("--output", type=FILE, metavar="FILE", help="Where to write.  [default: NAME.tar.xz]")
def command(name: str, output: Path | None) -> int:
    """Write the finished runs in runs/NAME, or in the folder NAME, into one file for another machine.

    It holds what reports and comparisons read (results, predictions, statistics, learning curves, attention), and no model.
    """
    from attnlab.studies.archive import pack
    from attnlab.studies.folder import StudyFolder, find_folder

    check_output(output)
    if output is not None and not output.name.endswith(ENDING):
        raise UserError(f"--output ends in {ENDING}, as what it writes does, not {output.name!r}")
    study = StudyFolder(find_folder(name))
    target = output or Path(f"{study.name}{ENDING}")
    packed = pack(study, target)
    trials = f" and {len(packed.trials)} of {len(study.tuning.runs)} trials" if study.tuning.runs else ""
    print(f"{len(packed.runs)} of {len(study.runs)} runs{trials}, {target.stat().st_size:,} bytes: {target}")
    return 0
