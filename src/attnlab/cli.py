"""The command line. Nothing heavy is imported before a run starts, so that help and completion answer at once."""

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import attnlab
from attnlab import using
from attnlab.errors import StoppedError, UserError, unknown_key
from attnlab.studies.identity import variant

USAGE = """\
attnlab: which attention, and why?

usage: attnlab COMMAND [ARGUMENTS]

  train [KEY=VALUE ...]       train one model, test it, write everything into runs/
  train -m KEY=A,B ...        train every combination, and compare them
  study NAME [KEY=VALUE ...]  run experiments/NAME.yaml, a sweep with a name, and compare its runs
  report FOLDER               compare the runs below FOLDER, runs/NAME, again
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
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _train(arguments: Sequence[str]) -> int:
    return _hydra(arguments, config_name="train")


def _study(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        raise UserError("name a study: attnlab study NAME, for a file experiments/NAME.yaml")
    path = Path(arguments[0])
    path = path if path.suffix == ".yaml" else Path("experiments", f"{path}.yaml")
    if not path.is_file():
        raise UserError(f"no study {arguments[0]!r}: there is no file {path}")
    return _hydra(["--multirun", "--config-dir", str(path.parent), *arguments[1:]], config_name=path.stem)


def _report(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        raise UserError("name one folder: attnlab report runs/NAME")
    folder = Path(arguments[0])
    if not folder.is_dir():
        raise UserError(f"no folder {folder}")
    _compare(folder)
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
    "translate": lambda arguments: using.translate(arguments, CONF),
    "evaluate": lambda arguments: using.evaluate(arguments, CONF),
    "align": lambda arguments: using.align(arguments, CONF),
    "draw": lambda arguments: using.draw(arguments, CONF),
    "compare": lambda arguments: using.compare(arguments, CONF),
    "completion": _completion,
}


def _hydra(arguments: Sequence[str], config_name: str) -> int:
    """Hand over to Hydra, which composes the config and calls :func:`_job` for every run."""
    original = list(sys.argv)
    failures: list[BaseException] = []
    folders: set[Path] = set()

    def job(config: DictConfig) -> None:
        # Lightning starts the other ranks of a distributed run with this process' own arguments, "train" included.
        sys.argv = original
        hydra_config = HydraConfig.get()
        folder = Path(hydra_config.runtime.output_dir)
        is_sweep = hydra_config.mode == RunMode.MULTIRUN
        if is_sweep:
            folders.add(folder.parents[1])
        try:
            _check_sweep(config, is_sweep=is_sweep)
            from attnlab.studies.run import execute  # torch and Lightning: seconds

            execute(config, folder, list(hydra_config.overrides.task))
        except StoppedError:
            raise
        except Exception as error:
            failures.append(error)
            (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
            _tell(error, context=f"{folder.parent.name}/{folder.name}" if is_sweep else "")
            if is_sweep:  # for Hydra's launchers and callbacks; of a single run Hydra would print what was printed already
                raise

    # Hydra's parser wants its flags together; a user writes them where they come to mind.
    arguments = sorted(arguments, key=lambda argument: "=" in argument and not argument.startswith("-"))
    parser = get_args_parser()
    parser.error = _refuse  # type: ignore[method-assign]
    parser.parse_args(arguments)
    # Hydra would print its errors itself, in several lines, and exit.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = [f"{Path(original[0]).name} train", *arguments]
    try:
        hydra.main(config_path=str(CONF), config_name=config_name, version_base="1.3")(job)()
    except Exception as error:
        if error not in failures:
            raise
    finally:
        sys.argv = original
    for folder in folders:
        if any(folder.glob("*/*/result.json")):
            _compare(folder)
    if failures:
        if folders:
            print(f"attnlab: {len(failures)} runs failed; error.txt in a run's folder says how", file=sys.stderr)
        return 2 if all(isinstance(failure, UserError) for failure in failures) else 1
    return 0


def _refuse(message: str) -> NoReturn:
    raise UserError(f"{message}: see attnlab train --help")


def _check_sweep(config: DictConfig, *, is_sweep: bool) -> None:
    """Refuse what would start a sweep again from within."""
    if is_sweep and str(config.trainer.strategy).startswith("ddp") and "_spawn" not in str(config.trainer.strategy):
        raise UserError(
            "trainer.strategy=ddp would start the whole sweep again in every process: "
            "use trainer.strategy=ddp_spawn, or run the variants one by one without -m"
        )


def _compare(folder: Path) -> None:
    from rich.console import Console

    from attnlab.studies.collection import collect
    from attnlab.studies.comparison import compare

    comparison = compare(collect(folder))
    path = folder / "comparison.md"
    path.write_text(comparison.markdown(), encoding="utf-8")
    console = Console()
    console.print(comparison.rich())
    console.print(f"written to {path}", soft_wrap=True)


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
