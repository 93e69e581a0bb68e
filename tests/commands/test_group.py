"""The command line as a whole: help, mistakes in what is typed, and exit statuses."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest

from attnlab import commands
from attnlab.commands import main, verbs
from attnlab.errors import BusyError, StoppedError, UserError
from attnlab.runs import reproduction
from commands import FEW_PAIRS, Cli, cli
from conftest import ROOT
from studies.folders import write_study

__all__ = ["cli"]

VERBS = sorted(path.stem for path in (ROOT / "src" / "attnlab" / "commands").glob("[!_]*.py"))
HEAVY = {"torch", "lightning", "spacy", "wandb", "matplotlib", "numpy", "scipy", "sacrebleu"}


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["train", "--cfg", "job", "--resolve"], *([verb, "--help"] for verb in VERBS)],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    assert "attn" in run_without(HEAVY, *arguments)


def test_a_report_imports_no_torch(tmp_path: Path) -> None:
    assert "BLEU" in run_without({"torch", "lightning", "spacy", "matplotlib"}, "report", str(write_study(tmp_path / "study")))


def run_without(heavy: set[str], *arguments: str) -> str:
    """Run a command that imports none of some modules, and return what it prints."""
    code = (
        "import sys; from attnlab.commands import main\n"
        "try: status = main()\n"
        "except SystemExit as stop: status = stop.code or 0\n"
        f"assert not {heavy!r} & set(sys.modules), {heavy!r} & set(sys.modules)\n"
        "sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_help_is_there_at_once_and_lists_every_verb() -> None:
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)  # of the processor, which others may be busy on
        shown = subprocess.run([sys.executable, "-m", "attnlab", "--help"], capture_output=True, text=True, check=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.5
    lines = shown.splitlines()
    assert [verb for verb in VERBS if not any(line.startswith(f"  {verb} ") and line.endswith(".") for line in lines)] == []
    assert main([]) == main(["help"]) == main(["--help"]) == 0


@pytest.mark.exhaustive
def test_the_help_of_training_is_hydras(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    for flags in (["--help"], ["-h", "attention=dot", "-m"]):
        assert cli("train", *flags) == 0
        shown = capsys.readouterr().out
        assert "attention/score: additive, " in shown
        assert "embedding_size: 128" in shown
    assert "attnlab.attention.scores.Dot" in shown


@pytest.mark.few(1)
@pytest.mark.parametrize("option", [["--hydra-help"], ["--info", "searchpath"], ["--cfg", "hydra", "-p", "hydra.launcher"]])
def test_hydras_own_options_are_handed_on(option: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attnlab", "train", *option]  # some of them change how everything is logged
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "hydra" in done.stdout.lower()


MISTAKES = {
    "verb": (["trian"], "no command 'trian', did you mean 'train': see attnlab --help"),
    "no verb": (["xyzzy"], "no command 'xyzzy', there is align, calibrate, compare, completion, draw, evaluate"),
    "option of all": (["--verbose"], "no such option --verbose"),
    "option": (["train", "--multi-run"], "no such option --multi-run, did you mean --multirun: see attnlab train"),
    "option like an earlier one": (["align", "--links-form"], "no such option --links-form, did you mean --links-from:"),
    "close option": (
        ["translate", "x", "--nbest", "3"],
        "no such option --nbest, did you mean --n-best: see attnlab translate",
    ),
    "no value": (["translate", "x", "--n-best"], "requires an argument: see attnlab translate --help"),
    "not a number": (["translate", "x", "--n-best", "many"], "'many' is not a valid integer"),
    "too small": (["translate", "x", "--batch-size", "0"], "0 is not in the range x>=1"),
    "too few samples": (["compare", "a", "b", "--samples", "99"], "99 is not in the range x>=100"),
    "no run": (["translate"], "missing argument 'RUN..."),
    "no runs": (["compare", "a"], "missing argument 'SYSTEM...': see attnlab compare --help"),
    "no report": (["report"], "missing argument 'NAME': see attnlab report --help"),
    "no reproduction": (["reproduce"], "missing argument 'RUN': see attnlab reproduce --help"),
    "no files": (["align", "run"], "missing option '--files': see attnlab align --help"),
    "what": (["draw", "cats", "run", "--output", "x.png"], "'cats' is not one of 'heatmaps', 'lengths', 'curves'"),
    "shell": (["completion", "tcsh"], "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    "two shown": (["train", "--cfg", "job", "--info", "all"], "--cfg and --info each show something else"),
    "no part": (["train", "--cfg", "job", "-p", "nope"], "package 'nope' not found in config"),
    "no seeds": (["train", "-m", "seed=range(1,1)"], "the sweep has no runs"),
    "empty name": (["report", ""], "a study has a name"),
    "run's folder": (["train", "hydra.run.dir=/dev/null"], "cannot write the run's folder: /dev/null: file exists"),
    "folder to read": (["translate", "x", "--input", "."], ". is a folder: name a file"),
    "config": (["train", "--cfg", "jobs"], "'jobs' is not one of 'job', 'hydra', 'all'"),
    "folder": (["train", "-cd", "nowhere"], "directory 'nowhere' does not exist"),
    "study's name": (["study", "seed=1"], "name a study first"),
    "only said": (["study", "--dry-run"], "name a study first"),
    "only kept": (["study", "--keep-results"], "name a study first"),
    "study": (["study", "nothing"], "no study 'nothing'"),
    "near study": (["study", "score"], "did you mean 'scores'"),
    "report": (["report", "nowhere"], "no folder runs/nowhere"),
    "empty report": (["report", "."], "no run below"),
    "reproduction": (["reproduce", "."], "holds no finished run"),
    "sweep": (["train", "--dry-run", "seed=1,2"], "several values of a key are a sweep: add -m"),
    "devices": (
        ["train", *FEW_PAIRS, "trainer.accelerator=cpu", "trainer.devices=1000"],
        "trainer.devices=1000 starts as many processes",
    ),
    "two names": (["train", "-m", "name=a,b"], "name is what a whole sweep is called: it has one value"),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistaken_command_ends_in_one_line(name: str, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = MISTAKES[name]
    assert cli(*arguments) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("attnlab: ")
    assert message.lower() in line.lower()
    assert captured.out == ""


ENDINGS: dict[str, tuple[BaseException, int, str]] = {
    "mistake": (UserError("not so"), 2, "attnlab: not so\n"),
    "busy": (BusyError("busy"), 1, "attnlab: busy\n"),
    "stopped": (StoppedError("stopped; go on"), 130, "attnlab: stopped; go on\n"),
    "interrupted": (KeyboardInterrupt(), 130, "attnlab: stopped\n"),
    "forbidden": (PermissionError(13, "Permission denied", "/x"), 2, "attnlab: /x: Permission denied\n"),
    "bug": (RuntimeError("out of luck"), 1, "attnlab: RuntimeError: out of luck\n"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_what_ends_a_command_decides_its_status(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error, status, told = ENDINGS[name]

    @click.command()
    def ending() -> None:
        raise error

    monkeypatch.setattr(commands.Verbs, "get_command", lambda *_: ending)
    assert main(["train"]) == status
    captured = capsys.readouterr().err
    assert captured.endswith(told)
    assert ("Traceback" in captured) == (name == "bug")


def test_a_folder_that_is_gone_is_told(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert cli("study") == 2
    assert capsys.readouterr().err == "attnlab: the working folder is gone: change to one that exists\n"


@pytest.mark.parametrize("shown", ["--cfg", "--info"])
def test_a_reader_that_has_seen_enough_is_no_mistake(shown: str, tmp_path: Path) -> None:
    code = "import sys; from attnlab.commands import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "train", shown, "all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_a_verb_is_a_module_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shout.py").write_text("import click\n\n@click.command()\ndef command() -> int:\n    return 7\n")
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    with verbs.make_context("attnlab", [], resilient_parsing=True) as context:
        assert "shout" in verbs.list_commands(context)
    assert main(["shout"]) == 7


def test_python_runs_the_package() -> None:
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run([sys.executable, "-m", "attnlab", "--version"], capture_output=True, text=True, env=environment)
    assert done.stdout.startswith("attnlab ")


def test_what_nobody_can_tell_is_not_told(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison that was logged nowhere, and the figures that another process of a distributed run compares."""
    write_study(tmp_path / "runs" / "quiet", seeds=(1,), states={})
    assert cli("report", "quiet") == 0
    assert cli("report", "quiet", "--wandb") == 2
    assert "was logged to Weights & Biases" in capsys.readouterr().err
    assert (tmp_path / "runs" / "quiet" / "report.html").is_file()
    monkeypatch.setattr(reproduction, "reproduce", lambda run: (0, [], []))
    assert cli("reproduce", "anything") == 0
    assert capsys.readouterr().out == ""


def test_a_question_and_an_error_are_shown_as_they_are(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "odd.yaml").write_text("name: odd\nstudy: {question: '[/b] Which :smile:?'}\n")
    assert cli("study") == 0
    assert "[/b] Which :smile:?" in capsys.readouterr().out
    assert cli("report", "\x1b]0;owned\x07") == 2
    told = capsys.readouterr().err
    assert "\\x1b" in told
    assert not {"\x1b", "\x07"} & set(told)
