"""Comparing the variants of a study: the table of the report, on the screen, in Markdown, CSV and LaTeX."""

import csv
import io
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table
from scipy import stats

from attnlab.errors import UserError
from attnlab.evaluation import significance
from attnlab.studies.collection import Run, Study
from attnlab.studies.resuming import found as record

SAMPLES = 2000
"""Shufflings of each paired test: a p-value near 0.05 is then known to within 0.01."""

NAMES = {"bleu": "BLEU", "chrf": "chrF", "aer": "AER", "perplexity": "perplexity", "bleu_tok_lc": "BLEU tok-lc"}
LOWER_IS_BETTER = {"aer", "perplexity"}


@dataclass(frozen=True)
class Cell:
    """One cell of a comparison.

    Attributes:
        text: what is shown.
        value: what is sorted by, and written in CSV; None where there is nothing.
        best: whether it is the best value of its column.
        more: further numbers for CSV, by the ending of their columns' names.
        short: the text where there is little room.
    """

    text: str
    value: float | str | None = None
    best: bool = False
    more: Mapping[str, float] = field(default_factory=dict)
    short: str = ""

    @property
    def brief(self) -> str:
        """The text where there is little room."""
        return self.short or self.text


@dataclass(frozen=True)
class Comparison:
    """A table of a study: a row a variant, figures over its seeds, the best first.

    Attributes:
        title: the study's name.
        header: names of the columns.
        rows: cells.
        notes: what the figures are, such as the signatures of the scores.
        pending: every run that is not finished, and how far it is.
        brief: positions of the columns that a narrow table shows.
    """

    title: str
    header: list[str]
    rows: list[list[Cell]]
    notes: list[str]
    pending: list[str]
    brief: list[int]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rows = [[f"**{_pipe(cell.text)}**" if cell.best else _pipe(cell.text) for cell in row] for row in self.rows]
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n".join([f"# {self.title}\n", table, "", *(f"- {note}" for note in [*self.notes, *self.pending]), ""])

    def csv(self) -> str:
        """Return the table as comma-separated values: numbers to the last digit, spreads in columns of their own."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        endings = [list(dict.fromkeys(e for row in self.rows for e in row[i].more)) for i in range(len(self.header))]
        writer.writerow(
            n for name, more in zip(self.header, endings, strict=True) for n in (name, *(f"{name} {e}" for e in more))
        )
        for row in self.rows:
            cells = zip(row, endings, strict=True)
            writer.writerow(v for cell, more in cells for v in (cell.value, *(cell.more.get(e) for e in more)))
        return written.getvalue()

    def latex(self) -> str:
        """Return the table as a LaTeX tabular for the package booktabs."""
        lines = [
            f"% {self.title}: needs \\usepackage{{booktabs}}",
            f"\\begin{{tabular}}{{l{'r' * (len(self.brief) - 1)}}}",
            "\\toprule",
            " & ".join(_tex(self.header[i]) for i in self.brief) + " \\\\",
            "\\midrule",
        ]
        for row in self.rows:
            cells = (f"\\textbf{{{_tex(row[i].brief)}}}" if row[i].best else _tex(row[i].brief) for i in self.brief)
            lines.append(" & ".join(cells) + " \\\\")
        lines += ["\\bottomrule", "\\end{tabular}", *(f"% {note}" for note in [*self.notes, *self.pending])]
        return "\n".join(lines) + "\n"

    def rich(self) -> Table:
        """Return the table for a terminal."""
        notes = escape("\n".join([*self.notes, *self.pending]))
        table = Table(
            title=self.title, caption=notes, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
        )
        for i in self.brief:
            table.add_column(escape(self.header[i]), justify="right" if i else "left", no_wrap=not i)
        for row in self.rows:
            table.add_row(*(f"[bold]{escape(row[i].brief)}[/]" if row[i].best else escape(row[i].brief) for i in self.brief))
        return table


def _pipe(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")


TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "<": "$<$",
    ">": "$>$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _tex(text: str) -> str:
    return "".join(TEX.get(character, character) for character in text)


@dataclass(frozen=True)
class _Column:
    name: str
    cells: dict[str, Cell]
    brief: bool


def compare(study: Study, *, samples: int = SAMPLES) -> Comparison:
    """Compare all variants of a study; what failed or is missing is a hole in the table and a note below it.

    Args:
        study: to be compared.
        samples: shufflings of each paired test against the baseline.

    Raises:
        UserError: no finished run, or a metric that no run was measured by.
    """
    done = study.done()
    if not done:
        raise UserError(f"no run below {study.folder} is finished ({len(study.runs)} planned)")
    unknown = [metric for metric in study.metrics if metric not in NAMES]
    if unknown:
        raise UserError(f"study.metrics has no {unknown[0]!r}: there is {', '.join(NAMES)}")
    columns = [
        _Column("seeds", {label: _seeds(runs) for label, runs in study.variants.items()}, brief=True),
        _column("parameters", done, lambda run: run.result["parameters"], form="{:,.0f}", spread=False, brief=False),
    ]
    first = study.metrics[0]
    for metric in study.metrics:
        for test in study.tests:
            brief = metric == first or (test == study.tests[0] and metric != "chrf")
            reader = _reader(test, metric)
            if any(reader(run) is not None for runs in done.values() for run in runs):
                columns.append(_column(f"{test} {NAMES[metric]}", done, reader, better=_better(metric), brief=brief))
            if metric == first and study.baseline in done and len(done) > 1:
                columns.append(_differences(study, test, samples))
    columns += [
        _column("tokens/s", done, lambda run: run.result["train_tokens_per_second"], form="{:,.0f}", spread=False, brief=False),
        _column("seconds", done, lambda run: run.result["seconds"], form="{:,.0f}", spread=False),
    ]
    ranking = next((column.cells for column in columns if column.name == f"{study.tests[0]} {NAMES[first]}"), {})
    sign = 1 if first in LOWER_IS_BETTER else -1

    def rank(label: str) -> float:
        value = ranking[label].value if label in ranking else None
        return sign * value if isinstance(value, float) else math.inf

    nothing = Cell("-")
    return Comparison(
        study.name,
        [study.axis, *(column.name for column in columns)],
        [
            [Cell(label, label), *(column.cells.get(label, nothing) for column in columns)]
            for label in sorted(study.variants, key=rank)
        ],
        _notes(study),
        [f"{run.state}: {run.folder.relative_to(study.folder)}" for run in study.runs if run.state != "done"],
        [0, *(place for place, column in enumerate(columns, 1) if column.brief)],
    )


def _better(metric: str) -> Callable[[Sequence[float]], float]:
    return min if metric in LOWER_IS_BETTER else max


def _reader(test: str, metric: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        measured: dict[str, Any] = run.result["tests"].get(test, {})
        if metric == "aer":
            return 100.0 * measured["alignment"]["aer"] if "alignment" in measured else None
        value = measured.get(metric)
        number: float | None = value["value"] if isinstance(value, dict) else value
        return number

    return read


def _column(
    name: str,
    done: Mapping[str, Sequence[Run]],
    read: Callable[[Run], float | None],
    *,
    form: str = "{:.2f}",
    spread: bool = True,
    better: Callable[[Sequence[float]], float] | None = None,
    brief: bool = True,
) -> _Column:
    """Average what is read from each run over a variant's seeds."""
    values = {label: [value for run in runs if (value := read(run)) is not None] for label, runs in done.items()}
    means = {label: float(mean(found)) for label, found in values.items() if found}
    best = better(list(means.values())) if better and len(means) > 1 else None
    cells = {}
    for label, value in means.items():
        text, more, short = form.format(value), {}, ""
        if spread and len(values[label]) > 1:
            deviation = stdev(values[label])
            low, high = interval(values[label])
            short = f"{text} ± {form.format(deviation)}"
            text = f"{short} [{form.format(low)}, {form.format(high)}]"
            more = {"sd": deviation, "low": low, "high": high}
        cells[label] = Cell(text, value, value == best, more, short)
    return _Column(name, cells, brief)


def interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Student's confidence interval of the mean of at least two values."""
    half = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return mean(values) - half, mean(values) + half


def _seeds(runs: Sequence[Run]) -> Cell:
    done = sum(run.state == "done" for run in runs)
    return Cell(str(done) if done == len(runs) else f"{done} of {len(runs)}", float(done))


def _differences(study: Study, test: str, samples: int) -> _Column:
    """Compare BLEU with the baseline's on the same sentences of the same seeds."""
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    done = study.done()
    assert study.baseline is not None
    own = {run.seed: run for run in done.pop(study.baseline)}
    name = f"{test} ΔBLEU"
    cells = {study.baseline: Cell("baseline", 0.0)}
    by_seeds: dict[tuple[int, ...], list[str]] = {}
    for label, runs in done.items():
        by_seeds.setdefault(tuple(run.seed for run in runs if run.seed in own), []).append(label)
    p_values: dict[str, float] = {}
    differences: dict[str, float] = {}
    for seeds, labels in by_seeds.items():
        if not seeds:
            continue
        systems = {
            label: [line for run in done[label] if run.seed in seeds for line in run.hypotheses(test)] for label in labels
        }
        baseline = [line for seed in seeds for line in own[seed].hypotheses(test)]
        references = own[seeds[0]].references(test) * len(seeds)
        lowercase = "case:lc" in own[seeds[0]].result["tests"][test]["bleu"]["signature"]
        found = significance.compare(
            baseline, systems, references, lowercase=lowercase, language=own[seeds[0]].target_language, samples=samples
        )
        p_values |= {label: result.p for label, result in found.items()}
        for label in labels:
            theirs = [run.result["tests"][test]["bleu"]["value"] for run in done[label] if run.seed in seeds]
            differences[label] = mean(theirs) - mean(own[seed].result["tests"][test]["bleu"]["value"] for seed in seeds)
    for label, p in significance.holm(p_values).items():
        star = "*" if p < 0.05 else ""
        cells[label] = Cell(
            f"{differences[label]:+.2f}{star} (p {_probability(p, samples)})", differences[label], more={"p": p}
        )
    return _Column(name, cells, brief=test == study.tests[0])


