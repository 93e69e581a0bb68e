"""A trained model in use: translate, evaluate, compare, and the same in Python."""

import io
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import attnlab as package
from attnlab import cli, using
from attnlab.attention import collect_head_weights
from attnlab.errors import UserError
from attnlab.evaluation.alignment import Links
from attnlab.search import BeamSearch, GNMTPenalty, GreedySearch, NoPenalty
from attnlab.studies.evaluate import REPORTED, chosen_shifts, word_links
from attnlab.studies.translator import Scored
from attnlab.tasks.translation.corpora import ParallelText
from commands import TINY, Attnlab, attnlab
from composing import model, sentences
from conftest import options

__all__ = ["attnlab"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Two seeds of one model, and models that copy, do not attend, read no long sentence, or know no word; trained briefly."""
    folder = tmp_path_factory.mktemp("runs")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    budget = ["data.train_size=600", "trainer.max_epochs=2", "optimizer.lr=0.01", "logger=none", "data.open_names=0.2"]
    kinds = {
        "plain": [],
        "copying": ["output=pointer_generator"],
        "none": ["attention=none"],
        "location": ["attention/score=location", "attention.score.max_length=80"],
        "unknown": ["training.replace_unknown=true", "datamodule.max_size=5"],
    }
    for name, chosen in kinds.items():
        for seed in (1, 2) if name == "plain" else (1,):
            patch.setattr(sys, "argv", ["attnlab", "train", *TINY, *budget, *chosen, f"name={name}", f"seed={seed}"])
            assert cli.main() == 0
    found = {f"{name}-{path.name[-1]}": path for name in kinds for path in folder.glob(f"runs/{name}/*/*")}
    yield found
    patch.undo()


def spoken(
    attnlab: Attnlab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: bytes, *args: str
) -> str:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert attnlab("translate", *args) == 0
    return capsys.readouterr().out


def test_every_line_has_its_line_and_empty_ones_stay_empty(
    runs: dict[str, Path], attnlab: Attnlab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "The old man runs .\n\n   \nThe woman sees " + "a house and " * 60 + "a child .\nüber xyzzy ☃\n"
    out = spoken(attnlab, monkeypatch, capsys, text.encode(), str(runs["plain-1"]))
    assert out.count("\n") == 5
    assert out.split("\n")[1:3] == ["", ""]
    whole = spoken(attnlab, monkeypatch, capsys, b"The old man runs .", str(runs["plain-1"]))
    assert out.split("\n")[0] == whole.rstrip("\n")


def test_files_scores_links_and_n_best(runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("The old man runs .\nThe child sleeps .\n")
    common = [str(runs["plain-1"]), "--input", "in.txt", "--output", "out.txt", "search=beam", "search.width=4"]
    assert attnlab("translate", *common, "--n-best", "3", "--scores", "--alignments") == 0
    rows = [line.split("\t") for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert len(rows) == 6
    scores = [float(score) for score, _, _ in rows]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    for _, text, links in rows:
        for link in links.split():
            source, target = map(int, link.split("-"))
            assert source < 5
            assert target < len(text.split())
    assert attnlab("translate", *common, "--json") == 0
    told = [json.loads(line) for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert [entry["source"] for entry in told] == ["The old man runs .", "The child sleeps ."]
    assert told[0]["translations"][0]["text"] == rows[0][1]


@pytest.mark.parametrize("name", ["plain-1", "copying-1", "none-1"])
def test_in_python_scores_are_those_of_forced_decoding(name: str, runs: dict[str, Path]) -> None:
    translator = package.load(runs[name])
    source = ["The old man runs .", "", "The woman who sings sees Xanthippe ."]
    found = translator.translate(source)
    assert [t.index for t in found] == [0, 1, 2]
    assert found[1].text == ""
    for sentence, translation in zip(source, found, strict=True):
        if not sentence or "<unk>" in translation.tokens:
            continue
        (scored,) = translator.score([sentence], [" ".join(translation.tokens[:-1])])
        if scored.tokens == translation.tokens:
            assert scored.log_probability == pytest.approx(translation.log_probability, abs=1e-3)
            torch.testing.assert_close(scored.weights, translation.weights, rtol=0, atol=1e-4)
    assert [t.text for t in package.load(runs[name], batch_size=1).translate(source)] == [t.text for t in found]


def test_evaluate_repeats_what_the_run_measured_and_what_sacrebleu_says(
    runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs["plain-1"]
    assert attnlab("evaluate", str(run), "--bootstrap", "50") == 0
    shown = capsys.readouterr().out
    assert "alignment error rate" in shown
    assert "attention: largest" in shown
    told = json.loads((run / "evaluations" / "default.json").read_text())["tests"]
    recorded = json.loads((run / "result.json").read_text())["tests"]
    for name in ("test", "test_long"):
        assert told[name]["bleu"]["value"] == pytest.approx(recorded[name]["bleu"]["value"], abs=1e-6)
        assert told[name]["bleu"]["low"] <= told[name]["bleu"]["value"] <= told[name]["bleu"]["high"] + 1e-6
        assert told[name]["loss"] == pytest.approx(recorded[name]["loss"], rel=1e-4)
        assert told[name]["accuracy"] == pytest.approx(recorded[name]["accuracy"], rel=1e-4)
        assert told[name]["alignment"] == pytest.approx(recorded[name]["alignment"])
        assert sum(bucket["sentences"] for bucket in told[name]["by_length"]) == told[name]["sentences"]
        assert 0 <= told[name]["attention"]["relative_entropy"] <= 1
    hypotheses = run / "evaluations" / "default.test.txt"
    assert hypotheses.read_bytes() == (run / "hypotheses" / "test.txt").read_bytes()

    (tmp_path / "ref.txt").write_text("\n".join(f"Satz {i} ." for i in range(16)) + "\n")
    (tmp_path / "src.txt").write_text("\n".join("The old man runs ." for _ in range(16)) + "\n")
    assert (
        attnlab("evaluate", str(run), "--files", "src.txt", "ref.txt", "--label", "mine", "search=greedy", "--bootstrap", "1")
        == 0
    )
    mine = json.loads((run / "evaluations" / "mine.json").read_text())
    assert mine["search"] == ["search=greedy"]
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "ref.txt"), "-i", str(run / "evaluations" / "mine.src.txt")]
    printed = subprocess.run([*command, "--width", "4", "-b"], capture_output=True, text=True, check=True).stdout
    assert mine["tests"]["src"]["bleu"]["value"] == pytest.approx(float(printed), abs=1e-3)


def test_an_ensemble_of_runs_translates(
    runs: dict[str, Path], attnlab: Attnlab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [str(runs["plain-1"]), str(runs["plain-2"])]
    assert spoken(attnlab, monkeypatch, capsys, b"The old man runs .\n", *both).count("\n") == 1
    with pytest.raises(UserError, match="same output"):
        package.load(runs["plain-1"], runs["copying-1"])


def test_an_ensemble_scores_its_own_translations_as_its_search_did(runs: dict[str, Path], attnlab: Attnlab) -> None:
    both = [runs["plain-1"], runs["plain-2"]]
    translator = package.load(*both, search=BeamSearch(width=4, length_penalty=NoPenalty()))
    source = ["The old man runs .", "The woman sings .", "The child sees a house ."]
    spelled = 0
    for sentence, found in zip(source, translator.n_best(source), strict=True):
        for translation in found:
            (scored,) = translator.score([sentence], [" ".join(translation.tokens[:-1])])
            if scored.tokens == translation.tokens:  # not where an unknown word was written
                spelled += 1
                assert scored.log_probability == pytest.approx(translation.log_probability, abs=1e-4)
                torch.testing.assert_close(scored.weights, translation.weights, rtol=0, atol=1e-5)
    assert spelled > 4
    with pytest.raises(UserError, match="not of an ensemble"):
        translator.score(source[:1], source[:1], heads=True)
    assert attnlab("evaluate", *map(str, both), "--label", "both", "--bootstrap", "1", "test=test") == 0


def test_one_long_line_has_a_batch_of_its_own(runs: dict[str, Path]) -> None:
    """Else all others of its batch are padded to its length."""
    shapes = []

    class Spy(GreedySearch):
        def __call__(self, model: Any, source: torch.Tensor, *args: Any, **named: Any) -> Any:
            shapes.append(tuple(source.shape))
            return super().__call__(model, source, *args, **named)

    translator = package.load(runs["plain-1"], search=Spy(max_length_factor=0, max_length_offset=3), batch_size=8)
    short = ["The old man runs .", "The woman sings ."] * 6
    found = translator.translate([*short[:5], "the house " * 1000, *short[5:]])
    assert shapes == [(8, 6), (4, 6), (1, 2001)]
    assert len(found) == 13
    assert found[5].source[:2] == ["the", "house"]
    assert [t.text for t in [*found[:5], *found[6:]]] == [t.text for t in translator.translate(short)]


def test_compare_asks_for_the_same_seeds(runs: dict[str, Path], attnlab: Attnlab, capsys: pytest.CaptureFixture[str]) -> None:
    variant = runs["plain-1"].parent
    assert attnlab("compare", str(variant), str(variant), "--samples", "100") == 0
    assert "+0.00" in capsys.readouterr().out
    assert attnlab("compare", str(variant), str(runs["none-1"].parent), "--samples", "100") == 2
    assert "compare the same seeds" in capsys.readouterr().err


@pytest.mark.parametrize("search", options("search"))
def test_any_search_can_be_asked_for(
    search: str, runs: dict[str, Path], attnlab: Attnlab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spoken(attnlab, monkeypatch, capsys, b"The old man runs .\n", str(runs["plain-1"]), f"search={search}").strip()


ALIGN = ["--files", "a.en", "a.de"]

MISTAKES = {
    "no run": (["translate", "search=greedy"], "name a run"),
    "no folder": (["translate", "nowhere"], "nowhere holds no config.yaml"),
    "no file": (["translate", "RUN", "--input", "nothing.txt"], "no file nothing.txt"),
    "key": (["translate", "RUN", "search.widht=3"], "no key 'widht' in 'search': did you mean 'width'?"),
    "value": (["translate", "RUN", "search.width=0"], "search.width must be 1 or more"),
    "option": (["translate", "RUN", "--nbest", "3"], "unrecognized arguments: --nbest"),
    "device": (["translate", "RUN", "--device", "abacus"], "--device abacus"),
    "checkpoint": (["translate", "RUN", "--checkpoint", "first.ckpt"], "holds no first.ckpt"),
    "test set": (
        ["evaluate", "RUN", "--test", "exam"],
        "the corpus has no test set 'exam': there is train, val, test, test_long",
    ),
    "label": (["evaluate", "RUN", "--label", "a/b"], "--label is part of a file's name"),
    "files": (["evaluate", "RUN", "--files", "a", "b"], "no file a"),
    "heads without gold": (["align", "RUN", "--files", "a", "b", "--heads"], "add --gold FILE"),
    "no file to align": (["align", "RUN", "--files", "a", "b"], "no file a"),
    "picture of what": (["draw", "cats", "RUN", "--output", "x.png"], "invalid choice: 'cats'"),
    "picture's ending": (["draw", "curves", "RUN", "--output", "x.bmp"], "--output ends in .png, .svg or .pdf, not '.bmp'"),
    "metric": (["draw", "curves", "RUN", "--metric", "val/blue", "--output", "x.png"], "has no metric 'val/blue'"),
    "sentence": (["draw", "heatmaps", "RUN", "--output", "x.png"], "add --sentence TEXT"),
    "links": (["draw", "heatmaps", "RUN", "--sentence", "a b", "--links", "9-9", "--output", "x.png"], "source position 9"),
    "read and written": (["translate", "nowhere", "--input", "a.en", "--output", "a.en"], "--output a.en is what is read"),
    "gold written": (["align", "nowhere", *ALIGN, "--gold", "gold", "--output", "gold"], "--output gold is what is read"),
    "no folder to write to": (["translate", "nowhere", "--input", "a.en", "--output", "no/x"], "there is no folder no"),
    "no folder for a picture": (["draw", "curves", "nowhere", "--output", "no/x.png"], "there is no folder no"),
    "a folder to write to": (["translate", "nowhere", "--input", "a.en", "--output", "folder"], "is a folder"),
    "more than the beam": (["translate", "RUN", "--n-best", "9"], "search.width is 5: add search.width=9"),
    "more samples": (["translate", "RUN", "--n-best", "2", "search=sampling"], "search.samples is 1: add search.samples=2"),
    "more than one": (["translate", "RUN", "--n-best", "2", "search=greedy"], "add search=beam search.width=2"),
    "a dot for a slash": (["translate", "RUN", "search.length_penalty=gnmt"], "search/length_penalty=gnmt"),
    "another search's": (
        ["translate", "RUN", "search=greedy", "search/length_penalty=gnmt"],
        "there is no search/length_penalty",
    ),
    "no yaml": (["translate", "RUN", "search.width=["], "a value is no YAML"),
    "no test set": (["evaluate", "RUN", "test="], "the corpus has no test set ''"),
    "same direction": (["align", "RUN", *ALIGN, "--reverse", "RUN"], "name a run of the other direction"),
    "gold past the end": (["align", "RUN", *ALIGN, "--gold", "gold"], "gold, line 1: source position 5 is linked to"),
    "gold from 1": (["align", "RUN", *ALIGN, "--gold", "gold"], "if links count from 1, add --gold-from 1"),
    "not evaluated": (["compare", "RUN", "RUN", "--label", "no"], "has no evaluation 'no' of 'test': there is none at all"),
    "not finished": (["compare", ".", "."], "holds no finished run"),
    "hypotheses": (["compare", "RUN", "RUN", "--test", "exam"], "has no hypotheses of 'exam': there is test, test_long"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_in_one_line(
    name: str, runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, message = MISTAKES[name]
    aligned(tmp_path)
    (tmp_path / "folder").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert attnlab(*(str(runs["plain-1"]) if a == "RUN" else a for a in arguments)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attnlab: ")
    assert message in line
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_part_of_the_search_is_changed_within_the_runs_own(
    runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy(runs["plain-1"], tmp_path / "run")
    edit(run / "config.yaml", "width: 5", "width: 3")
    used = []
    call = BeamSearch.__call__

    def spy(self: BeamSearch, *args: Any, **named: Any) -> Any:
        used.append(self)
        return call(self, *args, **named)

    monkeypatch.setattr(BeamSearch, "__call__", spy)
    overrides = ["search/length_penalty=gnmt", "search.length_penalty.alpha=0.5", "search.coverage_penalty=0.1"]
    spoken(attnlab, monkeypatch, capsys, b"The old man runs .\n", "run", *overrides)
    assert used[0].length_penalty == GNMTPenalty(alpha=0.5)
    assert (used[0].width, used[0].coverage_penalty, used[0].max_length_factor) == (3, 0.1, 0.5)  # the run's own, and not 2.0
    assert package.load(run).search.kept == 3


LONG = "The old man runs .\nThe woman sings .\n" + "the house " * 50 + "\nThe child sleeps .\n"


def test_a_line_too_long_is_named_before_anything_is_written(
    runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(using, "CHUNK", 2)
    run = str(runs["location-1"])
    (tmp_path / "in.txt").write_text(LONG)
    (tmp_path / "out.txt").write_text("of yesterday")
    assert attnlab("translate", run, "--input", "in.txt", "--output", "out.txt") == 2
    assert "in.txt, line 3 has 101 tokens" in capsys.readouterr().err
    assert (tmp_path / "out.txt").read_text() == "of yesterday"

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LONG.encode())))
    assert attnlab("translate", run) == 2
    assert "line 3 has 101 tokens" in capsys.readouterr().err

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(LONG.encode())))
    assert attnlab("translate", run) == 0
    said = capsys.readouterr()
    assert "line 3 has 101 tokens" in said.err
    assert said.out.count("\n") == 3


def test_n_best_lines_of_a_sentence_are_where_they_are_expected(
    runs: dict[str, Path], attnlab: Attnlab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentence i has the lines from i * N on, even where a search finds fewer."""
    call = BeamSearch.__call__
    monkeypatch.setattr(BeamSearch, "__call__", lambda *args, **named: [found[:2] for found in call(*args, **named)])
    text = b"The old man runs .\n\nThe woman sings .\n"
    out = spoken(attnlab, monkeypatch, capsys, text, str(runs["plain-1"]), "--n-best", "3", "--scores", "--alignments")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [len(row) for row in rows] == [3] * 9
    assert [float(score) > -math.inf for score, _, _ in rows] == [True, True, False, True, False, False, True, True, False]


def test_streams_that_are_closed_or_of_another_encoding(
    runs: dict[str, Path], attnlab: Attnlab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("über ☃\n".encode())))
    assert attnlab("translate", str(runs["plain-1"]), "--json") == 0
    assert json.loads(written.getvalue().decode("utf-8"))["source"] == "über ☃"
    monkeypatch.setattr(sys, "stdin", None)
    assert attnlab("translate", str(runs["plain-1"])) == 2
    assert "standard input is closed" in capsys.readouterr().err


