"""``attnlab probe``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attnlab.commands._complete import complete_run
from attnlab.commands._io import check_writable
from attnlab.commands._models import FILE, batch_size_option, bootstrap_option, checkpoint_option, device_option, name_runs
from attnlab.commands._trust import trust_option
from attnlab.runs.waiting import choose_wait_policy

if TYPE_CHECKING:
    from attnlab.runs.record import ProbeRecord


@click.command(short_help="Test whether attention explains what a trained model does.")
@click.argument("runs", nargs=-1, required=True, type=FILE, metavar="RUN...", shell_complete=complete_run)
@click.option("--test", metavar="NAME", help="Test set of the runs' data, or val.  [default: its first test set]")
@click.option("--examples", type=click.IntRange(1), default=200, show_default=True, help="How many are drawn from it.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the draw and of the permutations.")
@click.option("--permutations", type=click.IntRange(1), default=10, show_default=True, help="Of each row of weights.")
@click.option("--own", is_flag=True, help="Make each run write what its own search finds, and not the references.")
@click.option("--swap", type=FILE, metavar="RUN", shell_complete=complete_run, help="Also with the weights of this run.")
@bootstrap_option
@device_option
@batch_size_option
@checkpoint_option
@trust_option
def command(
    runs: tuple[Path, ...],
    test: str | None,
    examples: int,
    seed: int,
    permutations: int,
    own: bool,
    swap: Path | None,
    bootstrap: int,
    device: str,
    batch_size: int,
    checkpoint: str,
) -> int:
    """Test whether what a trained model looks at explains what it does, without training it again.

    The model writes given targets with its own attention weights, with these permuted over the source, with uniform ones and,
    with --swap, with those of another run: loss, accuracy, and how far the output distributions move (total variation). Its
    weights are compared with what happens when a source token is left out, and with gradients (Kendall's tau). Of several
    heads, each is switched off once. What is found is written into the folder of each RUN, and reports show it.
    """
    names = name_runs(runs)
    choose_wait_policy()
    from attnlab.probing.probe import ProbeOptions
    from attnlab.runs.probes import ProbeSettings, check_swap, open_run, probe_run

    options = ProbeOptions(examples, seed, permutations, own_targets=own)
    settings = ProbeSettings(checkpoint, device, batch_size, bootstrap)
    opened = {name: open_run(run, test, settings) for name, run in names.items()}
    for run in opened.values():
        check_writable(run.folder.probes)
    other = open_run(swap, test, settings) if swap else None
    if other:
        for run in opened.values():
            check_swap(run, other)
    found: dict[str, ProbeRecord] = {}
    for name, run in opened.items():
        found[name] = probe_run(run, options, settings, other)
        print(f"written to {run.folder.probe_file(run.test)}")
    _show(found)
    return 0


def _show(found: "Mapping[str, ProbeRecord]") -> None:
    from rich.table import Table

    from attnlab.evaluation.measurement import INTERVAL_NOTE, write_estimate
    from attnlab.terminal import Terminal

    console, table = Terminal(), Table("", *found)
    figures = {name: record.figure(name) for record in found.values() for name in record.figures}
    for name, figure in figures.items():
        own = (record.figure(name) if name in record.figures else None for record in found.values())
        cells = ("" if one is None else write_estimate(one.value, one.low, one.high, one.digits) for one in own)
        table.add_row(f"{figure.label}{f' ({figure.unit})' if figure.unit else ''}", *cells)
    console.print(table)
    for told in dict.fromkeys(record.signature for record in found.values()):
        console.print(told, soft_wrap=True, highlight=False)
    if any(record.figure(name).low is not None for record in found.values() for name in record.figures):
        console.print(INTERVAL_NOTE, highlight=False)
