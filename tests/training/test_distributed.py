"""Two processes on one machine: the same training as one process, and every example counted once."""

import copy
import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch.utils.data import DataLoader

from attnlab.attention.noise import NOISE, draw_normal
from attnlab.runs.assembly import build_model, build_module, build_task
from attnlab.training import module
from attnlab.training.callbacks import LossGuard
from attnlab.training.process import is_time_to_ask, share_threads
from attnlab.training.resumption import GRADIENTS, Resumption
from commands import TINY, alone
from composing import settled
from studies.sweeps import wait_for

SETTINGS = [*TINY, "logger=csv", "threads=1", "model.dropout=0", "trainer.max_epochs=2", "trainer.log_every_n_steps=1"]
SETTINGS += ["data.val_size=15", "data.test_size=17", "batches.size=16", "attention=dot"]
SETTINGS += ["auxiliary=[coverage,supervised]", "auxiliary.coverage.start=0", "auxiliary.coverage.ramp=0"]


TRAIN = [sys.executable, "-m", "attnlab", "train"]
TWO = ["trainer=ddp", "trainer.devices=2", "trainer.accelerator=cpu"]


def losses(folder: Path, name: str) -> list[float]:
    lines = (folder / "csv" / "metrics.csv").read_text().splitlines()
    column = lines[0].split(",").index(name)
    return [float(cells[column]) for line in lines[1:] if (cells := line.split(","))[column]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A run by one process and one by two, with the same batches over all processes."""
    folder = tmp_path_factory.mktemp("distributed")
    found = {}
    for devices in (1, 2):
        trainer = ["trainer=ddp", f"trainer.devices={devices}", "trainer.accelerator=cpu"]
        command = [*TRAIN, *trainer, *SETTINGS, f"name=by{devices}"]
        done = subprocess.run(command, cwd=folder, env=alone(), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        (found[devices],) = folder.glob(f"runs/by{devices}/*/*")
    return found


@pytest.mark.parametrize(("processes", "threads"), [(1, 5), (2, 2), (8, 1)])
def test_processes_share_the_threads(processes: int, threads: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(5)
        share_threads(processes)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_a_metric_of_which_another_process_alone_has_rows_is_computed_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    config = settled(*TINY)
    task = build_task(config)
    task.prepare()
    trained = build_module(config, task, build_model(config, task))
    own, other = (trained.statistics[f"val/{name}"] for name in ("loss", "accuracy"))
    own.update(torch.tensor([[3.0, 2.0]]))
    monkeypatch.setattr(module, "_gather", lambda widths: [widths, {"val/loss": 2, "val/accuracy": 2}])
    trained._fill_up()
    assert [len(part.value) for part in (own, other)] == [1, 1]
    assert other.compute().tolist() == [[0.0, 0.0]]


def test_a_loss_that_another_process_finds_to_be_no_number_ends_this_one_too() -> None:
    strategy = SimpleNamespace(reduce_boolean_decision=lambda own: False)
    trainer: Any = SimpleNamespace(strategy=strategy, global_step=7)
    with pytest.raises(FloatingPointError, match="train/loss of another process is not finite at step 7"):
        LossGuard()._refuse("train/loss", torch.tensor(1.0), trainer, Mock(spec=module.SequenceModule))


def test_processes_ask_each_other_now_and_then_and_one_alone_after_every_batch() -> None:
    def asked(world_size: int) -> list[int]:
        trainers = ((number, SimpleNamespace(world_size=world_size, is_last_batch=number == 44)) for number in range(45))
        return [number for number, trainer in trainers if is_time_to_ask(trainer, number)]  # type: ignore[arg-type]

    assert asked(2) == [0, 20, 40, 44]
    assert asked(1) == [*range(45)]


def test_processes_that_go_on_draw_numbers_of_their_own(tmp_path: Path) -> None:
    NOISE.seed(3)
    draw_normal(torch.zeros(2))
    saved = copy.deepcopy(Resumption(tmp_path / "last.ckpt", 1).state_dict())
    following = draw_normal(torch.zeros(())).item()
    drawn = []
    for rank in (0, 1, 2):
        resumption = Resumption(tmp_path / "last.ckpt", 1)
        resumption.load_state_dict(saved)
        loop = SimpleNamespace(epoch_loop=SimpleNamespace())
        trainer: Any = SimpleNamespace(global_rank=rank, global_step=5, fit_loop=loop, world_size=1)
        resumption.on_train_start(trainer, torch.nn.Identity())  # type: ignore[arg-type]
        drawn.append((torch.rand(()).item(), draw_normal(torch.zeros(())).item()))
    torch.set_rng_state(saved["cpu"])
    assert drawn[0] == (torch.rand(()).item(), following), "the first goes on where both streams were"
    assert len({number for pair in drawn for number in pair}) == 6


class Counting(LightningModule):
    """Writes down what happens; in the first epoch the run is asked to stop at batch 3."""

    def __init__(self, resumption: Resumption) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.resumption = resumption
        self.seen: list[tuple[str, int, int]] = []

    def train_dataloader(self) -> DataLoader[int]:
        return DataLoader(range(6))  # type: ignore[arg-type]

    val_dataloader = train_dataloader

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        self.seen.append(("batch", self.current_epoch, batch_idx))
        self.resumption.asked |= (self.current_epoch, batch_idx) == (0, 3)
        return self.weight.sum()

    def validation_step(self, batch: torch.Tensor, batch_idx: int) -> None:
        if batch_idx == 5:
            self.seen.append(("validation", self.current_epoch, self.global_step))

    def on_train_epoch_end(self) -> None:
        self.seen.append(("end", self.current_epoch, self.global_step))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


def test_several_processes_stop_behind_a_validation_and_the_end_of_an_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lightning makes up for neither when the run goes on."""
    monkeypatch.setattr(Trainer, "world_size", 2)
    seen = []
    for checkpoint in (None, tmp_path / "last.ckpt"):
        resumption = Resumption(tmp_path / "last.ckpt", 1)
        counting = Counting(resumption)
        quiet: dict[str, Any] = dict.fromkeys(
            ("enable_progress_bar", "enable_checkpointing", "enable_model_summary", "logger"), False
        )
        trainer = Trainer(max_epochs=2, accelerator="cpu", num_sanity_val_steps=0, callbacks=[resumption], **quiet)
        with suppress(SIGTERMException) if checkpoint is None else nullcontext():
            trainer.fit(counting, ckpt_path=checkpoint)
        seen.append(counting.seen)
    epochs = [[*(("batch", epoch, batch) for batch in range(6)), ("validation", epoch, 6 * epoch + 6)] for epoch in (0, 1)]
    assert seen == [[*own, ("end", epoch, 6 * epoch + 6)] for epoch, own in enumerate(epochs)]


def test_a_checkpoint_between_two_steps_holds_the_mean_of_the_gradients_of_all_processes(tmp_path: Path) -> None:
    other = {"weight": 3.0, "bias": 5.0}  # where the process that is tested has none of the bias
    model = torch.nn.Linear(2, 2)
    model.weight.grad = torch.ones_like(model.weight)
    strategy, values = Mock(spec=DDPStrategy), iter(other.values())
    strategy.reduce = lambda own, reduce_op: own + 1 if reduce_op == "sum" else own.add_(next(values)).div_(2)
    loop = SimpleNamespace(epoch_loop=SimpleNamespace(_should_accumulate=lambda: True))
    checkpoint: dict[str, Any] = {}
    trainer: Any = SimpleNamespace(world_size=2, strategy=strategy, fit_loop=loop)
    Resumption(tmp_path / "last.ckpt", 1).on_save_checkpoint(trainer, model, checkpoint)  # type: ignore[arg-type]
    assert {name: gradient.unique().tolist() for name, gradient in checkpoint[GRADIENTS].items()} == {
        "weight": [2],
        "bias": [2.5],
    }
    assert (model.weight.grad.unique().tolist(), model.bias.grad) == ([1], None), "the process goes on with its own"


@pytest.mark.exhaustive
def test_two_processes_learn_what_one_learns(runs: dict[int, Path]) -> None:
    for name in ("train/loss", "train/coverage", "train/supervised"):
        one, two = losses(runs[1], name), losses(runs[2], name)
        assert len(one) == 12
        assert two == pytest.approx(one, rel=1e-4)


@pytest.mark.exhaustive
def test_metrics_are_over_all_examples_each_counted_once(runs: dict[int, Path]) -> None:
    def result(devices: int) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((runs[devices] / "result.json").read_text())
        return content

    one, two = result(1), result(2)
    assert (one["tests"]["test"]["examples"], two["tests"]["test"]["examples"]) == (17, 17)
    assert two["best"] == pytest.approx(one["best"], rel=1e-3)
    for name in ("test", "test_long"):
        for metric in ("loss", "perplexity", "accuracy"):
            both = [run["tests"][name]["metrics"][metric]["value"] for run in (one, two)]
            assert both[1] == pytest.approx(both[0], rel=1e-3)
        texts = [(runs[devices] / "hypotheses" / f"{name}.txt").read_text() for devices in (1, 2)]
        assert texts[0] == texts[1]


@pytest.mark.exhaustive
def test_the_processes_of_torchrun_go_on_with_what_the_first_decides(tmp_path: Path) -> None:
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "attnlab", "train"]
    asked = [*TWO, *SETTINGS, "name=by2"]

    def train(epochs: int, *more: str) -> str:
        command = [*start, *asked, f"trainer.max_epochs={epochs}", *more]
        done = subprocess.run(command, cwd=tmp_path, env=alone(), capture_output=True, text=True, timeout=300)
        told = done.stdout + done.stderr
        assert done.returncode == 0, told
        return told

    train(1)
    (folder,) = tmp_path.glob("runs/by2/*/*")
    begun = (folder / "metrics.jsonl").read_text()
    told = train(1)
    assert told.count("done before") == 1
    (folder / "result.json").unlink()
    train(1)
    assert json.loads((folder / "run.json").read_text())["restarts"] == 1
    assert (folder / "metrics.jsonl").read_text() == begun


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_stops_them_with_a_checkpoint(number: signal.Signals, tmp_path: Path) -> None:
    """As ``timeout``, SLURM and a container send it; Lightning's own handler would wait for the others for ever."""
    endless = ["trainer.max_epochs=1000", "callbacks.early_stopping.patience=1000", "data.train_size=1600"]
    command = [*TRAIN, *TWO, *SETTINGS, *endless, "name=stopped"]
    started = subprocess.Popen(command, cwd=tmp_path, env=alone(), stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_for(lambda: any(tmp_path.glob("runs/stopped/*/*/metrics.jsonl")), seconds=200)
        os.killpg(started.pid, number)
        _, told = started.communicate(timeout=100)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
    assert started.returncode == 130
    assert told.count("attnlab: stopped; the same command goes on") == 1, told
    (folder,) = tmp_path.glob("runs/stopped/*/*")
    assert (folder / "last.ckpt").is_file()
    assert not (folder / "error.txt").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("rank", [0, 1])
def test_the_process_that_fails_tells_why(rank: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from lightning import Callback\n\n\nclass Fail(Callback):\n    def on_train_epoch_end(self, trainer, pl_module):\n"
        f"        if trainer.global_rank == {rank}:\n            raise RuntimeError('my own mistake')\n"
    )
    command = [*TRAIN, *TWO, *SETTINGS, "+callbacks.fail._target_=mine.Fail", "name=failed"]
    places = {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))}
    done = subprocess.run(command, cwd=tmp_path, env=alone() | places, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0, "1, or -9 where Lightning kills the first one, within 5 s of the other's end"
    (folder,) = tmp_path.glob("runs/failed/*/*")
    assert (folder / "error.txt").read_text().strip().endswith("RuntimeError: my own mistake")
