"""Hydra as the command line uses it: running jobs, showing configs, and completing what a user types."""

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn
from hydra.experimental.callback import Callback as HydraCallback
from hydra.plugins.completion_plugin import DefaultCompletionPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from typing_extensions import override

from attnlab.config.composition import CONF, MAIN, VERSION, Place, search_path
from attnlab.config.refusals import hydra_errors
from attnlab.errors import UserError, refusal


@dataclass(frozen=True)
class HydraJob:
    """One run that Hydra asks for.

    Attributes:
        config: as it was composed; see :func:`attnlab.config.resolve` and :func:`attnlab.config.settle`.
        folder: of the run.
        overrides: of the config, all of them.
        logging: settings for :func:`logging.config.dictConfig`.
        number: of the run in its sweep, from 0.
        made: the outermost folder that was made for the run; None where its own was there before, and in a sweep.
    """

    config: DictConfig
    folder: Path
    overrides: list[str]
    logging: dict[str, Any]
    number: int
    made: Path | None = None


class LightReturn(HydraCallback):
    """Leaves the configs out of what a job returns: a sweep keeps that of every job until it ends, half a megabyte each."""

    @override
    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        job_return.cfg = job_return.hydra_cfg = None


class NewFolder(HydraCallback):
    """Notes which folder a run is the first to need, before Hydra makes it; one that was there is the user's own."""

    path: ClassVar[Path | None] = None

    @override
    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        own, before = HydraConfig.instance(), HydraConfig.instance().cfg
        own.set_config(config)  # which the folder's name refers to
        try:
            folder = Path(os.path.abspath(str(OmegaConf.select(config, "hydra.run.dir"))))
        except OmegaConfBaseException:  # which Hydra tells of as soon as it makes the folder
            return
        finally:
            own.cfg = before
        NewFolder.path = next((path for path in reversed((folder, *folder.parents)) if not path.exists()), None)


JobFunction = Callable[[HydraJob], float | None]


@dataclass
class _Task:
    """What Hydra and its launchers call for each run, in this process or, having been pickled, in another one."""

    function: JobFunction
    arguments: list[str]
    is_sweep: bool
    failures: list[Exception] = field(default_factory=list)

    def __call__(self, config: DictConfig) -> float | None:
        # Lightning starts the other ranks of a distributed run with this process' own arguments, "train" included.
        sys.argv = list(self.arguments)
        settings = HydraConfig.get()
        logging: Any = OmegaConf.to_container(settings.job_logging, resolve=True)
        number = settings.job.num if self.is_sweep else 0
        made = None if self.is_sweep else NewFolder.path
        job = HydraJob(config, Path(settings.runtime.output_dir), list(settings.overrides.task), logging, number, made)
        try:
            return self.function(job)
        except Exception as error:
            if self.is_sweep:
                raise
            self.failures.append(error)  # Hydra would tell of it in a line of its own
            return None


def show_hydra(arguments: Sequence[str], config_name: str) -> None:
    """Let Hydra show a config or its help, as its options ask for; see :func:`run_hydra`.

    Raises:
        UserError: it cannot.
    """

    def never(job: HydraJob) -> None:
        raise AssertionError(f"{arguments} show nothing, but run")

    # It prints a part by itself and logs another, and an error of writing would be told by logging, with a traceback.
    with redirect_stdout(io.StringIO()) as shown, redirect_stderr(io.StringIO()) as told:
        try:
            run_hydra(arguments, config_name, never)
        except SystemExit as stop:
            if stop.code:
                raise UserError(told.getvalue().strip()) from stop
    print(shown.getvalue(), end="")


def run_hydra(arguments: Sequence[str], config_name: str, function: JobFunction) -> None:
    """Hand over to Hydra, which composes a config and calls a function for every run.

    Args:
        arguments: options of Hydra's, and after them overrides.
        config_name: of the main config.
        function: carries out a run; in a sweep it is pickled, and what it returns is what the sweeper optimizes.

    Raises:
        UserError: a config that does not compose.
        Exception: whatever the function raises.
    """
    original, full_error = list(sys.argv), os.environ.get("HYDRA_FULL_ERROR")
    task = _Task(function, original, is_sweep="--multirun" in arguments)
    NewFolder.path = None
    os.environ["HYDRA_FULL_ERROR"] = "1"  # it would print its errors itself, in several lines, and exit
    sys.argv = [f"{Path(original[0]).name} train", *arguments]  # which is where Hydra looks
    try:
        with hydra_errors():
            hydra.main(config_path=str(CONF), config_name=config_name, version_base=VERSION)(task)()
    except OSError as error:  # the task keeps its own: this is about the run's folder
        if task.is_sweep or not error.filename:
            raise
        told = refusal(error, error.filename) or f"{error.filename}: {error.strerror}"
        raise UserError(f"cannot write the run's folder: {told}") from error
    finally:
        sys.argv = original
        os.environ.pop("HYDRA_FULL_ERROR")
        os.environ |= {} if full_error is None else {"HYDRA_FULL_ERROR": full_error}
    if task.failures:
        raise task.failures[0]


def complete(words: Sequence[str], incomplete: str, *, config_name: str = MAIN, places: Sequence[Place] = (CONF,)) -> list[str]:
    """Return what an override that is being typed may become: keys, config groups, and after = or a comma their options.

    Args:
        words: the arguments before it.
        incomplete: what is typed of it so far.
        config_name: of the main config.
        places: where configs are searched; the main config lies in the first, a folder.
    """
    listed, comma, last = incomplete.rpartition(",")
    key, equals, _ = listed.partition("=")
    query = f"{key}={last}" if comma and equals else incomplete
    overrides = [word for word in words if "=" in word and not word.startswith("-") and not set(word) & set(" \t\n")]
    line = " ".join(["--multirun", search_path(places[1:]), *overrides, query])
    try:
        with hydra_errors(), hydra.initialize_config_dir(str(Path(places[0]).resolve()), version_base=VERSION):
            # Private: what is public only prints an answer to COMP_LINE.
            found = DefaultCompletionPlugin(GlobalHydra.instance().config_loader())._query(config_name, line)
    except (UserError, SystemExit):  # of what was typed before
        return []
    whole = [variant for match in found for variant in _with_suffix(match)]
    if query == incomplete:
        return whole
    taken = listed.partition("=")[2].split(",")
    return [f"{listed},{option}" for option in (match.partition("=")[2] for match in whole) if option not in taken]


def _with_suffix(match: str) -> list[str]:
    """Hydra leaves open whether a group that has groups in it is to be chosen from or gone into."""
    if match[-1] in "=./" or "=" in match:
        return [match]
    return [f"{match}=", f"{match}/"]
