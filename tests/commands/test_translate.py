"""``attnlab translate``, and the same in Python."""

import gzip
import io
import json
import math
import os
import shutil
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

import attnlab
from attnlab.commands import translate
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Prediction
from attnlab.runs.folder import RunFolder
from attnlab.search import BeamSearch, GNMTPenalty, GreedySearch, NoPenalty
from attnlab.tasks.predictor import Predictor
from commands import Cli, cli, runs
from conftest import options

__all__ = ["cli", "runs"]


def translated(cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: bytes, *args: str) -> str:
    """What is written for what is read."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert cli("translate", *args) == 0
    return capsys.readouterr().out


def test_every_line_has_its_line_and_empty_ones_stay_empty(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "The old man runs .\n\n   \nThe woman sees " + "a house and " * 60 + "a child .\nüber xyzzy ☃\n"
    out = translated(cli, monkeypatch, capsys, text.encode(), str(runs["plain-1"]))
    assert out.count("\n") == 5
    assert out.split("\n")[1:3] == ["", ""]
    whole = translated(cli, monkeypatch, capsys, b"The old man runs .", str(runs["plain-1"]))
    assert out.split("\n")[0] == whole.rstrip("\n")


def test_a_byte_order_mark_is_no_part_of_the_first_word(runs: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_bytes("\ufeffthe man sees it .\r\nthe man sees it .\r\n".encode())
    assert cli("translate", str(runs["plain-1"]), "--input", "in.en", "--output", "out.de") == 0
    first, second = (tmp_path / "out.de").read_text().splitlines()
    assert first == second


def test_files_scores_links_and_n_best(runs: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("The old man runs .\nThe child sleeps .\n")
    common = [str(runs["plain-1"]), "--input", "in.txt", "--output", "out.txt", "search=beam", "search.width=4"]
    assert cli("translate", *common, "--n-best", "3", "--scores", "--alignments") == 0
    rows = [line.split("\t") for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert len(rows) == 6
    scores = [float(score) for score, _, _ in rows]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    for _, text, links in rows:
        for link in links.split():
            source, target = map(int, link.split("-"))
            assert source < 5
            assert target < len(text.split())
    assert cli("translate", *common, "--json") == 0
    told = [json.loads(line) for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert [entry["source"] for entry in told] == ["The old man runs .", "The child sleeps ."]
    assert told[0]["translations"][0]["text"] == rows[0][1]


def test_links_in_json_count_the_tokens_beside_them(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where words at white space are other words than the model's tokens."""
    line = "The old man, who sings, runs."
    arguments = [str(runs["plain-1"]), "--json", "--n-best", "3", "--shift", "0"]
    out = translated(cli, monkeypatch, capsys, f"{line}\n\n".encode(), *arguments)
    told, nothing = map(json.loads, out.splitlines())
    expected = attnlab.load(runs["plain-1"]).n_best([line])[0][:3]
    assert told["source_tokens"] == ["The", "old", "man", ",", "who", "sings", ",", "runs", "."]
    assert [one["text"] for one in told["translations"]] == [one.text for one in expected]
    for one, own in zip(told["translations"], expected, strict=True):
        assert one["tokens"] == own.tokens[:-1]
        weights = own.weights[:-1, :-1]
        assert len(weights) == len(one["tokens"])
        assert {j: i for i, j in one["links"]} == dict(enumerate(weights.argmax(dim=1).tolist()))
    assert (nothing["source_tokens"], nothing["translations"][0]["tokens"], nothing["translations"][0]["links"]) == ([], [], [])


@pytest.mark.parametrize("known", [0, 1, None])
def test_links_are_read_as_in_the_run_s_own_test(
    known: int | None,
    runs: dict[str, Path],
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = RunFolder(shutil.copytree(runs["plain-1"], tmp_path / "run"))
    run.digests_file.unlink(missing_ok=True)
    result = run.read_result()
    for test in result.tests.values():
        test["shift"] = known
    run.write_result(result)
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.7, 0.3, 0.0]])
    found = Prediction(0, "ja nein", ["ja", "nein", "</s>"], ["yes", "no", "</s>"], weights, 0.0, 0.0)
    monkeypatch.setattr(Predictor, "n_best", lambda self, lines: [[found]])
    links = {0: [[0, 0], [1, 1]], 1: [[0, 1], [1, 0]]}
    for shift, given in ((known or 0, []), (0, ["--shift", "0"]), (1, ["--shift", "1"])):
        out = translated(cli, monkeypatch, capsys, b"yes no", str(run.path), "--alignments", *given)
        assert out == f"ja nein\t{' '.join(f'{i}-{j}' for i, j in links[shift])}\n"
        out = translated(cli, monkeypatch, capsys, b"yes no", str(run.path), "--json", *given)
        assert json.loads(out)["translations"][0]["links"] == links[shift]


