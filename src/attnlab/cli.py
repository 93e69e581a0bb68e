"""The command line. Nothing heavy is imported before a run starts, so that help and completion answer at once."""

import argparse
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import attnlab
from attnlab import using
from attnlab.errors import BusyError, StoppedError, UserError, unknown_key
from attnlab.studies.identity import variant
from attnlab.studies.jobs import job

if TYPE_CHECKING:
    from attnlab.studies.plan import Known, Plan

USAGE = """\
attnlab: which attention, and why?

usage: attnlab COMMAND [ARGUMENTS]

  train [KEY=VALUE ...]       train one model, test it, write everything into runs/
  train -m KEY=A,B ...        train every combination, and compare them
  study                       list the studies in experiments/, their questions, and how much of each is done
  study NAME [KEY=VALUE ...]  run a study, or what is missing of it, and report it; --dry-run only says what it would do
  report NAME                 report the runs in runs/NAME again, or for the first time while they run
  reproduce RUN               run a recorded run again, and tell whether every figure is the same
  translate RUN               translate lines of text with a trained model
  evaluate RUN                measure a trained model on any test set
  align RUN                   align words by what a trained model looks at; score that against known links
  draw WHAT RUN ...           heatmaps of a sentence, BLEU by length, learning curves: PNG, SVG or PDF
  compare RUN RUN ...         is one better than another? Paired significance tests
  completion                  print a script for the shell: eval "$(attnlab completion)"

  train --help                what can be chosen, and Hydra's own options
  train --cfg job KEY=VALUE   show a config without running it
  --version
"""

PACKAGE = Path(__file__).resolve().parent
CONF = next(path for path in (PACKAGE / "conf", PACKAGE.parents[1] / "conf") if path.is_dir())
"""The config groups: inside the package when installed from a wheel, beside ``src`` in a checkout."""
EXPERIMENTS = (Path("experiments"), CONF.with_name("experiments"))
"""Where studies are: the user's own, and those that ship, beside ``conf``."""

OmegaConf.register_new_resolver("variant", variant, replace=True)


