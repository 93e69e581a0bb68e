"""What is logged is what was meant, and two variants see the same."""

import json
import math
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning import Callback, LightningModule, Trainer

from attnlab.data import Batch
from attnlab.evaluation.evidence import ExampleResult, Prediction
from attnlab.runs.assembly import build_model, build_task
from attnlab.training import TeacherForcing
from attnlab.training.module import collect_evidence
from commands import TINY, Cli, cli
from composing import settled

__all__ = ["cli"]


class Modes(Callback):
    """Writes down whether parts are in training: all of them in steps, none in validations."""

    seen: list[tuple[str, set[bool]]]

    def __init__(self) -> None:
        Modes.seen = []

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        Modes.seen.append(("step", {part.training for part in pl_module.modules()}))

    def on_validation_batch_start(self, trainer: Trainer, pl_module: LightningModule, *_: object) -> None:
        Modes.seen.append(("validation", {part.training for part in pl_module.modules()}))


class Witness(Callback):
    """Writes down which examples each step saw."""

    seen: list[list[int]]

    def __init__(self) -> None:
        Witness.seen = []

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        Witness.seen.append(batch.indices.tolist())


@pytest.mark.exhaustive
def test_two_attentions_see_the_same_batches_in_the_same_order(cli: Cli) -> None:
    watch = ["+callbacks.witness._target_=training.test_module.Witness", "trainer.max_epochs=2", "batches.size=16"]
    orders = {}
    for run in ("attention=none", "attention=additive", "seed=2"):
        assert cli("train", *TINY, "logger=none", *watch, run) == 0
        orders[run] = Witness.seen
    assert len(orders["attention=none"]) == 12
    assert orders["attention=none"] == orders["attention=additive"] != orders["seed=2"]
    first, second = orders["attention=none"][:6], orders["attention=none"][6:]
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(96))
    assert first != second


