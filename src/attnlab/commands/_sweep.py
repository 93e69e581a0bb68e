"""What train and study share: options of Hydra's, previewing a sweep, and printing what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnlab.commands._models import config_dir_option
from attnlab.errors import UserError, warn
from attnlab.studies.names import plural

if TYPE_CHECKING:
    from attnlab.studies.plan import Plan
    from attnlab.studies.results import Results


@dataclass(frozen=True)
class HydraOptions:
    """Options that Hydra has too.

    Attributes:
        config_dir: a folder with further options of the config groups.
        show: what Hydra is told to show a config and do nothing; empty to run.
    """

    config_dir: Path | None
    show: tuple[str, ...]

    @classmethod
    def of(cls, given: dict[str, Any]) -> "HydraOptions":
        """Take them out of a command's options, leaving the others."""
        if not given.get("cfg") and (given.get("package") or given.get("resolve")):
            raise UserError("--package and --resolve say how --cfg shows a config: add --cfg job")
        asked = [SHOW[name] for name in ("help", "hydra_help", "cfg", "info") if given.get(name)]
        if len(asked) > 1:
            raise UserError(f"{' and '.join(asked)} each show something else: name one of them")
        show: list[str] = []
        for name, flag in SHOW.items():
            value = given.pop(name, None)
            show += [flag] if value is True else [flag, value] if value else []
        return cls(given.pop("config_dir"), tuple(show))


SHOW = {
    "help": "--help",
    "hydra_help": "--hydra-help",
    "cfg": "--cfg",
    "package": "--package",
    "resolve": "--resolve",
    "info": "--info",
}
"""Options that are handed on to Hydra, by the names of their values."""

INFO = ["all", "config", "defaults", "defaults-tree", "plugins", "searchpath"]


def sweep_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that train and study share."""
    options = [
        click.option("--dry-run", is_flag=True, help="Only say what would be run, and what is done already."),
        click.option("--keep-results", is_flag=True, help="Keep results that other code made, if all else is the same."),
        config_dir_option,
        click.option("-c", "--cfg", type=click.Choice(["job", "hydra", "all"]), help="Show the config, and do nothing."),
        click.option("-p", "--package", metavar="NODE", help="With --cfg: a part of it."),
        click.option("--resolve", is_flag=True, help="With --cfg: with every interpolation resolved."),
        click.option("-i", "--info", type=click.Choice(INFO), help="Show how Hydra composes the config."),
        click.option("--hydra-help", is_flag=True, help="Show all options of Hydra's."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def sweep(
    root: Path, config_name: str, overrides: Sequence[str], options: HydraOptions, *, dry_run: bool, single: bool = False
) -> int:
    """Plan a sweep; preview it, show its first config, or let it run and report it.

    Args:
        root: folder that the main config lies in.
        config_name: of the main config.
        overrides: from the command line.
        options: of Hydra's.
        dry_run: only say what would be run.
        single: refuse a plan of several runs.

    Returns:
        The exit status.
    """
    from functools import partial
    from tempfile import TemporaryDirectory

    from attnlab.studies.plan import plan
    from attnlab.studies.settings import check_single
    from attnlab.studies.sweep import config_places, run_sweep

    command = ["attnlab", *click.get_current_context().find_root().obj]
    # A single run searches no studies, lest their folders be taken for config groups.
    places = list(filter(None, [options.config_dir])) if single else config_places(root, options.config_dir)
    make_plan = partial(plan, root, config_name, overrides, places, command=command)
    if not (dry_run or options.show):
        return _status(run_sweep(make_plan(), show_results))
    with TemporaryDirectory() as scratch:
        planned = make_plan(scratch=Path(scratch))
        if single:
            check_single(planned.settings)
            if len(planned.runs) != 1:
                raise UserError("several values of a key are a sweep: add -m")
        return _show_config(planned, options) if options.show else _dry_run(planned, in_sweep=not single)


def _show_config(planned: "Plan", options: HydraOptions) -> int:
    from attnlab.config import show_hydra

    first = planned.runs[0].overrides if planned.runs else ()  # the others differ from it in what is varied alone
    arguments = [*options.show, "--config-dir", str(planned.root), *first, planned.arguments[-1]]
    show_hydra(arguments, planned.config_name)
    return 0


def _dry_run(planned: "Plan", *, in_sweep: bool) -> int:
    from attnlab.studies.preview import check_plan, check_trainers, preview
    from attnlab.studies.sweep import apply_tuning
    from attnlab.terminal import unrepeated_warnings

    with unrepeated_warnings():
        planned = check_plan(planned)
        tuned: Plan | None = planned
        if planned.trials:
            states = preview(planned.trials)
            _show_plan(planned.trials, states, "trial")
            tuned = apply_tuning(planned) if not any(state.startswith("to do") for state in states) else None
        told = ["to do, once it is tuned"] * len(planned.runs) if tuned is None else preview(tuned)
    _show_plan(tuned or planned, told, "run")
    try:
        check_trainers(planned, in_sweep=in_sweep)
    except UserError as error:  # what is done can be seen where nothing could be trained
        warn(f"started here, it would end: {error}")
    return 0


def _show_plan(planned: "Plan", told: Sequence[str], kind: str) -> None:
    from rich.table import Table

    from attnlab.terminal import Terminal

    title = f"{planned.folder.path}: {plural(len(planned.runs), kind)}"
    has_values = any(run.values for run in planned.runs)
    table = Table(planned.axis, "seed", *(["set to"] if has_values else []), "", title=title, title_justify="left")
    for run, label, state in zip(planned.runs, planned.labels, told, strict=True):
        values = " ".join(f"{key}={value}" for key, value in run.values.items())
        table.add_row(label, str(run.seed), *([values] if has_values else []), state)
    Terminal().print(table)


def _status(results: "Results") -> int:
    """Tell what is not done of what was asked for; return 2 if all that failed are mistakes in configs, 1 for whatever else is
    not done, and 0 if nothing is left."""
    for warning in results.warnings:
        warn(warning)
    failed = [run for run in results.asked if run.has_failed]
    if failed:
        return 1 if any(run.folder.divergence or run.error.startswith(("Traceback", "killed")) for run in failed) else 2
    return 1 if results.warnings else 0


def show_results(results: "Results") -> None:
    """Print the table of a study, and where its report is."""
    from attnlab.terminal import Terminal

    console, comparison = Terminal(), results.comparison
    if comparison is None:
        untested = results.study.count("done")
        trained = f"{plural(untested, 'run')} {'is' if untested == 1 else 'are'} trained"
        told = f"{trained} and none is tested (test=false)" if untested else "no run is finished"
        console.print(f"{told}; what there is: {results.page}", soft_wrap=True, highlight=False)
        for run in results.study.runs:
            if run.state == "damaged":
                warn(f"{run.folder.path}: {run.damage}")
        return
    console.print(comparison.rich(console.width))
    table = results.study.folder.table_file("md").name
    console.print(
        f"written to {results.page}, and the table to {table}, .csv and .tex beside it", soft_wrap=True, highlight=False
    )
