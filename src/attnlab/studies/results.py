"""What a study came to, for Python: its table and its runs as data frames, and its report."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from attnlab.errors import UserError, printable
from attnlab.studies.collection import Study, tally
from attnlab.studies.listing import list_runs
from attnlab.studies.names import plural
from attnlab.studies.run import Run
from attnlab.studies.table import Comparison

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class Results:
    """The results of a study; a notebook shows its table.

    Attributes:
        study: its runs.
        comparison: of its variants; None while no run is finished.
        asked: the runs that were asked for, or the trials that have to be finished before these.
        untuned: why no run was begun; empty if that is not so.
    """

    study: Study
    comparison: Comparison | None
    asked: Sequence[Run]
    untuned: str = ""

    @property
    def page(self) -> Path:
        """The report, one page of HTML."""
        return self.study.folder.page_file

    @property
    def unfinished(self) -> dict[str, str]:
        """How far each run is that is not done, with the last line of its error if it failed, by its folder in the study's."""
        return {run.folder.place: _tell(run) for run in self.study.runs if not run.is_done}

    @property
    def warnings(self) -> list[str]:
        """What was asked for and is not done, in at most two lines."""
        failed = [run for run in self.asked if run.has_failed]
        told = [self.untuned] if self.untuned else []
        if failed:
            kept = sum(run.is_done for run in failed)
            hint = f", {kept} of which finished before and count as they were" if kept else ""
            told.append(
                f"{plural(len(failed), 'run')} failed{hint}; {failed[0].folder.error_file.name} in a run's folder says how"
            )
        elif any(not run.is_done for run in self.asked):
            told.append(f"{tally(run.state for run in self.asked)}; the same command goes on")
        return told

    @cached_property
    def table(self) -> "DataFrame":
        """The table of the report: a row a variant, the best first, and the columns of ``comparison.csv``.

        Raises:
            UserError: no run is finished, or pandas is missing.
        """
        if self.comparison is None:
            raise UserError(self._nothing)
        (first, *header), rows = self.comparison.values()
        frame = _pandas().DataFrame([row[1:] for row in rows], columns=header)
        return frame.set_index(_pandas().Index([row[0] for row in rows], name=first))

    @cached_property
    def runs(self) -> "DataFrame":
        """A row for each finished run and test set, as in ``runs.csv`` but for the whole path of its folder; see
        :func:`attnlab.studies.listing.list_runs`.

        Raises:
            UserError: pandas is missing.
        """
        header, rows = list_runs(self.study)
        frame = _pandas().DataFrame(rows, columns=header)
        frame["folder"] = [str(self.study.folder.path / place) for place in frame["folder"]]
        return frame

    @property
    def _nothing(self) -> str:
        first = next((f"; {place} {told}" for place, told in self.unfinished.items() if told.startswith("failed")), "")
        return f"no run in {self.study.folder.path} is finished and tested: {self._states}{first}"

    @property
    def _states(self) -> str:
        return tally(run.state for run in self.study.runs)

    def __repr__(self) -> str:
        return f"<Results of {self.study.folder.path}: {self._states}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the table without its widest columns, the notes, and what is missing."""
        shown = Markup("<p>{}</p>").format(self._nothing) if self.comparison is None else Markup(self.comparison.html())
        named, more = self.study.first_unfinished
        lines = [*(f"{run.folder.place}: {_tell(run)}" for run in named), *map(": ".join, more.items())]
        missing = Markup("").join(Markup("<li>{}</li>").format(printable(line)) for line in lines)
        holes = Markup("<p>Not finished:</p><ul>{}</ul>").format(missing) if missing else Markup("")
        return str(shown + holes + Markup("<p>The report: <code>{}</code></p>").format(escape(str(self.page))))


def _tell(run: Run) -> str:
    lines = run.error.strip().splitlines() if run.state in ("failed", "damaged") else []
    return f"{run.state}: {lines[-1]}" if lines else run.state


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        if error.name != "pandas":
            raise
        raise UserError("data frames need pandas: pip install 'attnlab[notebook]'") from None
    return pandas
