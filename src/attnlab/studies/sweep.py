"""Carrying out a whole study or sweep: tuning, runs and report; for the command line and for Python."""

import logging
import multiprocessing
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from attnlab.config import CONF, EXPERIMENTS, MAIN, Place
from attnlab.config import trust as trust_targets
from attnlab.errors import StoppedError, ToldError, UserError, refusal, warn
from attnlab.studies.collection import chosen_variant, collect
from attnlab.studies.files import find_study, is_override, study_places
from attnlab.studies.folder import find_folder
from attnlab.studies.plan import Plan, plan
from attnlab.studies.publish import publish
from attnlab.studies.results import Results
from attnlab.studies.tuning.selection import (
    apply_selections,
    check_divergence,
    collect_trials,
    filter_trials,
    is_settled,
    select_values,
)
from attnlab.terminal import unrepeated_warnings


def study(*words: str, config_dir: str | Path | None = None, keep_results: bool = False) -> Results:
    """Run a study, or a sweep of one's own, as far as it is not done, and report it.

    A study is what ``attnlab study`` runs, ``study("scores", "seed=1,2")``; a sweep what ``attnlab train -m`` runs,
    ``study("name=mine", "attention=none,dot", "seed=1,2")``. What fails is a hole in the results, and is told.

    Args:
        words: the name of a study, and overrides of its config; or overrides alone.
        config_dir: a folder with further options of the config groups.
        keep_results: keep results that other code made, if all else is the same.

    Returns:
        The results of all runs of that name.

    Raises:
        UserError: a mistake in the study or in an override.
        StoppedError: it was asked to stop, and its runs have stopped; the same call goes on.
    """
    with _plain_errors(), _unchanged_process():
        if getattr(sys.modules.get("__mp_main__"), "__name__", "") == "__mp_main__":  # as a run's process imports a script
            raise UserError("call attnlab.study below \"if __name__ == '__main__':\", for every run imports this script")
        if not words:
            raise UserError("name a study, or give the overrides of a sweep: attnlab.study('name=mine', 'attention=none,dot')")
        if wrong := [word for word in words if not isinstance(word, str)]:
            raise UserError(f"{wrong[0]!r} is no text: name a study and each override by itself, ('scores', 'seed=1,2')")
        if config_dir is not None and not Path(config_dir).is_dir():
            raise UserError(f"config_dir: there is no folder {config_dir}")
        is_sweep = is_override(words[0])
        root, config_name = (CONF, MAIN) if is_sweep else find_study(words[0], study_places())
        overrides = [*words[not is_sweep :], *(["keep_results=true"] if keep_results else [])]
        options = [] if config_dir is None else ["--config-dir", str(config_dir)]
        command = ["attnlab", *(["train", "--multirun"] if is_sweep else ["study", words[0]]), *options, *overrides]
        places = config_places(root, None if config_dir is None else Path(config_dir))
        results = run_sweep(plan(root, config_name, overrides, places, command=command))
    for warning in results.warnings:
        warn(warning)
    return results


def report(name: str | Path, *, trust: bool = False) -> Results:
    """Report the runs of a study, finished or not, without training any.

    Args:
        name: of the study, or the path of its folder.
        trust: also use classes that are not attnlab's, as the runs may name, such as metrics: their code is executed.

    Raises:
        UserError: there are no runs.
    """
    with _plain_errors(), trust_targets(None) if trust else nullcontext():
        return report_folder(find_folder(str(name)))


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise what the user can mend without what a library raised before, which says nothing more."""
    try:
        yield
    except ToldError as error:
        raise error.with_traceback(None) from None
    except OSError as error:
        if told := refusal(error, "a file"):
            raise told from None
        raise


@contextmanager
def _unchanged_process() -> Iterator[None]:
    """Take back what Hydra and the processes of runs set for the whole process, which is the user's own."""
    root, start_method = logging.getLogger(), multiprocessing.get_start_method(allow_none=True)
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        for handler in set(root.handlers).difference(handlers):
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        multiprocessing.set_start_method(start_method, force=True)


def config_places(root: Path, config_dir: Path | None) -> list[Place]:
    """Return the places of configs beside the folder that the main config lies in."""
    return [place for place in (config_dir, *EXPERIMENTS, CONF) if place and place.is_dir() and place != root]


def _show_nothing(results: Results) -> None:
    pass


