"""Sweeps that are started again, started twice, or edited between."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from attnlab.runs.folder import RunFolder
from attnlab.studies import launch
from attnlab.studies.collection import collect
from commands import Cli, cli
from saboteur import SABOTEUR
from studies.sweeps import SMALL, STUDY, plan_of

__all__ = ["cli"]


@pytest.mark.exhaustive
def test_what_is_finished_stays_so_when_its_data_are_gone(cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for side in ("en", "de"):
        (tmp_path / f"corpus.{side}").write_text("a b\nb c\nc a\n")
    own = ["data=text", "data.source=en", "data.target=de", "data.train=corpus", "data.val=corpus", "data.tests={test: corpus}"]
    sizes = [override for override in SMALL if not override.startswith("data.")]
    sweep = ["train", "-m", *sizes, *own, "name=own", "attention=none"]
    assert cli(*sweep) == 0
    table = (tmp_path / "runs" / "own" / "comparison.csv").read_text()
    (tmp_path / "corpus.de").rename(tmp_path / "elsewhere")
    assert cli(*sweep) == 2
    assert "corpus.de" in capfd.readouterr().err
    (one,) = collect(tmp_path / "runs" / "own").runs
    assert one.is_done
    assert (tmp_path / "runs" / "own" / "comparison.csv").read_text() == table
    (tmp_path / "elsewhere").rename(tmp_path / "corpus.de")
    assert cli(*sweep) == 0
    assert not one.has_failed


@pytest.mark.exhaustive
def test_a_warning_about_data_that_variants_share_is_told_once(
    cli: Cli, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for side in ("en", "de"):
        (tmp_path / f"corpus.{side}").write_text("a b\nb c\nc a\n")
    own = ["data=text", "data.source=en", "data.target=de", "data.train=corpus", "data.val=corpus", "data.tests={test: corpus}"]
    sizes = [override for override in SMALL if not override.startswith("data.")]
    assert cli("train", "-m", *sizes, *own, "name=own", "tokenizer=whitespace,characters", "--dry-run") == 0
    assert caplog.text.count("3 of 3 pairs of val (100.0 %) are in train too") == 1


@pytest.mark.exhaustive
def test_an_edited_study_of_which_a_part_was_run_is_told_of(cli: Cli, tmp_path: Path) -> None:
    study = "defaults: [train, _self_]\nname: own\ntrainer: {max_epochs: EPOCHS}\nstudy: {question: 'Which?'}\n"
    study += "hydra: {sweeper: {params: {attention: 'none,dot'}}}\n"
    small = [override for override in SMALL if not override.startswith("trainer.max_epochs")]
    for epochs, attention in ((1, "none"), (2, "dot")):
        (tmp_path / "own.yaml").write_text(study.replace("EPOCHS", str(epochs)))
        assert cli("study", "own.yaml", *small, f"attention={attention}") == 0
    told = "was edited between their runs, after those of none; run the study again"
    assert told in (tmp_path / "runs" / "own" / "comparison.md").read_text()
    assert cli("study", "own.yaml", *small) == 0
    assert told not in (tmp_path / "runs" / "own" / "comparison.md").read_text()


@pytest.mark.exhaustive
def test_a_config_that_is_edited_while_its_sweep_works_is_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A launcher composes the config of each run when its turn comes."""
    file = tmp_path / "experiments" / "edited.yaml"
    file.parent.mkdir()
    file.write_text(
        "# @package _global_\ndefaults: [/train, _self_]\nname: edited\nhydra: {sweeper: {params: {seed: '1,2,3'}}}\n"
    )
    seen = []

    def edit(config: Any, job: Any, *_: Any) -> int:
        seen.append(job.folder.name)
        if len(seen) == 2:
            file.write_text(file.read_text() + "optimizer: {lr: 0.5}\n")
        return launch.BUSY

    monkeypatch.setattr(launch, "_run_in_process", edit)
    assert cli("study", "edited", *SMALL) == 2
    assert seen == ["seed=1", "seed=2"]
    assert "seed=3: a config was edited since the sweep began" in capfd.readouterr().err


