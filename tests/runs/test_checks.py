"""Mistakes in a user's own classes are told in one line before anything is trained."""

import re
from pathlib import Path

import pytest

from attnlab.errors import UserError
from attnlab.runs.assembly import build_task
from attnlab.runs.checks import check_settings
from attnlab.runs.execution import build_callbacks
from attnlab.runs.folder import RunFolder
from attnlab.training.callbacks import ProgressBar
from commands import TINY, Cli, cli
from composing import settled

__all__ = ["cli"]

SCORE = """
import torch
from torch import nn
from attnlab.attention.scores import Score

class Mine(Score):
    def __init__(self, query_size, memory_size):
        super().__init__(query_size, memory_size)
        {made}

    def forward(self, query, keys):
        return query @ {layer}(keys).transpose(1, 2)
"""
METRIC = """
import numpy as np
from attnlab.evaluation.metric import Ratio

class Mine(Ratio):
    label = "mine"
    def statistics(self, evidence):
        return {rows}
"""


EACH = "zip(evidence.predictions, evidence.references)"


def told(folder: Path, cli: Cli, capsys: pytest.CaptureFixture[str], *overrides: str) -> str:
    assert cli("train", "-cd", str(folder), *TINY, "logger=none", *overrides) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert not list(folder.glob("runs/*/*/*/*.ckpt"))
    return line


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("made", "layer", "message"),
    [
        ("self.layers = [nn.Linear(memory_size, query_size)]", "self.layers[0]", "the Linear in Mine.layers would be neither"),
        (
            "self.own = {'w': torch.ones(1, requires_grad=True)}",
            "(lambda k: k * self.own['w'])",
            "the Tensor in Mine.own would",
        ),
        ("self.w = torch.ones(1, requires_grad=True)", "(lambda k: k * self.w)", "the Tensor in Mine.w would be neither"),
        ("self.layer = nn.Lin(1, 1)", "self.layer", r"AttributeError: .*'Lin' \(mine_\d+.py, line 9\)"),
        ("self.layer = layers['one']", "self.layer", r"NameError: name 'layers' is not defined \(mine_\d+.py, line 9\)"),
    ],
)
def test_a_score_that_would_not_learn_or_cannot_be_made(
    made: str,
    layer: str,
    message: str,
    cli: Cli,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = f"mine_{abs(hash(made)) % 10**8}"
    (tmp_path / f"{module}.py").write_text(SCORE.format(made=made, layer=layer))
    (tmp_path / "attention" / "score").mkdir(parents=True)
    (tmp_path / "attention/score/mine.yaml").write_text(f"_target_: {module}.Mine\n_partial_: true\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    same = ["encoder.hidden_size=8", "decoder.hidden_size=16"]
    line = told(tmp_path, cli, capsys, "attention/score=mine", *same)
    assert re.search(message, line), line


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("[[1.0, 1.0]] * len(evidence.references)", r"AttributeError: 'list' object has no attribute 'sum'"),
        ("np.ones((1, 2))", r"Mine gives \(1, 2\) for 2 examples"),
        ("np.full((len(evidence.references), 2), np.nan)", r"what each of them adds is a row of finite numbers"),
        ("np.ones((len(evidence.references), 1)) / 1", r"ValueError: not enough values to unpack"),
        ("[p.txt for p in evidence.predictions]", r"AttributeError: 'Prediction' .*'txt' \(metric_\d+.py, line 8\)"),
        ("np.ones((len(evidence.references), 2))\n    label = 7", r"Mine has no label"),
        (f"np.array([[1 / (one.text == right), 1] for one, right in {EACH}])", r"ZeroDivisionError: .* \(metric_\d+.py, line"),
        (f"np.array([[len(one.text.split()[0]), 1] for one, _ in {EACH}])", r"IndexError: .* \(metric_\d+.py, line"),
    ],
)
def test_a_metric_that_cannot_measure(
    rows: str, message: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"metric_{abs(hash(rows)) % 10**8}"
    (tmp_path / f"{module}.py").write_text(METRIC.format(rows=rows))
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics/mine.yaml").write_text(f"defaults: [translation]\nmine: {{_target_: {module}.Mine}}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    line = told(tmp_path, cli, capsys, "metrics=mine")
    assert line.startswith("attnlab: metrics.mine: Mine ")
    assert re.search(message, line), line


def test_a_metric_that_fails_on_what_a_model_does_is_named(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial of two right targets does not show it."""
    rows = "np.ones((len(evidence.references), 2)) if len(evidence.references) == 2 else evidence.nothing"
    (tmp_path / "metric_late.py").write_text(METRIC.format(rows=rows))
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics/mine.yaml").write_text("defaults: [translation]\nmine: {_target_: metric_late.Mine}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli("train", "-cd", str(tmp_path), *TINY, "logger=none", "metrics=mine") == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert re.search(r"the metric Mine cannot be computed: AttributeError: .*'nothing' \(metric_late.py, line 8\)", line), line


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.accelerator=tpu", "trainer.accelerator=tpu: there is none here; trainer=default takes what is there"),
        ("trainer.precision=transformer-engine", "trainer: "),
    ],
)
def test_what_a_library_lacks_is_told(
    override: str, message: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = [setting for setting in TINY if not setting.startswith("trainer.accelerator=")]
    assert cli("train", *tiny, "logger=none", override) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.exhaustive
def test_an_accelerator_may_be_left_out_or_be_an_object(cli: Cli) -> None:
    tiny = [setting for setting in TINY if not setting.startswith("trainer.accelerator=")]
    assert cli("train", *tiny, "logger=none", "~trainer.accelerator") == 0
    own = "trainer.accelerator={_target_: lightning.pytorch.accelerators.CPUAccelerator}"
    assert cli("train", *tiny, "logger=none", own) == 0


def test_a_schedule_and_a_training_without_an_end_of_their_own_go_together() -> None:
    settings = ["scheduler=exponential", "scheduler.interval=step", "trainer.max_epochs=null", "trainer.max_steps=1000"]
    config = settled("task=diagnostics", *settings)
    check_settings(config, build_task(config))
    cosine = settled("task=diagnostics", "scheduler=cosine", "scheduler.interval=step")
    with pytest.raises(UserError, match=r"scheduler\.duration is the number of epochs"):
        check_settings(cosine, build_task(cosine))


@pytest.mark.parametrize(("shown", "count"), [(None, 1), (True, 1), (False, 0)])
def test_there_is_a_progress_bar_unless_the_trainer_says_no(shown: bool | None, count: int, tmp_path: Path) -> None:
    config = settled("task=diagnostics")
    config["trainer"]["enable_progress_bar"] = shown
    if shown is None:
        del config["trainer"]["enable_progress_bar"]
    made = build_callbacks(config, RunFolder(tmp_path), build_task(config))
    assert sum(isinstance(one, ProgressBar) for one in made) == count


def test_a_logger_of_lightnings_that_is_made_too_late_is_refused(
    tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logger").mkdir()
    (tmp_path / "logger" / "table.yaml").write_text(
        "_target_: lightning.pytorch.loggers.CSVLogger\n_partial_: true\nsave_dir: logs\n"
    )
    line = told(tmp_path, cli, capsys, "logger=table")
    assert line == "attnlab: logger: CSVLogger is a logger of Lightning's, which is not told of the run: leave out _partial_"
    assert not (tmp_path / "runs").exists()
