"""Models that are exported: they do what their runs do, their cards say what their runs say, and nothing else leaves."""

import json
import re
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import attnlab
from attnlab.config import compose, settle
from attnlab.errors import UserError
from attnlab.runs.folder import RunFolder
from attnlab.runs.sharing import export
from attnlab.runs.sharing.card import describe
from attnlab.runs.sharing.paths import shorten_paths
from commands import OF_ANY_TASK, TINY, Cli, cli, runs
from conftest import CONF, options

__all__ = ["cli", "runs"]

SOURCES = ["The old man runs .", "", "The woman who sings sees Xanthippe .", "über xyzzy"]
FILES = ["README.md", "config.yaml", "digests.json", "result.json", "task.json", "weights.safetensors"]


def read_card(folder: Path) -> tuple[dict[str, Any], str]:
    """Return front matter and text of a card."""
    _, front, text = re.split(r"^---\n", (folder / "README.md").read_text(encoding="utf-8"), maxsplit=2, flags=re.M)
    return yaml.safe_load(front), text


@pytest.mark.parametrize("name", ["plain-1", "copying-1", "unknown-1"])
def test_an_exported_model_translates_as_its_run_does(name: str, runs: dict[str, Path], tmp_path: Path) -> None:
    made = export(runs[name], tmp_path / "made")
    assert sorted(path.name for path in made.path.iterdir()) == FILES
    assert made.is_whole()
    assert "num_workers" not in made.read_config()["batches"], "which decides no number"
    ours, theirs = attnlab.load(runs[name]).n_best(SOURCES), attnlab.load(made.path).n_best(SOURCES)
    for own, other in zip((p for found in ours for p in found), (p for found in theirs for p in found), strict=True):
        assert (own.text, own.tokens, own.score, own.log_probability) == (
            other.text,
            other.tokens,
            other.score,
            other.log_probability,
        )
        assert torch.equal(own.weights, other.weights)


def test_the_card_says_what_the_result_says(runs: dict[str, Path], tmp_path: Path) -> None:
    made = export(runs["plain-1"], tmp_path / "made", licence="cc-by-4.0").path
    result = json.loads((runs["plain-1"] / "result.json").read_text())
    card, text = read_card(made)
    assert card["language"] == ["en", "de"]
    assert card["license"] == "cc-by-4.0"
    assert card["library_name"] == "attnlab"
    assert card["datasets"] == ["grammar"]
    assert "translation" in card["tags"]
    ((name, results),) = [(model["name"], model["results"]) for model in card["model-index"]]
    assert name == "made"
    assert [one["dataset"]["split"] for one in results] == list(result["tests"])
    for one in results:
        assert one["task"]["type"] == "translation"
        assert one["dataset"]["args"]["fingerprint"] == result["data"]
        told = result["tests"][one["dataset"]["split"]]["metrics"]
        assert {"bleu", "loss"} <= {figure["type"] for figure in one["metrics"]}
        assert {"bleu", "loss"} <= {figure["type"] for figure in one["metrics"] if "low" in figure["args"]}
        for figure in one["metrics"]:
            assert figure["value"] == told[figure["type"]]["value"]
            assert figure["args"].get("signature", "") == told[figure["type"]]["signature"]
            if "low" in figure["args"]:  # there is no interval where one example alone adds anything
                assert figure["args"]["low"] <= figure["args"]["high"]
    assert f"{result['parameters']:,} parameters" in text
    bleu = result["tests"]["test"]["metrics"]["bleu"]
    assert f"| BLEU | {bleu['value']:.2f} [" in text
    assert f"`{bleu['signature']}`" in text
    assert "train 600, val 16, test 16, test_long 8" in text
    assert f"torch {version('torch')}" in text
    assert "score=Additive(" in text
    assert "No licence" not in text
    other, text = read_card(export(runs["plain-1"], tmp_path / "other").path)
    assert "license" not in other
    assert "No licence" in text


