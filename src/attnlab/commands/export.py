"""``attnlab export``."""

from pathlib import Path

import click

from attnlab.commands._complete import complete_run
from attnlab.commands._models import FILE
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError


@click.command(short_help="Put a trained model and its card into a folder to be shared.")
@click.argument("run", type=FILE, shell_complete=complete_run)
@click.argument("folder", type=FILE)
@click.option("--license", "licence", metavar="NAME", help="That the model is given under, such as mit; the card tells it.")
@trust_option
def command(run: Path, folder: Path, licence: str | None) -> int:
    """Put the model of RUN, the folder of a finished run, into the new FOLDER, which is opened like a run.

    It holds the weights, the config without paths of this machine, vocabularies and tokenizers, the result, and a model card
    (README.md) that tells what the model is, what it was trained on and how it did. Data and predictions are left out.
    """
    if licence is not None and not licence.strip():
        raise UserError("--license names none: leave it out, or name one, such as mit")
    from attnlab.runs.sharing import export

    made = export(run, folder, licence=licence)
    size = sum(path.stat().st_size for path in made.path.iterdir())
    print(f"{size:,} bytes: {made.path}; read {made.card_file}, and add what it cannot know")
    return 0
