"""``attnlab train``."""

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from attnlab.commands._complete import complete_override
from attnlab.commands._sweep import HydraOptions, sweep, sweep_options
from attnlab.commands._tests import print_tests

if TYPE_CHECKING:
    from attnlab.config import HydraJob


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
    from attnlab.config import CONF, MAIN, parse_overrides, run_hydra, show_hydra

    hydra = HydraOptions.of(options)
    chosen = [*overrides, *(["keep_results=true"] if keep_results else [])]
    if (multirun or dry_run) and "--help" not in hydra.show:
        return sweep(CONF, MAIN, chosen, hydra, dry_run=dry_run, single=not multirun)
    arguments = [*hydra.show, *(["--config-dir", str(hydra.config_dir)] if hydra.config_dir else []), *chosen]
    if hydra.show:
        show_hydra(arguments, MAIN)
    else:
        parse_overrides(chosen, [CONF, *([hydra.config_dir] if hydra.config_dir else [])])  # tells what Hydra would not
        run_hydra(arguments, MAIN, _train)
    return 0


def _train(job: "HydraJob") -> None:
    """Carry out a run, and print what it came to on its test sets by the metrics that a report would show."""
    from attnlab.studies.launch import run_single

    result = run_single(job)
    from attnlab.config import targets, trust
    from attnlab.data.processes import is_first_process
    from attnlab.evaluation.measurement import Measurement
    from attnlab.runs.building import load_metrics
    from attnlab.runs.folder import RunFolder

    if not is_first_process():
        return
    folder = RunFolder(job.folder)
    config = folder.read_config()
    if result.tests:
        nodes = {name: config["metrics"][name] for name in (config["study"] or {}).get("metrics") or config["metrics"]}
        measured = {
            test: {name: Measurement(**one) for name, one in own["metrics"].items()} for test, own in result.tests.items()
        }
        examples = {test: own["examples"] for test, own in result.tests.items()}
        with trust(targets(nodes)):  # the user's own words
            metrics = load_metrics(nodes, folder.config_file)
        print_tests(metrics, examples, measured)
    compared = f"; attnlab report {quote(config['name'])} compares the runs of this name"
    click.echo(f"written to {folder.path}{compared if folder.path.parent.parent.name == config['name'] else ''}")
