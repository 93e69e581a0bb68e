"""What the verbs that use trained models share: which runs, with which search, on which device."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnlab.commands._complete import complete_run_or_search
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError, missing_folder
from attnlab.runs.names import BEST, BOOTSTRAP_SAMPLES, LAST, NAME_A_RUN, PRECISIONS, SHAPE, WEIGHTS
from attnlab.runs.waiting import choose_wait_policy

if TYPE_CHECKING:
    from attnlab.runs.folder import RunFolder
    from attnlab.tasks.predictor import Predictor

GROUPS = ("search", "metrics")
"""What can be chosen anew for a trained model; metrics only where something is measured."""
FILE = click.Path(path_type=Path)
"""A path that the command checks itself, so that all say alike what is wrong with one."""


@dataclass(frozen=True)
class ModelOptions:
    """What is to be opened, and how.

    Attributes:
        runs: folders of runs, several being an ensemble.
        search: overrides of the search of the first.
        metrics: overrides of its metrics, where the command takes them.
        checkpoint: name of the file.
        device: for the models.
        precision: that they compute in.
        batch_size: sources at a time.
        replace_unknown: of the task; None is as in the run's own test.
        to: the target language of lines of text, where the runs have several.
        config_dir: where options are searched beside attnlab's own.
    """

    runs: list[Path]
    search: list[str]
    metrics: list[str]
    checkpoint: str
    device: str
    precision: str
    batch_size: int
    replace_unknown: bool | None
    to: str | None
    config_dir: Path | None

    @property
    def places(self) -> list[Path]:
        """Where options are searched beside attnlab's own."""
        return [self.config_dir] if self.config_dir else []

    @classmethod
    def of(cls, given: dict[str, Any], *, measures: bool = False) -> "ModelOptions":
        """Take them out of the options of a command, leaving the others.

        Args:
            given: the options of the command.
            measures: whether it measures, and other metrics can be chosen.

        Raises:
            UserError: a word that is neither a run nor about what can be chosen.
        """
        words = given.pop("words")
        settings = [word for word in words if not Path(word).exists()]
        search, metrics = ([word for word in settings if re.match(rf"{group}([./][\w./]+)?=", word)] for group in GROUPS)
        metrics = metrics if measures else []
        runs = [Path(word) for word in words if word not in (*search, *metrics)]
        check_distinct(runs)
        for run in runs:
            if "=" in str(run).partition("/")[0] and not run.exists():
                more = ", metrics=OPTION and metrics.KEY=VALUE" if measures else ""
                known = f"search=OPTION, search/PART=OPTION and search.KEY=VALUE{more}"
                raise UserError(f"{run} is no folder of a run, and all that can be set is {known}")
        return cls(runs, search, metrics, **{field.name: given.pop(field.name) for field in fields(cls)[3:]})

    def load(self) -> "Predictor":
        """Open the models.

        Raises:
            UserError: no run, one that cannot be opened, no such device, or a search that there is not.
        """
        choose_wait_policy()
        from attnlab.config import amend
        from attnlab.runs.assembly import build_search
        from attnlab.runs.building import read_trusted_config, report_damage
        from attnlab.runs.folder import RunFolder
        from attnlab.runs.loading import load

        if not self.runs:
            raise UserError(NAME_A_RUN)
        first = RunFolder(self.runs[0])
        search = None
        if self.search and first.config_file.is_file():  # opening the run tells what is wrong with one that has none
            with report_damage(first.path):
                node = amend("search", read_trusted_config(first), self.search, self.places)
                search = build_search({"search": node})
        return load(
            *self.runs,
            search=search,
            checkpoint=self.checkpoint,
            device=self.device,
            precision=self.precision,
            batch_size=self.batch_size,
            replace_unknown=self.replace_unknown,
            to=self.to,
        )


