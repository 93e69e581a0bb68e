"""Steps of a whole training, against plain loops in float64."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attnlab.data.symbols import EOS, PAD
from attnlab.decoders import DecoderOutput, DecoderState
from attnlab.model import Seq2Seq, SourceMemory
from attnlab.runs.assembly import build_model, build_task
from commands import TINY, Cli, cli
from composing import settled
from training.test_module import Witness

__all__ = ["cli"]

ONE_STEP = [*TINY, "logger=csv", "model.dropout=0", "optimizer=sgd", "optimizer.lr=0.5", "data.train_size=16"]
ONE_STEP += ["+callbacks.witness._target_=training.test_module.Witness", "trainer.log_every_n_steps=1"]
ONE_STEP += ["batches.size=16", "callbacks.samples.examples=0", "test=false"]


def plain_loss(model: Seq2Seq, source: Tensor, target: Tensor, smoothing: float, *, forced: bool) -> tuple[Tensor, int]:
    """The loss of one sentence, one token after another, and how many tokens there are."""
    memory, state = model.encode(source[None], torch.tensor([len(source)]))
    loss, given = torch.zeros((), dtype=torch.float64), target[0]
    for label in target[1:]:
        decoded = model.decode(given.view(1, 1), memory, state)
        logits, state = model.scores(decoded, memory)[0, 0], decoded.state
        log_probabilities = logits - torch.log(torch.exp(logits).sum())
        loss = loss - (1 - smoothing) * log_probabilities[label] - smoothing * log_probabilities.mean()
        best = max((index for index in range(len(logits)) if index != PAD), key=lambda index: float(logits[index].detach()))
        given = label if forced else torch.tensor(best)
    return loss, len(target) - 1


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("overrides", "smoothing", "forced", "largest"),
    [
        ([], 0.0, True, None),
        (["objective.label_smoothing=0.2"], 0.2, True, None),
        (["objective.teacher_forcing.ratio=0"], 0.0, False, None),
        (["trainer.gradient_clip_val=0.02"], 0.0, True, 0.02),
        (["trainer.gradient_clip_val=0.001", "+trainer.gradient_clip_algorithm=value"], 0.0, True, 0.001),
    ],
    ids=["plain", "smoothed", "free-running", "clipped by norm", "clipped by value"],
)
def test_a_step_is_that_of_a_plain_loop(
    overrides: list[str], smoothing: float, forced: bool, largest: float | None, cli: Cli, tmp_path: Path
) -> None:
    command = [*ONE_STEP, *([] if largest else ["trainer.gradient_clip_val=null"]), *overrides]
    assert cli("train", *command) == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1")
    config = settled(*command)
    task = build_task(config)
    task.prepare()
    model = build_model(config, task).double()
    losses, tokens = [], 0
    for index in Witness.seen[0]:
        example = task.examples("train")[[index]]
        assert example.target[0, -1] == EOS
        loss, count = plain_loss(model, example.source[0], example.target[0], smoothing, forced=forced)
        losses.append(loss)
        tokens += count
    loss = torch.stack(losses).sum() / tokens
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: own.grad for name, own in model.named_parameters() if own.grad is not None}
    norm = float(torch.stack([gradient.square().sum() for gradient in gradients.values()]).sum().sqrt())
    by_value = any("algorithm" in override for override in overrides)
    if largest is not None:
        assert norm > 4 * largest, "else nothing is clipped"
        for gradient in gradients.values():
            gradient.copy_(gradient.clamp(-largest, largest) if by_value else gradient * largest / norm)

    logged = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["train/loss"] for row in logged if "train/loss" in row] == pytest.approx([float(loss.detach())], rel=1e-5)
    after = torch.load(folder / "last.ckpt", weights_only=True)["state_dict"]
    for name, own in model.named_parameters():
        moved = after[f"model.{name}"].double() - own.detach()
        torch.testing.assert_close(
            moved, -0.5 * gradients[name], rtol=1e-3, atol=2e-6, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize("accumulated", [1, 3])
def test_every_batch_tosses_coins_of_its_own_which_a_second_run_tosses_again(
    accumulated: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    tossed: list[Tensor] = []
    decode = Seq2Seq.decode_scheduled

    def watched(self: Seq2Seq, target: Tensor, memory: SourceMemory, state: DecoderState, forced: Tensor) -> DecoderOutput:
        tossed.append(forced)
        return decode(self, target, memory, state, forced)

    monkeypatch.setattr(Seq2Seq, "decode_scheduled", watched)
    coins = ["objective.teacher_forcing.ratio=0.7", "objective.teacher_forcing.per=token", "data.train_size=48"]
    coins.append(f"trainer.accumulate_grad_batches={accumulated}")
    for _ in range(2):
        assert cli("train", *ONE_STEP, *coins, "resume=false") == 0
    first, again = tossed[:3], tossed[3:]
    assert len(again) == 3
    assert all(map(torch.equal, first, again))
    assert len({str(coins.flatten()[:60].tolist()) for coins in first}) == 3
    assert torch.cat([coins.flatten() for coins in first]).float().mean().item() == pytest.approx(0.7, abs=0.08)
