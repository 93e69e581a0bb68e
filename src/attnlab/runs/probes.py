"""Probing the attention of finished runs, and what is written of it into their folders."""

from dataclasses import asdict, dataclass
from pathlib import Path

import attnlab
from attnlab.data.examples import Examples
from attnlab.errors import UserError
from attnlab.probing.figures import Figure
from attnlab.probing.probe import Donor, ProbeOptions, check_attention, check_donor, probe
from attnlab.runs.building import report_damage
from attnlab.runs.folder import RunFolder
from attnlab.runs.identity import hash_probe_code
from attnlab.runs.loading import load
from attnlab.runs.record import ProbeFigure, ProbeRecord
from attnlab.runs.tested import warn_of_other_data
from attnlab.tasks.predictor import Predictor


@dataclass(frozen=True)
class ProbedRun:
    """A finished run that is opened.

    Attributes:
        folder: its own.
        id: of its result.
        predictor: with its model.
        test: name of the test set of its data, or ``val``.
        examples: of the test set.
    """

    folder: RunFolder
    id: str
    predictor: Predictor
    test: str
    examples: Examples


@dataclass(frozen=True)
class ProbeSettings:
    """How runs are opened, and their figures estimated.

    Attributes:
        checkpoint: which weights; see :func:`attnlab.runs.loading.load`.
        device: for the models.
        batch_size: sources at a time.
        samples: of the bootstrap; 1 makes no intervals.
    """

    checkpoint: str
    device: str
    batch_size: int
    samples: int


def open_run(path: Path, test: str | None, settings: ProbeSettings) -> ProbedRun:
    """Open a run whose attention is to be probed.

    Args:
        path: its folder.
        test: name of a test set of its data, or ``val``; None is the first one.
        settings: for opening it.

    Raises:
        UserError: no finished run, one without attention over the source, no such test set, or a source that is longer than
            the model can read.
    """
    folder = RunFolder(path)
    predictor = load(path, checkpoint=settings.checkpoint, device=settings.device, batch_size=settings.batch_size)
    check_attention(predictor, str(path))
    test = predictor.task.test_names[0] if test is None else test
    examples = predictor.task.examples(test)
    predictor.check_lengths(examples)
    warn_of_other_data(folder, predictor.task)
    return ProbedRun(folder, folder.read_result().id, predictor, test, examples)


def check_swap(run: ProbedRun, other: ProbedRun) -> None:
    """Refuse a run whose weights another one cannot be given.

    Raises:
        UserError: they read other data, or as other tokens, or have not as many attentions over the source.
    """
    names = str(run.folder.path), str(other.folder.path)
    data, states = zip(*((one.folder.read_result().data, one.folder.read_task()["state"]) for one in (run, other)), strict=True)
    if data[0] != data[1] or states[0] != states[1]:
        told = "data" if data[0] != data[1] else "tokens"
        raise UserError(f"{names[0]} and {names[1]} differ in their {told}: swap weights between runs that read the same")
    check_donor(run.predictor, names[0], other.predictor, names[1])


def probe_run(run: ProbedRun, options: ProbeOptions, settings: ProbeSettings, swap: ProbedRun | None = None) -> ProbeRecord:
    """Make all experiments on the attention of a run, and write into its folder what they find.

    Args:
        run: to be probed.
        options: of the experiments.
        settings: as the run was opened with them.
        swap: a run whose weights this one is given too.

    Raises:
        UserError: a file that cannot be written.
    """
    with report_damage(run.folder.path):  # a class that the run was trained with may not be at hand
        code = hash_probe_code(run.folder.read_config(), run.predictor.task)
    donor = None if swap is None else Donor(swap.predictor, swap.examples)
    found = probe(run.predictor, run.examples, options, donor)
    record = ProbeRecord(
        id=run.id,
        version=attnlab.__version__,
        checkpoint=settings.checkpoint,
        targets="own targets" if options.own_targets else "references",
        seed=options.seed,
        permutations=options.permutations,
        batch_size=settings.batch_size,
        swap=None if swap is None else [str(swap.folder.path.resolve()), swap.id],
        examples=found.numbers,
        figures={name: asdict(_estimate(figure, settings.samples)) for name, figure in found.figures.items()},
        code=code,
    )
    run.folder.write_probe(run.test, record)
    return record


def _estimate(figure: Figure, samples: int) -> ProbeFigure:
    low, high = figure.interval(samples)
    return ProbeFigure(figure.label, figure.metric.unit, figure.metric.digits, figure.value, low, high)
