"""Losses on attention weights: their equations, and what they teach."""

import json
import math
from pathlib import Path

import pytest
import torch

from attnlab.errors import UserError
from attnlab.training.auxiliary import CoverageLoss, SupervisedLoss
from commands import TINY, Cli, cli
from parts import attention, part

__all__ = ["cli"]


def example() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    weights = torch.randn(2, 4, 5, dtype=torch.float64).softmax(-1).requires_grad_()
    real = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)
    links = torch.zeros(2, 4, 5, dtype=torch.float64)
    links[0, 0, 1], links[0, 2, 0], links[0, 2, 3], links[1, 1, 4] = 1.0, 0.5, 0.5, 1.0
    return weights, real, links


def test_coverage_loss_is_its_equation_over_coverage_before_the_step() -> None:
    weights, real, _ = example()
    losses = []
    for b, length in enumerate((4, 2)):
        covered = [torch.zeros(()).double()] * 5
        for t in range(length):
            losses.append(sum(torch.minimum(weights[b, t, j], covered[j]) for j in range(5)))
            covered = [c + weights[b, t, j] for j, c in enumerate(covered)]
    torch.testing.assert_close(CoverageLoss()(weights, real, None), torch.stack(losses).mean(), rtol=0, atol=1e-10)
    twice, once = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]), torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    both = torch.ones(1, 2, dtype=torch.bool)
    assert CoverageLoss()(twice, both, None).item() == 0.5
    assert CoverageLoss()(once, both, None).item() == 0.0
    half = torch.full((1, 600, 2), 0.5, dtype=torch.bfloat16)
    all_steps = torch.ones(1, 600, dtype=torch.bool)
    assert CoverageLoss()(half, all_steps, None) == CoverageLoss()(half.float(), all_steps, None), "sums do not stop at 128"


def test_supervised_loss_is_its_equation_over_linked_tokens() -> None:
    weights, real, links = example()
    linked = [(0, 0), (0, 2), (1, 1)]
    expected = -sum(links[b, t, j] * torch.log(weights[b, t, j]) for b, t in linked for j in range(5)) / 3
    torch.testing.assert_close(SupervisedLoss()(weights, real, links).double(), expected, rtol=0, atol=1e-6)
    beyond = links.clone()
    beyond[1, 2, 0] = 1.0
    assert SupervisedLoss().counted(real, beyond).nonzero().tolist() == [[0, 0], [0, 2], [1, 1]], "padding does not count"
    nothing = SupervisedLoss()(weights, real, torch.zeros_like(links))
    assert nothing.item() == 0.0
    little = torch.tensor([[[1e-4, 1 - 1e-4]]])
    once = SupervisedLoss()(little, torch.ones(1, 1, dtype=torch.bool), torch.tensor([[[1.0, 0.0]]]))
    assert once.item() == pytest.approx(-math.log(1e-4), rel=1e-4)
    sparse = torch.zeros_like(weights).requires_grad_()
    SupervisedLoss()(sparse, real, links).backward()
    assert sparse.grad is not None
    assert sparse.grad.isfinite().all()


def metrics(tmp_path: Path, name: str) -> dict[str, float]:
    (path,) = tmp_path.glob(f"runs/{name}/*/*/metrics.jsonl")
    last: dict[str, float] = json.loads(path.read_text().splitlines()[-1])
    return last


@pytest.mark.exhaustive
def test_what_is_punished_goes_down_and_the_likelihood_keeps_its_name(cli: Cli, tmp_path: Path) -> None:
    """Both losses together, logged under their own names; a weight of zero measures without teaching."""
    budget = [*TINY, "data.train_size=400", "optimizer.lr=0.01", "trainer.max_epochs=6", "logger=none"]
    both = "auxiliary=[coverage,supervised]"
    both_from = ["auxiliary.coverage.start=0", "auxiliary.coverage.ramp=0"]
    weights = ["auxiliary.coverage.weight=0", "auxiliary.supervised.weight=0"]
    assert cli("train", *budget, both, *both_from, "name=taught") == 0
    assert cli("train", *budget, both, *weights, "name=measured") == 0
    assert cli("train", *budget, "name=plain") == 0
    taught, measured, plain = (metrics(tmp_path, name) for name in ("taught", "measured", "plain"))
    assert taught["train/supervised"] < 0.85 * measured["train/supervised"]
    assert taught["train/coverage"] < measured["train/coverage"]
    assert measured["val/loss"] == plain["val/loss"]
    assert "train/coverage" not in plain