def test_words_that_cannot_be_linked_are_told_once(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Prediction(0, "ja", ["<pad>", "</s>"], ["yes", "</s>"], torch.ones(2, 2), 0.0, 0.0)
    linked = Prediction(1, "ja", ["ja", "</s>"], ["yes", "</s>"], torch.ones(2, 2), 0.0, 0.0)
    monkeypatch.setattr(Predictor, "n_best", lambda self, lines: [[found], [linked], [found]])
    (tmp_path / "in.txt").write_text("yes\n" * 3)
    assert cli("translate", str(runs["plain-1"]), "--input", "in.txt", "--alignments") == 0
    said = capsys.readouterr()
    assert said.out == "ja\t\nja\t0-0\nja\t\n"
    (line,) = said.err.splitlines()
    assert line.startswith("attnlab: 2 of 3 predictions have no links")


@pytest.mark.parametrize("name", ["plain-1", "copying-1", "none-1"])
def test_in_python_scores_are_those_of_forced_decoding(name: str, runs: dict[str, Path]) -> None:
    translator: Any = attnlab.load(runs[name])
    source = ["The old man runs .", "", "The woman who sings sees Xanthippe ."]
    found = translator.translate(source)
    assert [t.index for t in found] == [0, 1, 2]
    assert found[1].text == ""
    for line, translation in zip(source, found, strict=True):
        if not line or "<unk>" in translation.tokens:
            continue
        (scored,) = translator.score([line], [" ".join(translation.tokens[:-1])])
        if scored.tokens == translation.tokens:
            assert scored.log_probability == pytest.approx(translation.log_probability, abs=1e-3)
            torch.testing.assert_close(scored.weights, translation.weights, rtol=0, atol=1e-4)
    alone: Any = attnlab.load(runs[name], batch_size=1)
    assert [t.text for t in alone.translate(source)] == [t.text for t in found]


def test_in_bfloat16_scores_are_close_to_those_in_float32(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.runs.loading.CPU_HAS_BFLOAT16", True)
    coarse: Any = attnlab.load(runs["plain-1"], precision="bfloat16")
    assert {parameter.dtype for parameter in coarse.models[0].parameters()} == {torch.bfloat16}
    exact: Any = attnlab.load(runs["plain-1"])
    source = ["The old man runs .", "The woman who sings sees Xanthippe ."]
    lines = [translation.text for translation in exact.translate(source)]
    pairs = list(zip(coarse.score(source, lines), exact.score(source, lines), strict=True))
    for rough, fine in pairs:
        assert rough.log_probability == pytest.approx(fine.log_probability, rel=0.03)
    assert any(rough.log_probability != fine.log_probability for rough, fine in pairs)
    assert len(coarse.translate(source)) == 2
    with pytest.raises(UserError, match="precision is float32 or bfloat16, not 'int4'"):
        attnlab.load(runs["plain-1"], precision="int4")
    monkeypatch.setattr("attnlab.runs.loading.CPU_HAS_BFLOAT16", False)
    with pytest.raises(UserError, match="this CPU has no bfloat16"):
        attnlab.load(runs["plain-1"], precision="bfloat16")


def test_an_ensemble_of_runs_translates(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [str(runs["plain-1"]), str(runs["plain-2"])]
    assert translated(cli, monkeypatch, capsys, b"The old man runs .\n", *both).count("\n") == 1
    with pytest.raises(UserError):
        attnlab.load(runs["plain-1"], runs["copying-1"])
    with pytest.raises(UserError, match="was trained on other data"):
        attnlab.load(runs["plain-1"], runs["unknown-1"])


def test_an_ensemble_scores_its_own_translations_as_its_search_did(runs: dict[str, Path]) -> None:
    translator: Any = attnlab.load(runs["plain-1"], runs["plain-2"], search=BeamSearch(width=4, length_penalty=NoPenalty()))
    source = ["The old man runs .", "The woman sings .", "The child sees a house ."]
    spelled = 0
    for line, found in zip(source, translator.n_best(source), strict=True):
        for translation in found:
            (scored,) = translator.score([line], [" ".join(translation.tokens[:-1])])
            if scored.tokens == translation.tokens:  # not where an unknown word was written
                spelled += 1
                assert scored.log_probability == pytest.approx(translation.log_probability, abs=1e-4)
                torch.testing.assert_close(scored.weights, translation.weights, rtol=0, atol=1e-5)
    assert spelled > 4
    with pytest.raises(UserError, match="not of an ensemble"):
        translator.score(source[:1], source[:1], heads=True)


def test_one_long_line_has_a_batch_of_its_own(runs: dict[str, Path]) -> None:
    """Else all others of its batch are padded to its length."""
    shapes = []

    class Spy(GreedySearch):
        def __call__(self, model: Any, source: torch.Tensor, *args: Any, **named: Any) -> Any:
            shapes.append(tuple(source.shape))
            return super().__call__(model, source, *args, **named)

    predictor = attnlab.load(runs["plain-1"], search=Spy(max_length_factor=0, max_length_offset=3), batch_size=8)
    short = ["The old man runs .", "The woman sings ."] * 6
    found = predictor.predict([*short[:5], "the house " * 1000, *short[5:]])
    assert shapes == [(8, 6), (4, 6), (1, 2001)]
    assert len(found) == 13
    assert found[5].source[:2] == ["the", "house"]
    assert [t.text for t in [*found[:5], *found[6:]]] == [t.text for t in predictor.predict(short)]


@pytest.mark.parametrize("search", options("search"))
def test_any_search_can_be_asked_for(
    search: str, runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translated(cli, monkeypatch, capsys, b"The old man runs .\n", str(runs["plain-1"]), f"search={search}").strip()


def test_a_part_of_the_search_is_changed_within_the_runs_own(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for path in runs["plain-1"].iterdir():
        if path.is_file() and path.name != "digests.json":
            (run / path.name).write_bytes(path.read_bytes())
    config = (run / "config.yaml").read_text()
    assert "width: 5" in config
    (run / "config.yaml").write_text(config.replace("width: 5", "width: 3"))
    used = []
    call = BeamSearch.__call__

    def spy(self: BeamSearch, *args: Any, **named: Any) -> Any:
        used.append(self)
        return call(self, *args, **named)

    monkeypatch.setattr(BeamSearch, "__call__", spy)
    overrides = ["search/length_penalty=gnmt", "search.length_penalty.alpha=0.5", "search.coverage_penalty=0.1"]
    translated(cli, monkeypatch, capsys, b"The old man runs .\n", "run", *overrides)
    assert used[0].length_penalty == GNMTPenalty(alpha=0.5)
    assert (used[0].width, used[0].coverage_penalty, used[0].max_length_factor) == (3, 0.1, 0.5)  # the run's own, and not 2.0
    assert attnlab.load(run).search.max_hypotheses == 3


def test_a_search_of_ones_own_is_found_in_a_folder(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conf" / "search").mkdir(parents=True)
    (tmp_path / "conf" / "search" / "short.yaml").write_text("defaults: [beam]\nmax_length_factor: 0\nmax_length_offset: 2\n")
    given = ["-cd", str(tmp_path / "conf"), str(runs["plain-1"]), "search=short"]
    assert len(translated(cli, monkeypatch, capsys, b"The old man runs .\n", *given).split()) == 1


LONG = "The old man runs .\nThe woman sings .\n" + "the house " * 50 + "\nThe child sleeps .\n"


def test_a_line_too_long_is_named_before_anything_is_written(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(translate, "CHUNK", 2)
    run = str(runs["location-1"])
    (tmp_path / "in.txt").write_text(LONG)
    (tmp_path / "out.txt").write_text("of yesterday")
    assert cli("translate", run, "--input", "in.txt", "--output", "out.txt") == 2
    assert "in.txt, line 3 has 101 tokens" in capsys.readouterr().err
    assert (tmp_path / "out.txt").read_text() == "of yesterday"

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LONG.encode())))
    assert cli("translate", run) == 2
    assert "line 3 has 101 tokens" in capsys.readouterr().err

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(LONG.encode())))
    assert cli("translate", run) == 0
    said = capsys.readouterr()
    assert "line 3 has 101 tokens" in said.err
    assert said.out.count("\n") == 3


def test_n_best_lines_of_a_source_are_where_they_are_expected(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Source i has the lines from i * N on, even where a search finds fewer."""
    call = BeamSearch.__call__
    monkeypatch.setattr(BeamSearch, "__call__", lambda *args, **named: [found[:2] for found in call(*args, **named)])
    text = b"The old man runs .\n\nThe woman sings .\n"
    out = translated(cli, monkeypatch, capsys, text, str(runs["plain-1"]), "--n-best", "3", "--scores", "--alignments")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [len(row) for row in rows] == [3] * 9
    assert [float(score) > -math.inf for score, _, _ in rows] == [True, True, False, True, False, False, True, True, False]


def test_a_pipe_and_a_packed_file_are_read_as_a_file_is(runs: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("The old man runs .\n")
    writer = Thread(target=(tmp_path / "pipe").write_text, args=["The old man runs .\n"], daemon=True)
    writer.start()
    (tmp_path / "file.gz").write_bytes(gzip.compress((tmp_path / "file").read_bytes()))
    for name in ("pipe", "file", "file.gz"):
        assert cli("translate", str(runs["plain-1"]), "--input", name, "--output", f"{name}.de") == 0
    writer.join(timeout=10)
    (written,) = {(tmp_path / f"{name}.de").read_text() for name in ("pipe", "file", "file.gz")}
    assert written
    assert cli("translate", str(runs["plain-1"]), "--input", "file", "--output", "file.de.gz") == 0
    assert gzip.decompress((tmp_path / "file.de.gz").read_bytes()).decode() == written


def test_a_folder_that_is_called_like_a_setting_is_a_run(runs: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "search=greedy").mkdir()
    shutil.copytree(runs["plain-1"], tmp_path / "search=greedy" / "seed=1")
    (tmp_path / "file").write_text("The old man runs .\n")
    assert cli("translate", "search=greedy/seed=1", "--input", "file", "--output", "out") == 0


def test_streams_that_are_closed_or_of_another_encoding(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("über ☃\n".encode())))
    assert cli("translate", str(runs["plain-1"]), "--json") == 0
    assert json.loads(written.getvalue().decode("utf-8"))["source"] == "über ☃"
    monkeypatch.setattr(sys, "stdin", None)
    assert cli("translate", str(runs["plain-1"])) == 2
    assert "standard input is closed" in capsys.readouterr().err


def test_an_unknown_word_can_be_replaced_by_what_was_looked_at(runs: dict[str, Path]) -> None:
    found = []
    for replace in (False, True):
        predictor = attnlab.load(runs["plain-1"], replace_unknown=replace)
        scores = next(p for name, p in predictor.models[0].named_parameters() if name.startswith("head.") and p.dim() == 1)
        with torch.no_grad():
            scores[1] = 100.0  # the unknown word's
        found.append(predictor.predict(["The old man ."])[0])
    plain, replaced = found
    assert set(plain.tokens[:-1]) == {"<unk>"}
    largest = plain.weights[:-1, :4].argmax(-1).tolist()
    assert replaced.tokens[:-1] == [["The", "old", "man", "."][j] for j in largest]


def test_a_terminal_is_shown_control_characters_and_a_file_is_given_them(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Prediction(0, "\x1b[2J ja", ["ja", "</s>"], ["yes", "</s>"], torch.ones(2, 2), 0.0, 0.0)
    monkeypatch.setattr(Predictor, "n_best", lambda self, lines: [[found] for _ in lines])
    (tmp_path / "in.txt").write_text("yes\n")
    translate = ["translate", str(runs["plain-1"]), "--input", "in.txt"]
    assert cli(*translate, "--output", "out.txt") == 0
    assert (tmp_path / "out.txt").read_text() == "\x1b[2J ja\n"
    capsys.readouterr()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert cli(*translate) == 0
    assert capsys.readouterr().out == "\\x1b[2J ja\n"
