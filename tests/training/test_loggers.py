"""What loggers other than Weights & Biases are given."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from commands import TINY, Cli, cli

__all__ = ["cli"]


def test_tensorboard_has_curves_hyperparameters_and_heatmaps(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", *TINY, "logger=tensorboard", "attention=dot") == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1/tensorboard")
    board = EventAccumulator(str(folder))
    board.Reload()
    assert {"val/loss", "val/bleu"} <= set(board.Tags()["scalars"])
    assert "hp_metric" not in board.Tags()["scalars"], "which would be no metric of ours"
    (image,) = board.Tags()["images"]
    assert image.startswith("attention/val ")
    assert board.Images(image)[0].height > 100
    config = b"".join(path.read_bytes() for path in folder.glob("events*"))
    assert b"encoder/hidden_size" in config
    assert b"_hparams_/session_start_info" in config
