"""``attnlab align``."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from attnlab.commands._complete import complete_run
from attnlab.commands._io import check_input, check_output, open_output
from attnlab.commands._models import FILE, checkpoint_option
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError

if TYPE_CHECKING:
    from attnlab.data.pharaoh import Gold, Links
    from attnlab.tasks.predictor import Predictor

TOKENS = ("t", "t - 1")
"""Of each shift, which token a row of weights is read as about."""

BASES = click.Choice(["0", "1"])


@dataclass(frozen=True)
class Pairs:
    """Lines of two files, line n of one belonging to line n of the other."""

    sources: list[str]
    targets: list[str]

    @classmethod
    def read(cls, source: Path, target: Path) -> Self:
        """Read two files.

        Raises:
            UserError: one cannot be read, or they have not as many lines.
        """
        from attnlab.data.files import decode_lines, read_bytes

        sides = [decode_lines(read_bytes(path), path) for path in (source, target)]
        if len(sides[0]) != len(sides[1]):
            raise UserError(f"{source} has {len(sides[0])} lines but {target} has {len(sides[1])}: one for each")
        return cls(*sides)

    @property
    def words(self) -> list[tuple[list[str], list[str]]]:
        """The words of each pair, at white space."""
        return [(source.split(), target.split()) for source, target in zip(self.sources, self.targets, strict=True)]


@dataclass(frozen=True)
class Alignment:
    """Links of all pairs, and which token a row of the weights was read as about."""

    links: list["Links"]
    token: str


@click.command(short_help="Align the words of two files by a model's attention.")
@click.argument("run", type=FILE, shell_complete=complete_run)
@click.option("--files", nargs=2, type=FILE, required=True, metavar="SOURCE TARGET", help="Two line-aligned files.")
@click.option("--output", type=FILE, metavar="FILE", help="Write the links to a file, and not to standard output.")
@click.option("--format", "form", type=click.Choice(["pharaoh", "talp"]), default="pharaoh", help="Count words from 0, or 1.")
@click.option(
    "--shift", type=BASES, help="Read row t as about token t (0) or t - 1 (1).  [default: as fits the validation set]"
)
@click.option("--reverse", type=FILE, metavar="RUN", shell_complete=complete_run, help="A run of the other direction.")
@click.option("--symmetrise", default="grow-diagonal", show_default=True, metavar="HOW", help="How both are put together.")
@click.option("--gold", type=FILE, metavar="FILE", help="Known links, i-j sure and ipj possible.")
@click.option("--gold-from", type=BASES, default="0", show_default=True, help="What these count words from.")
@click.option("--gold-transposed", is_flag=True, help="These have the target first.")
@click.option("--null", is_flag=True, help="Link no word that looks at the end of the source most.")
@click.option("--heads", is_flag=True, help="Tell every head of every layer; needs --gold.")
@checkpoint_option
@trust_option
def command(
    run: Path,
    files: tuple[Path, Path],
    output: Path | None,
    form: str,
    shift: str | None,
    reverse: Path | None,
    symmetrise: str,
    gold: Path | None,
    gold_from: str,
    gold_transposed: bool,
    null: bool,
    heads: bool,
    checkpoint: str,
) -> int:
    """Align the words of two line-aligned files, at white space, by what a trained model looks at when it is made to write the
    second.

    With known links, tell how many it finds, and beside it how many the best choice of one link for every word of the second
    and the straight diagonal do.
    """
    if heads and not gold:
        raise UserError("--heads tells how well each head agrees with known links: add --gold FILE")
    check_input(*files, gold)
    check_output(output, [*files, gold])
    from attnlab.data.pharaoh import format_links
    from attnlab.evaluation.alignment import SYMMETRISATIONS
    from attnlab.runs.loading import load

    if symmetrise not in SYMMETRISATIONS:
        raise UserError(f"--symmetrise is one of {', '.join(SYMMETRISATIONS)}, not {symmetrise!r}")
    pairs = Pairs.read(*files)
    known = _read_gold(gold, pairs, files[0], base=int(gold_from), transposed=gold_transposed) if gold else []
    predictor = load(run, checkpoint=checkpoint)
    other = load(reverse, checkpoint=checkpoint) if reverse else None
    found = _align(predictor, run, pairs, shift, null=null, heads=heads)
    if other and reverse:
        _check_direction(predictor, run, other, reverse)
        back = next(iter(_align(other, reverse, Pairs(pairs.targets, pairs.sources), shift, null=null).values()))
        found = _symmetrise(found, back, symmetrise)
    lines = [format_links(links, base=int(form == "talp")) for links in next(iter(found.values())).links]
    if output:
        with open_output(output) as out:
            out.writelines(f"{line}\n" for line in lines)
    elif not gold:
        print("\n".join(lines))
    if gold:
        _show(found | _anchors(pairs, known), known)
    return 0


def _read_gold(path: Path, pairs: Pairs, source: Path, *, base: int, transposed: bool) -> list["Gold"]:
    """Read known links of the pairs."""
    from attnlab.data.files import decode_lines, read_bytes
    from attnlab.data.pharaoh import Gold, check_inside, parse_links, transpose

    lines = decode_lines(read_bytes(path), path)
    if len(lines) != len(pairs.sources):
        raise UserError(f"{path} has {len(lines)} lines but {source} has {len(pairs.sources)}: one for each")
    found = []
    for number, (line, (words, others)) in enumerate(zip(lines, pairs.words, strict=True), 1):
        place = f"{path}, line {number}"
        gold = parse_links(line, base=base, place=place)
        if transposed:
            gold = Gold(transpose(gold.sure), transpose(gold.possible))
        try:
            check_inside(gold.possible, len(words), len(others), place=place, base=base)
        except UserError as error:
            raise UserError(f"{error}{'' if base else '; if links count from 1, add --gold-from 1'}") from None
        found.append(gold)
    return found


def _check_direction(predictor: "Predictor", run: Path, other: "Predictor", reverse: Path) -> None:
    forward, back = (getattr(one.task, "languages", ()) for one in (predictor, other))
    if back != forward[::-1]:
        told = f"{' to '.join(back)}, and {run} from {' to '.join(forward)}"
        raise UserError(f"--reverse {reverse} goes from {told}: name a run of the other direction")


def _align(
    predictor: "Predictor", run: Path, pairs: Pairs, shift: str | None, *, null: bool, heads: bool = False
) -> dict[str, Alignment]:
    """Align by the attention that is reported and, if asked for, by that of each head, by its name."""
    from attnlab.runs.evaluation import split_by_head
    from attnlab.tasks.translation.alignment import link_words

    forced = split_by_head(predictor.force(pairs.sources, pairs.targets, heads=heads))
    shifts = dict.fromkeys(forced, int(shift)) if shift is not None else _choose_shifts(predictor, run, list(forced))
    words = pairs.words
    return {
        name: Alignment(
            [link_words(*pair, one, shifts[name], null=null) for pair, one in zip(words, decodings, strict=True)],
            TOKENS[shifts[name]],
        )
        for name, decodings in forced.items()
    }


def _choose_shifts(predictor: "Predictor", run: Path, names: list[str]) -> dict[str, int]:
    """Choose how to read some weights, by name, on the validation set of a run's data; say so if it cannot be done there."""
    from attnlab.runs.evaluation import choose_shifts

    try:
        chosen, reason = choose_shifts(predictor, heads=len(names) > 1), "has no sure links"
    except UserError:
        chosen, reason = {}, "is not at hand"
    if not chosen:
        told = f"row t of the weights is read as about token t, since the validation set of {run} {reason}"
        print(f"attnlab: {told}; --shift 1 reads it as about token t - 1", file=sys.stderr)
    return chosen or dict.fromkeys(names, 0)


