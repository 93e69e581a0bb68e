"""What loggers other than Weights & Biases are given."""

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from attnlab.training.loggers import RunInfo, csv_logger
from commands import TINY, Cli, cli

__all__ = ["cli"]


def test_what_is_no_logger_is_told(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("train", *TINY, "logger=none", "logger._target_=fractions.Fraction", "logger._partial_=false") == 2
    assert "attnlab: logger: Fraction is no logger of Lightning's" in capsys.readouterr().err


def test_a_second_start_leaves_the_curve_of_the_first(tmp_path: Path) -> None:
    info = RunInfo("id", "group", "name", tmp_path, {}, {})
    for step in (1, 2):
        with csv_logger(info) as logger:
            logger.log_metrics({"loss": float(step)}, step=step)
            logger.save()
    assert [(tmp_path / "csv" / name).read_text().split() for name in ("metrics.1.csv", "metrics.csv")] == [
        ["loss,step", "1.0,1"],
        ["loss,step", "2.0,2"],
    ]


def test_a_table_has_the_measures_of_the_tests(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", *TINY, "logger=csv") == 0
    (file,) = tmp_path.glob("runs/train/*/seed=1/csv/metrics.csv")
    assert {"val/bleu", "test/bleu", "parameters"} <= set(file.read_text().splitlines()[0].split(","))


@pytest.mark.exhaustive
def test_tensorboard_has_curves_hyperparameters_and_heatmaps(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", *TINY, "logger=tensorboard", "attention=dot") == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1/tensorboard")
    board = EventAccumulator(str(folder))
    board.Reload()
    assert {"val/loss", "val/bleu"} <= set(board.Tags()["scalars"])
    assert "test/bleu" in board.Tags()["scalars"], "which comes when Lightning has closed the file"
    assert "hp_metric" not in board.Tags()["scalars"], "which would be no metric of ours"
    (image,) = board.Tags()["images"]
    assert image.startswith("heatmap, val ")
    assert board.Images(image)[0].height > 100
    config = b"".join(path.read_bytes() for path in folder.glob("events*"))
    assert b"encoder/hidden_size" in config
    assert b"_hparams_/session_start_info" in config
