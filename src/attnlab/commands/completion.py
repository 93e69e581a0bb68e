"""``attnlab completion``."""

import os
from pathlib import Path

import click

from attnlab.commands._shells import SHELLS, script


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

    own = Path(os.environ.get("SHELL", "")).name
    print(script(shell or (own if own in SHELLS else "bash"), COMPLETION), end="")
    return 0
