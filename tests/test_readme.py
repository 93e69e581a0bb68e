"""What the README tells a newcomer to do works as it stands there."""

import re
from pathlib import Path

import pytest

from attnlab.cli import COMMANDS
from attnlab.studies.plan import studies
from commands import TINY, Attnlab, attnlab
from conftest import CONF, ROOT

__all__ = ["attnlab"]

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_an_attention_of_ones_own(
    attnlab: Attnlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a folder outside the package, with one Python file and one YAML file, swept against a built-in score."""
    (tmp_path / "conf" / "attention" / "score").mkdir(parents=True)
    (tmp_path / "conf" / "attention" / "score" / "distance.yaml").write_text(blocks("yaml")[0])
    (tmp_path / "myscores.py").write_text(blocks("python")[1])
    monkeypatch.syspath_prepend(str(tmp_path))
    command = ["train", "-cd", "conf", "-m", "attention/score=general,distance", "seed=1"]
    assert f"attnlab {' '.join(command)},2,3" in README
    assert attnlab(*command, *TINY, "logger=none") == 0
    table = next(tmp_path.glob("runs/train/comparison.md")).read_text()
    assert "| distance | 1 |" in table
    assert "| general | 1 |" in table


def test_a_trained_model_in_python(attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert attnlab("train", *TINY, "logger=none", "name=demo", "attention=additive") == 0
    (run,) = tmp_path.glob("runs/demo/*/seed=1")
    (tmp_path / "runs" / "demo" / "attention=additive").symlink_to(run.parent)
    capsys.readouterr()
    exec(blocks("python")[0], {})
    assert "torch.Size([" in capsys.readouterr().out


def test_every_command_is_listed() -> None:
    assert {f"attnlab {command}" for command in COMMANDS if f"attnlab {command}" not in README} == set()


def test_every_option_and_study_is_listed() -> None:
    for group in (
        "data",
        "tokenizer",
        "encoder",
        "attention",
        "attention/score",
        "attention/window",
        "attention/normalizer",
        "attention/keys",
        "attention/history",
        "decoder",
        "decoder/cell",
        "decoder/initial_state",
        "decoder/readout",
        "output",
        "auxiliary",
        "search",
        "optimizer",
        "scheduler",
        "trainer",
        "logger",
        "hydra/launcher",
    ):
        for path in (CONF / group).glob("*.yaml"):
            assert f"`{path.stem}`" in README, path
    for study in studies([ROOT / "experiments"]):
        folder, _, form = study.name.partition("/")
        assert f"`{folder}`" in README, study.name
        assert form in ("", "full"), study.name


def test_every_mistake_shown_is_what_is_said(attnlab: Attnlab, capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"\$ attnlab (.*)\n((?:attnlab: .*\n)(?:[^$`].*\n)*)", README)
    assert len(shown) == 2
    for command, message in shown:
        assert attnlab(*command.split(), "logger=none") == 2
        assert capsys.readouterr().err.split() == message.split()
