"""``attnlab probe``, and what the report makes of it."""

import json
import shutil
from pathlib import Path

import pytest

from attnlab.runs.folder import RunFolder
from attnlab.runs.loading import load
from commands import OF_ANY_TASK, Cli, cli, runs

__all__ = ["cli", "runs"]

QUICK = ["--permutations", "2", "--bootstrap", "50"]


def figure(run: Path, name: str, test: str = "test") -> float:
    record = RunFolder(run).read_probe(test)
    assert record is not None
    return record.figure(name).value


def test_a_probe_is_written_and_becomes_columns(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = Path(shutil.copytree(runs["plain-1"].parents[1], tmp_path / "runs" / "plain"))
    one, other = sorted(study.glob("*/seed=*"))
    assert cli("probe", str(one), str(other), "--swap", str(other), *QUICK) == 0
    shown = capsys.readouterr().out
    for told in ("own weights loss", "permuted weights TVD", "uniform weights", "swapped weights", "gradient τ", "16 examples"):
        assert told in shown
    predictor = load(one)
    forced = predictor.force_examples(predictor.task.examples("test"))
    tokens = sum(len(found.tokens) for found in forced if found)
    expected = sum(-found.log_probability for found in forced if found) / tokens
    assert figure(one, "own_loss") == pytest.approx(expected, rel=1e-12)
    assert figure(other, "swapped_loss") == pytest.approx(figure(other, "own_loss"), abs=1e-6)
    assert figure(one, "swapped_loss") != figure(one, "own_loss")
    record = RunFolder(one).read_probe("test")
    assert record is not None
    assert record.examples == list(range(1, 17))
    assert record.swap == [str(other.resolve()), RunFolder(other).read_result().id]
    low, high = record.figure("permuted_variation").low, record.figure("permuted_variation").high
    assert low is not None
    assert high is not None
    assert low <= figure(one, "permuted_variation") <= high

    assert cli("report", "plain") == 0
    table = (study / "comparison.md").read_text()
    assert "| test permuted weights TVD |" in table
    assert "| test weights and leave-one-out τ |" in table
    assert "attention probed on test: 16 examples, references, seed 1, 2 permutations" in table

    path = RunFolder(one).probe_file("test")
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "code": "0" * 16}))
    assert cli("report", "plain") == 0
    told = "not comparable, for other code probed the attention of some runs on test: attnlab probe does it again"
    assert told in (study / "comparison.md").read_text()
    assert told not in table
    path.write_text(json.dumps({**content, "id": "another"}))  # of what was in the folder before it was trained anew
    RunFolder(other).probe_file("test").unlink()
    assert cli("report", "plain") == 0
    assert "permuted" not in (study / "comparison.md").read_text()
    path.write_text(json.dumps({**content, "figures": {"own_loss": {"value": "low"}}}))
    capsys.readouterr()
    assert cli("report", "plain") == 2
    assert "run attnlab probe again" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_what_a_model_finds_itself_is_forced(runs: dict[str, Path], cli: Cli) -> None:
    run = str(runs["copying-1"])
    assert cli("probe", run, "--own", "--examples", "5", "--test", "val", *QUICK) == 0
    record = RunFolder(run).read_probe("val")
    assert record is not None
    assert record.targets == "own targets"
    assert len(record.examples) == len(set(record.examples)) <= 5
    assert record.figure("own_accuracy").value > 50  # of what was found to be probable


@pytest.mark.exhaustive
def test_pointing_is_probed_without_leaving_elements_out_and_not_aligned(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", "task=pointing", "data=sort", "attention=multihead", *OF_ANY_TASK, "logger=none") == 0
    (run,) = tmp_path.glob("runs/train/*/seed=1")
    assert cli("probe", str(run), "--examples", "6", *QUICK) == 0
    record = RunFolder(run).read_probe("test")
    assert record is not None
    assert "weights_gradient" in record.figures
    assert "weights_leave_one_out" not in record.figures
    assert "without.attention.3" in record.figures
    assert cli("probe", str(run), "--own", "--examples", "6", *QUICK) == 0

    (tmp_path / "many.txt").write_text("0.5 0.1\n" * 1030 + "words\n")
    capsys.readouterr()
    assert cli("translate", str(run), "--input", "many.txt", "--output", "found.txt") == 2
    assert "source 1031: 'words' is no number" in capsys.readouterr().err
    assert not (tmp_path / "found.txt").exists()
    (tmp_path / "one.txt").write_text("0.5 0.1\n")
    (tmp_path / "sorted.txt").write_text("1 0\n")
    assert cli("align", str(run), "--files", "one.txt", "sorted.txt") == 2
    assert "do not spell the words of the files" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_refusals(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, none = str(runs["plain-1"]), str(runs["none-1"])
    mistakes = {
        ("probe", none): f"{none} has no attention over the source",
        ("probe", run, "--swap", none): f"{none} has no attention over the source",
        ("probe", run, "--swap", str(runs["unknown-1"])): "differ in their tokens",
        ("probe", run, "--test", "nothing"): "nothing",
        ("probe", run, "--test", ""): "no test set ''",
        ("probe", run, str(runs["plain-2"]), "--test", "nothing"): "nothing",
        ("probe", run, run): "the same run is named twice",
        ("probe", run, "--device", "abacus"): "device abacus: ",
        ("probe", str(tmp_path)): "holds no",
        ("probe", run, "--examples", "0"): "--examples",
    }
    for words, told in mistakes.items():
        assert cli(*words) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line
