"""What README.md, the pages in docs/ and experiments/README.md tell a newcomer to do works as it stands there."""

import io
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from attnlab import config
from attnlab.commands import verbs
from attnlab.evaluation.evidence import Evidence
from attnlab.studies.calibration import tell_published
from attnlab.studies.files import list_studies
from commands import OF_ANY_TASK, TINY, Cli, cli
from conftest import CONF, ROOT, exhaustive_but
from evaluation.made import predictions
from pages import MANUAL, PAGES, blocks, write_block

__all__ = ["cli"]

STUDIES = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
COMMANDS = [path.stem for path in (ROOT / "src" / "attnlab" / "commands").glob("*.py") if not path.stem.startswith("_")]


EXAMPLES = re.findall(r"^# (my\w+\.py|myconf/\S+\.yaml)$", "".join(blocks("python") + blocks("yaml")), re.M)


def shown_commands(text: str = MANUAL) -> list[str]:
    """Every command line of attnlab on a page, without its comment."""
    lines = "".join(blocks("", text)).replace("\\\n", " ").splitlines()
    shown = [line.split(" #")[0].strip() for line in lines if line.startswith(("attnlab ", "PYTHONPATH=. attnlab "))]
    return list(dict.fromkeys(shown))


@pytest.mark.exhaustive
def test_a_metric_of_ones_own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_block("mymetrics.py", tmp_path)
    write_block("myconf/metrics/mine.yaml", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (command,) = [shlex.split(command) for command in shown_commands() if "train -cd myconf -m metrics=mine" in command]
    assert cli(*command[2:], *TINY, "logger=none") == 0
    header = next(tmp_path.glob("runs/train/comparison.md")).read_text().splitlines()[2]
    assert "test first word |" in header


@pytest.mark.exhaustive
def test_a_task_of_ones_own(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in ("mytask.py", "myconf/task/addition.yaml", "myconf/data/sums.yaml"):
        write_block(file, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (command,) = [shlex.split(command) for command in shown_commands() if "task=addition" in command]
    tiny = [override for override in OF_ANY_TASK if not override.startswith("data.")]
    assert cli(*command[2:], *tiny, "logger=none", "data.size=5", "data.train_size=50") == 0
    _, run = sorted(tmp_path.glob("runs/sums/attention=*/*/"), reverse=True)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"12+30\n"), isatty=lambda: False))
    assert cli("translate", "--trust", str(run)) == 0
    assert set(capsys.readouterr().out.splitlines()[-1]) <= set("0123456789+")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"12-30\n"), isatty=lambda: False))
    assert cli("translate", "--trust", str(run)) == 2
    assert "line 1: '12-30' is no sum, which is like 12+30" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_problem_of_ones_own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("myproblem.py", "myconf/data/every_second.yaml"):
        write_block(file, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (command,) = [shlex.split(command) for command in shown_commands() if "data=every_second" in command]
    tiny = [override.replace("data.", "+data.") for override in OF_ANY_TASK]
    assert cli(*command[2:], *tiny, "logger=none") == 0
    assert len(list(tmp_path.glob("runs/second/attention=*/*/result.json"))) == 2


def test_a_metric_of_another_package(tmp_path: Path) -> None:
    """What bert-score 0.3.13 prints for two sentences is read."""
    write_block("myconf/metrics/bertscore.yaml", tmp_path)
    node = config.amend("metrics", {"metrics": {}}, ["metrics=bertscore"], [tmp_path / "myconf"])["bertscore"]
    printed = tmp_path / "bert-score"
    printed.write_text("#!/bin/sh\nprintf 'model P: 0.5 R: 0.5 F1: 0.5\\n1.0\\t0.9\\t0.5\\n0.1\\t0.2\\t0.25\\n'\n")
    printed.chmod(0o755)
    metric = config.build({**node, "program": str(printed)}, "bertscore")
    statistics = metric.statistics(Evidence(predictions(["a", "b"]), ["c", "d"], [], sources=["e", "f"]))
    assert statistics.tolist() == [[0.5, 1.0], [0.25, 1.0]]


@pytest.mark.exhaustive
def test_a_callback_of_ones_own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_block("mycallbacks.py", tmp_path)
    write_block("myconf/callbacks/norm.yaml", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (command,) = [shlex.split(command) for command in shown_commands() if "callbacks=norm" in command]
    assert cli(*command[2:], *TINY, "logger=none") == 0
    (row,) = next(tmp_path.glob("runs/train/*/seed=1/metrics.jsonl")).read_text().splitlines()
    assert json.loads(row)["train/gradient_norm"] > 0


@pytest.mark.exhaustive
def test_a_logger_of_lightnings_own(cli: Cli, tmp_path: Path) -> None:
    write_block("myconf/logger/table.yaml", tmp_path)
    (command,) = [shlex.split(command) for command in shown_commands() if "logger=table" in command]
    assert cli(*command[1:], *TINY) == 0
    assert "val/loss" in next(tmp_path.glob("logs/table/*/metrics.csv")).read_text()


@pytest.mark.exhaustive
def test_the_numbers_are_sorted(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [shlex.split(command)[1:] for command in shown_commands(PAGES["tasks"]) if "task=pointing" in command]
    assert len(commands) == 2
    assert cli(*commands[0], *OF_ANY_TASK, "logger=none") == 0
    assert cli(*commands[1], "--dry-run") == 0
    capsys.readouterr()
    (run,) = tmp_path.glob("runs/train/*/seed=1")
    (tmp_path / "numbers.txt").write_text("0.5 0.25 0.75\n")
    assert cli("translate", str(run), "--input", "numbers.txt") == 0
    positions = capsys.readouterr().out.split()
    assert positions
    assert set(positions) <= {"0", "1", "2"}


def test_a_trained_model_in_python(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("train", *TINY, "logger=none", "name=demo", "attention=additive") == 0
    (run,) = tmp_path.glob("runs/demo/*/seed=1")
    (tmp_path / "runs" / "demo" / "attention=additive").symlink_to(run.parent)
    capsys.readouterr()
    exec(next(block for block in blocks("python", PAGES["using"]) if "attnlab.load" in block), {})
    assert "torch.Size([" in capsys.readouterr().out


def test_every_command_that_is_shown_is_one() -> None:
    """Its words are parsed; whether files and runs are there is not asked."""
    assert len(shown_commands()) > 60
    for command in shown_commands():
        words = [word if word != "myconf" else str(CONF) for word in shlex.split(re.split("[<|]", command)[0])]
        name, *rest = words[words.index("attnlab") + 1 :]
        with verbs.make_context("attnlab", [name, *rest]) as context:
            verb = verbs.get_command(context, name)
            assert verb is not None, command
            verb.make_context(name, rest, parent=context)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "command",
    exhaustive_but(shown_commands(PAGES["README"] + PAGES["training"]), [c for c in shown_commands() if "attnlab train" in c]),
)
def test_every_config_that_is_shown_composes(
    command: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in EXAMPLES:
        write_block(name, tmp_path)
    words = shlex.split(command.removeprefix("PYTHONPATH=. "))[1:]
    assert cli(*words, *([] if "--help" in words else ["--cfg", "job"])) == 0
    assert "optimizer:" in capsys.readouterr().out


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", [command for command in shown_commands() if "glob(" in command])
def test_every_glob_that_is_shown_makes_a_sweep(command: str, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(*shlex.split(command)[1:], "--dry-run") == 0
    assert "to do" in capsys.readouterr().out


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", [command for command in shown_commands(PAGES["tutorials"]) if "train" in command])
def test_every_tutorial_runs(command: str, cli: Cli) -> None:
    others = [override for override in OF_ANY_TASK if override.startswith(("data.train", "trainer.", "callbacks."))]
    small = others if "task=" in command else TINY
    assert cli(*shlex.split(command)[1:], *small, "logger=none") == 0


@pytest.mark.exhaustive
def test_the_first_hour(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All its commands in their order, with small models."""
    options = ("attention/score/distance", "attention/distance")
    for name in (
        "myscores.py",
        *(f"myconf/{option}.yaml" for option in options),
        "experiments/coverage.yaml",
        "experiments/pair.yaml",
    ):
        write_block(name, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "corpus").mkdir()
    for name in ("train.en", "train.fr", "val.en", "val.fr", "test.en", "test.fr"):
        (tmp_path / "corpus" / name).write_text("".join(f"a b c {number}\n" for number in range(12)))
    for command in shown_commands(PAGES["first_hour"]):
        words = shlex.split(command.removeprefix("PYTHONPATH=. "))[1:]
        text = [override for override in TINY if not {"data=text", "pair"} & {*words} or not override.startswith("data.")]
        assert cli(*words, *([*text, "logger=none"] if words[0] in ("train", "study") else [])) == 0, command
        if "name=hour" in words:  # without the sizes that were added
            (run,) = tmp_path.glob("runs/hour/*/seed=1")
            (tmp_path / "runs" / "hour" / "attention=additive").symlink_to(run.parent)
    capsys.readouterr()
    (tmp_path / "line.txt").write_text("The old man ran to the station today .\n")
    assert cli("translate", "runs/hour/attention=additive/seed=1", "--input", "line.txt") == 0
    assert (tmp_path / "weights.svg").stat().st_size > 1000


def test_every_command_is_listed() -> None:
    assert {command for command in COMMANDS if f"attnlab {command}" not in MANUAL} == set()


def test_every_option_and_study_is_listed() -> None:
    for group in (
        "task",
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
        "head",
        "auxiliary",
        "search",
        "metrics",
        "optimizer",
        "scheduler",
        "callbacks",
        "trainer",
        "logger",
        "hydra/launcher",
    ):
        for path in (CONF / group).glob("*.yaml"):
            assert f"`{path.stem}`" in PAGES["training"], path
    for study in list_studies([ROOT / "experiments"]):
        folder, _, form = study.name.partition("/")
        assert f"`{folder}`" in STUDIES, study.name
        told = (ROOT / "experiments" / folder / "README.md").read_text(encoding="utf-8") if form else ""
        assert form in ("", "full") or re.search(rf"^attnlab study {study.name}( |$)", told, re.MULTILINE), study.name


@pytest.mark.exhaustive
def test_every_mistake_shown_is_what_is_said(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"\$ attnlab (.*)\n((?:attnlab: .*\n)(?:[^$`].*\n)*)", MANUAL)
    assert len(shown) == 2
    for command, message in shown:
        assert cli(*command.split(), "logger=none") == 2
        assert capsys.readouterr().err.split() == message.split()


@pytest.mark.exhaustive
def test_a_study_of_ones_own(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.yaml").write_text(blocks("yaml", STUDIES)[0])
    monkeypatch.setenv("COLUMNS", "200")
    assert cli("study", "mine", "--dry-run") == 0
    assert "6 runs" in capsys.readouterr().out


def test_nothing_of_an_older_version_is_mentioned() -> None:
    """The left column of the changelog's table of names."""
    renamed = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("### Renamed")[2].partition("###")[0]
    old = set(re.findall(r"(?:datamodule|training|callbacks)\.[\w.]+", " ".join(row.split("|")[1] for row in table(renamed))))
    assert len(old) > 8
    current = old - {"callbacks.checkpoint.monitor", "callbacks.early_stopping.monitor"}
    readmes = [ROOT / "README.md", *(ROOT / "experiments").rglob("*.md"), *(ROOT / "docs").glob("*.md")]
    for path in readmes:
        text = path.read_text(encoding="utf-8")
        assert [name for name in current if name in text] == [], path
        for name in ("attention.asks", "attention.wrapped", "attention/window=mo", "output=pointer", "--sentence"):
            assert name not in text, path


def table(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| `")]


def test_the_share_of_false_stars_is_the_measured_one() -> None:
    measured = re.findall(r"([\d.]+ %) with (\d+)", tell_published("seeds"))
    assert len(measured) == 3
    for share, seeds in measured:
        assert re.search(rf"{share}[^%]* with {seeds}\b", PAGES["studies"])
