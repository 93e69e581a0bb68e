"""``attnlab align``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_run
from attnlab.commands._given import is_given
from attnlab.commands._io import check_input, check_output, open_output
from attnlab.commands._links import Alignment, Pairs, anchors, in_every_way, read_gold, show
from attnlab.commands._models import FILE, checkpoint_option, to_option
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError, warn
from attnlab.runs.waiting import choose_wait_policy

if TYPE_CHECKING:
    from attnlab.data.pharaoh import Links
    from attnlab.tasks.predictor import Predictor

TOKENS = ("t", "t - 1")
"""Of each shift, which token a row of weights is read as about."""

BASES = click.Choice(["0", "1"])


@click.command(short_help="Align the words of two files by attention or statistics.")
@click.argument("run", type=FILE, required=False, shell_complete=complete_run)
@click.option("--files", nargs=2, type=FILE, required=True, metavar="SOURCE TARGET", help="Two line-aligned files.")
@click.option("--output", type=FILE, metavar="FILE", help="Write the links to a file, and not to standard output.")
@click.option("--format", "form", type=click.Choice(["pharaoh", "talp"]), default="pharaoh", help="Count words from 0, or 1.")
@click.option("--symmetrise", default="grow-diagonal", show_default=True, metavar="HOW", help="How both are put together.")
@click.option("--gold", type=FILE, metavar="FILE", help="Known links, i-j sure and ipj possible.")
@click.option("--gold-from", type=BASES, default="0", show_default=True, help="What these count words from.")
@click.option("--gold-transposed", is_flag=True, help="These have the target first.")
@click.option(
    "--shift", type=BASES, help="Of a RUN: read row t as about token t (0) or t - 1 (1).  [default: as fits the validation set]"
)
@click.option("--reverse", type=FILE, metavar="RUN", shell_complete=complete_run, help="A run of the other direction.")
@click.option("--null", is_flag=True, help="Of a RUN: link no word that looks at the end of the source most.")
@click.option("--heads", is_flag=True, help="Of a RUN: tell every head of every layer; needs --gold or --silver.")
@click.option("--silver", is_flag=True, help="Of a RUN: take the links of an aligner of its training set for known ones.")
@click.option("--links", type=FILE, metavar="FILE", help="Without a RUN: score these links of another program; needs --gold.")
@click.option("--links-from", type=BASES, default="0", show_default=True, help="What these count words from.")
@click.option("--train", nargs=2, type=FILE, metavar="SOURCE TARGET", help="Without a RUN: learn from these, not from --files.")
@click.option("--train-words", nargs=2, metavar="LANG LANG", help="Split --train by spaCy, not at white space, such as en de.")
@click.option("--train-too", is_flag=True, help="Learn from --train and from --files.")
@to_option
@checkpoint_option
@trust_option
def command(
    run: Path | None,
    files: tuple[Path, Path],
    output: Path | None,
    form: str,
    symmetrise: str,
    gold: Path | None,
    gold_from: str,
    gold_transposed: bool,
    shift: str | None,
    reverse: Path | None,
    null: bool,
    heads: bool,
    silver: bool,
    links: Path | None,
    links_from: str,
    train: tuple[Path, Path] | None,
    train_words: tuple[str, str] | None,
    train_too: bool,
    to: str | None,
    checkpoint: str,
) -> int:
    """Align the words of two line-aligned files, at white space, by what a trained model looks at when it is made to write the
    second; without a RUN, by a statistical aligner that learns from the files, as fast_align does, or from others; or score
    the links that another program wrote.

    With known links, tell how many it finds, and beside it how many the best choice of one link for every word of the second,
    the straight diagonal and an aligner of the run's training set do.
    """
    if heads and not (gold or silver):
        raise UserError("--heads tells how well each head agrees with known links: add --gold FILE")
    if gold and silver:
        raise UserError("--silver takes an aligner's links for known ones: leave it out, or --gold")
    if not gold and (gold_transposed or is_given("gold_from")):
        raise UserError("--gold-from and --gold-transposed say how to read known links: add --gold FILE")
    if not links and is_given("links_from"):
        raise UserError("--links-from says how to read the links of another program: add --links FILE")
    of_run: dict[str, object] = {"--shift": shift, "--reverse": reverse, "--null": null, "--heads": heads, "--silver": silver}
    of_run |= {"--to": to, "--checkpoint": is_given("checkpoint")}
    of_aligner: dict[str, object] = {"--links": links, "--train": train, "--train-words": train_words, "--train-too": train_too}
    if without := [name for name, value in (of_aligner if run else of_run).items() if value]:
        raise UserError(
            f"{without[0]} is for where no RUN is named: leave it out, or the RUN"
            if run
            else f"{without[0]} is about the attention of a model: name a RUN, or leave it out"
        )
    if links and (train or not gold):
        raise UserError(f"--links {links} are scored by known links: " + ("leave out --train" if train else "add --gold FILE"))
    if (train_words or train_too) and not train:
        raise UserError("--train-words and --train-too say how to learn from --train: add it")
    read = [*files, gold, links, *(train or ())]
    check_input(*read)
    check_output(output, read)
    choose_wait_policy()
    from attnlab.data.pharaoh import format_links
    from attnlab.evaluation.alignment import SYMMETRISATIONS, make_silver
    from attnlab.runs.loading import load

    if symmetrise not in SYMMETRISATIONS:
        raise UserError(f"--symmetrise is one of {', '.join(SYMMETRISATIONS)}, not {symmetrise!r}")
    if is_given("symmetrise") and (links or (run and not reverse)):
        told = "leave it out where --links are given" if links else "add --reverse RUN"
        raise UserError(f"--symmetrise puts two directions together: {told}")
    pairs = Pairs.read(*files)
    known = read_gold(gold, pairs, files[0], base=int(gold_from), transposed=gold_transposed) if gold else []
    beside: dict[str, Alignment] = {}
    if links:
        written = read_gold(links, pairs, files[0], base=int(links_from), advice="--links-from 1")
        chosen = Alignment([one.possible for one in written])
        found = {links.name: chosen}
    elif run is None:
        own = _train_and_align(pairs, Pairs.read(*train) if train else None, train_words, too=train_too)
        found = in_every_way(own)
        chosen = found[f"aligner, {symmetrise}"]
    else:
        predictor = load(run, checkpoint=checkpoint, to=to)
        other = load(reverse, checkpoint=checkpoint) if reverse else None
        found = _align(predictor, run, pairs, shift, null=null, heads=heads)
        if other and reverse:
            _check_direction(predictor, run, other, reverse)
            back = next(iter(_align(other, reverse, pairs.reversed(), shift, null=null).values()))
            found = _symmetrise(found, back, symmetrise)
        chosen = next(iter(found.values()))
        if silver:
            known = [make_silver(*both) for both in _align_by_data(predictor, pairs)]
        elif gold:
            beside = _find_aligner(predictor, run, pairs)
    lines = [format_links(one, base=int(form == "talp")) for one in chosen.links]
    if output:
        with open_output(output) as out:
            out.writelines(f"{line}\n" for line in lines)
    elif not known:
        print("\n".join(lines))
    if known:
        show(found | anchors(pairs, known) | beside, known, silver=silver)
    return 0


def _train_and_align(
    pairs: Pairs, train: Pairs | None, languages: tuple[str, str] | None, *, too: bool
) -> list[tuple["Links", "Links"]]:
    """Align the pairs by an aligner that learns from them, from others, or from both."""
    from attnlab.tasks.translation.aligner import WordAligner

    source, target = pairs.sides()
    if train is None:
        return WordAligner.train(source, target).link(source, target)
    others = train.sides(languages)
    learned = (others[0] + source, others[1] + target) if too else others
    return WordAligner.train(*learned).link(source, target)


def _align_by_data(predictor: "Predictor", pairs: Pairs) -> list[tuple["Links", "Links"]]:
    """Align the pairs by an aligner of the training set of a run.

    Raises:
        UserError: the training set is not at hand, or the task is another one than translation.
    """
    from attnlab.tasks.translation import Translation

    task = predictor.task
    if not isinstance(task, Translation):
        raise UserError(f"the task {task.name} has no words to align")
    return task.word_links.aligner.link(*pairs.sides())


def _find_aligner(predictor: "Predictor", run: Path, pairs: Pairs) -> dict[str, Alignment]:
    """Return the links of such an aligner by what they are; say so if it has nothing to learn from."""
    try:
        return in_every_way(_align_by_data(predictor, pairs))
    except UserError as error:
        warn(f"there is no aligner of the training set of {run} to compare with: {error}")
        return {}


def _check_direction(predictor: "Predictor", run: Path, other: "Predictor", reverse: Path) -> None:
    forward, back = (getattr(one.task, "direction", ()) for one in (predictor, other))
    if back != forward[::-1]:
        told = f"{' to '.join(back)}, and {run} from {' to '.join(forward)}"
        raise UserError(f"--reverse {reverse} goes from {told}: name a run of the other direction")


def _align(
    predictor: "Predictor", run: Path, pairs: Pairs, shift: str | None, *, null: bool, heads: bool = False
) -> dict[str, Alignment]:
    """Align by the attention that is reported and, if asked for, by that of each head, by its name.

    Raises:
        UserError: what the model looks at are no words, nor parts of words.
    """
    from attnlab.runs.evaluation import split_by_head
    from attnlab.tasks.translation.alignment import link_words

    if any(model.source_frontend.joins_words for model in predictor.models):
        raise UserError(f"the task {predictor.task.name} has no words to align: the model of {run} looks at several at once")
    if not predictor.attends:
        raise UserError(f"{run} has no attention that could align")
    forced = split_by_head(predictor.force(pairs.sources, pairs.targets, heads=heads))
    shifts = dict.fromkeys(forced, int(shift)) if shift is not None else _choose_shifts(predictor, run, list(forced))
    words = pairs.words
    linked = {
        name: [link_words(*pair, one, shifts[name], null=null) for pair, one in zip(words, decodings, strict=True)]
        for name, decodings in forced.items()
    }
    if unspelt := sum(one is None for one in next(iter(linked.values()))):
        if unspelt == len(words):
            raise UserError(f"the tokens of the model of {run} do not spell the words of the files: they cannot be aligned")
        told = f"{unspelt} of {len(words)} pairs have no links, since the tokens of the model of {run} do not spell their words"
        warn(told)
    return {name: Alignment([one or set() for one in links], TOKENS[shifts[name]]) for name, links in linked.items()}


def _choose_shifts(predictor: "Predictor", run: Path, names: list[str]) -> dict[str, int]:
    """Choose how to read some weights, by name, on the validation set of a run's data; say so if it cannot be done there."""
    from attnlab.runs.evaluation import choose_shifts

    try:
        chosen, reason = choose_shifts(predictor, heads=len(names) > 1), "has no sure links"
    except UserError:
        chosen, reason = {}, "is not at hand"
    if not chosen:
        told = f"row t of the weights is read as about token t, since the validation set of {run} {reason}"
        warn(f"{told}; --shift 1 reads it as about token t - 1")
    return chosen or dict.fromkeys(names, 0)


def _symmetrise(found: Mapping[str, Alignment], back: Alignment, how: str) -> dict[str, Alignment]:
    """Put the links of both directions together, and keep those of each head."""
    from attnlab.data.pharaoh import transpose
    from attnlab.evaluation.alignment import SYMMETRISATIONS

    (_, own), *heads = found.items()
    links = [SYMMETRISATIONS[how](a, transpose(b)) for a, b in zip(own.links, back.links, strict=True)]
    return {f"both directions, {how}": Alignment(links, f"{own.token}; back, {back.token}"), **dict(heads)}
