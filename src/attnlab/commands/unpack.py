"""``attnlab unpack``."""

from pathlib import Path

import click

from attnlab.commands._io import check_writable
from attnlab.commands._models import FILE
from attnlab.runs.names import RUNS


@click.command(short_help="Add the runs that attnlab pack wrote; they count as done.")
@click.argument("archive", type=FILE)
def command(archive: Path) -> int:
    """Add the runs of an ARCHIVE to runs/, where they count as done; those that are there already are left as they are."""
    from attnlab.studies.archive import unpack

    root = Path(RUNS)
    check_writable(root)
    found = unpack(archive, root)
    trials = f", trials added: {len(found.trials)}" if found.trials else ""
    print(f"runs added to {found.study.path}: {len(found.added)}, there before: {len(found.known)}{trials}")
    print(f"attnlab report {found.study.name} compares them")
    return 0
