"""What is recorded beside the training: how long it took, and its curve."""

import json
import math
import re
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from lightning import LightningModule
from lightning.pytorch.callbacks import RichProgressBar

from attnlab.data.batches import Batch
from attnlab.data.symbols import BOS, EOS, PAD
from attnlab.runs import execution
from attnlab.runs.record import RunResult
from attnlab.training.callbacks import LossGuard, MetricsRecorder, ProgressBar, Samples, Throughput
from attnlab.training.finite import describe_origin
from attnlab.training.module import SequenceModule
from attnlab.training.process import BATCHES_BETWEEN
from commands import TINY, Cli, cli
from composing import model, sentences
from runs.test_resume import Stop
from saboteur import SABOTEUR

__all__ = ["cli"]


@pytest.mark.exhaustive
def test_the_time_of_a_run_is_at_most_what_elapsed(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[float] = []

    def timed(*arguments: Any, **options: Any) -> RunResult:
        begun = time.perf_counter()
        try:
            return carry_out(*arguments, **options)
        finally:
            pieces.append(time.perf_counter() - begun)

    carry_out = execution._train_and_test
    monkeypatch.setattr(execution, "_train_and_test", timed)
    command = ["train", *TINY, "logger=none", SABOTEUR, "batches.size=16", "trainer.max_epochs=2"]
    assert cli(*command, "name=once") == 0
    monkeypatch.setenv("SABOTAGE", "seed=1=interrupt@8")
    assert cli(*command, "name=stopped") == 130  # stopped
    monkeypatch.delenv("SABOTAGE")
    (checkpoint,) = tmp_path.glob("runs/stopped/*/*/last.ckpt")
    kept = torch.load(checkpoint, weights_only=True)["callbacks"]
    before, peak = kept["Throughput"]["wall"], kept["PeakMemory"]["peak_memory"]
    assert cli(*command, "name=stopped") == 0
    once, stopped = (
        json.loads(path.read_text()) for name in ("once", "stopped") for path in tmp_path.glob(f"runs/{name}/*/*/result.json")
    )
    assert 0 < once["train_seconds"] < once["seconds"] <= pieces[0]
    assert max(before, stopped["train_seconds"]) < stopped["seconds"] <= pieces[1] + pieces[2]
    assert stopped["peak_memory"] >= peak
    for name, result in (("once", once), ("stopped", stopped)):
        (path,) = tmp_path.glob(f"runs/{name}/*/*/metrics.jsonl")
        seconds = [json.loads(line)["seconds"] for line in path.read_text().splitlines()]
        assert 0 < seconds[0] < seconds[1] == result["train_seconds"]


def test_tokens_are_those_that_are_predicted() -> None:
    """The start symbol is none, nor is padding, nor the end where an answer is one word."""
    targets, lengths = torch.tensor([[BOS, 7, 8, EOS], [BOS, EOS, PAD, PAD]]), torch.tensor([4, 2])
    for labels, tokens in ((targets[:, 1:], 4), (torch.tensor([[7, PAD, PAD], [8, PAD, PAD]]), 2)):
        throughput = Throughput()
        batch = Batch(targets, lengths, targets, lengths, labels, torch.arange(2), None, None)
        throughput.on_train_batch_end(None, None, {}, batch, 0)  # type: ignore[arg-type]
        assert throughput.tokens == tokens


def test_the_time_of_a_training_is_that_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validations do not count; a checkpoint in the midst of an epoch knows the steps until then."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(time, "perf_counter", lambda: now.seconds)
    module, trainer = SimpleNamespace(log=lambda *_: None), SimpleNamespace(state=SimpleNamespace(fn="fit"), world_size=1)

    def after(seconds: float, throughput: Throughput, hook: str) -> None:
        now.seconds += seconds
        getattr(throughput, hook)(trainer, module)

    first = Throughput()
    for seconds, hook in ((1, "on_train_start"), (1, "on_train_epoch_start"), (10, "on_validation_start")):
        after(seconds, first, hook)
    after(1000, first, "on_validation_end")
    after(20, first, "on_train_epoch_end")
    assert first.seconds == 30
    after(500, first, "on_train_epoch_start")
    now.seconds += 7
    state = first.state_dict()
    assert (state["seconds"], state["wall"]) == (37, 1539)
    now.seconds += 10_000
    second = Throughput()
    second.setup(trainer, module, "fit")  # type: ignore[arg-type]
    second.load_state_dict(state)
    after(4, second, "on_train_start")
    after(3, second, "on_train_epoch_end")
    assert (second.seconds, second.wall) == (40, 1546)
    alone, trainer.state.fn = Throughput(), "validate"
    for hook in ("on_validation_start", "on_validation_end"):
        after(5, alone, hook)
    now.seconds += 5
    assert alone.state_dict()["seconds"] == 0, "nothing was trained"


def test_a_loss_of_the_validation_that_is_no_number_ends_a_training() -> None:
    guard, strategy = LossGuard(), SimpleNamespace(reduce_boolean_decision=lambda decision: decision)
    for name, value, is_refused in (
        ("val/loss", math.nan, True),
        ("val/loss", math.inf, True),
        ("val/bleu", math.inf, True),
        ("val_fr/bleu", math.inf, True),
        ("val/bleu", math.nan, False),  # which a metric may be of nothing
        ("val/loss", 1.0, False),
        ("train/noise", math.inf, False),  # what a callback of the user's own logs is not attnlab's to judge
    ):
        metrics = {"val/loss": torch.tensor(1.0), name: torch.tensor(value)}
        trainer = SimpleNamespace(callback_metrics=metrics, strategy=strategy, global_step=3)
        with pytest.raises(FloatingPointError, match=f"{name} is") if is_refused else nullcontext():
            guard.on_validation_end(trainer, Mock(spec=SequenceModule, measured=["val", "val_fr"]))  # type: ignore[arg-type]


def test_the_loss_is_looked_at_now_and_then_and_before_a_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    guard, looks = LossGuard(), list[tuple[str, float]]()
    monkeypatch.setattr(guard, "_refuse", lambda name, value, *_: looks.append((name, float(value))))
    for index in range(2 * BATCHES_BETWEEN + 5):
        guard.on_train_batch_end(Mock(), Mock(), {"loss": torch.tensor(float(index))}, Mock(), index)
    guard.on_validation_start(Mock(), Mock())
    assert looks == [("train/loss", seen) for seen in (0, BATCHES_BETWEEN, 2 * BATCHES_BETWEEN, 2 * BATCHES_BETWEEN + 4)]


class Module(LightningModule):
    pass


def test_an_epoch_without_a_validation_repeats_nothing_of_the_last_one(tmp_path: Path) -> None:
    """The trainer holds what was logged before; what a callback of the user's own logs stays."""
    recorder = MetricsRecorder(tmp_path / "metrics.jsonl", Throughput())
    logged = {name: torch.tensor(2.0) for name in ("train/loss", "val/loss", "val_fr/bleu", "mine")}
    trainer = SimpleNamespace(callback_metrics=logged, current_epoch=1, global_step=8)
    recorder.on_train_epoch_end(trainer, Mock(spec=SequenceModule, measured=["val", "val_fr"], validation={}))  # type: ignore[arg-type]
    line = json.loads(recorder.path.read_text())
    assert line == {"epoch": 1, "step": 8, "seconds": 0, "train/loss": 2, "mine": 2}


def test_the_curve_of_a_run_that_was_killed_while_it_wrote_goes_on(tmp_path: Path) -> None:
    recorder = MetricsRecorder(tmp_path / "metrics.jsonl", Throughput())
    recorder.path.write_text('{"epoch": 0}\n{"epoch": 1}\n{"epoch": 2}\n{"epoch": 3, "val/lo')
    trainer = SimpleNamespace(ckpt_path="last.ckpt", current_epoch=2)
    recorder.on_train_start(trainer, Module())  # type: ignore[arg-type]
    assert recorder.path.read_text() == '{"epoch": 0}\n{"epoch": 1}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["optimizer.lr=1e30"], "val/perplexity is inf at step"),
        ([SABOTEUR], r"train/loss is nan at step .*the parameters .* and \d+ more are no longer finite"),
    ],
)
def test_a_training_that_diverges_ends_by_name(
    overrides: list[str], message: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SABOTAGE", "seed=1=nan@2")
    assert cli("train", *TINY, "logger=none", "trainer.max_epochs=2", "batches.size=16", *overrides) == 1
    (path,) = tmp_path.glob("runs/train/*/seed=1/error.txt")
    assert re.search(message, path.read_text())
    assert not (path.parent / "result.json").exists()
    assert re.search("Infinity|NaN", (path.parent / "metrics.jsonl").read_text()) is None


@pytest.mark.exhaustive
def test_a_trial_that_diverged_is_not_trained_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", *TINY, "logger=none", "batches.size=16", SABOTEUR, "test=false"]
    monkeypatch.setenv("SABOTAGE", "seed=1=nan@2")
    assert cli(*command) == 1
    monkeypatch.delenv("SABOTAGE")
    for _ in range(2):
        assert cli(*command) == 1
        (path,) = tmp_path.glob("runs/train/*/seed=1/error.txt")
        assert path.read_text().count("it did so before: resume=false trains it again") == 1
    capsys.readouterr()
    assert cli("train", "-m", *command[1:], "--dry-run") == 0
    assert "diverged" in capsys.readouterr().out
    assert cli(*command, "resume=false") == 0


def test_the_first_module_that_makes_what_is_not_finite_is_named() -> None:
    broken = model(dtype=torch.float32)
    source, lengths = sentences([5, 3])
    target, target_lengths = sentences([4, 6])
    batch = Batch(source, lengths, target, target_lengths, target[:, 1:], torch.tensor([0, 1]), None, None)
    assert describe_origin(broken, batch) == "all modules make what is finite"
    broken.head.register_forward_hook(lambda module, inputs, output: output * float("inf"))
    assert describe_origin(broken, batch) == "head is the first to make what is not finite"


def test_a_damaged_curve_does_not_keep_a_run_from_going_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = MetricsRecorder(tmp_path / "metrics.jsonl", Throughput())
    recorder.path.write_bytes(b'{"epoch": 0}\n{"ep\xffch": 1}\n{"epoch": 2}\n[3]\n')
    recorder.on_train_start(SimpleNamespace(ckpt_path="last.ckpt", current_epoch=3), Module())  # type: ignore[arg-type]
    assert recorder.path.read_text() == '{"epoch": 0}\n{"epoch": 2}\n'
    assert "metrics.jsonl is damaged" in caplog.text


def test_the_progress_bar_reads_the_loss_a_few_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(RichProgressBar, "on_train_batch_end", lambda *arguments: seen.append(arguments[-1]))
    clock = iter([10.0, 10.1, 10.4, 10.6, 10.7, 10.8, 11.2])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    bar, trainer = ProgressBar(), SimpleNamespace(is_last_batch=False)
    for step in range(6):
        trainer.is_last_batch = step == 5
        bar.on_train_batch_end(trainer, None, None, None, step)  # type: ignore[arg-type]
    assert seen == [0, 3, 5]


def write_corpus(folder: Path) -> list[str]:
    """Write a small corpus, whose first validation source is empty, and return overrides of a short training on it."""
    for split, lines in (("train", ["a b c", "b c", "c a b"] * 8), ("val", ["", "a b", "b a"]), ("test", ["a c"])):
        for language in ("en", "de"):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    data = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=val", "data.tests={test: test}"]
    small = ["model.embedding_size=4", "encoder.hidden_size=2", "decoder.hidden_size=4", "tokenizer=whitespace", "logger=none"]
    quiet = [
        "trainer.accelerator=cpu",
        "trainer.max_epochs=1",
        "trainer.enable_progress_bar=false",
        "callbacks.samples.heatmaps=2",
    ]
    return [*data, *small, *quiet]


def test_of_an_empty_source_no_sample_is_shown(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", *write_corpus(tmp_path)) == 0
    assert sorted(path.name for path in tmp_path.glob("runs/**/heatmaps/*")) == ["val-2.png", "val-3.png"]


@pytest.mark.exhaustive
def test_a_training_that_was_stopped_after_its_last_epoch_draws_the_same_heatmaps(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = [*write_corpus(tmp_path), "model.dropout=0.5"]
    assert cli("train", *overrides, "hydra.run.dir=whole") == 0
    with monkeypatch.context() as patch:
        patch.setattr(Samples, "_show", Stop(Samples._show, 1))
        assert cli("train", *overrides, "hydra.run.dir=again") == 130  # stopped
    assert not list(tmp_path.glob("again/heatmaps/*"))
    assert cli("train", *overrides, "hydra.run.dir=again") == 0
    names = ["val-2.png", "val-3.png"]
    assert [(tmp_path / "again/heatmaps" / name).read_bytes() for name in names] == [
        (tmp_path / "whole/heatmaps" / name).read_bytes() for name in names
    ]