def test_an_evaluation_is_added_to_and_not_lost(
    runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(runs["copying-1"])
    path = runs["copying-1"] / "evaluations" / "kept.json"
    evaluate = ["evaluate", run, "--bootstrap", "1", "--label", "kept"]
    assert attnlab(*evaluate, "test=test") == 0
    first = json.loads(path.read_text())["tests"]["test"]
    assert attnlab(*evaluate, "test=val") == 0
    content = path.read_text()
    assert json.loads(content)["tests"]["test"] == first
    assert list(json.loads(content)["tests"]) == ["test", "val"]

    (tmp_path / "test.en").write_text("The old man runs .\n")
    (tmp_path / "test.de").write_text("Der alte Mann rennt .\n")
    capsys.readouterr()
    for other in (["search.width=2"], ["--checkpoint", "last.ckpt"], ["--files", "test.en", "test.de"]):
        assert attnlab(*evaluate, *other) == 2
        assert "choose another --label" in capsys.readouterr().err
    assert path.read_text() == content

    assert attnlab("draw", "lengths", run, "--label", "kept", "--test", "val", "--output", "x.png") == 0
    path.write_text('{"tests": {"val": {"by_length": [{}]}}}')
    assert attnlab("draw", "lengths", run, "--label", "kept", "--test", "val", "--output", "x.png") == 2
    assert "kept.json is damaged" in capsys.readouterr().err
    torn = copy(runs["copying-1"], tmp_path / "torn")
    (torn / "metrics.jsonl").write_text('{"epoch": 0, "val/bleu": 1.0}\n{"epoch": 1, "val')
    assert attnlab("draw", "curves", "torn", "--output", "x.png") == 2
    assert "metrics.jsonl, line 2, is damaged" in capsys.readouterr().err


def test_only_what_was_tested_alike_is_compared(
    runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = "one", "two"
    for name, run in ((one, runs["plain-1"]), (two, runs["plain-2"])):
        shutil.copytree(run, tmp_path / name)
    assert attnlab("compare", one, two, "--samples", "100") == 0  # runs alone may differ in their seeds
    for run in (one, two):
        assert attnlab("evaluate", run, "--bootstrap", "1", "--label", "short", "test=test", "search=greedy") == 0
    assert attnlab("compare", one, two, "--samples", "100", "--label", "short") == 0
    capsys.readouterr()

    def refused(message: str, *arguments: str) -> None:
        assert attnlab("compare", one, "other", *arguments) == 2
        assert message in capsys.readouterr().err

    other = tmp_path / "other"
    shutil.copytree(two, other)
    references = other / "texts" / "test.target.txt"
    references.write_text(references.read_text().replace(".", "!"))
    refused("other was tested against other references than")
    shutil.rmtree(other / "texts")  # as of a run that kept none
    assert attnlab("compare", one, "other", "--samples", "100") == 0
    capsys.readouterr()
    (other / "hypotheses" / "exam.txt").write_text("a\n")
    (tmp_path / one / "hypotheses" / "exam.txt").write_text("a\n")
    refused("its corpus has no test set 'exam': there is", "--test", "exam")
    edit(other / "config.yaml", "lowercase: false", "lowercase: true")
    refused("other writes lower case alone and")
    (other / "hypotheses" / "test.txt").write_text("a\nb\n")
    refused("other has 2 hypotheses, but there are 16 references")


def copy(run: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.yaml", "text.json", "best.ckpt"):
        (folder / name).write_bytes((run / name).read_bytes())
    return folder


def test_damaged_foreign_and_newer_runs_are_refused_in_one_line(runs: dict[str, Path], tmp_path: Path) -> None:
    cut = copy(runs["plain-1"], tmp_path / "cut")
    (cut / "best.ckpt").write_bytes((cut / "best.ckpt").read_bytes()[:1000])
    with pytest.raises(UserError, match=r"best.ckpt is damaged, or no checkpoint of attnlab") as refusal:
        package.load(cut)
    assert "\n" not in str(refusal.value)

    foreign = copy(runs["plain-1"], tmp_path / "foreign")
    torch.save({"weights": torch.zeros(3)}, foreign / "best.ckpt")
    with pytest.raises(UserError, match="no checkpoint of attnlab"):
        package.load(foreign)

    other = copy(runs["plain-1"], tmp_path / "other")
    (other / "best.ckpt").write_bytes((runs["none-1"] / "best.ckpt").read_bytes())
    with pytest.raises(UserError, match="belongs to another model"):
        package.load(other)

    newer = copy(runs["plain-1"], tmp_path / "newer")
    text = json.loads((newer / "text.json").read_text())
    (newer / "text.json").write_text(json.dumps({**text, "format": 99, "version": "9.9"}))
    with pytest.raises(UserError, match=r"made by attnlab 9\.9, which is newer"):
        package.load(newer)
    (newer / "text.json").write_text("{")
    with pytest.raises(UserError, match="damaged"):
        package.load(newer)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def spoil(run: Path, tensor: object) -> None:
    content = torch.load(run / "best.ckpt", weights_only=True)
    content["state_dict"]["model.output.bias"] = tensor
    torch.save(content, run / "best.ckpt")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "yaml": (lambda run: (run / "config.yaml").write_text("model: [1, 2"), "config.yaml is damaged"),
    "not yaml": (lambda run: (run / "config.yaml").write_bytes(b"\xff\x00"), "config.yaml is damaged"),
    "a list": (lambda run: (run / "config.yaml").write_text("- model\n- encoder\n"), "config.yaml is damaged"),
    "empty": (lambda run: (run / "config.yaml").write_text(""), "config.yaml is damaged"),
    "no model": (lambda run: edit(run / "config.yaml", "\nmodel:", "\nmodell:"), "another version of attnlab, or its config"),
    "older key": (
        lambda run: edit(run / "config.yaml", "coverage_penalty", "coverage"),
        "another version of attnlab.*coverage",
    ),
    "older class": (
        lambda run: edit(run / "config.yaml", "attnlab.model.Seq2Seq", "attnlab.model.Rnn"),
        "another version.*Rnn",
    ),
    "no text": (lambda run: (run / "text.json").write_text('{"format": 1}'), "text.json is damaged"),
    "no words": (
        lambda run: edit(
            run / "text.json",
            json.dumps(json.loads((run / "text.json").read_text())["vocabularies"][0], ensure_ascii=False),
            "[]",
        ),
        "text.json is damaged",
    ),
    "no list": (lambda run: (run / "text.json").write_text("[]"), "text.json is damaged"),
    "no tensor": (lambda run: spoil(run, 3), "best.ckpt is damaged, or no checkpoint"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_or_older_run_is_told_in_one_line(
    name: str, runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, message = DAMAGES[name]
    damage(copy(runs["plain-1"], tmp_path / "damaged"))
    assert attnlab("draw", "heatmaps", "damaged", "--sentence", "a b", "--output", "x.png") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line)


def test_unknown_words_are_replaced_where_the_run_did_so_in_its_test(runs: dict[str, Path], attnlab: Attnlab) -> None:
    run = runs["unknown-1"]
    reported = (run / "hypotheses" / "test.txt").read_text(encoding="utf-8")
    assert reported.strip()
    assert "<unk>" not in reported
    for label, flags in {"own": [], "without": ["--no-replace-unknown"]}.items():
        assert attnlab("evaluate", str(run), "test=test", "--bootstrap", "1", "--label", label, *flags) == 0
    assert (run / "evaluations" / "own.test.txt").read_text(encoding="utf-8") == reported
    assert "<unk>" in (run / "evaluations" / "without.test.txt").read_text(encoding="utf-8")


def test_an_unknown_word_can_be_replaced_by_what_was_looked_at(runs: dict[str, Path]) -> None:
    translator = package.load(runs["plain-1"])
    with torch.no_grad():
        translator.models[0].output.bias[1] = 100.0
    (plain,), (replaced,) = (translator.translate(["The old man ."], replace_unknown=r) for r in (False, True))
    assert set(plain.tokens[:-1]) == {"<unk>"}
    looked = plain.weights[:-1, :4].argmax(-1).tolist()
    assert replaced.tokens[:-1] == [["The", "old", "man", "."][j] for j in looked]


def aligned(folder: Path) -> list[str]:
    (folder / "a.en").write_text("The old man runs .\nThe woman sings .\n")
    (folder / "a.de").write_text("Der alte Mann rennt .\nDie Frau singt .\n")
    (folder / "gold").write_text("1-1 2-2 3-3 4p4 5-5\n1-1 2-2 3-3 4-4\n")
    return ALIGN


def test_align_writes_links_and_scores_them(
    runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, run = aligned(tmp_path), str(runs["plain-1"])
    assert attnlab("align", run, *files, "--shift", "0") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert [len(line.split()) for line in lines] == [5, 4]  # a link for every target word
    assert attnlab("align", run, *files, "--shift", "0", "--format", "talp", "--output", "out.talp") == 0
    from attnlab.evaluation.alignment import parse

    written = (tmp_path / "out.talp").read_text().splitlines()
    assert [parse(line, base=1).sure for line in written] == [parse(line).sure for line in lines]
    assert attnlab("align", run, *files, "--gold", "gold", "--gold-from", "1", "--heads") == 0
    shown = capsys.readouterr().out
    assert "AER" in shown
    assert "attention, head 0" in shown


def test_every_head_is_read_in_its_own_way(
    runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One head looks at a word to write it, the other one when it has been read."""
    at, after = torch.eye(4), torch.eye(4).roll(1, dims=0)
    tokens = ["a", "b", "c", "</s>"]
    scored = Scored(tokens, [0.0] * 4, [True] * 4, 0, (at + 2 * after) / 3, tokens, {"head 0": at, "head 1": after})

    class Heads:
        languages = ("en", "de")

        def score(self, source: Any, target: Any, *, heads: bool) -> list[Scored]:
            return [scored]

    val = ParallelText(["a b c"], ["a b c"], [[(0, 0), (1, 1), (2, 2)]], "whitespace")
    chosen = chosen_shifts(Heads(), val, heads=True)  # type: ignore[arg-type]
    assert chosen == {REPORTED: 1, "head 0": 0, "head 1": 1}

    command = ["align", str(runs["plain-1"]), *aligned(tmp_path), "--gold", "gold", "--gold-from", "1", "--heads"]
    read = []

    def spy(source: Any, target: Any, weights: Any, scored: Any, shift: int) -> list[Links]:
        read.append(shift)
        return word_links(source, target, weights, scored, shift)

    with monkeypatch.context() as patch:
        patch.setattr("attnlab.studies.evaluate.word_links", spy)
        patch.setattr("attnlab.studies.evaluate.chosen_shifts", lambda *_, heads: {REPORTED: 0, "attention, head 0": 1})
        patch.setenv("COLUMNS", "200")
        assert attnlab(*command) == 0
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if "attention" in line]
    assert [row[-2].strip() for row in rows] == ["t", "t - 1"]
    assert read == [0, 1]

    monkeypatch.setattr(using, "_corpus", lambda run: WithoutLinks())
    assert attnlab(*command) == 0
    assert "has no links" in capsys.readouterr().err


class WithoutLinks:
    """A corpus."""

    def load(self) -> dict[str, ParallelText]:
        return {"val": ParallelText(["a"], ["a"])}


def test_every_head_of_every_layer_is_seen_and_their_mean_is_what_is_reported() -> None:
    for decoder in ("transformer", "luong_feeding"):
        made = model(f"decoder={decoder}", "attention=multihead", "attention.heads=2")
        memory, state = made.encode(*sentences([6, 2, 4]))
        target = torch.tensor([[2, 5, 6, 7], [2, 8, 3, 0], [2, 9, 9, 4]])
        with collect_head_weights(made.decoder) as found:
            decoded = made.decode(target, memory, state)
        layers = {name: torch.cat(calls, dim=2) for name, calls in found.items()}
        assert list(layers) == (["layers.0.attention", "layers.1.attention"] if decoder == "transformer" else ["attention"])
        assert {weights.shape for weights in layers.values()} == {(3, 2, 4, 6)}
        torch.testing.assert_close(list(layers.values())[-1].mean(1), decoded.weights, rtol=0, atol=1e-12)
        before = len(next(iter(found.values())))
        made.decode(target, memory, state)
        assert len(next(iter(found.values()))) == before  # the hooks are gone


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_drawn(ending: str, runs: dict[str, Path], attnlab: Attnlab, tmp_path: Path) -> None:
    both = [str(runs["plain-1"]), str(runs["copying-1"])]
    sentence = ["--sentence", "The old man runs .", "--translation", "Der alte Mann läuft 走る .", "--links", "0-0 1-1"]
    assert attnlab("draw", "heatmaps", *both, *sentence, "--output", f"h.{ending}") == 0
    assert attnlab("draw", "curves", *both, "--metric", "val/loss", "--output", f"c.{ending}") == 0
    for run in both:
        assert attnlab("evaluate", run, "--bootstrap", "1", "test=test,val") == 0
    assert attnlab("draw", "lengths", *both, "--output", f"l.{ending}") == 0
    assert all((tmp_path / f"{name}.{ending}").stat().st_size > 2000 for name in "hcl")
    if ending == "svg":
        assert "走る" in (tmp_path / "h.svg").read_text(encoding="utf-8")
        assert "copying" in (tmp_path / "c.svg").read_text(encoding="utf-8")