def model_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the arguments and options that say which models are used, and how."""
    options = [
        click.argument("words", nargs=-1, required=True, metavar="RUN... [search...]", shell_complete=complete_run_or_search),
        checkpoint_option,
        trust_option,
        device_option,
        click.option(
            "--precision",
            type=click.Choice(list(PRECISIONS)),
            default="float32",
            show_default=True,
            help="Of the weights and of what is computed from them; sums of log-probabilities stay in float64.",
        ),
        batch_size_option,
        click.option(
            "--replace-unknown/--no-replace-unknown",
            default=None,
            help="Write the source word with the largest weight for an unknown one.  [default: as in the run's own test]",
        ),
        to_option,
        config_dir_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


device_option = click.option("--device", default="cpu", show_default=True, help="cpu, cuda, cuda:1, mps.")

batch_size_option = click.option(
    "--batch-size", type=click.IntRange(1), default=64, show_default=True, help="Sources at a time."
)

bootstrap_option = click.option(
    "--bootstrap",
    type=click.IntRange(1),
    default=BOOTSTRAP_SAMPLES,
    show_default=True,
    help="Samples for confidence intervals.",
)

checkpoint_option = click.option(
    "--checkpoint",
    default=WEIGHTS,
    show_default=True,
    metavar="FILE",
    help=f"Of the run: {WEIGHTS}, {BEST} or {LAST}.",
)

config_dir_option = click.option(
    "-cd",
    "--config-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with further options of the config groups.",
)

to_option = click.option("--to", metavar="LANGUAGE", help="Of a run with several target languages: the one to write.")


def check_label(label: str | None) -> None:
    """Refuse a label that cannot be the name of a file up to its first dot, which the name of a test set follows.

    Raises:
        UserError: it cannot.
    """
    from attnlab.config import path_part

    if label is None:
        return
    try:
        path_part(label)
    except UserError as error:
        raise UserError(f"--label: {error}") from error
    if "." in label:
        raise UserError(f"--label {label}: the name of a test set follows a dot in names of files: take a label without one")


def list_seeds(folder: Path, holds: Callable[["RunFolder"], bool]) -> list["RunFolder"]:
    """Return the run that a folder is, or the seeds of the variant that it is, if they hold what is needed.

    Raises:
        UserError: there is no such folder.
    """
    from attnlab.runs.folder import RunFolder

    if not folder.is_dir():
        raise UserError(f"{missing_folder(folder)}: name that of a run or of a variant, {SHAPE} or without its seed")
    own = RunFolder(folder)
    numbers = (path.name.removeprefix("seed=") for path in folder.glob("seed=*"))
    seeds = [folder / f"seed={number}" for number in sorted(filter(str.isdecimal, numbers), key=int)]
    return [own] if holds(own) else [run for path in seeds if holds(run := RunFolder(path))]


def finished_runs(folder: Path) -> list["RunFolder"]:
    """Return the finished run that a folder is, or the finished seeds of the variant that it is.

    Raises:
        UserError: it is neither, or two of the seeds are one run.
    """
    finished = list_seeds(folder, lambda run: run.result_file.is_file())
    if not finished:
        raise UserError(f"{folder} holds no finished run: name one, or a variant, {SHAPE} or without its seed")
    known: dict[int, Path] = {}
    for run in finished:
        record = run.read_record()
        if record is not None and (first := known.setdefault(record.seed, run.path)) != run.path:
            raise UserError(f"{run.path} has the seed of {first}: move the copy away")
    return finished


def name_runs(runs: Sequence[Path]) -> dict[str, Path]:
    """Name runs and variants, briefly, by what tells them apart in their paths, which are NAME/VARIANT/seed=N.

    Raises:
        UserError: one is named twice.
    """
    import textwrap

    places = [run.resolve() / "seeds" if any(run.glob("seed=*")) else run.resolve() for run in runs]
    parts = [{*place.parts[-3:-2], *",".join(place.parts[-2:-1]).split(","), place.name} for place in places]
    telling_one = places[0].parent.name.split(",") if places[0].name.startswith("seed") else [places[0].name]
    shared = set.intersection(*parts) if len(parts) > 1 else parts[0].difference(telling_one)
    names = {}
    for own, run in zip(parts, runs, strict=True):
        telling = sorted(part.removeprefix("attention=").removeprefix("variant=") for part in own - shared)
        names["\n".join(textwrap.wrap(", ".join(telling), 40)) or run.name] = run
    check_distinct(runs)
    return names if len(names) == len(runs) else {str(run): run for run in runs}


def check_distinct(runs: Sequence[Path]) -> None:
    """Refuse one run under two names.

    Raises:
        UserError: there is one.
    """
    if len({run.resolve() for run in runs}) < len(runs):
        raise UserError("the same run is named twice")
