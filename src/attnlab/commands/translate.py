"""``attnlab translate``."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnlab.commands._io import check_output, check_source, open_output, read_chunks
from attnlab.commands._models import FILE, ModelOptions, model_options
from attnlab.errors import UserError, printable, warn

if TYPE_CHECKING:
    from attnlab.evaluation.evidence import Prediction
    from attnlab.search import Search

CHUNK = 1024
"""Lines translated at a time, so that a long file shows its first lines early and needs no more memory than a short one."""


@click.command(short_help="Translate lines of text with a trained model.")
@model_options
@click.option("--input", "source", type=FILE, metavar="FILE", help="Read from a file, plain or .gz.")
@click.option("--output", type=FILE, metavar="FILE", help="Write to a file.")
@click.option("--n-best", type=click.IntRange(1), default=1, metavar="N", help="Write N predictions, each on its own line.")
@click.option("--scores", is_flag=True, help="Put the search's score and a tab before each one.")
@click.option("--alignments", is_flag=True, help="Put a tab and links i-j between words after each one.")
@click.option(
    "--shift",
    type=click.IntRange(0, 1),
    help="Of links: read row t of the weights as about token t (0) or t - 1 (1).  [default: as in the first run's own test, "
    "where that knew links; else 0]",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write one JSON object a line: the example's number, and of all N text, score, tokens and the links [i, j] of "
    "source_tokens to these.",
)
def command(source: Path | None, output: Path | None, n_best: int, shift: int | None, **options: Any) -> int:
    """Translate lines from standard input or a file to standard output or a file.

    Each RUN is the folder of a finished run, runs/NAME/VARIANT/seed=N; several are searched as an ensemble. The search is that
    of the first run, or what search=OPTION, search/PART=OPTION and search.KEY=VALUE make of it.
    """
    models = ModelOptions.of(options)
    check_source(source)
    check_output(output, [source])
    predictor = models.load()
    predictor.task.require_target()
    _check_n_best(n_best, predictor.search)
    if options["alignments"] and not predictor.attends:
        raise UserError("--alignments: links are read from attention weights, and this model has none")
    links_are_written = options["alignments"] or options["as_json"]
    if shift is not None and not links_are_written:
        raise UserError("--shift says how links are read: add --alignments or --json")
    if shift is None:
        shift = _read_shift(models.runs[0]) if links_are_written else 0
    is_checked = source is not None and source.is_file()  # a pipe can be read only once
    if is_checked:
        for first, chunk in read_chunks(source, CHUNK):
            predictor.check_lines(chunk, place=f"{source}, line", first=first)
    live = source is None and sys.stdin.isatty()
    if live:
        print("one line each; Ctrl-D ends", file=sys.stderr)
    with open_output(output) as out:

        def write(text: str) -> None:  # a file and a pipe are given what was found
            out.write(printable(text) if out.isatty() else text)

        lines = Lines(write, n_best, predictor.task.joiner, shift, **options)
        for first, chunk in read_chunks(source, 1 if live else CHUNK):
            try:
                if not is_checked:
                    predictor.check_lines(chunk, place="line", first=first)
            except UserError as error:
                if not live:
                    raise
                warn(str(error))
                continue
            for number, (line, found) in enumerate(zip(chunk, predictor.n_best(chunk), strict=True), first):
                lines.add(number, line, found[:n_best])
            out.flush()
    if lines.unlinked:
        told = f"{lines.unlinked:,} of {lines.written:,} predictions have no links: the model's tokens do not spell the words"
        warn(f"{told}; --json links tokens")
    return 0


def _read_shift(run: Path) -> int:
    from attnlab.runs.folder import RunFolder

    folder = RunFolder(run)
    return (folder.read_result().shift if folder.result_file.is_file() else None) or 0


def _check_n_best(count: int, search: "Search") -> None:
    if count <= search.max_hypotheses:
        return
    if search.max_hypotheses_setting is None:
        raise UserError(f"--n-best {count}: greedy search finds one prediction: add search=beam search.width={count}")
    setting = f"search.{search.max_hypotheses_setting}"
    raise UserError(f"--n-best {count}: {setting} is {search.max_hypotheses}: add {setting}={count}")


@dataclass
class Lines:
    """Writes predictions, as lines of text or of JSON.

    Attributes:
        write: takes what is to be written.
        count: predictions of a line.
        joiner: what ends a piece of a word in the tokens of the predictions; None where they are no such pieces.
        shift: by which the weights are read; see :func:`attnlab.evaluation.alignment.from_weights`.
        scores: put the score before each.
        alignments: put links between words after each.
        as_json: write JSON instead, with all of that.
        written: predictions so far.
        unlinked: those of them whose words cannot be linked.
    """

    write: Callable[[str], object]
    count: int
    joiner: str | None
    shift: int
    scores: bool
    alignments: bool
    as_json: bool
    written: int = 0
    unlinked: int = 0

    def add(self, number: int, line: str, found: Sequence["Prediction"]) -> None:
        """Write what was found for a line of some number, from 1."""
        if self.as_json:
            self.write(json.dumps(_to_json(number, line, found, self.shift), ensure_ascii=False) + "\n")
            return
        for prediction in found:
            score = f"{prediction.score:.4f}\t" if self.scores else ""
            links = f"\t{self._link(line, prediction)}" if self.alignments else ""
            self.write(f"{score}{prediction.text}{links}\n")
        self.written += len(found)
        # Line i * N + k belongs to source i, whatever was found; nothing is what an empty line is translated as.
        nothing = ("-inf\t" if self.scores else "") + ("\t" if self.alignments else "")
        self.write(f"{nothing}\n" * (self.count - len(found)))

    def _link(self, line: str, prediction: "Prediction") -> str:
        """Link the words at white space of a line and of its translation, where tokens spell them."""
        from attnlab.data.pharaoh import format_links, split_words
        from attnlab.data.symbols import without_end
        from attnlab.evaluation.alignment import from_weights
        from attnlab.tasks.translation.links import token_spans

        columns = token_spans(split_words(line), without_end(prediction.source))
        rows = token_spans(split_words(prediction.text), without_end(prediction.tokens), self.joiner)
        if columns is None or rows is None:
            self.unlinked += 1
            return ""
        return format_links(from_weights(prediction.weights, columns, rows, shift=self.shift))


def _to_json(number: int, line: str, found: Sequence["Prediction"], shift: int) -> dict[str, Any]:
    """Return what was found for a line; links are between tokens, so that they count what stands beside them."""
    from attnlab.data.symbols import without_end
    from attnlab.evaluation.alignment import link_items
    from attnlab.evaluation.evidence import EXAMPLE

    translations = []
    for prediction in found:
        tokens, source = without_end(prediction.tokens), without_end(prediction.source)
        translations.append(
            {
                "text": prediction.text,
                "score": prediction.score,
                "log_probability": prediction.log_probability,
                "tokens": tokens,
                "links": sorted(link_items(prediction.weights, len(source), len(tokens), shift=shift)),
            }
        )
    return {EXAMPLE: number, "source": line, "source_tokens": without_end(found[0].source), "translations": translations}