@pytest.mark.exhaustive
def test_a_loss_begins_after_its_share_of_the_training_and_grows(cli: Cli, tmp_path: Path) -> None:
    late = CoverageLoss(weight=2.0, start=0.5, ramp=0.25)
    assert [late.weight_at(progress) for progress in (0.0, 0.49, 0.5, 0.625, 0.75, 1.0)] == [0.0, 0.0, 0.0, 1.0, 2.0, 2.0]
    assert SupervisedLoss(weight=2.0).weight_at(0.0) == 2.0
    budget = [*TINY, "trainer.max_epochs=2", "logger=none"]
    assert cli("train", *budget, "name=plain") == 0
    loss = ["auxiliary=coverage", "auxiliary.coverage.start=0.5", "auxiliary.coverage.ramp=0", "auxiliary.coverage.weight=50"]
    assert cli("train", *budget, *loss, "name=late") == 0
    plain, late_run = (
        [json.loads(line)["val/loss"] for line in path.read_text().splitlines()]
        for name in ("plain", "late")
        for path in tmp_path.glob(f"runs/{name}/*/*/metrics.jsonl")
    )
    assert (plain[0] == late_run[0], plain[1] == late_run[1]) == (True, False)
    stop = "{_target_: lightning.pytorch.callbacks.EarlyStopping, monitor: val/loss, divergence_threshold: 0.0}"
    assert cli("train", *budget, *loss, "name=never", f"+callbacks.stop={stop}") == 0
    (log,) = tmp_path.glob("runs/never/*/*/run.log")
    assert "the auxiliary loss coverage begins after a share of 0.5 of " in log.read_text()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["auxiliary=coverage", "attention=none"],
            "the auxiliary loss coverage is one on attention weights, and this attention has none",
        ),
        (["auxiliary=coverage", "attention=uniform"], "which do not learn with a uniform normalizer"),
        (["auxiliary=supervised", "attention=hard"], "gives them none"),
        (
            ["auxiliary=coverage", "attention=differential"],
            "weights that are shares of one, which those of Differential are not",
        ),
        (["auxiliary=supervised", "attention=sigmoid"], "are shares of one, which those of Sigmoid are not"),
        (["auxiliary=supervised", "auxiliary.supervised.weight=-1"], "must not be negative"),
        (["auxiliary=coverage", "auxiliary.coverage.start=0.95"], "at most 1 together, not 0.95 and 0.1"),
        (["auxiliary=coverage", "trainer.max_epochs=-1"], "which has no end"),
    ],
)
def test_losses_that_make_no_sense_are_refused(
    overrides: list[str], message: str, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", *TINY, "logger=none", *overrides) == 2
    assert message in capsys.readouterr().err


def test_a_chunk_of_equal_weights_is_learned_where_its_place_is() -> None:
    chunk = part("normalizer", "uniform")
    CoverageLoss().validate("coverage", attention(normalizer=part("normalizer", "mocha", chunk=chunk)))
    with pytest.raises(UserError, match="do not learn with a uniform normalizer"):
        CoverageLoss().validate("coverage", attention(normalizer="uniform"))
    CoverageLoss().validate("coverage", attention(normalizer="uniform", window="local_p"))


@pytest.mark.exhaustive
def test_supervision_wants_alignments(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.en").write_text("the old dog sleeps .\n")
        (tmp_path / f"{split}.de").write_text("der alte Hund schläft .\n")
    text = ["data=text", "data.source=en", "data.target=de", "data.train=train", "data.val=val", "data.tests={test: test}"]
    tiny = [override for override in TINY if not override.startswith("data.")]
    assert cli("train", *text, *tiny, "auxiliary=supervised", "logger=none") == 2
    assert "has no word alignments" in capsys.readouterr().err
    (tmp_path / "train.align").write_text("0-0 1-1 2-2 3-3 4-4\n")
    assert cli("train", *text, *tiny, "auxiliary=supervised", "data.alignments=align", "logger=none") == 0
    (tmp_path / "train.align").write_text("0-0 1-9\n")
    assert cli("train", *text, *tiny, "auxiliary=supervised", "data.alignments=align", "logger=none") == 2
    assert "train.align, line 1" in capsys.readouterr().err


def test_a_weight_rises_over_its_ramp_and_without_one_counts_at_once() -> None:
    loss = CoverageLoss(weight=2.0, start=0.5, ramp=0.2)
    assert [loss.weight_at(share) for share in (0.0, 0.5, 0.6, 0.7, 1.0)] == pytest.approx([0.0, 0.0, 1.0, 2.0, 2.0])
    assert CoverageLoss(weight=2.0, start=0.0, ramp=0.0).weight_at(0.0) == 2.0
