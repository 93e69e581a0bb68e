"""``attnlab evaluate``."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from filelock import FileLock, Timeout

from attnlab.errors import UserError
from attnlab.evaluation.evidence import EXAMPLE
from attnlab.runs import evaluation, tested
from attnlab.runs.building import load_metrics
from attnlab.runs.evaluation import REPORTED
from attnlab.runs.files import BESIDE, LENGTHS, read_statistics
from attnlab.runs.folder import RunFolder
from attnlab.runs.loading import load
from attnlab.runs.tested import read_tested
from attnlab.search import GreedySearch
from commands import TINY, Cli, cli, runs
from tasks.translation.external import write_command

__all__ = ["cli", "runs"]


def test_evaluate_repeats_what_the_run_measured_and_what_sacrebleu_says(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run = RunFolder(runs["plain-1"])
    assert cli("evaluate", str(run.path), "--bootstrap", "50") == 0
    shown = capsys.readouterr().out
    told, recorded = run.read_evaluation("default")["tests"], run.read_result().tests
    metrics = load_metrics(run.read_config()["metrics"], run.path)
    for name, metric in metrics.items():
        assert (f"│ {metric.title} " in shown) == (name in told["test"]["metrics"])
    assert "confidence interval" in shown
    assert "1 to 5: " in shown
    for name in ("test", "test_long"):
        assert told[name]["examples"] == recorded[name]["examples"]
        assert told[name]["shift"] == recorded[name]["shift"]
        assert {*recorded[name]["metrics"]} <= {*told[name]["metrics"]}
        statistics = read_statistics(run.evaluation_statistics_file("default", name))
        assert {*statistics} == {*told[name]["metrics"], *BESIDE}
        for metric, one in recorded[name]["metrics"].items():
            again = told[name]["metrics"][metric]
            assert again["value"] == pytest.approx(one["value"], rel=1e-4, abs=1e-6)
            assert again["signature"] == one["signature"]
            if np.count_nonzero(statistics[metric].any(axis=1)) > 1:
                assert again["low"] <= again["high"]
            else:
                assert "low" not in again or again["low"] is again["high"] is None
            np.testing.assert_allclose(
                statistics[metric], read_statistics(run.statistics_file(name))[metric], rtol=1e-3, atol=1e-4
            )
    for name in ("ter", "bleu_forced_length"):  # which take long, and which no run measures itself
        assert name in told["test"]["metrics"]
        assert name not in recorded["test"]["metrics"]
    hypotheses = run.evaluation_hypotheses_file("default", "test")
    assert hypotheses.read_bytes() == run.hypotheses_file("test").read_bytes()

    (tmp_path / "ref.txt").write_text("\n".join(f"Satz {i} ." for i in range(16)) + "\n")
    (tmp_path / "src.txt").write_text("\n".join("The old man runs ." for _ in range(16)) + "\n")
    files = ["--files", "src.txt", "ref.txt", "--label", "mine", "search=greedy", "--bootstrap", "1"]
    assert cli("evaluate", str(run.path), *files) == 0
    assert "confidence interval" not in capsys.readouterr().out
    mine = run.read_evaluation("mine")
    assert mine["search"] == ["search=greedy"]
    assert cli("evaluate", str(run.path), *files, "--checkpoint", "last.ckpt") == 2
    assert "mine.json was made with other settings (checkpoint: " in capsys.readouterr().err
    written = run.evaluation_hypotheses_file("mine", "src")
    command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "ref.txt"), "-i", str(written)]
    printed = subprocess.run([*command, "--width", "4", "-b"], capture_output=True, text=True, check=True).stdout
    assert mine["tests"]["src"]["metrics"]["bleu"]["value"] == pytest.approx(float(printed), abs=1e-3)


@pytest.mark.exhaustive
def test_an_example_has_one_number_in_all_that_is_written_of_it(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In files of lines it is the line's; what is written as data tells it, whatever order it is in."""
    run = RunFolder(runs["plain-2"])
    sources, references = run.read_sources("test"), run.read_references("test")
    assert cli("evaluate", str(run.path), "--test", "test", "--label", "numbered", "--bootstrap", "1") == 0
    for path in (run.statistics_file("test"), run.evaluation_statistics_file("numbered", "test")):
        found = read_statistics(path)
        assert sorted(found[EXAMPLE]) == list(range(1, len(sources) + 1))
        for row, number in enumerate(found[EXAMPLE].astype(int).tolist()):
            assert found[LENGTHS][row] == len(sources[number - 1].split())
            assert found["character_loss"][row, 1] == len(references[number - 1])
    attention = run.read_attention()
    assert {shown["test"] for shown in attention} == {"test"}
    assert all(shown["lines"] == [side[shown[EXAMPLE] - 1] for side in (sources, references)] for shown in attention)
    assert len({shown[EXAMPLE] for shown in attention}) > 1
    capsys.readouterr()
    assert cli("translate", str(run.path), "--input", str(run.sources_file("test")), "--json", "--batch-size", "3") == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one[EXAMPLE], one["source"]) for one in told] == list(enumerate(sources, 1))
    assert [one["translations"][0]["text"] for one in told] == run.read_hypotheses("test")


