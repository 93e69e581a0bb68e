"""The table of a study, written down as Markdown, CSV and LaTeX, and for a terminal."""

import csv
import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markupsafe import escape
from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.styled import Styled
from rich.table import Table
from rich.text import Text

from attnlab.errors import printable
from attnlab.studies.claims import Verdict

GAP = 2
"""Letters between two columns on a terminal; half of it stands at each edge."""


@dataclass(frozen=True)
class Cell:
    """One cell of a comparison.

    Attributes:
        text: what is shown.
        value: what is sorted by, and written in CSV; None where there is nothing.
        best: whether it is the best value of its column.
        more: further numbers for CSV, by the ending of their columns' names.
        short: the text where there is little room.
        shade: how good the value is in its column, from 0 to 1; None where a page is not to show that by colour.
    """

    text: str
    value: float | str | None = None
    best: bool = False
    more: Mapping[str, float] = field(default_factory=dict)
    short: str = ""
    shade: float | None = None

    @property
    def brief(self) -> str:
        """The text where there is little room."""
        return self.short or self.text


class Note(NamedTuple):
    """What has to be said below a table."""

    text: str
    columns: tuple[str, ...] = ()
    """Names of the columns that it explains, or parts of names; none where it concerns the whole table."""

    def concerns(self, header: Collection[str]) -> bool:
        """Tell whether it has to be said where these columns are shown."""
        return not self.columns or any(part in name for part in self.columns for name in header)


@dataclass(frozen=True)
class TuningTable:
    """What a study's tuning found: a row a variant, the best first.

    Attributes:
        header: names of the columns.
        rows: texts.
        notes: what the figures are, and what is not finished.
    """

    header: list[str]
    rows: list[list[str]]
    notes: list[str]


