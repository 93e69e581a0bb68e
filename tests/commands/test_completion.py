"""What a shell is told that a word may become, and the scripts that ask."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from attnlab.commands import COMPLETION, main, verbs
from attnlab.commands._shells import SHELLS, script
from commands import Cli, cli
from conftest import CONF, options

__all__ = ["cli"]

RUN, OTHER = "runs/demo/attention=dot/seed=1", "runs/demo/attention=none,model.dropout=0.1/seed=2"


def completed(line: str) -> list[str]:
    """What the last word of a line may become, as click is told by every shell."""
    *words, incomplete = line.split(" ")
    return [item.value for item in SHELLS["bash"](verbs, {}, "attnlab", COMPLETION).get_completions(words, incomplete)]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs and a study of its own."""
    monkeypatch.chdir(tmp_path)
    for run in (RUN, OTHER):
        (tmp_path / run).mkdir(parents=True)
    (tmp_path / "experiments" / "mine").mkdir(parents=True)
    (tmp_path / "experiments" / "mine" / "study.yaml").write_text(
        "defaults: [train, _self_]\nname: mine\nextra: 1\nstudy: {question: 'Which?'}\n"
    )
    (tmp_path / "options" / "attention").mkdir(parents=True)
    (tmp_path / "options" / "attention" / "own.yaml").write_text("defaults: [dot]\n")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tra", ["train", "translate"]),
        ("train --mul", ["--multirun"]),
        ("train --cfg j", ["job"]),
        ("translate --rep", ["--replace-unknown"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("draw c", ["curves"]),
        ("train attention=non", ["attention=none"]),
        ("train attention=none,dot_", ["attention=none,dot_learned_scale"]),
        ("train -m seed=1,2 attention=none,dot_", ["attention=none,dot_learned_scale"]),
        ("train attention/score=conca", ["attention/score=concat", "attention/score=concat_shared"]),
        ("train model.drop", ["model.dropout="]),
        ("train attention=local_p attention.window.ra", ["attention.window.radius="]),
        ("train hydra/laun", ["hydra/launcher="]),
        ("train -cd options attention=ow", ["attention=own"]),
        ("train attention=ow", []),
        ("study min", ["mine"]),
        ("study scores/", ["scores/full", "scores/long", "scores/small", "scores/small_temperature", "scores/temperature"]),
        ("study mine ext", ["extra="]),
        ("study mine --dry", ["--dry-run"]),
        ("study nothing ext", []),
        ("report ", ["demo"]),
        ("reproduce runs/", [RUN, OTHER]),
        ("reproduce runs/demo/attention=n", [OTHER]),
        (f"translate {RUN} runs/demo/attention=n", [OTHER]),
        (f"translate {RUN} search.wid", ["search.width="]),
        (f"evaluate {RUN} search=gre", ["search=greedy"]),
        (f"evaluate {RUN} metrics=com", ["metrics=comet", "metrics=common"]),
        (f"evaluate {RUN} metrics=comet metrics.comet.pr", ["metrics.comet.program="]),
        (f"translate {RUN} metrics=com", []),
        (f"translate {RUN} search/length_penalty=g", ["search/length_penalty=gnmt"]),
        (f"translate {RUN} attention=do", []),
        ("forecast runs/demo/attention=d", [RUN]),
        ("compare runs/demo/attention=d", ["runs/demo/attention=dot", RUN]),
        (f"draw heatmaps {RUN} runs/demo/attention=n", [str(Path(OTHER).parent), OTHER]),
        (f"align {RUN} --reverse runs/demo/attention=n", [OTHER]),
        ("trian x", []),
    ],
)
def test_words_are_completed(line: str, expected: list[str], folders: Path) -> None:
    assert completed(line) == expected


def test_every_option_of_a_group_is_offered(folders: Path) -> None:
    for group in ("attention", "decoder", "attention/window", "logger"):
        assert completed(f"train {group}=") == [f"{group}={name}" for name in options(group)]
    offered = completed("train ")
    groups = [folder.name for folder in CONF.iterdir() if folder.is_dir() and folder.name != "hydra"]
    assert [group for group in groups if f"{group}=" not in offered] == []
    assert {"seed=", "model.", "attention/"} <= {*offered}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_understands_its_script(shell: str, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("completion", shell) == 0
    printed = capsys.readouterr().out
    assert printed == script(shell, COMPLETION)
    assert get_completion_class(shell) is SHELLS[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    checked = subprocess.run([shell, "-n"], input=printed, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_script_is_by_default_that_of_ones_own_shell(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, shell in {"/usr/bin/zsh": "zsh", "": "bash"}.items():
        monkeypatch.setenv("SHELL", path)
        assert cli("completion") == 0
        assert capsys.readouterr().out == script(shell, COMPLETION)
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert cli("completion") == 2
    assert "no completion for tcsh: name one of bash, zsh, fish" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words", "expected"),
    [
        ("attnlab tra", ["attnlab", "tra"], ["train", "translate"]),
        # Readline breaks words at the equals sign, and replaces what comes after it.
        ("attnlab train attention=none,dot_", ["attnlab", "train", "attention", "=", "none,dot_"], ["none,dot_learned_scale"]),
        ("attnlab train attention/history=", ["attnlab", "train", "attention/history", "="], options("attention/history")),
        ("attnlab train model.drop", ["attnlab", "train", "model.drop"], ["model.dropout="]),
        ("attnlab train seed", ["attnlab", "train", "seed"], ["seed="]),
        ("attnlab reproduce runs/demo/attention=n", ["attnlab", "reproduce", "runs/demo/attention", "=", "n"], [OTHER[20:]]),
    ],
)
def test_bash_completes(line: str, words: list[str], expected: list[str], folders: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    (folders / "bin").mkdir()
    program = folders / "bin" / "attnlab"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m attnlab "$@"\n')
    program.chmod(0o755)
    quoted = " ".join(f"'{word}'" for word in words)
    code = (
        f"{script('bash', COMPLETION)}\n"
        "compopt() { :; }\n"  # which is for a real Tab key
        f"COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}\n"
        '_attnlab_completion attnlab; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, env=environment)
    assert (done.stdout.split(), done.stderr) == (expected, "")


@pytest.mark.parametrize(
    ("shell", "question", "answer"),
    [
        (
            "zsh",
            {"COMP_WORDS": "attnlab train attention=none,dot_", "COMP_CWORD": "2"},
            "plain\nattention=none,dot_learned_scale\n_\n",
        ),
        ("fish", {"COMP_WORDS": "attnlab train seed", "COMP_CWORD": "seed"}, "plain,seed=\n"),
        ("tcsh", {"COMP_WORDS": "attnlab tra", "COMP_CWORD": "1"}, ""),
        ("bash", {}, ""),
    ],
)
def test_a_question_of_a_shell_is_answered_and_nothing_else_is_said(
    shell: str,
    question: dict[str, str],
    answer: str,
    folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("COMP_WORDS", raising=False)
    for name, value in {COMPLETION: f"{shell}_complete", **question}.items():
        monkeypatch.setenv(name, value)
    assert main() == int(not answer)
    assert capfd.readouterr() == (answer, "")