def test_validation_metrics_are_those_of_a_plain_loop(cli: Cli, tmp_path: Path) -> None:
    overrides = [*TINY, "logger=none", "objective.label_smoothing=0.1", "batches.eval_size=5", "trainer.max_epochs=2"]
    assert cli("train", *overrides, "+callbacks.modes._target_=training.test_module.Modes") == 0
    assert {(when, *modes) for when, modes in Modes.seen} == {("step", True), ("validation", False)}
    (folder,) = tmp_path.glob("runs/train/*/seed=1")
    logged = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])

    config = settled(*overrides)
    task = build_task(config)
    task.prepare()
    model = build_model(config, task).eval()
    state = torch.load(folder / "last.ckpt", weights_only=True)["state_dict"]
    model.load_state_dict({name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")})
    total, right, tokens = 0.0, 0, 0
    for index in range(16):
        batch = task.examples("val")[[index]]
        memory, state = model.encode(batch.source, batch.source_lengths)
        log_probabilities = torch.log_softmax(model.scores(model.decode(batch.target[:, :-1], memory, state), memory), -1)[0]
        for step, label in enumerate(batch.target[0, 1:].tolist()):
            total -= log_probabilities[step, label].item()
            right += int(log_probabilities[step].argmax()) == label
            tokens += 1
    assert logged["val/loss"] == pytest.approx(total / tokens, rel=1e-5)
    assert logged["val/perplexity"] == pytest.approx(math.exp(total / tokens), rel=1e-5)
    assert logged["val/accuracy"] == pytest.approx(100.0 * right / tokens, rel=1e-5)


@pytest.mark.parametrize(("monitor", "count"), [("val/loss", 2), ("train/loss", 4)])
def test_an_epoch_without_a_validation_has_no_metrics_and_does_not_count_for_a_plateau_of_one(
    monitor: str, count: int, cli: Cli, tmp_path: Path
) -> None:
    plateau = ["scheduler=plateau", f"scheduler.monitor={monitor}", "scheduler.mode=min"]
    assert cli("train", *TINY, *plateau, "logger=none", "trainer.max_epochs=4", "trainer.check_val_every_n_epoch=2") == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1")
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [any(name.startswith("val/") for name in line) for line in lines] == [False, True, False, True]
    (schedule,) = torch.load(folder / "last.ckpt", weights_only=True)["lr_schedulers"]
    assert schedule["last_epoch"] == count


def test_evidence_holds_what_was_written_at_the_length_of_the_reference_too() -> None:
    """Where an empty source has none, the empty prediction stands for it."""
    shared: tuple[Any, ...] = ([], [], torch.zeros(0, 0), 0.0, 0.0)
    free, forced = ([Prediction(index, f"{text} {index}", *shared) for index in range(3)] for text in ("free", "forced"))
    results = [ExampleResult(free[index], None, forced[index] if index else None) for index in (2, 0, 1)]
    task, examples = SimpleNamespace(facts={}), SimpleNamespace(references=["a", "b", "c"], facts={})
    evidence = collect_evidence(task, examples, results)  # type: ignore[arg-type]
    assert [one.text for one in evidence.predictions] == ["free 2", "free 0", "free 1"]
    assert [one.text for one in evidence.of_reference_length or ()] == ["forced 2", "free 0", "forced 1"]
    assert evidence.references == ["c", "a", "b"]
    assert collect_evidence(task, examples, [ExampleResult(free[0], None)]).of_reference_length is None  # type: ignore[arg-type]


def test_teacher_forcing_tosses_a_coin_for_each_example_or_token() -> None:
    generator = torch.Generator().manual_seed(0)
    by_example = TeacherForcing(0.25, "example").draw(4000, 5, generator)
    assert (by_example == by_example[:, :1]).all()
    assert by_example[:, 0].float().mean().item() == pytest.approx(0.25, abs=0.03)
    by_token = TeacherForcing(0.25, "token").draw(4000, 5, generator)
    assert by_token.float().mean(0).tolist() == pytest.approx([0.25] * 5, abs=0.03)
    assert not (by_token == by_token[:, :1]).all()


EMPTY = [
    "data=text",
    "data.source=en",
    "data.target=de",
    "data.train=train",
    "data.val=val",
    "data.tests={test: test}",
    "data.alignments=align",
]


@pytest.mark.exhaustive
def test_an_empty_source_is_measured_by_a_run_as_attnlab_evaluate_measures_it(cli: Cli, tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        lines = ["the old dog sleeps .", "a cat ." if split == "train" else "", "the new cow runs ."]
        (tmp_path / f"{split}.align").write_text("0-0 1-1 2-2\n\n0-0 1-1 2-2\n")
        (tmp_path / f"{split}.en").write_text("".join(f"{line}\n" for line in lines))
        german = ["der alte Hund schläft .", "" if split == "val" else "eine Katze .", "die neue Kuh läuft ."]
        (tmp_path / f"{split}.de").write_text("".join(f"{line}\n" for line in german))
    tiny = [override for override in TINY if not override.startswith("data.")]
    assert cli("train", *EMPTY, *tiny, "logger=none") == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1")
    assert cli("evaluate", str(folder), "--bootstrap", "1") == 0
    greedy = ["search=greedy", *(override for override in TINY if override.startswith("search."))]
    assert cli("evaluate", str(folder), "--bootstrap", "1", "--label", "val", "--test", "val", *greedy) == 0
    *_, epoch = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    val = json.loads((folder / "evaluations" / "val.json").read_text())["tests"]["val"]["metrics"]
    assert val["exact"]["value"] == pytest.approx(100 / 3), "nothing is the right translation of nothing"
    for name in ("bleu", "exact", "loss"):
        assert epoch[f"val/{name}"] == pytest.approx(val[name]["value"], rel=1e-4), name
    own = json.loads((folder / "result.json").read_text())["tests"]["test"]
    after = json.loads((folder / "evaluations" / "default.json").read_text())["tests"]["test"]
    assert own["examples"] == after["examples"] == 3
    for name, result in own["metrics"].items():
        assert result["value"] == pytest.approx(after["metrics"][name]["value"], nan_ok=True), name
        assert result["signature"] == after["metrics"][name]["signature"], name
    assert (folder / "hypotheses" / "test.txt").read_text().split("\n")[1] == ""
    assert "aer" in own["metrics"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["scheduler=plateau", "scheduler.monitor=val/blue"], "there is no 'val/blue' to monitor: did you mean 'val/bleu'?"),
        (["scheduler=plateau", "scheduler.monitor=val/bleu"], "the schedule's mode is min, but higher is better for val/bleu"),
        (["scheduler=cosine", "scheduler.interval=step"], "scheduler.duration is the number of epochs"),
        (["trainer.precision=16-mixed", "optimizer.fused=true"], "optimizer.fused=false"),
        (["monitor=val/blue"], "did you mean 'val/bleu'?"),
        (["monitor=val/length_ratio"], "there is no 'val/length_ratio' to monitor"),
        (["head=pointer_generator", "objective.label_smoothing=0.1"], "objective: label smoothing"),
    ],
)
def test_what_cannot_be_watched_or_smoothed_is_told_before_training(
    overrides: list[str], message: str, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", *TINY, "logger=none", *overrides) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.exhaustive
@pytest.mark.parametrize("overrides", [["~metrics.loss"], ["callbacks.samples.examples=0"]])
def test_a_run_without_a_loss_or_samples_to_show_ends_well(overrides: list[str], cli: Cli) -> None:
    assert cli("train", *TINY, "logger=none", *overrides) == 0
