"""``attnlab completion``."""

import os
from pathlib import Path

import click

from attnlab.commands._shells import SHELLS, script
from attnlab.errors import UserError


@click.command(short_help="Print a script that lets the shell complete words.")
@click.argument("shell", type=click.Choice([*SHELLS]), required=False)
def command(shell: str | None) -> int:
    """Print a script for SHELL, by default your own, after which Tab completes verbs, options, overrides, runs and studies.

    \b
    bash, in ~/.bashrc:                    eval "$(attnlab completion bash)"
    zsh, in ~/.zshrc, after compinit:      eval "$(attnlab completion zsh)"
    fish, in ~/.config/fish/config.fish:   attnlab completion fish | source
    """
    from attnlab.commands import COMPLETION

    own = shell or Path(os.environ.get("SHELL") or "bash").name
    if own not in SHELLS:
        raise UserError(f"there is no completion for {own}: name one of {', '.join(SHELLS)}")
    print(script(own, COMPLETION), end="")
    return 0
