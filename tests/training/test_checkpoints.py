"""Which checkpoint is the best, when the last one is written, and what is left of one that is damaged."""

import errno
import json
import random
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from lightning import LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader

from attnlab.errors import UserError
from attnlab.training.callbacks import RunContext
from attnlab.training.checkpoints import (
    BestCheckpoint,
    LastCheckpoint,
    PatientStopping,
    WholeCheckpointIO,
    earlier_checkpoint,
    is_whole,
)
from commands import TINY, Cli, cli
from saboteur import SABOTEUR

__all__ = ["cli"]

SMALL = [*TINY, "logger=none", "threads=1", "batches.size=16"]
STILL = "optimizer.lr=1e-30"
"""Below what float32 can add to a weight: no epoch is better than the first."""


def folder_of(tmp_path: Path, name: str) -> Path:
    (folder,) = tmp_path.glob(f"runs/{name}/*/seed=1")
    return folder


def curve(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.exhaustive
def test_of_equal_values_the_lower_loss_wins_and_early_stopping_sees_it(cli: Cli, tmp_path: Path) -> None:
    weak = [*SMALL, "trainer.max_epochs=4", "optimizer.lr=1e-4", "callbacks.early_stopping.patience=1", "name=weak"]
    weak += ["monitor=val/exact"]
    assert cli("train", *weak) == 0
    folder = folder_of(tmp_path, "weak")
    lines = curve(folder)
    assert [line["val/exact"] for line in lines] == [0.0] * 4, "else this test says nothing"
    losses = [line["val/loss"] for line in lines]
    assert losses == sorted(losses, reverse=True)
    assert torch.load(folder / "best.ckpt", weights_only=True)["epoch"] == 3


class Scripted(LightningModule):
    """A module whose metrics are told beforehand."""

    def __init__(self, scores: Sequence[int], losses: Sequence[int]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.told = list(zip(scores, losses, strict=True))

    def training_step(self, batch: Tensor) -> Tensor:
        return self.weight.sum()

    def validation_step(self, batch: Tensor) -> None:
        score, loss = self.told[self.current_epoch]
        self.log_dict({"val/score": float(score), "val/loss": float(loss)})

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.0)


@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_best_epoch_and_the_last_are_those_of_a_plain_loop_wherever_a_training_is_resumed(
    mode: Literal["min", "max"], tmp_path: Path
) -> None:
    """Better is a better value, and of equal values the lower loss."""
    generator, sign = random.Random(3), 1 if mode == "max" else -1
    for number in range(6):
        scores, losses = ([generator.randrange(3) for _ in range(10)] for _ in range(2))
        told = [(sign * score, -loss) for score, loss in zip(scores, losses, strict=True)]
        bests = [max(range(end), key=lambda epoch: (told[epoch], -epoch)) for end in range(1, 11)]
        last = next((epoch for epoch in range(10) if epoch - bests[epoch] == 3), 9)
        folder = tmp_path / str(number)
        context = RunContext(folder, folder, folder / "best.ckpt", folder / "last.ckpt", "val/score", mode)
        for stop in (1 + number, 10, 10):
            callbacks = [BestCheckpoint(context), PatientStopping(context, patience=3), LastCheckpoint(context)]
            quiet: dict[str, Any] = {"enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0}
            trainer = Trainer(accelerator="cpu", max_epochs=stop, logger=False, callbacks=callbacks, **quiet)
            batches, resumed = DataLoader(torch.zeros(1)), folder / "last.ckpt"  # type: ignore[arg-type]
            trainer.fit(Scripted(scores, losses), batches, batches, ckpt_path=resumed if resumed.exists() else None)
            ended = min(last, stop - 1)
            kept = [torch.load(folder / name, weights_only=True)["epoch"] for name in ("best.ckpt", "last.ckpt")]
            assert kept == [bests[ended], ended]


@pytest.mark.exhaustive
def test_early_stopping_asks_for_more_than_the_least_difference(cli: Cli, tmp_path: Path) -> None:
    stopping = ["callbacks.early_stopping.patience=1", "monitor=val/loss", "trainer.max_epochs=4", "test=false"]
    for delta, epochs in ((0.0, 4), (1e3, 2)):
        assert cli("train", *SMALL, *stopping, f"callbacks.early_stopping.min_delta={delta}", f"name=delta{epochs}") == 0
        losses = [line["val/loss"] for line in curve(folder_of(tmp_path, f"delta{epochs}"))]
        assert losses == sorted(losses, reverse=True), "else this test says nothing"
        assert len(losses) == epochs


@pytest.mark.exhaustive
def test_the_last_checkpoint_is_that_of_the_last_epoch(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", *SMALL, "trainer.max_epochs=3", STILL, "name=still") == 0
    folder = folder_of(tmp_path, "still")
    epochs = [torch.load(folder / name, weights_only=True)["epoch"] for name in ("best.ckpt", "last.ckpt")]
    assert epochs == [0, 2]


@pytest.mark.exhaustive
def test_a_run_that_dies_loses_minutes_and_may_be_moved(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on in the midst of an epoch, in another place, to the figures that it would have come to.

    What it wrote last is damaged by then.
    """
    command = ["train", *SMALL, SABOTEUR, "trainer.max_epochs=3", "model.dropout=0.3", "callbacks.last_checkpoint.minutes=0"]
    assert cli(*command, "name=undisturbed") == 0
    monkeypatch.setenv("SABOTAGE", "seed=1=crash@16")  # after two epochs of 6 steps
    assert cli(*command, "name=dead") == 1
    monkeypatch.delenv("SABOTAGE")
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "runs" / "dead").rename(moved / "dead")
    (tmp_path / "runs").joinpath("dead").symlink_to(moved / "dead")
    last = folder_of(tmp_path, "dead") / "last.ckpt"
    last.write_bytes(last.read_bytes()[:5000])
    assert cli(*command, "name=dead") == 0
    one, other = folder_of(tmp_path, "undisturbed"), folder_of(tmp_path, "dead")
    results: list[dict[str, Any]] = [json.loads((folder / "result.json").read_text()) for folder in (one, other)]
    assert results[1]["restarts"] == 1
    starts = [json.loads((folder / "environment.json").read_text()) for folder in (one, other)]
    assert [[start["device"] for start in found] for found in starts] == [["cpu"], ["cpu", "cpu"]]
    assert [start["threads"] for start in starts[1]] == [1, 1]
    assert results[0]["tests"] == results[1]["tests"]
    assert results[0]["best"] == results[1]["best"]


RATES = ["scheduler=plateau", "scheduler.monitor=val/exact", "scheduler.mode=max", "scheduler.patience=0"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("overrides", "sabotage"),
    [
        ([*RATES, "trainer.max_epochs=3"], "crash@13"),  # what no epoch improves lowers the rate at the end of the second
        (["callbacks.last_checkpoint.minutes=0", "trainer.max_epochs=3"], "crash@12@validation"),
        ([STILL, "callbacks.early_stopping.patience=1", "trainer.max_epochs=5"], "crash@12@end"),
        (["batches.eval_size=4", "trainer.max_epochs=3"], "interrupt@12@validation"),
        (["trainer.accumulate_grad_batches=3", "trainer.max_epochs=2"], "interrupt@1@start"),
        ([*RATES, "trainer.val_check_interval=4", "trainer.max_epochs=3"], "interrupt@5@start"),
        (["trainer.check_val_every_n_epoch=2", "trainer.max_epochs=4"], "interrupt@13"),
        (["trainer.max_epochs=2"], "interrupt@12@end"),
        (["trainer.max_steps=15", "trainer.max_epochs=10"], "crash@9"),
        (["trainer.max_steps=15", "trainer.max_epochs=-1", "trainer.val_check_interval=3"], "crash@14"),
    ],
    ids=[
        "plateau",
        "validation",
        "early stopping",
        "in a validation",
        "accumulation",
        "plateau in an epoch",
        "few validations",
        "behind the last batch",
        "a number of steps",
        "a number of steps, validations in an epoch",
    ],
)
def test_a_training_that_goes_on_comes_to_what_it_would_have_come_to(
    overrides: list[str], sabotage: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["train", *SMALL, SABOTEUR, *overrides, "test=false"]
    assert cli(*command, "name=undisturbed") == 0
    monkeypatch.setenv("SABOTAGE", f"seed=1={sabotage}")
    assert cli(*command, "name=dead") == (130 if "interrupt" in sabotage else 1)
    monkeypatch.delenv("SABOTAGE")
    assert cli(*command, "name=dead") == 0
    ours, theirs = (
        [{key: value for key, value in line.items() if "second" not in key} for line in curve(folder_of(tmp_path, name))]
        for name in ("undisturbed", "dead")
    )
    assert ours == theirs
    last = [torch.load(folder_of(tmp_path, name) / "last.ckpt", weights_only=True) for name in ("undisturbed", "dead")]
    for name, tensor in last[0]["state_dict"].items():
        assert torch.equal(tensor, last[1]["state_dict"][name]), name
    counts = [one["loops"]["fit_loop"]["epoch_loop.state_dict"]["_batches_that_stepped"] for one in last]
    assert counts[0] == counts[1] == last[0]["global_step"]
    rates = [one["optimizer_states"][0]["param_groups"][0]["lr"] for one in last]
    assert rates[0] == rates[1]
    assert (rates[0] < 1e-3) == ("scheduler=plateau" in overrides or STILL in overrides)


@pytest.mark.exhaustive
@pytest.mark.parametrize("when", ["end", "test"])
def test_a_run_that_is_interrupted_behind_its_training_goes_on(
    when: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", *SMALL, SABOTEUR, "trainer.max_epochs=1", "name=dead"]
    monkeypatch.setenv("SABOTAGE", f"seed=1=interrupt@6@{when}")
    handler = signal.getsignal(signal.SIGINT)
    try:
        assert cli(*command) == 130
    finally:
        signal.signal(signal.SIGINT, handler)  # which Lightning has ignored since
    assert "stopped; the same command goes on from" in capsys.readouterr().err
    monkeypatch.delenv("SABOTAGE")
    assert cli(*command) == 0
    assert len(curve(folder_of(tmp_path, "dead"))) == 1


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "last.ckpt"
    for number in (1, 2):
        WholeCheckpointIO(path).save_checkpoint({"number": torch.tensor(number)}, path)
        WholeCheckpointIO(path).save_checkpoint({"number": torch.tensor(number)}, tmp_path / "best.ckpt")
    assert int(torch.load(path)["number"]) == 2
    assert int(torch.load(earlier_checkpoint(path))["number"]) == 1

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("attnlab.training.checkpoints.torch.save", full)
    with pytest.raises(UserError, match=r"cannot write .*last\.ckpt: No space left on device"):
        WholeCheckpointIO(path).save_checkpoint({}, path)
    assert int(torch.load(path)["number"]) == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["best.ckpt", "last.ckpt", "last.earlier.ckpt"]


def test_one_flipped_bit_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "best.ckpt"
    torch.save({"weight": torch.arange(1000.0)}, path)
    content = path.read_bytes()
    assert is_whole(path)
    for position in range(0, len(content), 7):  # names, checksums and lists too, which torch and zipfile check differently
        path.write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
        assert not is_whole(path) or torch.equal(torch.load(path)["weight"], torch.arange(1000.0))
    for position in (len(content) // 3, len(content) // 2):
        path.write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
        assert not is_whole(path)
    path.write_bytes(content[: len(content) // 2])
    assert not is_whole(path)
    assert not is_whole(tmp_path / "none.ckpt")
