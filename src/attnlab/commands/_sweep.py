"""What train and study share: options of Hydra's, and carrying out, reporting or previewing a sweep."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnlab.errors import UserError
from attnlab.runs.names import RUNS

if TYPE_CHECKING:
    from attnlab.studies.collection import Study
    from attnlab.studies.plan import Plan
    from attnlab.studies.run import Run


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
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    options = [
        click.option("--dry-run", is_flag=True, help="Only say what would be run, and what is done already."),
        click.option("--keep-results", is_flag=True, help="Keep results that other code made, if all else is the same."),
        click.option("-cd", "--config-dir", type=folder, help="A folder with further options of the config groups."),
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
    from tempfile import TemporaryDirectory

    from attnlab.config import CONF, EXPERIMENTS
    from attnlab.studies.plan import plan

    places = [place for place in (options.config_dir, *EXPERIMENTS, CONF) if place and place.is_dir() and place != root]
    words = click.get_current_context().find_root().obj
    if not (dry_run or options.show):
        return _run(plan(root, config_name, overrides, places, command=["attnlab", *words]))
    with TemporaryDirectory() as scratch:
        planned = plan(root, config_name, overrides, places, command=["attnlab", *words], scratch=Path(scratch))
        if single and len(planned.runs) != 1:
            raise UserError("several values of a key are a sweep: add -m")
        return _show_config(planned, options) if options.show else _dry_run(planned)


def _show_config(planned: "Plan", options: HydraOptions) -> int:
    from attnlab.config import show_hydra

    first = planned.runs[0].overrides if planned.runs else ()  # the others differ from it in what is varied alone
    arguments = [*options.show, "--config-dir", str(planned.root), *first, planned.arguments[-1]]
    show_hydra(arguments, planned.config_name)
    return 0


def _dry_run(planned: "Plan") -> int:
    from attnlab.studies.matching import match_sizes
    from attnlab.studies.preview import check_tests_of_claims, check_trials, preview

    check_tests_of_claims(planned)
    planned = match_sizes(planned)
    check_trials(planned)
    tuned: Plan | None = planned
    if planned.trials:
        states = preview(planned.trials)
        _show_plan(planned.trials, states, "trials")
        tuned = _tuned(planned) if not any(state.startswith("to do") for state in states) else None
    told = ["to do, once it is tuned"] * len(planned.runs) if tuned is None else preview(tuned)
    _show_plan(tuned or planned, told, "runs")
    return 0


def _show_plan(planned: "Plan", told: Sequence[str], kind: str) -> None:
    from rich.table import Table

    from attnlab.commands._terminal import Terminal

    title = f"{planned.folder.path}: {len(planned.runs)} {kind}"
    has_values = any(run.values for run in planned.runs)
    table = Table(planned.axis, "seed", *(["set to"] if has_values else []), "", title=title, title_justify="left")
    for run, label, state in zip(planned.runs, planned.labels, told, strict=True):
        values = " ".join(f"{key}={value}" for key, value in run.values.items())
        table.add_row(label, str(run.seed), *([values] if has_values else []), state)
    Terminal().print(table)


def _tuned(planned: "Plan") -> "Plan | None":
    """Return a plan with the values that its tuning chose; None while trials of it are not finished."""
    from attnlab.config import trust
    from attnlab.studies.tuning.selection import apply_selection, collect_selection

    variants = {" ".join(run.variant): run.variant for run in planned.runs}
    with trust(planned.targets()):
        return apply_selection(planned, collect_selection(planned.folder, planned.settings["tune"], variants))


def _run(planned: "Plan") -> int:
    from attnlab.config import trust

    if planned.settings["claims"] or planned.trials or planned.match:
        from attnlab.studies.matching import match_sizes
        from attnlab.studies.preview import check_tests_of_claims, check_trials

        check_tests_of_claims(planned)
        planned = match_sizes(planned)
        check_trials(planned)
    if planned.trials:
        planned.save()  # the report knows then what is tuned
        if not _launch(planned.trials):
            return STOPPED
        tuned = _tuned(planned)
        if tuned is None:
            return _tell_of_trials(planned, planned.trials)
        planned = tuned
    if not _launch(planned):
        return STOPPED
    asked = {run.folder for run in planned.runs}
    with trust(planned.targets()):
        study, _ = show_report(planned.folder.path, log=True)
    return _status([run for run in study.runs if not asked or run.folder.place in asked])


STOPPED = 130
"""How a command ends that was asked to stop."""


def _launch(planned: "Plan") -> bool:
    """Let runs be carried out; tell whether nobody asked to stop."""
    from attnlab.studies.launch import describe_progress, run_study

    try:
        run_study(planned)
    except KeyboardInterrupt:
        progress = describe_progress(planned.folder.path)
        print(f"attnlab: stopped, with {progress}; the same command goes on", file=sys.stderr)
        return False
    except UserError:
        raise
    except Exception as error:  # runs fail in their own processes; a launcher gives up when one that it started is gone
        told = (str(error).strip().splitlines() or [""])[0]
        print(f"attnlab: the launcher gave up ({type(error).__name__}: {told})", file=sys.stderr)
    return True


def _tell_of_trials(planned: "Plan", trials: "Plan") -> int:
    """Report a study that cannot go on, since not all variants have all trials, and return the exit status."""
    from attnlab.config import trust
    from attnlab.studies.collection import collect
    from attnlab.studies.tuning.selection import is_settled

    with trust(planned.targets()):
        show_report(planned.folder.path, log=False)
    asked = {run.folder for run in trials.runs}
    left = [run for run in collect(trials.folder.path).runs if run.folder.place in asked and not is_settled(run)]
    print(f"attnlab: {len(left)} of {len(asked)} trials are not finished, so no run is begun", file=sys.stderr)
    return _status(left) or 1


def _status(runs: Sequence["Run"]) -> int:
    """Return 1 if any of some runs crashed or is not done, 2 if all that failed are mistakes in their configs, else 0."""
    from attnlab.studies.collection import tally

    failed = [run for run in runs if run.state == "failed"]
    if failed:
        name = failed[0].folder.error_file.name
        print(f"attnlab: {len(failed)} runs failed; {name} in a run's folder says how", file=sys.stderr)
        return 1 if any("Traceback" in run.error or run.error.startswith("killed") for run in failed) else 2
    if any(not run.is_done for run in runs):
        print(f"attnlab: {tally(run.state for run in runs)}; the same command goes on", file=sys.stderr)
        return 1
    return 0


def study_folder(name: str) -> Path:
    """Return the folder of a study's runs.

    Args:
        name: of the study, or the path of the folder.

    Raises:
        UserError: there is none.
    """
    folder = Path(name) if Path(name).is_dir() else Path(RUNS, name)
    if not folder.is_dir():
        raise UserError(f"no runs of a study {name!r}: there is no folder {folder}")
    return folder


def show_report(folder: Path, *, log: bool) -> tuple["Study", bool]:
    """Write the report of a study, and print its table.

    Args:
        folder: of the study.
        log: also log the comparison where the runs were logged.

    Returns:
        What was reported, and whether it was logged.
    """
    from attnlab.commands._terminal import Terminal
    from attnlab.studies.report import report

    study, comparison = report(folder)
    console, page = Terminal(), study.folder.page_file
    if comparison is None:
        console.print(f"no run is finished; what there is: {page}", soft_wrap=True, highlight=False)
        return study, False
    console.print(comparison.rich())
    table = study.folder.table_file("md").name
    console.print(f"written to {page}, and the table to {table}, .csv and .tex beside it", soft_wrap=True, highlight=False)
    if not log:
        return study, False
    from attnlab.studies.publish import publish  # not before: Weights & Biases and Matplotlib are imported with it

    return study, publish(study, comparison)
