"""``python -m benchmarks``: measure, keep every figure in ``history.jsonl``, and write the tables of ``README.md``."""

import argparse
import logging
import shlex
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from attnlab.errors import UserError
from attnlab.training.process import prepare_process
from benchmarks import commands, corpus, decoding, memory, processes, sharing, trained, training
from benchmarks.figures import Figure
from benchmarks.records import BUSY, DEVICES, HERE, append, describe, write_page
from benchmarks.setting import Setting

PARTS = {
    "training": training.PART,
    "decoding": decoding.PART,
    "trained": trained.PART,
    "processes": processes.PART,
    "sharing": sharing.PART,
    "start": commands.START,
    "memory": memory.PART,
    "corpus": corpus.PART,
    "targets": commands.LONG,
}


COUNTS = ("device", "rounds", "batches", "sentences", "pairs")
"""Options of the setting that every command names."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for.

    Returns:
        The exit status.
    """
    options = parse(arguments)
    try:
        measure(options)
    except (UserError, RuntimeError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options, the setting among them."""
    usual = Setting()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", help=f"parts, with commas between them: {', '.join(PARTS)}")
    parser.add_argument("--long", action="store_true", help="also what takes long: trained models, `make test` and `make demo`")
    parser.add_argument("--data", help="folder of Multi30k; without it the embedded corpus")
    parser.add_argument("--device", choices=list(DEVICES), default=usual.device)
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="of which the median is taken")
    parser.add_argument("--batches", type=int, default=usual.batches, help="that each trains on in a round")
    parser.add_argument("--sentences", type=int, default=usual.sentences, help="that each translates in a round")
    parser.add_argument("--pairs", type=int, default=usual.pairs, help="of the large corpus")
    parser.add_argument("--output", type=Path, default=HERE, help="folder of README.md and history.jsonl")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of the config; --output must be given too")
    options = parser.parse_args(arguments)
    able = [name for name, part in PARTS.items() if options.device in part.devices]
    usual_names = [name for name in able if options.long or not PARTS[name].is_long]
    options.names = usual_names if options.only is None else [name.strip() for name in options.only.split(",")]
    if unknown := [name for name in options.names if name not in able]:
        parser.error(f"no part {unknown[0]!r} on {options.device}: there is {', '.join(able)}")
    if min(options.rounds, options.batches, options.sentences, options.pairs) < 1:
        parser.error("rounds, batches, sentences and pairs are 1 or more")
    if options.overrides and options.output == HERE:
        parser.error("with overrides it is another model than the tables are about: add --output FOLDER")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use here")
    if options.data is not None and not Path(options.data).is_dir():
        parser.error(f"--data: there is no folder {options.data}")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output: cannot write {options.output} ({error.strerror})")
    return options


def measure(options: argparse.Namespace) -> None:
    """Measure part by part, and write down each at once.

    Raises:
        UserError: a mistake in the overrides, or data that cannot be read.
    """
    given = ("data", *COUNTS)
    setting = Setting(**{name: getattr(options, name) for name in given}, overrides=tuple(options.overrides))
    record = describe(setting)
    if (load := record["load"]) > BUSY:
        print(
            f"benchmarks: the machine is busy (load {load:.1f}): only ratios mean something, if anything does", file=sys.stderr
        )
    warnings.filterwarnings("ignore", module="lightning|torch")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    prepare_process()
    for name in options.names:
        started = time.perf_counter()
        figures = [replace(figure, command=command_of(name, setting)) for figure in PARTS[name].measure(setting)]
        for figure in figures:
            print(tell(figure), flush=True)
        data = PARTS[name].data or ("Multi30k" if setting.data else "the embedded corpus")
        append(options.output, {"part": name, **record, "data": data}, figures)
        write_page(options.output, PARTS)
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)


def command_of(part: str, setting: Setting) -> str:
    """Return the command that measures a part again."""
    data = ["--data FOLDER"] if setting.data else []
    counts = [f"--{name} {getattr(setting, name)}" for name in COUNTS]
    other = ["--output FOLDER", *map(shlex.quote, setting.overrides)] if setting.overrides else []
    return " ".join(["python -m benchmarks", f"--only {part}", *data, *counts, *other])


def tell(figure: Figure) -> str:
    """Return a figure in one line."""
    if figure.value is None:
        return f"{figure.name}: not measured ({figure.note})"
    return f"{figure.name}: {figure.value:,.4g} {figure.unit} ({figure.low:,.4g} to {figure.high:,.4g}, {figure.rounds} rounds)"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # which ends the processes that it started
    sys.exit(main())
