"""What all verbs that use trained models refuse: mistakes in what is typed, and runs that are damaged, foreign or too old."""

import gzip
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import attnlab
from attnlab.commands._models import list_seeds
from attnlab.errors import UserError
from commands import Cli, cli, runs

__all__ = ["cli", "runs"]

ALIGN = ["--files", "a.en", "a.de"]

MISTAKES = {
    "no run": (["translate", "search=greedy"], "name a run"),
    "no folder": (["translate", "nowhere"], "there is no folder nowhere: name the folder of a finished run"),
    "a folder's name by half": (
        ["translate", "run/attention=x"],
        "(did you mean run/attention=x,task=copy?): name the",
    ),
    "a folder's name misspelt": (["compare", "run/atention=x,task=copy", "RUN"], "(did you mean run/attention=x,task=copy?)"),
    "the first folder misspelt": (["translate", "rum/attention=x,task=copy"], "(did you mean run/attention=x,task=copy?)"),
    "a long name": (["translate", "x" * 300], "File name too long"),
    "a file in a path": (["report", "a.en/b"], "a.en"),
    "no file": (["translate", "RUN", "--input", "nothing.txt"], "no file nothing.txt"),
    "key": (["translate", "RUN", "search.widht=3"], "no key 'widht' in 'search': did you mean 'width'?"),
    "value": (["translate", "RUN", "search.width=0"], "search.width must be a whole number, from 1 to 1000, not 0"),
    "search": (["translate", "RUN", "search=gredy"], "no option 'gredy' of search: did you mean 'greedy'?"),
    "device": (["translate", "RUN", "--device", "abacus"], "device abacus: "),
    "checkpoint": (["translate", "RUN", "--checkpoint", "first.ckpt"], "holds no first.ckpt"),
    "test set": (["evaluate", "RUN", "--test", "exam"], "no test set 'exam': there is train, val, test, test_long"),
    "label": (["evaluate", "RUN", "--label", "a/b"], "--label: 'a/b' cannot be part of a path"),
    "label with a dot": (["evaluate", "RUN", "--label", "beam.5"], "--label beam.5: the name of a test set follows a dot"),
    "no name of a checkpoint": (["translate", "RUN", "--checkpoint", ""], "a checkpoint is a file in the folder of the run"),
    "device without numbers": (["translate", "RUN", "--device", "meta"], "device meta: "),
    "nobody's folder": (["translate", "~nobody-here/x"], "there is no folder ~nobody-here/x"),
    "folder": (["translate", "RUN", "--input", "."], ". is a folder: name a file"),
    "not UTF-8": (["translate", "RUN", "--input", "a\udcff"], r"a\udcff is not UTF-8: rename the file"),
    "files": (["evaluate", "RUN", "--files", "a", "b"], "no file a"),
    "unequal files": (["evaluate", "RUN", "--files", "a.en", "one"], "a.en has 2 lines but one has 1"),
    "shift of no links": (["translate", "RUN", "--shift", "1"], "--shift says how links are read: add --alignments or --json"),
    "heads without gold": (["align", "RUN", "--files", "a", "b", "--heads"], "add --gold FILE"),
    "no file to align": (["align", "RUN", "--files", "a", "b"], "no file a"),
    "unequal files to align": (["align", "RUN", "--files", "a.en", "one"], "a.en has 2 lines but one has 1"),
    "symmetrisation": (["align", "RUN", *ALIGN, "--symmetrise", "grow"], "--symmetrise is one of intersection, union"),
    "picture's ending": (["draw", "curves", "RUN", "--output", "x.bmp"], "--output ends in .png, .svg or .pdf, not '.bmp'"),
    "metric of curves": (["draw", "curves", "RUN", "--metric", "val/blue", "--output", "x.png"], "has no metric 'val/blue'"),
    "metric of lengths": (["draw", "lengths", "RUN", "--metric", "blue", "--output", "x.png"], "has no metric 'blue'"),
    "metric of a comparison": (["compare", "RUN", "RUN", "--metric", "blue"], "has no metric 'blue': there is bleu, chrf"),
    "metric that was not measured": (["compare", "RUN", "RUN", "--metric", "ter"], "has no metric 'ter' of it"),
    "nothing to draw": (["draw", "heatmaps", "RUN", "--output", "x.png"], "add --source TEXT"),
    "one in an ensemble twice": (["translate", "RUN", "RUN"], "the same run is named twice"),
    "twice": (["draw", "curves", "RUN", "RUN", "--output", "x.png"], "the same run is named twice"),
    "links": (["draw", "heatmaps", "RUN", "--source", "a b", "--links", "9-9", "--output", "x.png"], "source position 9"),
    "no link": (["draw", "heatmaps", "RUN", "--source", "a b", "--links", "9", "--output", "x.png"], "'9' is no link"),
    "read and written": (["translate", "nowhere", "--input", "a.en", "--output", "a.en"], "--output a.en is what is read"),
    "gold written": (["align", "nowhere", *ALIGN, "--gold", "gold", "--output", "gold"], "--output gold is what is read"),
    "no folder to write to": (["translate", "nowhere", "--input", "a.en", "--output", "no/x"], "there is no folder no"),
    "no folder for a picture": (["draw", "curves", "nowhere", "--output", "no/x.png"], "there is no folder no"),
    "a folder to write to": (["translate", "nowhere", "--input", "a.en", "--output", "folder"], "is a folder"),
    "more than the beam": (["translate", "RUN", "--n-best", "9"], "search.width is 5: add search.width=9"),
    "more samples": (["translate", "RUN", "--n-best", "2", "search=sampling"], "search.samples is 1: add search.samples=2"),
    "more than one": (["translate", "RUN", "--n-best", "2", "search=greedy"], "add search=beam search.width=2"),
    "a dot for a slash": (["translate", "RUN", "search.length_penalty=gnmt"], "search"),
    "another search's": (
        ["translate", "RUN", "search=greedy", "search/length_penalty=gnmt"],
        "there is no search/length_penalty",
    ),
    "no yaml": (["translate", "RUN", "search.width=["], "a value is no YAML"),
    "no test set": (["evaluate", "RUN", "--test", ""], "no test set ''"),
    "a word": (["translate", "RUN", "test=val"], "test=val is no folder of a run, and all that can be set is search=OPTION"),
    "tests and files": (["evaluate", "RUN", "--test", "val", "--files", "a.en", "a.de"], "leave out --test, or --files"),
    "same direction": (["align", "RUN", *ALIGN, "--reverse", "RUN"], "name a run of the other direction"),
    "gold past the end": (["align", "RUN", *ALIGN, "--gold", "gold"], "gold, line 1: source position 5 is linked to"),
    "gold from 1": (["align", "RUN", *ALIGN, "--gold", "gold"], "if links count from 1, add --gold-from 1"),
    "not evaluated": (["compare", "RUN", "RUN", "--label", "no"], "has no evaluation 'no'"),
    "lengths of nothing": (["draw", "lengths", "RUN", "--label", "no", "--output", "x.png"], "has no evaluation 'no'"),
    "not finished": (["compare", ".", "."], "holds no finished run: name one, or a variant, "),
    "no folder to draw": (
        ["draw", "curves", "nope", "--output", "x.png"],
        "there is no folder nope: name that of a run or of a variant",
    ),
    "packed without saying so": (
        ["translate", "RUN", "--input", "packed"],
        "packed is packed: give it a name that ends in .gz",
    ),
    "an archive": (["translate", "RUN", "--input", "zipped"], "zipped is an archive, as a spreadsheet is: save it as text"),
    "compared with itself": (["compare", "RUN", "RUN"], "the same run is named twice"),
    "links of no attention": (["translate", "NONE", "--input", "a.en", "--alignments"], "this model has none"),
    "test set of a comparison": (
        ["compare", "RUN", "RUN", "--test", "exam"],
        "no test set called 'exam': there is test, test_long",
    ),
}


