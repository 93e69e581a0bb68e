"""Comparing the runs of a study, from their folders alone."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rich import box
from rich.table import Table

from attnlab.errors import UserError

TOKENIZED = "BLEU tok-lc"
LABELS = {"bleu": "BLEU", "bleu_tok_lc": TOKENIZED}


@dataclass(frozen=True)
class Comparison:
    """A table of a study: a row a variant, figures averaged over its seeds, the best first.

    Attributes:
        title: the study's name.
        header: names of the columns.
        rows: cells, as text.
        notes: what the figures are, such as the signatures of the scores.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n".join([f"# {self.title}\n", table, "", *(f"- {note}" for note in self.notes), ""])

    def rich(self) -> Table:
        """Return the table for a terminal, where there is room for the first of the scores alone."""
        shown = [index for index, name in enumerate(self.header) if TOKENIZED not in name]
        notes = [note for note in self.notes if TOKENIZED not in note]
        table = Table(
            title=self.title,
            caption="\n".join(notes),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            collapse_padding=True,
        )
        for index in shown:
            table.add_column(self.header[index], justify="right" if index else "left", no_wrap=not index)
        for row in self.rows:
            table.add_row(*(row[index] for index in shown))
        return table


def compare(folder: Path) -> Comparison:
    """Compare all finished runs below ``runs/NAME``; what failed or is missing is listed as a note.

    Raises:
        UserError: no finished run there.
    """
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/*/result.json"))]
    if not results:
        raise UserError(f"no finished run below {folder}: expected {folder}/VARIANT/seed=N/result.json")
    by_variant: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        by_variant[result["variant"]].append(result)
    axis, labels = _labels({variant: runs[0]["overrides"] for variant, runs in by_variant.items()})
    tests = list(dict.fromkeys(name for result in results for name in result["tests"]))
    metrics = [(test, metric) for test in tests for metric in ("bleu", "bleu_tok_lc")]

    rows = []
    best_first = sorted(by_variant.items(), key=lambda item: -mean(run["tests"][tests[0]]["bleu"]["value"] for run in item[1]))
    for variant, runs in best_first:
        row = [labels[variant], str(len(runs)), f"{runs[0]['parameters']:,}"]
        row += [_spread([run["tests"][test][metric]["value"] for run in runs]) for test, metric in metrics]
        row += [_spread([run["tests"][tests[0]]["perplexity"] for run in runs])]
        row += [f"{mean(run['train_tokens_per_second'] for run in runs):,.0f}"]
        row += [f"{mean(run['seconds'] for run in runs):,.0f}"]
        rows.append(row)

    header = [axis, "seeds", "params", *(f"{test} {LABELS[metric]}" for test, metric in metrics)]
    header += [f"{tests[0]} perplexity", "tokens/s", "seconds"]
    return Comparison(folder.name, header, rows, [*_signatures(results), *_failed(folder)])


def _labels(overrides: dict[str, list[str]]) -> tuple[str, dict[str, str]]:
    """Name variants by the overrides that tell them apart; if that is one key, by its values, the key being their heading."""
    common = set.intersection(*(set(asked) for asked in overrides.values())) if len(overrides) > 1 else set()
    telling = {name: [o for o in asked if o not in common] for name, asked in overrides.items()}
    keys = {o.partition("=")[0] for asked in telling.values() for o in asked}
    if len(keys) == 1 and all(len(asked) == 1 for asked in telling.values()):
        return keys.pop(), {name: asked[0].partition("=")[2] for name, asked in telling.items()}
    return "variant", {name: " ".join(asked) or "default" for name, asked in telling.items()}


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _signatures(results: Sequence[dict[str, Any]]) -> list[str]:
    notes = []
    for metric, label in LABELS.items():
        signatures = {test[metric]["signature"] for result in results for test in result["tests"].values()}
        notes += [f"{label}: {signature}" for signature in sorted(signatures)]
    notes.append("± is the standard deviation over seeds; tokens/s are target tokens in training; seconds are a whole run's")
    return notes


def _failed(folder: Path) -> list[str]:
    begun = (path.parent for path in sorted(folder.glob("*/*/.hydra")))
    return [f"not finished: {path.relative_to(folder)}" for path in begun if not (path / "result.json").exists()]
