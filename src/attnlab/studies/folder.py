"""The folder of a study: every file that is the study's own, its name, its reader and its writer."""

import json
import os.path
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from typing_extensions import override

from attnlab.data.replacement import write_atomically
from attnlab.errors import UserError, brief
from attnlab.runs.folder import RunFolder
from attnlab.runs.names import RUNS
from attnlab.runs.record import Schema, check_types, parse_json
from attnlab.studies.names import VARIANT_NAME, Significance

TUNE: dict[str, Any] = {"metric": str | None, "seeds": list[int], "trials": list[dict[str, Any]]}
MATCH: dict[str, Any] = {"parameters": float, "key": str, "multiple": int}
"""What ``tune`` and ``match`` of a :class:`StudyPlan` have, by type."""


@dataclass(frozen=True)
class PlannedRun(Schema):
    """One run that a study consists of.

    Attributes:
        folder: of the run, below that of the study.
        overrides: what makes its variant.
        seed: of weights, batches and dropout.
    """

    folder: str
    overrides: list[str]
    seed: int


@dataclass(frozen=True)
class StudyPlan(Schema):
    """``study.json``: what a study asks and what it runs, from which a report knows what is missing.

    Attributes:
        question: in words; None for a sweep without one.
        baseline: the variant that others are compared with, as the study names it, or None.
        metrics: names of those that the comparison shows, the first being the one that ranks; None leaves it to the task.
        significance: what the tests are to speak of.
        claims: about the outcome, made before it is known.
        commands: what the user typed, one after another.
        runs: the fields of each :class:`PlannedRun`.
        tune: the ``metric`` (None is what chooses the checkpoints), the ``seeds`` and the values of the ``trials`` that every
            variant is tuned by; None where nothing is.
        columns: of a study of several tasks, the variant of every row, by the name of the column; None where there is one.
        match: the ``key`` of a size, the number of ``parameters`` that it is set for, and what it is a ``multiple`` of; None
            where none is.
        base: hash of the config that all runs of the last command shared; None where it was not written down.
    """

    question: str | None
    baseline: Any
    metrics: list[str] | None
    significance: Significance
    claims: list[str]
    commands: list[str]
    runs: list[dict[str, Any]]
    tune: dict[str, Any] | None = None
    match: dict[str, Any] | None = None
    columns: dict[str, dict[str, str]] | None = None
    base: str | None = None

    @classmethod
    @override
    def parse(cls, content: Any) -> Self:
        plan = super().parse(content)
        for node, types in ((plan.tune, TUNE), (plan.match, MATCH)):
            if node is not None:
                check_types(node, types)
        if plan.tune is not None and not (plan.tune["trials"] and plan.tune["seeds"]):
            raise ValueError("its tune has no trials")
        if plan.tune is not None and len({*plan.tune["seeds"]}) < len(plan.tune["seeds"]):
            raise ValueError("its tune names a seed twice")
        return plan

    @property
    def planned_runs(self) -> list[PlannedRun]:
        """The runs.

        Raises:
            ValueError: something in the file is none.
        """
        return [PlannedRun.parse(run) for run in self.runs]

    def check_places(self) -> None:
        """Check that a report of a study that somebody else sent reads and writes below its folder alone.

        Raises:
            ValueError: a column that is no file's name, a run that is not in VARIANT/seed=N, or what is no run.
        """
        for column in self.columns or {}:
            if not VARIANT_NAME.fullmatch(column):
                raise ValueError(f"its column {column!r:.60} is no name of a file")
        for run in self.planned_runs:
            if len(parts := Path(run.folder).parts) != 2 or {"..", Path(run.folder).anchor} & {*parts} or "\0" in run.folder:
                raise ValueError(f"its run {run.folder!r:.60} is not below the study")


TUNING = "tuning"
"""Folder beside the variants for the trials that they are tuned by."""


class StudyFolder:
    """Reads and writes the files of one study.

    Args:
        path: the folder, ``runs/NAME``; it need not exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.plan_file = self.path / "study.json"
        self.lock_file = self.path / ".study.lock"
        self.page_file = self.path / "report.html"
        self.variant_options = self.path / ".variants"

    @property
    def name(self) -> str:
        """What the study is called."""
        return os.path.basename(os.path.abspath(self.path))  # which follows no link

    def table_file(self, form: str, column: str = "") -> Path:
        """Return the file of the comparison, or of that of a column, as Markdown, CSV or LaTeX: "md", "csv" or "tex"."""
        return self.path / f"comparison{f'-{column}' if column else ''}.{form}"

    def runs_file(self, column: str = "") -> Path:
        """Return the table of the runs one by one, or of those of a column."""
        return self.path / f"runs{f'-{column}' if column else ''}.csv"

    def trials_file(self, column: str = "") -> Path:
        """Return the table of the trials one by one, or of those of a column."""
        return self.path / f"trials{f'-{column}' if column else ''}.csv"

    def column_page_file(self, column: str) -> Path:
        """Return the report of one column."""
        return self.path / f"report-{column}.html"

    @property
    def reported_columns(self) -> set[str]:
        """Names of the columns that have a report: a page and the table of its runs. A copy of a page is the user's own."""
        begin, end = self.column_page_file("*").name.split("*")
        names = {path.name.removeprefix(begin).removesuffix(end) for path in self.path.glob(f"{begin}*{end}")}
        return {name for name in names if self.runs_file(name).is_file()}

    def run(self, place: str) -> RunFolder:
        """Return the folder of a run, ``VARIANT/seed=N``."""
        return RunFolder(self.path / place)

    @property
    def tuning(self) -> "StudyFolder":
        """The folder of the trials that the study's variants are tuned by, which are a study of their own."""
        return StudyFolder(self.path / TUNING)

    @property
    def runs(self) -> list[RunFolder]:
        """The folders of all runs that began, planned or not; one that has lost its record is known by its result."""
        found = (RunFolder(path) for path in sorted(self.path.glob("*/*")))
        return [run for run in found if run.record_file.is_file() or run.result_file.is_file()]

    def read_plan(self) -> StudyPlan | None:
        """Return what the study consists of; None for runs that were never planned together.

        Raises:
            UserError: the file is damaged.
        """
        if not self.plan_file.is_file():
            return None
        try:
            plan = StudyPlan.parse(parse_json(self.plan_file.read_text(encoding="utf-8")))
            plan.check_places()
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{self.plan_file} is damaged ({brief(error)}): delete it, and start the study again") from error
        return plan

    def write_plan(self, plan: StudyPlan) -> None:
        """Write ``study.json``, making the folder where it is missing."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.plan_file, json.dumps(asdict(plan), indent=1, ensure_ascii=False))


def find_folder(name: str) -> Path:
    """Return the folder of a study's runs.

    Args:
        name: of the study, or the path of the folder.

    Raises:
        UserError: there is none.
    """
    if not name:
        raise UserError("a study has a name: its folder's below runs/, or a path")
    folder = next((path for path in (Path(RUNS, name), Path(name)) if path.is_dir()), None)
    if folder is None:
        raise UserError(f"no runs of a study {name!r}: there is no folder {Path(RUNS, name)}")
    return folder