def test_predictions_of_forced_length_are_as_long_as_the_references(runs: dict[str, Path]) -> None:
    predictor = load(runs["plain-1"])
    examples = predictor.task.examples("test")
    assert all(result.of_reference_length is None for result in predictor.examine(examples, "test"))
    found = [result.of_reference_length for result in predictor.examine(examples, "evaluation")]
    assert [one and len(one.tokens) for one in found] == [len(examples.target_tokens(index)) for index in range(len(examples))]
    predictor.search = GreedySearch()
    again = [result.of_reference_length for result in predictor.examine(examples, "evaluation")]
    assert [one and len(one.tokens) for one in again] == [one and len(one.tokens) for one in found]


@pytest.mark.parametrize("name", ["ter", "bleu_forced_length"])
def test_a_column_that_no_run_would_fill_is_told_before_training(
    name: str, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("train", *TINY, "logger=none", f"study.metrics=[bleu,{name}]") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"study.metrics has '{name}', which attnlab evaluate alone measures" in line


@pytest.mark.exhaustive
def test_tests_measure_forced_lengths_if_they_are_told_to(cli: Cli, tmp_path: Path) -> None:
    told = [
        "study.metrics=[bleu,bleu_forced_length]",
        "metrics.bleu_forced_length.in_tests=true",
        "trainer.limit_train_batches=1",
    ]
    assert cli("train", *TINY, "logger=none", *told) == 0
    (folder,) = tmp_path.glob("runs/train/*/seed=1")
    measured = RunFolder(folder).read_result().tests["test"]["metrics"]
    assert "tokens:spacy-mixed-" in measured["bleu_forced_length"]["signature"]


def test_an_ensemble_is_evaluated(runs: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    both = [str(shutil.copytree(runs[name], tmp_path / name)) for name in ("plain-1", "plain-2")]
    assert cli("evaluate", *both, "--label", "both", "--bootstrap", "1", "--test", "test") == 0
    first, second = map(RunFolder, map(Path, both))
    assert first.read_evaluation("both")["others"] == [both[1]]
    assert len(read_tested(first, "test", "both").of_examples("bleu")) == first.read_result().tests["test"]["examples"]
    record = second.read_record()
    assert record
    second.write_record(replace(record, id="another"))
    with pytest.raises(UserError, match=r"both.*trained anew .*plain-2\): evaluate again under another --label"):
        read_tested(first, "test", "both")


def test_attention_is_read_in_the_way_that_agrees_best_with_gold_links(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "choose_shifts", lambda _: {REPORTED: 1})
    run = RunFolder(runs["plain-2"])
    assert cli("evaluate", str(run.path), "--bootstrap", "1", "--label", "later", "--test", "test") == 0
    assert run.read_evaluation("later")["tests"]["test"]["shift"] == 1


def test_data_that_are_not_those_of_the_training_are_told(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = "the data are not those that"
    evaluate = ["--bootstrap", "1", "--test", "test"]
    folder = RunFolder(Path(shutil.copytree(runs["plain-1"], tmp_path / "copy")))
    assert cli("evaluate", str(folder.path), *evaluate, "--label", "once") == 0
    assert told not in caplog.text
    folder.write_result(replace(folder.read_result(), data="other"))
    folder.digests_file.unlink()
    assert cli("evaluate", str(folder.path), *evaluate, "--label", "again") == 0
    assert told in caplog.text


@pytest.mark.exhaustive
def test_an_evaluation_is_added_to_and_not_lost(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(runs["copying-1"])
    path = runs["copying-1"] / "evaluations" / "kept.json"
    evaluate = ["evaluate", run, "--bootstrap", "1", "--label", "kept"]
    assert cli(*evaluate, "--test", "test") == 0
    first = json.loads(path.read_text())["tests"]["test"]
    assert cli(*evaluate, "--test", "val") == 0
    content = path.read_text()
    assert json.loads(content)["tests"]["test"] == first
    assert list(json.loads(content)["tests"]) == ["test", "val"]

    (tmp_path / "test.en").write_text("The old man runs .\n")
    (tmp_path / "test.de").write_text("Der alte Mann rennt .\n")
    capsys.readouterr()
    for other in (["search.width=2"], ["--checkpoint", "last.ckpt"], ["--files", "test.en", "test.de"], ["--replace-unknown"]):
        assert cli(*evaluate, *other) == 2
        assert "choose another --label" in capsys.readouterr().err
    assert path.read_text() == content

    draw = ["draw", "lengths", run, "--label", "kept", "--test", "val", "--output", "x.png"]
    assert cli(*draw) == 0
    path.write_text('{"tests": {"val": {}}}')
    assert cli(*draw) == 2
    assert "kept.json is damaged" in capsys.readouterr().err
    path.write_text(content)
    for name, told in {"ids": "trained anew", "code": "other code", "version": "another version"}.items():
        path.write_text(json.dumps({**json.loads(content), name: ["another"]}))
        assert cli(*evaluate, "--test", "val") == 2
        assert told in capsys.readouterr().err
    path.write_text(content)
    path.with_name("kept.val.npz").write_bytes(b"PK")
    assert cli(*draw) == 2
    assert "kept.val.npz is damaged" in capsys.readouterr().err
    path.with_name("kept.val.npz").unlink()
    assert cli(*draw) == 2
    assert "holds no evaluations/kept.val.npz" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_unknown_words_are_replaced_where_the_run_did_so_in_its_test(runs: dict[str, Path], cli: Cli) -> None:
    run = runs["unknown-1"]
    reported = (run / "hypotheses" / "test.txt").read_text(encoding="utf-8")
    assert reported.strip()
    assert "<unk>" not in reported
    for label, flags in {"own": [], "without": ["--no-replace-unknown"]}.items():
        assert cli("evaluate", str(run), "--test", "test", "--bootstrap", "1", "--label", label, *flags) == 0
    assert (run / "evaluations" / "own.test.txt").read_text(encoding="utf-8") == reported
    assert "<unk>" in (run / "evaluations" / "without.test.txt").read_text(encoding="utf-8")


def test_of_two_evaluations_with_one_label_one_writes_at_a_time(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(runs["none-1"])
    write, tried = tested.write_lines, []

    def try_to_write(path: Path, lines: list[str]) -> None:
        with pytest.raises(Timeout), FileLock(run.evaluations / "alone.lock", timeout=0):
            pass
        tried.append(path.name)
        write(path, lines)

    monkeypatch.setattr(tested, "write_lines", try_to_write)
    assert cli("evaluate", str(run.path), "--bootstrap", "1", "--label", "alone", "--test", "test") == 0
    assert tried == ["alone.test.txt"]


@pytest.mark.exhaustive
def test_what_says_that_there_is_a_test_is_written_last(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise UserError("the disk is full")

    run = RunFolder(runs["none-1"])
    evaluate = ["evaluate", str(run.path), "--bootstrap", "1", "--label", "torn", "--test", "test"]
    with monkeypatch.context() as patch:
        patch.setattr(tested, "write_statistics", fail)
        assert cli(*evaluate) == 2
    assert run.evaluation_hypotheses_file("torn", "test").is_file()
    assert run.read_evaluation("torn") == {}
    assert cli(*evaluate) == 0
    assert list(run.read_evaluation("torn")["tests"]) == ["test"]


def test_an_evaluation_into_one_language_is_not_added_to_without_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.evaluations.mkdir()
    folder.write_evaluation("mine", {"search": [], "to": "fr", "tests": {}})
    for settings, told in (({"search": []}, "to: fr, and now none"), ({"search": [], "to": "de"}, "to: fr, and now de")):
        with pytest.raises(UserError, match=told):
            tested.read_earlier_tests(folder, "mine", settings, {})
    assert tested.read_earlier_tests(folder, "mine", {"search": [], "to": "fr"}, {}) == {}


# other metrics than the run's own

COMET = ["metrics=comet", "--test", "test", "--bootstrap", "20"]


@pytest.mark.exhaustive
def test_a_trained_run_is_measured_by_another_package(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = write_command(tmp_path / "environment")
    pair = [str(runs["none-1"]), str(runs["plain-1"])]
    changed = [*COMET, f"metrics.comet.program={program}", "search=greedy"]
    for path in pair:
        assert cli("evaluate", path, *changed, "--label", "comet") == 0
        shown = capsys.readouterr().out
        assert "│ COMET " in shown
        assert "│ BLEU " in shown
        run = RunFolder(Path(path))
        told = run.read_evaluation("comet")
        own = read_statistics(run.evaluation_statistics_file("comet", "test"))["comet"]
        lines = run.evaluation_hypotheses_file("comet", "test").read_text(encoding="utf-8").splitlines()
        np.testing.assert_array_equal(own, [[len(line.split()) / 8, 1.0] for line in lines])
        assert told["tests"]["test"]["metrics"]["comet"]["value"] == pytest.approx(mean(own[:, 0]))
        assert list(told["metrics"]) == ["comet"]

    compare = ["compare", *pair, "--metric", "comet", "--samples", "100"]
    assert cli(*compare, "--label", "comet") == 0
    assert " COMET " in capsys.readouterr().out

    def refused(message: str, *arguments: str) -> None:
        assert cli(*arguments) == 2
        assert message in capsys.readouterr().err

    refused("has no metric 'comet'", *compare)
    others = ["evaluate", pair[0], "--label", "comet"]
    refused("made with other settings (metrics: comet, and now none)", *others, "--test", "test", "search=greedy")
    refused("(metrics: comet, and now set otherwise)", *others, *changed, "metrics.comet.model=other")
    evaluation = RunFolder(Path(pair[1])).evaluation_file("comet")
    evaluation.write_text(evaluation.read_text().replace("unbabel-comet-2.2.7", "unbabel-comet-2.3.0"))
    refused("comet is not the same metric in ", *compare, "--label", "comet")


@pytest.mark.exhaustive
def test_a_command_that_is_missing_is_told_before_the_search(
    runs: dict[str, Path], cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object) -> None:
        raise AssertionError("it has begun")

    monkeypatch.setattr("attnlab.tasks.predictor.Predictor.examine", search)
    monkeypatch.setenv("PATH", "")
    assert cli("evaluate", str(runs["plain-1"]), "metrics=comet", "--label", "missing") == 2
    told = capsys.readouterr().err
    assert told.startswith("attnlab: metrics.comet: there is no command 'comet-score': install unbabel-comet in an environment")
    assert len(told.splitlines()) == 1


def test_a_class_of_the_training_that_is_not_at_hand_is_told_in_a_line(
    runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as a callback, which nothing but its training imports."""

    def look(*_: object) -> str:
        raise ModuleNotFoundError("No module named 'mycallbacks'")

    monkeypatch.setattr(tested, "hash_run_code", look)
    assert cli("evaluate", str(runs["plain-1"]), "search=greedy", "--label", "other") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{runs['plain-1']} cannot be opened (No module named 'mycallbacks'" in line


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["metrics=commet"], "no option 'commet' of metrics: did you mean 'comet'?"),
        (["metrics.bleu.smothing=exp"], "no key 'smothing' in 'metrics.bleu': did you mean 'smoothing'?"),
        (["metric=comet"], "metrics=OPTION and metrics.KEY=VALUE"),
    ],
)
def test_metrics_that_there_are_not_are_refused(
    words: list[str], told: str, runs: dict[str, Path], cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("evaluate", str(runs["plain-1"]), *words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_metric_of_ones_own_measures_a_trained_run(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "conf" / "metrics").mkdir(parents=True)
    (tmp_path / "conf" / "metrics" / "mine.yaml").write_text("defaults: [common]\nmine: {_target_: afterwards.Mine}\n")
    (tmp_path / "afterwards.py").write_text(
        "from attnlab.evaluation.metrics import ExactMatch\nclass Mine(ExactMatch):\n    label = 'mine'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    evaluate = ["evaluate", str(runs["plain-1"]), "--test", "test", "--bootstrap", "1", "--label", "own"]
    assert cli(*evaluate, "-cd", "conf", "metrics=mine") == 0
    assert "│ mine " in capsys.readouterr().out


@pytest.mark.exhaustive
def test_a_study_has_a_column_of_another_package(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", *TINY, "logger=none", "metrics=comet", "metrics.comet.in_tests=true", "study.metrics=[comet]"]
    assert cli(*train, f"metrics.comet.program={tmp_path / 'nothing'}") == 2
    assert "metrics.comet: there is no command" in capsys.readouterr().err
    assert not list(tmp_path.glob("runs/train/*/seed=1/*.ckpt")), "before the training"
    program = write_command(tmp_path / "environment")
    assert cli(*train, f"metrics.comet.program={program}") == 0
    (run,) = (path.parent for path in tmp_path.glob("runs/train/*/seed=1/result.json"))
    assert "comet" in RunFolder(run).read_result().tests["test"]["metrics"]


# comparisons