@pytest.mark.exhaustive
def test_the_intervals_are_those_of_an_evaluation(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card, _ = read_card(export(runs["plain-1"], tmp_path / "made").path)
    assert cli("evaluate", str(tmp_path / "made"), "--test", "test") == 0  # whose data is generated
    told = json.loads((tmp_path / "made" / "evaluations" / "default.json").read_text())["tests"]["test"]["metrics"]
    for figure in card["model-index"][0]["results"][0]["metrics"]:
        own = told[figure["type"]]
        found = {"value": figure["value"], **{end: figure["args"][end] for end in ("low", "high") if end in figure["args"]}}
        known = {name: own[name] for name in ("value", "low", "high") if own[name] is not None}
        assert found == pytest.approx(known, rel=1e-6)  # threads may round otherwise


def test_a_run_that_is_not_finished_whole_and_here_is_refused(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*words: object) -> str:
        assert cli("export", *map(str, words)) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    run = runs["none-1"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("")
    assert "full is not empty: name a new folder" in refused(run, "full")
    assert "file is there, and no empty folder" in refused(run, "file")
    assert "nowhere holds no run: name the folder of a finished run" in refused("nowhere", "made")
    assert "full holds no run" in refused("full", "made")
    assert "--license names none" in refused(run, "made", "--license", " ")

    begun = Path(shutil.copytree(run, tmp_path / "begun"))
    for name in ("result.json", "digests.json"):
        (begun / name).unlink()
    assert "begun holds a run that is not finished (interrupted)" in refused(begun, "made")
    (begun / "error.txt").write_text("ValueError")
    assert "is not finished (failed)" in refused(begun, "made")

    damaged = Path(shutil.copytree(run, tmp_path / "damaged"))
    (damaged / "task.json").write_text("{}")
    assert "task.json is not what the run wrote: start the run again" in refused(damaged, "made")
    assert f"{run}/made lies in the folder of the run: name one elsewhere" in refused(run, run / "made")

    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    RunFolder(run).copy_results(RunFolder(unpacked))
    assert "results without a model" in refused(unpacked, "made")
    assert not (tmp_path / "made").exists()
    assert [path.name for path in tmp_path.glob(".export-*")] == []

    (tmp_path / "empty").mkdir()
    assert cli("export", str(run), "empty") == 0
    assert "was exported itself" in refused("empty", "made")
    assert cli("reproduce", "empty") == 2
    assert "was exported to be shared" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_no_folder_of_this_machine_leaves(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither of the data nor of the cache; and what needs the data says in one line that it is not there."""
    corpus = tmp_path / "home" / "anna" / "corpus"
    corpus.mkdir(parents=True)
    for split in ("train", "val", "test"):
        for language in ("en", "de"):
            lines = "".join(f"a b c {split} {number}\n" for number in range(12))
            (corpus / f"{split}.{language}").write_text(lines)
    text = ["data=text", "data.source=en", "data.target=de", f"data.train={corpus}/train", f"data.val={corpus}/val"]
    text += [f"data.tests={{test: {corpus}/test}}", f"cache_dir={tmp_path}/home/anna/cache", "logger=none"]
    small = [word for word in TINY if not word.startswith("data.")]
    assert cli("train", *text, *small) == 0
    (run,) = tmp_path.glob("runs/train/*/seed=1")
    assert cli("export", str(run), "made") == 0
    for path in (tmp_path / "made").iterdir():
        assert b"anna" not in path.read_bytes(), path
        assert str(tmp_path).encode() not in path.read_bytes(), path
    card, told = read_card(tmp_path / "made")
    assert "datasets" not in card  # a corpus of one's own has no name
    assert "train=train, val=val, tests={test: test}" in told
    shutil.rmtree(tmp_path / "home")
    capsys.readouterr()
    (tmp_path / "in.txt").write_text("a b c\n")
    assert cli("translate", "made", "--input", "in.txt") == 0
    assert cli("evaluate", "made") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"no file train\.en .* made was exported without its data: put it there, or name --files", line)
    assert cli("evaluate", "made", "--files", "in.txt", "in.txt", "--bootstrap", "1") == 0
    assert cli("export", str(run), "later") == 0
    assert "those of the training set could not be counted" in read_card(tmp_path / "later")[1]


def test_paths_are_told_apart_by_their_last_parts() -> None:
    config = {"a": "/x/train/part", "b": ["/x/test/part", "~/y", "../z/w"], "c": "val/bleu", "d": "corpus/train", "e": 3}
    config |= {"url": "https://host/data/", "long": {"f": "ftp/../../up"}}
    assert shorten_paths(config) == {
        "a": "train/part",
        "b": ["test/part", "y", "z/w"],
        "c": "val/bleu",
        "d": "corpus/train",
        "e": 3,
        "url": "https://host/data/",
        "long": {"f": "ftp/up"},
    }
    assert shorten_paths({"root": "/home/anna/multi30k", "home": "~"}) == {"root": "multi30k", "home": "~"}
    assert shorten_paths({"a": "/x", "b": "../x"}) == {"a": "x", "b": "x"}


def test_a_node_is_described_as_a_call() -> None:
    node = {"_target_": "a.b.Dot", "_partial_": True, "size": None, "of": [{"_target_": "c.D"}, {"x": 1.5}], "odd": "a`b\nc"}
    assert describe(node) == "Dot(size=None, of=[D(), {x: 1.5}], odd=a'b c)"


@pytest.mark.exhaustive
@pytest.mark.parametrize("task", options("task"))
def test_every_task_is_exported(task: str, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = settle(compose("train", [f"task={task}"], [CONF]).config)
    small = [word for word in OF_ANY_TASK if not word.startswith("data.") or word.split("=")[0][5:] in config["data"]]
    assert cli("train", f"task={task}", *small, "logger=none") == 0
    (run,) = tmp_path.glob("runs/train/*/seed=1")
    assert cli("export", str(run), "made") == 0
    card, text = read_card(tmp_path / "made")
    result = RunFolder(run).read_result()
    assert {one["task"]["type"] for model in card["model-index"] for one in model["results"]} == {task}
    assert card["datasets"] == [next(iter(card["model-index"][0]["results"]))["dataset"]["type"]]
    assert all(f"| {test} |" in text for test in list(result.tests)[-1:])
    test = next(iter(result.tests))
    ours, theirs = (attnlab.load(folder) for folder in (run, tmp_path / "made"))
    examples = [predictor.task.examples(test) for predictor in (ours, theirs)]
    found = [
        [one.prediction.text for one in predictor.examine(own, "test")]
        for predictor, own in zip((ours, theirs), examples, strict=True)
    ]
    assert found[0] == found[1] == RunFolder(run).read_hypotheses(test)
    capsys.readouterr()
    assert cli("evaluate", "made", "--bootstrap", "1") == 0
    (command, read, written) = re.findall(r"^attnlab (\w+) made < (\S+) > (\S+)$", text, re.M)[0]
    lines = list(examples[1].sources[:2])
    if command == "forecast":
        names = theirs.task.state()["names"]
        lines = [",".join(names), *(",".join("0.5" for _ in names) for _ in range(config["data"]["look_back"]))]
    Path(read).write_text("".join(f"{line}\n" for line in lines))
    assert cli(command, "made", "--input", read, "--output", written) == 0
    assert Path(written).read_text()


@pytest.mark.exhaustive
def test_classes_of_ones_own_are_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ownscores.py").write_text("from attnlab.attention.scores import Additive\nclass Own(Additive):\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli("train", *TINY, "logger=none", "attention.score._target_=ownscores.Own") == 0
    (run,) = tmp_path.glob("runs/train/*/seed=1")
    assert cli("export", str(run), "made") == 2
    assert "builds ownscores.Own, which is no component of attnlab" in capsys.readouterr().err
    assert cli("export", str(run), "made", "--trust") == 0
    told = read_card(tmp_path / "made")[1]
    assert "the module `ownscores`" in told
    assert "attnlab translate made --trust" in told
    with pytest.raises(UserError, match="add --trust"):
        attnlab.load(tmp_path / "made")
    assert attnlab.load(tmp_path / "made", trust=True).models


def test_the_card_of_a_run_that_was_cut_short_says_so(runs: dict[str, Path], tmp_path: Path) -> None:
    run = RunFolder(shutil.copytree(runs["plain-1"], tmp_path / "short"))
    said = "It was cut short, and its figures are none of the whole data: `trainer.limit_test_batches=2`."
    assert said not in read_card(export(run.path, tmp_path / "whole").path)[1]
    config = run.read_config()
    run.write_config({**config, "trainer": {**config["trainer"], "limit_test_batches": 2}})
    run.digests_file.unlink()
    assert said in read_card(export(run.path, tmp_path / "made").path)[1]
