"""What a config that somebody else wrote may build."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import attnlab
from attnlab.config.trust import UntrustedError, validate_targets
from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from commands import TINY, Cli, cli, runs
from composing import UNATTENDED, composed
from conftest import options
from tasks.translation.external import write_command

__all__ = ["cli", "runs"]

HARMFUL: dict[str, Any] = {
    "function": {"tokenizer": {"_target_": "torch.utils.collect_env.run", "command": "id"}},
    "pickle": {"search": {"_target_": "torch.load", "f": "x", "weights_only": False}},
    "function of a package of components": {"a": {"_target_": "torch.nn.Module.__init__"}},
    "module by way of a package": {"a": {"_target_": "torch.nn.modules.module.os.system", "command": "id"}},
    "class of another module by way of a package": {"a": {"_target_": "lightning.pytorch.callbacks.Path"}},
    "module of another package": {"a": {"_target_": "torch.nn.modules.module.torch.fx.GraphModule"}},
    "function of attnlab": {"a": {"_target_": "attnlab.runs.folder.write_atomically", "path": "x", "text": "y"}},
    "in a tuple": {"a": [("x", {"_target_": "os.system"})]},
    "interpolation in a tuple": {"a": [("x", "${oc.env:HOME}")]},
    "deep down": {"model": {"parts": [{"x": {"_target_": "os.system"}}]}},
    "beside what is allowed": {"_target_": "torch.optim.Adam", "lr": {"_target_": "builtins.eval", "_args_": ["1"]}},
    "interpolation": {"tokenizer": "${oc.create:{_target_: os.system, command: id}}"},
    "no text": {"a": {"_target_": {"_target_": "os.system"}}},
    "module of the user": {"attention": {"_target_": "a_module_that_must_not_be_imported.Score"}},
}


@pytest.mark.parametrize("config", HARMFUL.values(), ids=HARMFUL)
def test_what_is_no_component_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(UntrustedError, match="somewhere"):
        validate_targets(config, "somewhere")
    assert "a_module_that_must_not_be_imported" not in sys.modules


@pytest.mark.parametrize(
    "harm", ["!!pairs [a: {_target_: os.system, command: id}]", "!!omap [a: '${oc.env:HOME}']", "!!set {a}", "&a [*a]"]
)
def test_a_config_that_no_run_wrote_is_damaged(harm: str, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.config_file.write_text(f"attention: {{x: {harm}}}\n")
    with pytest.raises(UserError, match="it holds no config of a run"):
        run.read_config()


@pytest.mark.few(2)
@pytest.mark.parametrize("group", ["attention", "encoder", "decoder", "search", "optimizer", "logger", "trainer", "tokenizer"])
def test_every_option_may_be_built(group: str) -> None:
    for option in options(group):
        chosen = [f"{group}={option}", "attention=none"] if option in UNATTENDED else [f"{group}={option}"]
        validate_targets(composed(*chosen), "config.yaml")


def test_components_of_libraries_may_be_built() -> None:
    for target in (
        "torch.optim.RMSprop",
        "torch.optim.lr_scheduler.StepLR",
        "torch.nn.GELU",
        "lightning.pytorch.callbacks.LearningRateMonitor",
        "lightning.pytorch.loggers.MLFlowLogger",
    ):
        validate_targets({"any": [{"_target_": target}]}, "config.yaml")


VERBS = {
    "translate": ["translate", "RUN", "--input", "in.txt"],
    "evaluate": ["evaluate", "RUN"],
    "align": ["align", "RUN", "--files", "in.txt", "in.txt"],
    "draw": ["draw", "heatmaps", "RUN", "--source", "a", "--output", "x.svg"],
    "reproduce": ["reproduce", "RUN"],
    "compare": ["compare", "RUN", "RUN"],
    "report": ["report", "STUDY"],
}


@pytest.mark.few(2)
@pytest.mark.parametrize("part", ["tokenizer", "search", "metrics", "attention"])
@pytest.mark.parametrize("verb", VERBS)
def test_opening_a_run_runs_none_of_its_code_unless_it_is_trusted(
    verb: str, part: str, runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it names instead writes a file, which is how this test knows."""
    run = tmp_path / "runs" / "somebody" / "attention=dot" / "seed=1"
    shutil.copytree(runs["plain-1"], run)
    (run / "digests.json").unlink(missing_ok=True)
    (tmp_path / "in.txt").write_text("a dog\n")
    proof = tmp_path / "proof"
    config = yaml.safe_load((run / "config.yaml").read_text())
    harm = {"_target_": "pathlib.Path.touch", "_args_": [{"_target_": "pathlib.Path", "_args_": [str(proof)]}]}
    config[part] = {"harm": harm} if part == "metrics" else harm
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    command = [word.replace("RUN", str(run)).replace("STUDY", str(run.parents[1])) for word in VERBS[verb]]
    builds = {"compare": ["metrics"], "report": ["metrics"]}.get(verb, ["tokenizer", "search", "metrics", "attention"])
    status = cli(*command)
    told = capsys.readouterr().err
    assert not proof.exists()
    if part in builds:
        assert (status, "add --trust" in told, "Traceback" in told) == (2, True, False)
        assert "pathlib.Path" in told
        cli(*command, "--trust")
        assert proof.exists() or part in ("metrics", "search")  # which a verb may have no use for


def test_classes_of_ones_own_are_used_when_they_are_trusted(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("from attnlab.attention.scores import Additive\nclass Own(Additive):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli("train", *TINY, "logger=none", "attention.score._target_=mine.Own") == 0
    (run,) = tmp_path.glob("runs/train/*/seed=1")
    (tmp_path / "in.txt").write_text("a dog\n")
    assert cli("translate", str(run), "--input", "in.txt") == 2
    assert "builds mine.Own, which is no component of attnlab" in capsys.readouterr().err
    assert cli("translate", str(run), "--input", "in.txt", "--trust") == 0
    with pytest.raises(UntrustedError):
        attnlab.load(run)
    assert attnlab.load(run, trust=True).models


def test_a_command_that_a_run_names_is_run_only_if_it_is_trusted(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its class is attnlab's own; tables, which run nothing, ask for no trust."""
    run = tmp_path / "runs" / "somebody" / "attention=dot" / "seed=1"
    shutil.copytree(runs["plain-1"], run)
    (run / "digests.json").unlink(missing_ok=True)
    program = write_command(tmp_path / "environment")
    proof = program.with_name("calls.jsonl")
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["metrics"]["comet"] = {**composed("metrics=comet")["metrics"]["comet"], "program": str(program)}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    evaluate = ["evaluate", str(run), "--test", "test", "--bootstrap", "1"]
    for more in ([], ["metrics=comet"], ["metrics.comet.model=other"]):
        assert cli(*evaluate, *more) == 2
        told = capsys.readouterr().err
        assert f"may run the command '{program}'" in told
        assert "add --trust" in told
    with pytest.raises(UntrustedError):
        attnlab.load(run)
    assert cli("reproduce", str(run)) == 2
    assert cli("report", str(run.parents[1])) == 0
    other = shutil.copytree(run, tmp_path / "copy" / run.name)
    assert cli("compare", str(run), str(other), "--metric", "bleu", "--samples", "100") == 0
    assert not proof.exists()
    assert cli(*evaluate, "--trust") == 0
    assert proof.exists()
