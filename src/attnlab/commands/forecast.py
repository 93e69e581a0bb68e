"""``attnlab forecast``."""

import csv
import sys
from pathlib import Path

import click

from attnlab.commands._complete import complete_run
from attnlab.commands._io import check_output, check_source, open_output
from attnlab.commands._models import FILE, checkpoint_option, device_option
from attnlab.commands._trust import trust_option
from attnlab.errors import UserError
from attnlab.runs.waiting import choose_wait_policy


@click.command(short_help="Forecast the next rows of a time series with a trained model.")
@click.argument("runs", nargs=-1, required=True, type=FILE, metavar="RUN...", shell_complete=complete_run)
@click.option("--input", "source", type=FILE, metavar="FILE", help="Read the past from a file, plain or .gz.")
@click.option("--output", type=FILE, metavar="FILE", help="Write to a file.")
@checkpoint_option
@device_option
@trust_option
def command(runs: tuple[Path, ...], source: Path | None, output: Path | None, checkpoint: str, device: str) -> int:
    """Forecast from the last rows of a table on standard input or in a file, in the data's own units.

    The past is values separated by commas, with the columns of the training data. Each RUN is the folder of a finished run of
    task=forecasting; the forecasts of several are averaged. Of quantiles each has a column of its own, such as "OT 0.9".
    """
    check_source(source)
    check_output(output, [source])
    choose_wait_policy()
    from attnlab.data.files import read_bytes
    from attnlab.runs.loading import load
    from attnlab.tasks.forecasting import Forecaster, Forecasting

    predictor = load(*runs, checkpoint=checkpoint, device=device)
    task = predictor.task
    if not isinstance(predictor, Forecaster) or not isinstance(task, Forecasting):
        raise UserError(f"{runs[0]} is a run of the task {task.name}: name one of task=forecasting")
    content = read_bytes(source) if source else sys.stdin.buffer.read()
    table, window = task.parse_history(content, source or Path("standard input"))
    (found,) = predictor.forecast(window)
    levels = predictor.levels
    names = table.names[: table.num_targets]
    columns = [name if len(levels) == 1 else f"{name} {level:g}" for name in names for level in levels]
    by_level = [task.scale.restore(found[..., place]) for place in range(len(levels))]
    with open_output(output) as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*([] if table.times is None else [table.clock]), *columns])
        for step in range(window.horizon):
            time = [] if table.times is None else [str(table.times[window.look_back + step].replace(tzinfo=table.offset))]
            numbers = [f"{own[step, place]:.8g}" for place in range(len(names)) for own in by_level]
            writer.writerow([*time, *numbers])
    return 0