def main() -> int:
    """Run the command line; returns the exit status: 0 done, 1 a run failed, 2 a mistake of the user's."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if arguments[0] == "--version":
        print(f"attnlab {attnlab.__version__}")
        return 0
    try:
        if arguments[0] not in COMMANDS:
            raise UserError(f"no command {arguments[0]!r}: there is {', '.join(COMMANDS)}")
        return COMMANDS[arguments[0]](arguments[1:])
    except (UserError, HydraException, OmegaConfBaseException) as error:
        return _tell(error)
    except KeyboardInterrupt:
        print("attnlab: stopped", file=sys.stderr)
        return 130
    except StoppedError as error:
        print(f"attnlab: {error}", file=sys.stderr)
        return 130
    except BusyError as error:
        print(f"attnlab: {error}", file=sys.stderr)
        return 1
    except PermissionError as error:
        print(f"attnlab: {error.strerror}: {error.filename}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _train(arguments: Sequence[str]) -> int:
    if {"-m", "--multirun"} & set(arguments):
        return _sweep(CONF, "train", arguments, ["attnlab", "train", *arguments])
    return _hydra(arguments, config_name="train")


def _study(arguments: Sequence[str]) -> int:
    from attnlab.studies import plan

    places = [place for place in EXPERIMENTS if place.is_dir()]
    if not arguments:
        _list(plan.studies(places))
        return 0
    if arguments[0].startswith("-") or "=" in arguments[0]:
        raise UserError("name a study first: attnlab study NAME [KEY=VALUE ...]; attnlab study alone lists what there is")
    root, name = plan.find(arguments[0], places)
    return _sweep(root, name, arguments[1:], ["attnlab", "study", *arguments])


def _list(studies: Sequence["Known"]) -> None:
    from rich.console import Console
    from rich.table import Table

    from attnlab.studies.collection import collect, tally

    table = Table("study", "question", "runs")
    for study in studies:
        try:
            done = tally(run.state for run in collect(study.folder).runs)
        except UserError:
            done = "not begun"
        table.add_row(study.name, study.question, done)
    Console().print(table)


def _sweep(root: Path, config_name: str, arguments: Sequence[str], command: Sequence[str]) -> int:
    """Plan a sweep, let Hydra run it, and report it."""
    from attnlab.studies.plan import plan, search_path

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = _refuse  # type: ignore[method-assign]
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--config-dir", "-cd", type=Path)
    parser.add_argument("-m", "--multirun", action="store_true")
    options, rest = parser.parse_known_args(arguments)
    if options.config_dir and not options.config_dir.is_dir():
        raise UserError(f"--config-dir: no folder {options.config_dir}")
    places = [place for place in (options.config_dir, *EXPERIMENTS, CONF) if place and place.is_dir() and place != root]
    if any(argument.startswith("-") for argument in rest):  # such as --cfg job, which shows and runs nothing
        return _hydra(["--config-dir", str(root), search_path(places), *rest], config_name=config_name)
    planned = plan(root, config_name, rest, places, command=command)
    if options.dry_run:
        return _dry_run(planned)
    planned.save()
    try:
        _hydra(["--multirun", "--config-dir", str(root), *planned.arguments], config_name=config_name)
    except KeyboardInterrupt:
        from attnlab.studies.collection import collect
        from attnlab.studies.jobs import progress

        print(f"attnlab: stopped, with {progress(collect(planned.folder))}; the same command goes on", file=sys.stderr)
        return 130
    except (UserError, HydraException, OmegaConfBaseException):
        raise
    except Exception as error:  # runs fail in their own processes; a launcher gives up when one that it started is gone
        told = (str(error).strip().splitlines() or [""])[0]
        print(f"attnlab: the launcher gave up ({type(error).__name__}: {told})", file=sys.stderr)
    return _finish(planned.folder)


def _dry_run(planned: "Plan") -> int:
    from rich.console import Console
    from rich.table import Table

    from attnlab.studies.identity import labels, telling
    from attnlab.studies.prospect import prospect

    asked = [tuple(telling(run.overrides)) for run in planned.runs]
    axis, names = labels(asked)
    table = Table(axis, "seed", "", title=f"{planned.folder}: {len(planned.runs)} runs", title_justify="left")
    for run, overrides, told in zip(planned.runs, asked, prospect(planned), strict=True):
        table.add_row(names[overrides], str(run.seed), told)
    Console().print(table)
    return 0


def _finish(folder: Path) -> int:
    """Report a sweep; returns 1 if a run crashed or is not done, 2 if all that failed are mistakes in their configs."""
    from attnlab.studies.collection import collect, tally

    study = collect(folder)
    _show_report(folder, log=True)
    failed = [run for run in study.runs if run.state == "failed"]
    if failed:
        print(f"attnlab: {len(failed)} runs failed; error.txt in a run's folder says how", file=sys.stderr)
        return 1 if any("Traceback" in run.error or run.error.startswith("killed") for run in failed) else 2
    if study.count("done") < len(study.runs):
        print(f"attnlab: {tally(run.state for run in study.runs)}; the same command goes on", file=sys.stderr)
        return 1
    return 0


def _report(arguments: Sequence[str]) -> int:
    names = [argument for argument in arguments if argument != "--wandb"]
    if len(names) != 1 or names[0].startswith("-"):
        raise UserError("name one study, or its folder: attnlab report NAME; --wandb also logs the comparison there")
    folder = Path(names[0])
    folder = folder if folder.is_dir() else Path("runs", names[0])
    if not folder.is_dir():
        raise UserError(f"no runs of a study {names[0]!r}: there is no folder {folder}")
    _show_report(folder, log="--wandb" in arguments)
    return 0


def _show_report(folder: Path, *, log: bool) -> None:
    from rich.console import Console

    from attnlab.studies.publish import publish
    from attnlab.studies.report import PAGE, report

    study, comparison = report(folder)
    console = Console()
    if comparison is None:
        console.print(f"no run is finished; what there is: {folder / PAGE}", soft_wrap=True)
        return
    console.print(comparison.rich())
    console.print(f"written to {folder / PAGE}, and the table to comparison.md, .csv and .tex beside it", soft_wrap=True)
    if log:
        publish(study, comparison)


def _reproduce(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise UserError("name one run: attnlab reproduce runs/NAME/VARIANT/seed=N")
    from attnlab.studies.reproduce import FOLDER, reproduce

    compared, differences, elsewhere = reproduce(Path(arguments[0]))
    for difference in differences[:20]:
        print(f"{difference.name}: {difference.recorded!r} was recorded, and is {difference.found!r} now")
    if elsewhere:
        named = ", ".join(f"{d.name} ({d.recorded} then, {d.found} now)" for d in elsewhere[:10])
        print(f"it ran elsewhere: {named}{' and more' if len(elsewhere) > 10 else ''}")
    if differences:
        print(f"{len(differences)} of {compared} figures differ; the new run is in {Path(arguments[0]) / FOLDER}")
        return 1
    print(f"all {compared} figures are the same, to the last digit")
    return 0


COMPLETION = """\
_attnlab() {
    local line=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W "COMMANDS" -- "$word"))
    elif [[ ${COMP_WORDS[1]} == train ]]; then
        COMPREPLY=($(compgen -W "$(COMP_LINE="attnlab ${line#*train}" attnlab train -sc query=bash 2>/dev/null)" -- "$word"))
    fi
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//=}
complete -o nospace -o default -F _attnlab attnlab
"""
"""For bash; zsh takes it after ``autoload -U bashcompinit && bashcompinit``."""


def _completion(arguments: Sequence[str]) -> int:
    print(COMPLETION.replace("COMMANDS", " ".join(COMMANDS)), end="")
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "train": _train,
    "study": _study,
    "report": _report,
    "reproduce": _reproduce,
    "translate": lambda arguments: using.translate(arguments, CONF),
    "evaluate": lambda arguments: using.evaluate(arguments, CONF),
    "align": lambda arguments: using.align(arguments, CONF),
    "draw": lambda arguments: using.draw(arguments, CONF),
    "compare": lambda arguments: using.compare(arguments, CONF),
    "completion": _completion,
}


def _hydra(arguments: Sequence[str], config_name: str) -> int:
    """Hand over to Hydra, which composes the config and calls a task for every run."""
    original = list(sys.argv)
    status = 0

    def single(config: DictConfig) -> None:
        nonlocal status
        # Lightning starts the other ranks of a distributed run with this process' own arguments, "train" included.
        sys.argv = original
        folder = Path(HydraConfig.get().runtime.output_dir)
        from attnlab.studies.run import execute  # torch and Lightning: seconds

        try:
            execute(config, folder, list(HydraConfig.get().overrides.task))
        except (StoppedError, BusyError):
            raise
        except Exception as error:
            (folder / "error.txt").write_text(
                f"{error}\n" if isinstance(error, UserError) else traceback.format_exc(), encoding="utf-8"
            )
            status = _tell(error)

    # Hydra's parser wants its flags together; a user writes them where they come to mind.
    arguments = sorted(arguments, key=lambda argument: "=" in argument and not argument.startswith("-"))
    parser = get_args_parser()
    parser.error = _refuse  # type: ignore[method-assign]
    multirun = parser.parse_args(arguments).multirun
    # Hydra would print its errors itself, in several lines, and exit.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = [f"{Path(original[0]).name} train", *arguments]
    try:
        hydra.main(config_path=str(CONF), config_name=config_name, version_base="1.3")(job if multirun else single)()
    finally:
        sys.argv = original
    return status


def _refuse(message: str) -> NoReturn:
    raise UserError(f"{message}: see attnlab train --help")


def _tell(error: BaseException, context: str = "") -> int:
    """Print an error: a mistake of the user's in one line, anything else with its traceback."""
    prefix = f"attnlab: {f'{context}: ' if context else ''}"
    if not isinstance(error, UserError | HydraException | OmegaConfBaseException):
        traceback.print_exception(error)
        print(f"{prefix}{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"{prefix}{_one_line(error)}", file=sys.stderr)
    return 2


def _one_line(error: BaseException) -> str:
    if isinstance(error, UserError):
        return str(error)
    cause = error.__cause__
    if isinstance(cause, OmegaConfBaseException) and isinstance(cause.parent_node, DictConfig) and cause.key is not None:
        where = (cause.full_key or "").rpartition(".")[0]
        if cause.key not in cause.parent_node:
            return str(unknown_key(str(cause.key), cause.parent_node, where))
    told = " ".join(" ".join(str(e).split()) for e in (error, cause) if e is not None and str(e))
    absent = re.match(r"Could not override '((.+)/.+?)'\. No match in the defaults list\. To append", told)
    if absent:  # Hydra's own advice, to append it, would give a key that nothing reads
        part, group = absent.groups()
        return f"there is no {part} to choose in the {group} that is chosen: choose another {group}, or leave {part} out"
    return told