@dataclass(frozen=True)
class Comparison:
    """A table of a study: a row a variant, figures over its seeds, the best first.

    Attributes:
        title: the study's name.
        header: names of the columns.
        rows: cells.
        remarks: what the figures are, such as the signatures of the metrics.
        pending: how far the runs are that are not finished.
        brief: positions of the columns that a narrow table shows.
        verdicts: what the figures say of the study's claims.
        tuning: what its tuning found; None where nothing was tuned.
    """

    title: str
    header: list[str]
    rows: list[list[Cell]]
    remarks: list[Note]
    pending: list[str]
    brief: list[int]
    verdicts: list[Verdict] = field(default_factory=list)
    tuning: TuningTable | None = None

    @property
    def notes(self) -> list[str]:
        """The remarks of all columns."""
        return [remark.text for remark in self.remarks]

    def _claims(self) -> list[str]:
        return [f"claim {one.verdict}: {one.claim} ({one.reason})" for one in self.verdicts]

    @property
    def interval_title(self) -> str:
        """What the verdicts hold for; of a claim about several variants the intervals are of each by itself."""
        together = f" for all {len(self.verdicts)} claims together" if len(self.verdicts) > 1 else ""
        return f"interval, at 95 %{together}"

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rows = [[f"**{_markdown(cell.text)}**" if cell.best else _markdown(cell.text) for cell in row] for row in self.rows]
        table = _markdown_table(self.header, rows)
        notes = [f"- {_markdown(note, in_table=False)}" for note in [*self.notes, *self.pending]]
        verdicts = [[_markdown(part) for part in (v.claim, f"**{v.verdict}**", v.reason)] for v in self.verdicts]
        header = ["claim", "verdict", self.interval_title]
        claims = ["", "## Claims\n", _markdown_table(header, verdicts, "---")] if verdicts else []
        tuning = _markdown_tuning(self.tuning) if self.tuning else []
        return "\n".join([f"# {_markdown(self.title)}\n", table, "", *notes, *claims, *tuning, ""])

    def values(self) -> tuple[list[str], list[list[float | str | None]]]:
        """Return the table as numbers: names of the columns, spreads and p in columns of their own, and a row a variant."""
        endings = [list(dict.fromkeys(e for row in self.rows for e in row[i].more)) for i in range(len(self.header))]
        header = [n for name, more in zip(self.header, endings, strict=True) for n in (name, *(f"{name} {e}" for e in more))]
        rows = [
            [v for cell, more in zip(row, endings, strict=True) for v in (cell.value, *(cell.more.get(e) for e in more))]
            for row in self.rows
        ]
        return header, rows

    def csv(self) -> str:
        """Return the table as comma-separated values: numbers to the last digit, spreads in columns of their own."""
        return format_csv(*self.values())

    def html(self) -> str:
        """Return the table as HTML, with the columns of a narrow table, and its notes."""
        header = "".join(f"<th>{_html(self.header[i])}</th>" for i in self.brief)
        rows = (
            "".join(f"<td>{f'<b>{_html(row[i].brief)}</b>' if row[i].best else _html(row[i].brief)}</td>" for i in self.brief)
            for row in self.rows
        )
        notes = "".join(f"<li>{_html(note)}</li>" for note in [*self.notes, *self._claims()])
        table = "".join(f"<tr>{row}</tr>" for row in (header, *rows))
        return f"<table>{table}</table><details><summary>Notes</summary><ul>{notes}</ul></details>"

    def latex(self) -> str:
        """Return the table as a LaTeX tabular for the package booktabs."""
        lines = [
            f"% {_one_line(self.title)}: needs \\usepackage{{booktabs}}",
            f"\\begin{{tabular}}{{l{'r' * (len(self.brief) - 1)}}}",
            "\\toprule",
            " & ".join(_tex(self.header[i]) for i in self.brief) + " \\\\",
            "\\midrule",
        ]
        for row in self.rows:
            cells = (f"\\textbf{{{_tex(row[i].brief)}}}" if row[i].best else _tex(row[i].brief) for i in self.brief)
            line = " & ".join(cells)
            # After the end of a row LaTeX takes a bracket for an option of that end, and a star for a form of it.
            lines.append(f"{'{}' if line.startswith(('[', '*')) else ''}{line} \\\\")
        lines += [
            "\\bottomrule",
            "\\end{tabular}",
            *(f"% {_one_line(note)}" for note in [*self.notes, *self.pending, *self._claims()]),
        ]
        return "\n".join(lines) + "\n"

    def rich(self, width: int) -> Group:
        """Return the table for a terminal that takes no text for markup, with the columns that fit without cutting a figure.

        Below stand the remarks that concern these columns.
        """
        widths: list[int] = []
        for i in self.brief:
            widths.append(self._width(i, whole=False) if i else min(self._width(i, whole=True), width // 2))
            if len(widths) > 1 and sum(widths) + GAP * len(widths) > width:
                widths.pop()
                break
        shown = self.brief[: len(widths)]
        for place, i in enumerate(shown):  # what is left makes texts stand on one line, in the first columns first
            spare = width - sum(widths) - GAP * len(widths)
            widths[place] += max(0, min(spare, self._width(i, whole=True) - widths[place]))
        hidden = len(self.brief) - len(shown)
        told = [f"{hidden} further column{'s need' if hidden > 1 else ' needs'} a wider terminal"] if hidden else []
        remarks = [remark.text for remark in self.remarks if remark.concerns([self.header[i] for i in shown])]
        notes = [Text(printable(note), "dim italic") for note in (*told, *remarks, *self.pending, *self._claims())]
        table = Table(title=self.title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for i, wide in zip(shown, widths, strict=True):
            table.add_column(self.header[i], justify="right" if i else "left", width=wide)
        for row in self.rows:
            table.add_row(*(Styled(row[i].brief, "bold") if row[i].best else row[i].brief for i in shown))
        return Group(table, *notes)  # no caption, which would be as narrow as the table

    def _width(self, column: int, *, whole: bool) -> int:
        """Return how wide a column must be on a terminal for no word of it to be cut, or for all texts to stand on one line."""
        texts = [printable(text) for text in (self.header[column], *(row[column].brief for row in self.rows))]
        return max(cell_len(part) for text in texts for part in ([text] if whole else text.split()))


def format_csv(header: Sequence[str], rows: Sequence[Sequence[float | str | None]]) -> str:
    """Return a table as comma-separated values, numbers to the last digit."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerows([_csv(value) for value in row] for row in (header, *rows))
    return written.getvalue()


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "---:") -> str:
    lines = [[*map(_markdown, header)], ["---", *[align] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_tuning(tuning: TuningTable) -> list[str]:
    rows = [[*map(_markdown, row)] for row in tuning.rows]
    notes = [f"- {_markdown(note, in_table=False)}" for note in tuning.notes]
    return ["", "## Tuning\n", *([_markdown_table(tuning.header, rows), ""] if rows else []), *notes]


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _html(text: str) -> str:
    return str(escape(_one_line(text)))


def _markdown(text: str, *, in_table: bool = True) -> str:
    """Return a text that ends no cell, and in which nothing begins HTML."""
    return re.sub(rf"[\\{'|' if in_table else ''}]|<(?=[A-Za-z/!?])|&(?=#?\w+;)", r"\\\g<0>", _one_line(text))


def _csv(value: float | str | None) -> float | str | None:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "ε": r"$\varepsilon$",
    "<": "$<$",
    ">": "$>$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _tex(text: str) -> str:
    return "".join(TEX.get(character, character) for character in _one_line(text))