def test_memory_that_ends_in_a_training_is_told_in_a_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SABOTAGE", "seed=1=exhaust@2")
    assert cli("train", *SMALL, SABOTEUR) == 2
    captured = capfd.readouterr()
    assert "out of memory with a batch of 16 examples" in captured.err
    assert "Traceback" not in captured.out + captured.err


@pytest.mark.exhaustive
def test_a_run_that_another_process_works_on_is_left_to_it(cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sweep = ["train", "-m", *SMALL, "name=twice", "attention=none,dot"]
    assert cli(*sweep, "--dry-run") == 0
    out = capfd.readouterr().out
    assert out.count("to do (missing)") == 2
    assert not list(tmp_path.glob("runs/*/*"))
    (busy,) = (tmp_path / "runs" / "twice" / run.folder for run in plan_of(sweep) if "attention=dot" in run.overrides)
    busy.mkdir(parents=True)
    with FileLock(RunFolder(busy).lock_file):
        assert cli(*sweep) == 1
        captured = capfd.readouterr()
        assert "another process works on it" in captured.out
        assert "1 done, 1 running" in captured.err
    assert cli(*sweep) == 0


@pytest.mark.exhaustive
def test_another_config_in_the_same_folder_is_another_run(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "experiments" / "mine.yaml"
    path.parent.mkdir()
    text = "defaults: [train, _self_]\nname: mine\ntrainer: {max_epochs: 1}\nhydra: {sweeper: {params: {encoder: 'gru,rnn'}}}\n"
    path.write_text(text)
    command = ["study", "mine", *(override for override in SMALL if "max_epochs" not in override)]
    assert cli(*command) == 0
    path.write_text(text.replace("max_epochs: 1", "max_epochs: 2"))
    assert cli(*command, "--dry-run") == 0
    assert capsys.readouterr().out.count("will be set") == 2
    assert cli(*command) == 0
    epochs = [run.result.epochs for run in collect(tmp_path / "runs" / "mine").runs]
    assert epochs == [2, 2]
    aside = sorted((tmp_path / "runs" / "mine" / ".replaced").glob("*/*/result.json"))
    assert [json.loads(path.read_text())["epochs"] for path in aside] == [1, 1]


@pytest.mark.exhaustive
def test_named_variants_are_a_list_in_the_studys_file(cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "experiments" / "where" / "study.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(
        "defaults: [train, override /scheduler: constant, _self_]\n"
        "name: where\n"
        "study:\n"
        "  question: Where does the context enter?\n"
        "  baseline: none\n"
        "  variants:\n"
        "    none: [attention=none]\n"
        "    feeding: [attention=additive, decoder=luong_feeding, 'attention.query=[state,embedding]', model.dropout=0.2]\n"
        "hydra: {sweeper: {params: {seed: '1,2'}}}\n"
    )
    assert cli("study") == 0
    assert "Where does the context enter?" in capfd.readouterr().out
    assert cli("study", "where", *SMALL) == 0
    study = collect(tmp_path / "runs" / "where")
    assert {label: [run.seed for run in runs] for label, runs in study.variants.items()} == {"none": [1, 2], "feeding": [1, 2]}
    assert study.baseline == "none"
    config = study.variants["feeding"][0].config
    assert config["decoder"]["input_feeding"] is True
    assert config["attention"]["query"] == ["state", "embedding"]
    table = (tmp_path / "runs" / "where" / "comparison.md").read_text()
    assert "ΔBLEU" in table
    assert "Holm-corrected" in table
    assert "baseline" in table
    assert "Where does the context enter?" in (tmp_path / "runs" / "where" / "report.html").read_text()
    assert cli("study", "where", *SMALL, "variant=none", "seed=3") == 0
    assert [run.seed for run in collect(tmp_path / "runs" / "where").runs if "variant=none" in run.overrides][-1] == 3


@pytest.mark.exhaustive
def test_runs_that_differ_in_their_search_alone_are_trained_once(cli: Cli, tmp_path: Path) -> None:
    assert cli("train", "-m", *SMALL, "name=widths", "search.width=1,3") == 0
    narrow, wide = (runs[0].result for runs in collect(tmp_path / "runs" / "widths").variants.values())
    assert narrow.train_seconds == wide.train_seconds
    assert narrow.metric("test", "loss") == wide.metric("test", "loss")
    assert cli("train", *SMALL, "name=alone", "search.width=3") == 0
    ((alone,),) = collect(tmp_path / "runs" / "alone").variants.values()
    assert alone.result.tests == wide.tests


@pytest.mark.exhaustive
def test_a_recorded_run_comes_out_the_same_and_a_changed_figure_is_told(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", *SMALL, "attention=dot") == 0
    (folder,) = tmp_path.glob("runs/train/*/*")
    assert cli("reproduce", str(folder)) == 0
    assert "are the same, to the last digit" in capsys.readouterr().out
    path = folder / "result.json"
    result = json.loads(path.read_text())
    result["tests"]["test"]["metrics"]["bleu"]["value"] += 1e-9
    path.write_text(json.dumps(result))
    assert cli("reproduce", str(folder)) == 2
    assert "result.json is not what the run wrote" in capsys.readouterr().err
    (folder / "digests.json").unlink()
    assert cli("reproduce", str(folder)) == 1
    assert "tests.test.metrics.bleu.value: " in capsys.readouterr().out
    assert cli("reproduce", str(tmp_path)) == 2


@pytest.mark.exhaustive
def test_a_folder_may_be_called_anything_and_a_study_may_search_further_folders(cli: Cli, tmp_path: Path) -> None:
    odd = tmp_path / "a=b (c), d's" / "experiments"
    (odd / "parts" / "attention").mkdir(parents=True)
    (odd / "parts" / "attention" / "mine.yaml").write_text("defaults: [dot]\n")
    path = odd / "odd.yaml"
    path.write_text(
        STUDY.format(name="odd", study="baseline: null", params="attention: mine").replace(
            "hydra: {", f"hydra: {{searchpath: ['file://{tmp_path}/parts'], "
        )
    )
    (odd / "parts").rename(tmp_path / "parts")
    os.chdir(odd.parent)
    assert cli("study", "odd", *SMALL) == 0
    assert collect(Path("runs/odd")).count("done") == 1


@pytest.mark.exhaustive
def test_what_is_monitored_decides_what_a_run_is(cli: Cli, tmp_path: Path) -> None:
    monitors = "monitor=val/bleu,val/accuracy"
    assert cli("train", "-m", *SMALL, "name=monitors", monitors, "trainer.max_epochs=2") == 0
    one, other = collect(tmp_path / "runs" / "monitors").runs
    assert one.result.id != other.result.id
    assert one.result.train_seconds != other.result.train_seconds
    assert (one.result.monitor, other.result.monitor) == ("val/bleu", "val/accuracy")


@pytest.mark.exhaustive
def test_seeds_of_different_configs_are_told_apart_and_damaged_results_are_made_again(
    cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "experiments" / "mine.yaml"
    path.parent.mkdir()
    text = STUDY.format(name="mine", study="baseline: null", params="seed: '1,2'")
    path.write_text(text)
    assert cli("study", "mine", *SMALL, "seed=1") == 0
    path.write_text(text + "model: {dropout: 0.2}\n")
    assert cli("study", "mine", *SMALL, "seed=2") == 0
    assert "not comparable: the seeds of" in (tmp_path / "runs" / "mine" / "comparison.md").read_text()
    result = next(tmp_path.glob("runs/mine/*/seed=2/result.json"))
    result.write_text("")
    assert cli("report", "mine") == 0
    assert "damaged: " in capfd.readouterr().out
    assert cli("study", "mine", *SMALL) == 0
    assert "not comparable" not in (tmp_path / "runs" / "mine" / "comparison.md").read_text()