@pytest.mark.few(10)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_in_one_line(
    name: str, runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, message = MISTAKES[name]
    (tmp_path / "a.en").write_text("The old man runs .\nThe woman sings .\n")
    (tmp_path / "a.de").write_text("Der alte Mann rennt .\nDie Frau singt .\n")
    (tmp_path / "one").write_text("Der alte Mann rennt .\n")
    (tmp_path / "gold").write_text("1-1 2-2 3-3 4p4 5-5\n1-1 2-2 3-3 4-4\n")
    (tmp_path / "run" / "attention=x,task=copy").mkdir(parents=True)
    (tmp_path / "packed").write_bytes(gzip.compress(b"The old man runs .\n"))
    (tmp_path / "zipped").write_bytes(b"PK\x03\x04\x14\x00 \n\x80")
    (tmp_path / "folder").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    named = {"RUN": str(runs["plain-1"]), "NONE": str(runs["none-1"])}
    assert cli(*(named.get(word, word) for word in arguments)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attnlab: ")
    assert message in line
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def copy(run: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.yaml", "task.json", "best.ckpt", "weights.safetensors"):
        (folder / name).write_bytes((run / name).read_bytes())
    return folder


def test_foreign_runs_are_refused_in_one_line(runs: dict[str, Path], tmp_path: Path) -> None:
    cut = copy(runs["plain-1"], tmp_path / "cut")
    (cut / "best.ckpt").write_bytes((cut / "best.ckpt").read_bytes()[:1000])
    with pytest.raises(UserError, match=r"best.ckpt is damaged, or no checkpoint of attnlab") as refusal:
        attnlab.load(cut, checkpoint="best.ckpt")
    assert "\n" not in str(refusal.value)
    (cut / "weights.safetensors").write_bytes((cut / "weights.safetensors").read_bytes()[:-1])
    with pytest.raises(UserError, match=r"weights.safetensors is damaged, or no weights of attnlab"):
        attnlab.load(cut)
    (cut / "weights.safetensors").unlink()
    with pytest.raises(UserError, match=r"holds no weights.safetensors: choose the checkpoint best.ckpt"):
        attnlab.load(cut)

    foreign = copy(runs["plain-1"], tmp_path / "foreign")
    torch.save({"weights": torch.zeros(3)}, foreign / "best.ckpt")
    with pytest.raises(UserError, match="no checkpoint of attnlab"):
        attnlab.load(foreign, checkpoint="best.ckpt")

    content = torch.load(runs["plain-1"] / "best.ckpt", weights_only=True)
    content["state_dict"]["model.no_tensor"] = 3
    torch.save(content, foreign / "best.ckpt")
    with pytest.raises(UserError, match=r"best\.ckpt is damaged, or no checkpoint"):
        attnlab.load(foreign, checkpoint="best.ckpt")

    other = copy(runs["plain-1"], tmp_path / "other")
    for name in ("best.ckpt", "weights.safetensors"):
        (other / name).write_bytes((runs["none-1"] / name).read_bytes())
        with pytest.raises(UserError, match="belongs to another model"):
            attnlab.load(other, checkpoint=name)

    older = copy(runs["plain-1"], tmp_path / "older")
    (older / "text.json").write_text("{}")
    with pytest.raises(UserError, match=r"was made by attnlab 0\.1"):
        attnlab.load(older)
    with pytest.raises(UserError, match="has no setting 'beam'"):
        attnlab.load(runs["plain-1"], beam=3)


def test_opening_a_run_unpickles_nothing(runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = copy(runs["copying-1"], tmp_path / "run")
    by_checkpoint = attnlab.load(run, checkpoint="best.ckpt").models[0].state_dict()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was unpickled")

    monkeypatch.setattr("torch.load", refuse)
    monkeypatch.setattr("pickle.load", refuse)
    monkeypatch.setattr("pickle.loads", refuse)
    (run / "best.ckpt").unlink()
    opened = attnlab.load(run).models[0].state_dict()
    assert opened.keys() == by_checkpoint.keys()
    assert all(torch.equal(value, by_checkpoint[name]) for name, value in opened.items())


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def lose_vocabulary(run: Path) -> None:
    content = json.loads((run / "task.json").read_text())
    content["state"]["vocabularies"][0] = []
    (run / "task.json").write_text(json.dumps(content))


def spoil_weights(run: Path) -> None:
    (run / "weights.safetensors").write_bytes(b"\x08" + bytes(7) + b'{"a": 3}')


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "yaml": (lambda run: (run / "config.yaml").write_text("model: [1, 2"), "config.yaml is damaged"),
    "not yaml": (lambda run: (run / "config.yaml").write_bytes(b"\xff\x00"), "config.yaml is damaged"),
    "a list": (lambda run: (run / "config.yaml").write_text("- model\n- encoder\n"), "config.yaml is damaged"),
    "empty": (lambda run: (run / "config.yaml").write_text(""), "config.yaml is damaged"),
    "no model": (lambda run: edit(run / "config.yaml", "\nmodel:", "\nmodell:"), "another version of attnlab, or its config"),
    "older key": (lambda run: edit(run / "config.yaml", "coverage_penalty", "coverage"), "coverage"),
    "older class": (lambda run: edit(run / "config.yaml", "attnlab.model.Seq2Seq", "attnlab.model.Rnn"), "Rnn"),
    "no state": (lambda run: (run / "task.json").write_text('{"version": 1}'), "damaged|another version"),
    "no words": (lose_vocabulary, "task.json is damaged"),
    "no mapping": (lambda run: (run / "task.json").write_text("[]"), "task.json is damaged"),
    "no tensor": (spoil_weights, "weights.safetensors is damaged, or no weights"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_or_older_run_is_told_in_one_line(
    name: str, runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, message = DAMAGES[name]
    damage(copy(runs["plain-1"], tmp_path / "damaged"))
    assert cli("draw", "heatmaps", "damaged", "--source", "a b", "--output", "x.png") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line), line


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "RUN", "--input", "lines"],
        ["evaluate", "RUN", "--test", "val"],
        ["probe", "RUN", "--examples", "1"],
        ["align", "RUN", "--files", "lines", "lines"],
        ["draw", "heatmaps", "RUN", "--source", "a b", "--output", "map.png"],
        ["forecast", "RUN", "--input", "lines"],
    ],
    ids=lambda command: command[0],
)
def test_how_threads_wait_is_chosen_before_torch_is_loaded(command: list[str], runs: dict[str, Path], tmp_path: Path) -> None:
    """Spinning beside two busy processes, a translation took more than four times as long as with threads that sleep."""
    (tmp_path / "lines").write_text("a b c\n")
    words = [str(runs["plain-1"]) if word == "RUN" else word for word in command]
    code = f"""
        import os, sys
        from attnlab.runs import waiting
        waiting.choose_wait_policy = lambda: os._exit(8 if "torch" in sys.modules else 7)
        from attnlab.commands import main
        main({words})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 7, done.stderr


def test_the_first_seed_is_the_least_number(tmp_path: Path) -> None:
    for seed in (10, 2, 3):
        (tmp_path / f"seed={seed}").mkdir()
    (tmp_path / "seed=old").mkdir()
    assert [run.path.name for run in list_seeds(tmp_path, lambda run: run.path != tmp_path)] == ["seed=2", "seed=3", "seed=10"]