def _probability(p: float, samples: int) -> str:
    return f"< {2 / samples:.3f}" if p < 2 / samples else f"{p:.3f}"


def _notes(study: Study) -> list[str]:
    results = [run.result for runs in study.done().values() for run in runs]
    notes = []
    for metric in study.metrics:
        scores = [test[metric] for result in results for test in result["tests"].values() if isinstance(test.get(metric), dict)]
        notes += [f"{NAMES[metric]}: {signature}" for signature in sorted({score["signature"] for score in scores})]
    if any(len(runs) > 1 for runs in study.done().values()):
        notes.append("± is the standard deviation over seeds; [ ] is Student's 95 % confidence interval of the mean over seeds")
    if study.baseline in study.done() and len(study.done()) > 1:
        notes.append(
            f"ΔBLEU: to {study.baseline}, same seeds; p of paired approximate randomization over all their sentences, "
            "Holm-corrected for all variants of the table; * p < 0.05"
        )
    notes.append("tokens/s are target tokens in training; seconds are a whole run's")
    for kind in ("data", "version"):
        if len(kinds := {result[kind] for result in results}) > 1:
            notes.append(f"not comparable: these runs differ in {kind} ({', '.join(sorted(kinds))})")
    for label, runs in study.done().items():
        if len({found.recipe for run in runs if (found := record(run.folder)) is not None}) > 1:
            notes.append(f"not comparable: the seeds of {label} differ in more than their seed; run the study again")
    if study.wanted_baseline is not None and study.baseline is None:
        notes.append(f"no differences: there is no variant {study.wanted_baseline}, which is to be the baseline")
    return notes
