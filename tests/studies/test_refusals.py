"""Studies that are refused, and when."""

import re
import shutil
from pathlib import Path

import pytest

from commands import Cli, cli
from studies.sweeps import SMALL, STUDY

__all__ = ["cli"]


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


@pytest.mark.exhaustive
def test_what_begins_no_run_is_told_in_the_last_line(cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sweep = ["train", "-m", *SMALL, "name=here", "seed=1,2"]
    assert cli(*sweep, "hydra/launcher=parallel", "hydra.launcher.n_jobs=0") == 2
    assert capfd.readouterr().err.endswith("n_jobs == 0 in Parallel has no meaning): mend it, or leave it out\n")
    assert cli(*sweep, "hydra.launcher.n_jobs=2") == 2
    assert "no key 'n_jobs' in 'hydra.launcher', whose option may be another: choose hydra/launcher=O" in capfd.readouterr().err
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "runs").touch()
    assert cli(*sweep) == 2
    assert capfd.readouterr().err.endswith("attnlab: runs is a file where a folder belongs: move it away\n")


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
    mixed = "defaults: [train, override /attention: [none, dot], _self_]\nname: mixed\nstudy: {question: 'Who?'}\n"
    (tmp_path / "experiments" / "mixed.yaml").write_text(mixed)
    (tmp_path / "experiments" / "copied.yaml").write_text(basic)
    (tmp_path / "experiments" / "launched.yaml").write_text(basic.replace("name: basic", "name: launched"))
    for arguments, told in {
        ("copied",): "copied.yaml and experiments/basic.yaml both say name: basic, and runs of one name are compared: change",
        ("elsewhere",): "hydra.sweep.subdir is VARIANT/seed=N in every study",
        ("mixed",): "the defaults of mixed: attention takes one option, and these would be mixed: -m attention=none,dot",
        ("basic",): "basic.yaml and experiments/copied.yaml both say name: basic",
        ("launched",): "launched: no key 'n_jobs' in 'hydra.launcher'",
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


@pytest.mark.few(1)
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
def test_runs_over_several_devices_are_none_of_a_sweep(cli: Cli, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli("train", "-m", *SMALL, "trainer.devices=2", "seed=1") == 2
    assert "would start the whole sweep again" in capfd.readouterr().err
    assert cli("train", "-m", *SMALL, "trainer.devices=2", "attention=none,dot") == 2
    assert capfd.readouterr().err.startswith("attnlab: none: a run over several devices would start")
    assert cli("train", "-m", *SMALL, "trainer.devices=2", "seed=1", "--dry-run") == 0
    assert "attnlab: started here, it would end: " in capfd.readouterr().err
    assert cli("train", *SMALL, "trainer.devices=2", "seed=1", "--dry-run") == 0
    assert "it would end" not in capfd.readouterr().err
    assert not [*tmp_path.glob("runs/*/*/*/*")], "no run has begun"


def test_a_key_that_the_sweeper_has_not_is_told_with_the_one_meant(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "axes.yaml").write_text(
        "defaults: [train, _self_]\nname: axes\nhydra: {sweeper: {parms: {seed: '1,2'}}}\n"
    )
    assert cli("study", "axes") == 2
    assert capsys.readouterr().err == "attnlab: axes: no key 'parms' in 'hydra.sweeper': did you mean 'params'?\n"
