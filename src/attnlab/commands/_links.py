"""What is linked, and what the links are compared with: pairs of lines, known links, anchors, and a table of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from attnlab.errors import UserError

if TYPE_CHECKING:
    from attnlab.data.pharaoh import Gold, Links


@dataclass(frozen=True)
class Pairs:
    """Lines of two files, line n of one belonging to line n of the other."""

    sources: list[str]
    targets: list[str]

    @classmethod
    def read(cls, source: Path, target: Path) -> Self:
        """Read two files, plain or packed.

        Raises:
            UserError: one cannot be read, or they have not as many lines.
        """
        from attnlab.data.files import decode_lines, read_bytes
        from attnlab.data.pharaoh import BLANKS

        sides = [decode_lines(read_bytes(path), path, BLANKS) for path in (source, target)]
        if len(sides[0]) != len(sides[1]):
            raise UserError(f"{source} has {len(sides[0])} lines but {target} has {len(sides[1])}: one for each")
        return cls(*sides)

    def reversed(self) -> "Pairs":
        """Return the pairs of the other direction."""
        return Pairs(self.targets, self.sources)

    @property
    def words(self) -> list[tuple[list[str], list[str]]]:
        """The words of each pair, at white space."""
        return list(zip(*self.sides(), strict=True))

    def sides(self, languages: tuple[str, str] | None = None) -> tuple[list[list[str]], list[list[str]]]:
        """Return the words of all sources and of all targets, at white space or as spaCy splits these languages."""
        from attnlab.data.pharaoh import split_words
        from attnlab.tasks.translation.tokenizers import SpacyTokenizer

        source, target = (
            SpacyTokenizer(languages[side]).tokenize(lines) if languages else list(map(split_words, lines))
            for side, lines in enumerate((self.sources, self.targets))
        )
        return source, target


@dataclass(frozen=True)
class Alignment:
    """Links of all pairs, and which token a row of the weights was read as about, if they come from weights."""

    links: list["Links"]
    token: str = ""


def read_gold(
    path: Path, pairs: Pairs, source: Path, *, base: int, transposed: bool = False, advice: str = "--gold-from 1"
) -> list["Gold"]:
    """Read links of the pairs that somebody wrote; the advice is for links that count from 1.

    Raises:
        UserError: not as many lines, something that is no link, or a link between words that are not there.
    """
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
            raise UserError(f"{error}{'' if base else f'; if links count from 1, add {advice}'}") from None
        found.append(gold)
    return found


def in_every_way(both: Sequence[tuple["Links", "Links"]]) -> dict[str, Alignment]:
    """Return the links of an aligner, of either direction and of both put together, by what they are."""
    from attnlab.evaluation.alignment import SYMMETRISATIONS

    directions = ("aligner", "aligner, back")
    one_way = {name: Alignment([links[side] for links in both]) for side, name in enumerate(directions)}
    return one_way | {f"aligner, {how}": Alignment([put(*links) for links in both]) for how, put in SYMMETRISATIONS.items()}


def anchors(pairs: Pairs, gold: Sequence["Gold"]) -> dict[str, Alignment]:
    """Return what any links are compared with, by what it is."""
    from attnlab.evaluation.alignment import ANCHORS

    sizes = [(len(source), len(target)) for source, target in pairs.words]
    return {
        name: Alignment([links(one, *size) for one, size in zip(gold, sizes, strict=True)]) for name, links in ANCHORS.items()
    }


def show(found: Mapping[str, Alignment], gold: Sequence["Gold"], *, silver: bool) -> None:
    """Print how well some alignments agree with known links."""
    from rich.table import Table

    from attnlab.evaluation.alignment import score
    from attnlab.terminal import Terminal

    label = "AER, silver links" if silver else "AER"
    table = Table("", label, "precision", "recall", "links", "row t is about token")
    for name, alignment in found.items():
        result = score(alignment.links, gold)
        shares = (f"{share:.1%}" for share in (result.aer, result.precision, result.recall))
        table.add_row(name, *shares, f"{result.links:,}", alignment.token)
    console = Terminal()
    console.print(table)
    if silver:
        console.print("silver links are an aligner's, and not people's: sure in both directions, possible in either")