def _symmetrise(found: Mapping[str, Alignment], back: Alignment, how: str) -> dict[str, Alignment]:
    """Put the links of both directions together, and keep those of each head."""
    from attnlab.data.pharaoh import transpose
    from attnlab.evaluation.alignment import SYMMETRISATIONS

    (_, own), *heads = found.items()
    links = [SYMMETRISATIONS[how](a, transpose(b)) for a, b in zip(own.links, back.links, strict=True)]
    return {f"both directions, {how}": Alignment(links, f"{own.token}; back, {back.token}"), **dict(heads)}


def _anchors(pairs: Pairs, gold: list["Gold"]) -> dict[str, Alignment]:
    """Return what the links of an attention are compared with, by what it is."""
    from attnlab.evaluation.alignment import ANCHORS

    sizes = [(len(source), len(target)) for source, target in pairs.words]
    return {
        name: Alignment([links(one, *size) for one, size in zip(gold, sizes, strict=True)], "")
        for name, links in ANCHORS.items()
    }


def _show(found: Mapping[str, Alignment], gold: list["Gold"]) -> None:
    from rich.table import Table

    from attnlab.commands._terminal import Terminal
    from attnlab.evaluation.alignment import score

    table = Table("", "AER", "precision", "recall", "links", "row t is about token")
    for name, alignment in found.items():
        result = score(alignment.links, gold)
        shares = (f"{share:.1%}" for share in (result.aer, result.precision, result.recall))
        table.add_row(name, *shares, f"{result.links:,}", alignment.token)
    Terminal().print(table)
