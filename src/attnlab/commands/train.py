"""``attnlab train``."""

from typing import Any

import click

from attnlab.commands._complete import complete_override
from attnlab.commands._sweep import HydraOptions, sweep, sweep_options


@click.command(
    add_help_option=False,
    short_help="Train one model, or with -m a sweep of them, and test it.",
    context_settings={"help_option_names": []},
)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_override)
@click.option("-h", "--help", is_flag=True, help="Show what can be chosen, and exit.")
@click.option("-m", "--multirun", is_flag=True, help="Run every combination of values after commas, and compare them.")
@sweep_options
def command(overrides: tuple[str, ...], multirun: bool, dry_run: bool, keep_results: bool, **options: Any) -> int:
    """Train one model, test it, and write everything into runs/; with -m train several, and compare them."""
    from attnlab.config import CONF, MAIN, run_hydra, show_hydra

    hydra = HydraOptions.of(options)
    chosen = [*overrides, *(["keep_results=true"] if keep_results else [])]
    if (multirun or dry_run) and "--help" not in hydra.show:
        return sweep(CONF, MAIN, chosen, hydra, dry_run=dry_run, single=not multirun)
    arguments = [*hydra.show, *(["--config-dir", str(hydra.config_dir)] if hydra.config_dir else []), *chosen]
    if hydra.show:
        show_hydra(arguments, MAIN)
    else:
        from attnlab.studies.launch import run_single

        run_hydra(arguments, MAIN, run_single)
    return 0
