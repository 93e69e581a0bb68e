"""The mean of the last epochs' weights: what it is, where it is used, and that a run goes on from its own weights."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import FSDPStrategy
from torch import Tensor

from attnlab.errors import UserError
from attnlab.training.averaging import OWN_WEIGHTS, CheckpointAveraging
from commands import TINY, Cli, cli
from saboteur import SABOTEUR

__all__ = ["cli"]

COMMAND = ["train", *TINY, "logger=none", "threads=1", "batches.size=16", "callbacks=averaging", "callbacks.averaging.last=2"]
COMMAND += ["trainer.max_epochs=4", "model.dropout=0.3", "optimizer.lr=1e-2"]


class Witness(Callback):
    """Writes down the weights after each epoch's last step, and those that are validated."""

    trained: list[dict[str, Tensor]]
    validated: list[dict[str, Tensor]]

    def __init__(self) -> None:
        Witness.trained, Witness.validated = [], []

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        Witness.trained.append(copy(pl_module))

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        Witness.validated.append(copy(pl_module))


WITNESS = "+callbacks.witness._target_=training.test_averaging.Witness"


def copy(module: LightningModule) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def folder_of(tmp_path: Path, name: str) -> Path:
    (folder,) = tmp_path.glob(f"runs/{name}/*/seed=1")
    return folder


def test_what_is_validated_and_kept_is_the_mean_of_the_last_epochs(cli: Cli, tmp_path: Path) -> None:
    assert cli(*COMMAND, WITNESS, "name=mean") == 0
    trained, validated = Witness.trained, Witness.validated
    assert len(trained) == len(validated) == 4
    for epoch, found in enumerate(validated):
        ends = trained[max(0, epoch - 1) : epoch + 1]
        for name, value in found.items():
            torch.testing.assert_close(value, sum(end[name] for end in ends) / len(ends), rtol=0, atol=1e-7)
    assert not torch.equal(validated[3]["model.head.projection.bias"], trained[3]["model.head.projection.bias"])
    last = torch.load(folder_of(tmp_path, "mean") / "last.ckpt", weights_only=True)
    assert_same(last["state_dict"], validated[3])
    assert_same(last[OWN_WEIGHTS], trained[3])
    best = torch.load(folder_of(tmp_path, "mean") / "best.ckpt", weights_only=True)
    assert_same(best["state_dict"], validated[best["epoch"]])


@pytest.mark.exhaustive
def test_averaging_changes_no_step_of_the_training(cli: Cli) -> None:
    assert cli(*COMMAND, WITNESS, "name=mean") == 0
    averaged = Witness.trained
    plain = [word for word in COMMAND if not word.startswith("callbacks")]
    assert cli(*plain, WITNESS, "name=plain") == 0
    for one, other in zip(averaged, Witness.trained, strict=True):
        assert_same(one, other)


@pytest.mark.exhaustive
@pytest.mark.parametrize("step", [4, 6, 16])  # an epoch has 6 steps
def test_a_run_that_is_stopped_goes_on_to_the_same_mean(
    step: int, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: dict[str, Any] = {}
    for name, sabotage in (("undisturbed", None), ("stopped", f"seed=1=interrupt@{step}")):
        if sabotage:
            monkeypatch.setenv("SABOTAGE", sabotage)
            assert cli(*COMMAND, SABOTEUR, f"name={name}") == 130
            monkeypatch.delenv("SABOTAGE")
        assert cli(*COMMAND, SABOTEUR, f"name={name}") == 0
        folder = folder_of(tmp_path, name)
        results[name] = json.loads((folder / "result.json").read_text())["tests"]
        results[f"{name} weights"] = torch.load(folder / "last.ckpt", weights_only=True)["state_dict"]
    assert results["undisturbed"] == results["stopped"]
    assert_same(results["undisturbed weights"], results["stopped weights"])


def test_a_training_without_checkpoints_ends_with_the_mean() -> None:
    module: Any = torch.nn.Linear(1, 1, bias=False)
    averaging = CheckpointAveraging(last=2)
    trainer: Any = None
    for weight in (7.0, 1.0, 4.0):
        with torch.no_grad():
            module.weight.fill_(weight)
        averaging._ends = [*averaging._ends, {name: value.clone() for name, value in module.state_dict().items()}][-2:]
    averaging.on_train_end(trainer, module)
    assert module.weight.item() == 2.5


def test_a_count_beside_the_weights_stays_as_it_is() -> None:
    """Whole numbers have no mean, and large ones change where they are made floating-point numbers."""
    averaging, module = CheckpointAveraging(last=2), LightningModule()
    trainer: Any = None
    module.register_buffer("count", torch.tensor(2**60 + 1))
    averaging._ends = [{"count": torch.tensor(3)}, {"count": torch.tensor(5)}]
    averaging.on_train_end(trainer, module)
    assert torch.equal(module.get_buffer("count"), torch.tensor(2**60 + 1))
    assert module.get_buffer("count").dtype == torch.int64


def test_a_mean_of_one_epoch_is_refused() -> None:
    with pytest.raises(UserError, match="last must be 2 or more, not 1"):
        CheckpointAveraging(last=1)


def test_weights_that_processes_share_out_are_not_averaged() -> None:
    trainer = SimpleNamespace(strategy=FSDPStrategy())
    with pytest.raises(UserError, match="weights needs all of them, and with FSDP each process has a share"):
        CheckpointAveraging().setup(trainer, LightningModule(), "fit")  # type: ignore[arg-type]
