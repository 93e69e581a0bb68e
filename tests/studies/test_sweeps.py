"""Sweeps that fail, are killed, stopped, started again and started twice."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from attnlab.runs.folder import RunFolder
from attnlab.runs.reproduction import MEASURES_OF_MACHINE
from attnlab.studies import launch
from attnlab.studies.collection import collect
from attnlab.studies.plan import RunPlan, plan
from commands import TINY, Cli, cli
from conftest import ROOT, exhaustive_but
from saboteur import SABOTEUR

__all__ = ["cli"]

SMALL = [*TINY, "logger=none", "threads=1", "batches.size=16", "scheduler=cosine"]
PATIENCE = 600.0
"""Seconds for a command to start or to stop: it takes more than 120 on two cores with much other work."""


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that a run measured, but for time."""
    result = json.loads((folder / "result.json").read_text())
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for part in (result, *lines):
        for name in (*MEASURES_OF_MACHINE, "id", "name", "training", "recipe"):
            part.pop(name, None)
    return {"result": result, "curve": lines}


# An epoch has 6 steps, and after 9 the validation set is looked at.
@pytest.mark.parametrize(
    ("step", "attention"), exhaustive_but([(6, "additive")], [(6, "additive"), (8, "mocha"), (10, "hard")])
)
def test_a_run_that_is_stopped_anywhere_goes_on_as_if_it_had_not_been(
    step: int, attention: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", *SMALL, SABOTEUR, "trainer.max_epochs=3", "objective.teacher_forcing.ratio=0.5", "model.dropout=0.3"]
    command += [
        f"attention={attention}",
        "trainer.val_check_interval=0.5",
        "auxiliary=coverage",
        "auxiliary.coverage.start=0",
        "auxiliary.coverage.ramp=1",
    ]
    assert cli(*command, "name=undisturbed") == 0
    monkeypatch.setenv("SABOTAGE", f"seed=1=interrupt@{step}")
    assert cli(*command, "name=stopped") == 130
    assert "goes on from" in capsys.readouterr().err
    monkeypatch.delenv("SABOTAGE")
    assert cli(*command, "name=stopped") == 0
    (one,), (other,) = (list(tmp_path.glob(f"runs/{name}/*/*")) for name in ("undisturbed", "stopped"))
    assert json.loads((other / "result.json").read_text())["restarts"] == 1
    assert outcome(one) == outcome(other)
    assert (one / "hypotheses" / "test.txt").read_text() == (other / "hypotheses" / "test.txt").read_text()


@pytest.mark.exhaustive
def test_whatever_ends_a_run_the_others_run_on_and_a_second_start_does_what_is_missing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sweep = ["train", "-m", *SMALL, SABOTEUR, "trainer.max_epochs=2", "attention=none,dot,general,additive,concat"]
    sabotage = {"none": "kill@8", "dot": "nan@7", "general": "crash@2", "additive": "exhaust@9"}
    monkeypatch.setenv("SABOTAGE", " ".join(f"attention={name}={deed}" for name, deed in sabotage.items()))
    assert cli(*sweep, "name=disturbed") == 1
    folder = tmp_path / "runs" / "disturbed"
    told = {label: (runs[0].state, runs[0].error) for label, runs in collect(folder).variants.items()}
    assert told["concat"][0] == "done"
    assert "killed by SIGKILL" in told["none"][1]
    assert "FloatingPointError: train/loss is nan" in told["dot"][1]
    assert "RuntimeError: out of luck" in told["general"][1]
    assert "allocate" in told["additive"][1]
    report = (folder / "comparison.md").read_text()
    assert report.count("failed: ") == 4
    assert "4 runs failed" in capfd.readouterr().err

    finished = collect(folder).variants["concat"][0].folder.result_file.stat().st_mtime_ns
    monkeypatch.delenv("SABOTAGE")
    assert cli(*sweep, "name=disturbed") == 0
    assert collect(folder).variants["concat"][0].folder.result_file.stat().st_mtime_ns == finished
    assert cli(*sweep, "name=undisturbed") == 0
    one, other = collect(folder), collect(tmp_path / "runs" / "undisturbed")
    assert {label: outcome(runs[0].folder.path) for label, runs in one.variants.items()} == {
        label: outcome(runs[0].folder.path) for label, runs in other.variants.items()
    }
    assert "failed" not in (folder / "comparison.md").read_text()


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


def plan_of(sweep: list[str]) -> list[RunPlan]:
    return plan(ROOT / "conf", "train", sweep[2:], [], command=[]).runs


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
def test_a_sweep_whose_process_is_killed_leaves_a_run_that_stops_and_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnlab", "train", "-m", *SMALL, "name=orphan", "trainer.max_epochs=200", "seed=1"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: any(tmp_path.glob("runs/orphan/*/*/last.ckpt")))
        (folder,) = tmp_path.glob("runs/orphan/*/*")
        before = (folder / "last.ckpt").stat().st_mtime_ns
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_for(lambda: collect(tmp_path / "runs" / "orphan").runs[0].state == "interrupted")
    assert (folder / "last.ckpt").stat().st_mtime_ns > before


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_parallel_sweep_whose_process_dies_leaves_no_run_training(number: int, tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    command = [sys.executable, "-m", "attnlab", "train", "-m", *SMALL, "name=orphans", "trainer.max_epochs=10000"]
    command += ["seed=1,2,3", "hydra/launcher=parallel", "hydra.launcher.n_jobs=2"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(list(tmp_path.glob("runs/orphans/*/*/last.ckpt"))) == 2)
        begun = [path.parent for path in tmp_path.glob("runs/orphans/*/*/last.ckpt")]
        before = [(folder / "last.ckpt").stat().st_mtime_ns for folder in begun]
    finally:
        process.send_signal(number)
        process.wait()
    wait_for(lambda: all(RunFolder(folder).state == "interrupted" for folder in begun))
    assert all((f / "last.ckpt").stat().st_mtime_ns > at for f, at in zip(begun, before, strict=True))
    time.sleep(3)
    assert len(list(tmp_path.glob("runs/orphans/*/*/run.json"))) == 2, "the third run began without its study"


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_run_with_a_logger_that_is_asked_to_stop_writes_a_checkpoint_and_one_line(number: int, tmp_path: Path) -> None:
    small = [override for override in SMALL if not override.startswith("logger")]
    command = [
        sys.executable,
        "-m",
        "attnlab",
        "train",
        *small,
        "name=stop",
        "trainer.max_epochs=10000",
        "~callbacks.early_stopping",
    ]
    with started(command, tmp_path) as process:
        wait_for(lambda: any(tmp_path.glob("runs/stop/*/*/last.ckpt")))
        before = next(tmp_path.glob("runs/stop/*/*/last.ckpt")).stat().st_mtime_ns
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, out
    assert "goes on from" in out.splitlines()[-1]
    assert "Traceback" not in out
    assert next(tmp_path.glob("runs/stop/*/*/last.ckpt")).stat().st_mtime_ns > before


@pytest.mark.exhaustive
def test_ctrl_c_ends_a_sweep_with_a_checkpoint_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnlab", "train", "-m", *SMALL, "name=stop", "trainer.max_epochs=100", "seed=1,2"]
    with started(command, tmp_path) as process:
        wait_for(lambda: any(tmp_path.glob("runs/stop/*/*/last.ckpt")))
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, out
    assert "0 of 2 done, 1 interrupted" in out
    assert "Traceback" not in out


@contextmanager
def started(command: list[str], folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A command that can be stopped also where the tests themselves are not to be, as under nohup; ended at last."""

    def listen() -> None:
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)

    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=listen,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Any, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


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


STUDY = """\
defaults: [train, _self_]
name: {name}
study: {{question: 'Which?', {study}}}
hydra: {{sweeper: {{params: {{{params}}}}}}}
"""

WRONG = {
    "baseline": ("baseline: nope", "attention: 'dot,none'", "no variant 'nope': did you mean 'none'?"),
    "crossed baseline": ("baseline: dot", "attention: 'dot,none', model.dropout: '0.1,0.2'", "attention=dot model.dropout=0.1"),
    "metric": ("metrics: [blue]", "seed: '1,2'", "there is no 'blue', did you mean 'bleu'?"),
    "metrics": ("metrics: bleu", "seed: '1,2'", "is a list of any of bleu"),
    "key": ("basline: dot", "seed: '1,2'", "did you mean 'baseline'?"),
    "seed in a variant": ("variants: {a: ['seed=3']}", "seed: '1,2'", "seed decides where a run lies"),
    "sweep in a variant": ("variants: {a: ['attention=dot,none']}", "seed: '1,2'", "neither one option nor one value"),
    "variant's name": ("variants: {a/b: ['attention=dot']}", "seed: '1,2'", "is to be a folder's name"),
    "variant's items": ("variants: {a: [{attention: dot}]}", "seed: '1,2'", "each item is KEY=VALUE"),
    "variants": ("variants: [attention=dot]", "seed: '1,2'", "names each with a list"),
    "seed": ("baseline: null", "seed: '1.5'", "seed is a whole number"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize(("study", "params", "told"), WRONG.values(), ids=WRONG)
def test_a_mistake_in_a_study_is_told_before_anything_is_trained(
    study: str, params: str, told: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "experiments" / "wrong.yaml"
    path.parent.mkdir()
    path.write_text(STUDY.format(name="wrong", study=study, params=params))
    assert cli("study", "wrong") == 2
    error = capsys.readouterr().err
    assert error.startswith("attnlab: ")
    assert (told in error, error.count("\n")) == (True, 1), error
    assert not list(tmp_path.glob("runs/*/*/seed=*"))


def test_what_is_no_study_is_told(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "nameless.yaml").write_text("defaults: [train, _self_]\nstudy: {question: 'Who?'}\n")
    (tmp_path / "experiments" / "broken.yaml").write_text("study: {question: [\n")
    basic = "defaults: [train, _self_]\nname: basic\nstudy: {question: 'Who?'}\nhydra: {launcher: {n_jobs: 2}}\n"
    (tmp_path / "experiments" / "basic.yaml").write_text(basic)
    elsewhere = STUDY.format(name="elsewhere", study="baseline: null", params="seed: '1'")
    elsewhere = elsewhere.replace("hydra: {", "hydra: {sweep: {subdir: here}, ")
    (tmp_path / "experiments" / "elsewhere.yaml").write_text(elsewhere)
    for arguments, told in {
        ("elsewhere",): "hydra.sweep.subdir is VARIANT/seed=N in every study",
        ("basic",): "basic: no key 'n_jobs' in 'hydra.launcher'",
        ("nameless",): "does not say what its runs are called",
        ("namless",): "did you mean 'nameless'?",
        ("demo", "name=a,b", "seed=1"): "it has one value",
        ("--dry-run",): "name a study first",
        ("broken",): "broken.yaml cannot be read",
    }.items():
        assert cli("study", *arguments) == 2
        assert told in capsys.readouterr().err
    assert cli("study") == 0
    assert "Who?" in capsys.readouterr().out


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


@pytest.mark.parametrize("wrong", ["model.dropout=0.1,${nothing}", "attention.score._target_=attnlab.Nothing", "seed=1,one"])
def test_a_mistake_in_a_later_variant_is_told_before_any_run(
    wrong: str, cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", "-m", *SMALL, "name=late", wrong) == 2
    (told,) = capfd.readouterr().err.splitlines()
    assert re.match("attnlab: .*(nothing|Nothing|seed)", told)
    assert not list(tmp_path.glob("runs/*/*/*"))


@pytest.mark.exhaustive
def test_a_mistake_made_after_a_run_was_done_is_a_failure(cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "experiments" / "mine.yaml"
    path.parent.mkdir()
    text = STUDY.format(name="mine", study="baseline: null", params="seed: '1'")
    path.write_text(text)
    assert cli("study", "mine", *SMALL) == 0
    path.write_text(text + "attention: {nosuchkey: 1}\n")
    assert cli("study", "mine", *SMALL) == 2
    assert "no key 'nosuchkey'" in capfd.readouterr().err
    path.write_text(text)
    assert cli("study", "mine", *SMALL) == 0


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


@pytest.mark.exhaustive
def test_runs_over_several_devices_are_none_of_a_sweep(cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli("train", "-m", *SMALL, "trainer.devices=2", "seed=1") == 2
    assert "would start the whole sweep again" in capfd.readouterr().err
    assert cli("train", "-m", *SMALL, "trainer.devices=2", "attention=none,dot") == 2
    assert capfd.readouterr().err.startswith("attnlab: none: a run over several devices would start")
    assert not [*tmp_path.glob("runs/*/*/*/*")], "no run has begun"