def run_sweep(planned: Plan, show: Callable[[Results], None] = _show_nothing) -> Results:
    """Carry out what of a plan is not done: the trials of its tuning first, then its runs, then the report.

    Args:
        planned: the study.
        show: called with the results when the report is written, before the comparison is logged.

    Returns:
        The results. Of a study whose trials are not all finished no run is begun, and its trials are what was asked for.

    Raises:
        UserError: a mistake in the study.
        StoppedError: it was asked to stop, and its runs have stopped.
    """
    from attnlab.studies.preview import check_plan, check_trainers

    with unrepeated_warnings():
        planned = check_plan(planned)
    check_trainers(planned)
    hashes, trials = planned.hashes(), planned.trials
    if trials:
        planned.save()  # the report knows then what is tuned
        _launch(trials, trials.hashes())
        tuned = apply_tuning(planned)
        if tuned is None:
            return _report_trials(planned, trials, show)
        planned = tuned
    _launch(planned, hashes)
    asked = {run.folder for run in planned.runs}
    with trust_targets(planned.targets()):
        results = report_folder(planned.folder.path)
        if asked:
            results = replace(results, asked=[run for run in results.asked if run.folder.place in asked])
        show(results)
        log_results(results)
    return results


def apply_tuning(planned: Plan) -> Plan | None:
    """Return a plan with the values that its tuning chose; None while trials of it are not finished."""
    columns = {variant: name for name, rows in (planned.settings["columns"] or {}).items() for variant in rows.values()}
    variants: dict[str | None, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for run in planned.runs:
        variants[columns.get(chosen_variant(run.variant))][" ".join(run.variant)] = run.variant
    tune = planned.settings["tune"]
    with trust_targets(planned.targets()):
        if (trials := collect_trials(planned.folder)) is None:
            return None
        tasks = [(filter_trials(trials, [*own.values()]), own) for own in variants.values()]
        for found, _ in tasks:
            check_divergence(found, tune)
        return apply_selections(planned, [select_values(found, tune, own) for found, own in tasks])


def _launch(planned: Plan, hashes: Mapping[str, str]) -> None:
    """Let runs be carried out, whose configs are to be what they were when the sweep began, by their hashes.

    Raises:
        StoppedError: somebody asked to stop.
        UserError: a launcher that begins nothing.
    """
    from attnlab.studies.launch import describe_progress, run_study

    before = planned.starts()
    try:
        run_study(planned, hashes)
    except KeyboardInterrupt:
        progress = describe_progress(planned.folder.path)
        raise StoppedError(f"stopped, with {progress}; the same command goes on") from None
    except UserError:
        raise
    except Exception as error:  # runs fail in their own processes; a launcher gives up when one that it started is gone
        told = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
        if planned.runs and planned.starts() == before:
            if isinstance(error, OSError) and error.filename:
                raise
            raise UserError(f"hydra/launcher begins no run ({told}): mend it, or leave it out") from error
        warn(f"the launcher gave up ({told})")


def _report_trials(planned: Plan, trials: Plan, show: Callable[[Results], None]) -> Results:
    """Report a study that cannot go on, since not all variants have all trials."""
    with trust_targets(planned.targets()):
        results = report_folder(planned.folder.path)
        show(results)
    asked = {run.folder for run in trials.runs}
    own = [run for run in collect(trials.folder.path).runs if run.folder.place in asked]
    left = [run for run in own if not is_settled(run)]
    told = f"{len(left)} of {len(asked)} trials are not finished, so no run is begun"
    if not left:
        told = (
            "no run is begun, since trials did not keep what study.tune.metric names of the validation that chose their "
            "checkpoint: name another or that of the key monitor, or, if they were made without it, delete "
            f"{trials.folder.path}"
        )
    return replace(results, asked=left, untuned=told)


def report_folder(folder: Path) -> Results:
    """Write the report of the runs in a folder, all of which count as asked for.

    Args:
        folder: of the study.

    Raises:
        UserError: no run there, or a plan that is damaged.
    """
    from attnlab.studies.report import report  # plotly: part of a second

    found, comparison = report(folder)
    return Results(found, comparison, found.runs)


def log_results(results: Results) -> bool:
    """Log a comparison where its runs were logged, and tell whether they were."""
    if results.comparison is None:
        return False
    return publish(results.study, results.comparison)
