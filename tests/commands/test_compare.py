"""``attnlab compare``, of runs and of evaluations."""

import json
import math
import shutil
from pathlib import Path
from statistics import mean

import pytest

from attnlab.commands._models import name_runs
from attnlab.runs.building import load_metrics
from attnlab.runs.files import write_lines
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import collect
from attnlab.studies.contrasts import PAIRS, Contrast, MeasuredVariants, Pair, compare
from attnlab.studies.names import Significance
from commands import Cli, cli, runs
from studies.folders import write_study

__all__ = ["cli", "runs"]


def test_compare_asks_for_the_same_seeds(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variant = runs["plain-1"].parent
    same = shutil.copytree(variant, tmp_path / "same")
    assert cli("compare", str(variant), str(same), "--samples", "100") == 0
    shown = capsys.readouterr().out
    assert "+0.00" in shown
    assert "1.0000" in shown
    values = [RunFolder(runs[name]).read_result().metric("test", "bleu") or 0.0 for name in ("plain-1", "plain-2")]
    assert f"{mean(values):.2f}" in shown, "as in the report"
    assert "means over 2 seeds" in shown
    assert "it speaks of the variants, whatever seeds they are trained with (2 seeds a variant; " in shown
    assert "not comparable" not in shown
    assert cli("compare", str(variant), str(runs["none-1"].parent), "--samples", "100") == 2
    assert "compare the same seeds" in capsys.readouterr().err


def test_a_run_without_a_value_is_left_out_as_in_a_table(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = write_study(tmp_path / "holes", skills={"attention=none": 0.6, "attention=dot": 0.9}, states={}, examples=6)
    one, other = (folder / f"attention={name}" for name in ("none", "dot"))
    run = RunFolder(other / "seed=2")
    result = run.read_result()
    result.tests["test"]["metrics"]["bleu"]["value"] = math.nan
    run.write_result(result)
    told = MeasuredVariants.of_study(collect(folder), "test", "bleu").over_seeds("dot", "none")
    assert isinstance(told, Contrast)
    assert cli("compare", str(one), str(other), "--metric", "bleu") == 0
    shown = capsys.readouterr().out
    assert f"{told.difference.value:+.2f}" in shown
    assert f"{told.p:.4f}" in shown
    assert f"left out, since their BLEU is no finite number: {run.path}\n" in shown
    assert cli("compare", str(one), str(other), "--metric", "bleu", "--significance", "models") == 0
    shown = capsys.readouterr().out
    assert "means over 2 seeds" in shown
    assert f"left out, with their seeds in all systems, since their BLEU is no finite number: {run.path}\n" in shown
    assert cli("compare", str(one / "seed=2"), str(run.path), "--metric", "bleu") == 2
    assert "bleu is no finite number of any run" in capsys.readouterr().err
    third = RunFolder(other / "seed=3")
    result = third.read_result()
    result.tests["test"]["metrics"]["bleu"]["value"] = math.nan
    third.write_result(result)
    assert cli("compare", str(one), str(other), "--metric", "bleu") == 2, "and no other test is made in silence"
    assert f"only one run of {other} has a value of BLEU" in capsys.readouterr().err


@pytest.mark.parametrize("significance", ["seeds", "models"])
def test_seeds_with_examples_of_their_own_are_pairs_as_in_a_report(
    significance: Significance, cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = write_study(tmp_path / "drawn", skills={"attention=none": 0.6, "attention=dot": 0.8}, states={})
    one, other = (folder / f"attention={name}" for name in ("none", "dot"))
    for path in folder.glob("*/seed=*"):
        run = RunFolder(path)
        write_lines(run.references_file("test"), [f"{path.name} {line}" for line in run.read_references("test")])
    pair = Pair("test", "dot", "none")
    sets = {"test": MeasuredVariants.of_study(collect(folder), "test", "bleu")}
    told = compare(significance, sets, [pair], samples=500)[pair]
    assert isinstance(told, Contrast)
    assert told.pairs_share == "examples"
    command = ["compare", str(one), str(other), "--metric", "bleu", "--significance", significance, "--samples", "500"]
    assert cli(*command) == 0
    shown = capsys.readouterr().out
    assert f"{told.difference.value:+.2f}" in shown
    assert f"{told.p:.4f}" in shown
    assert (PAIRS["examples"] in shown) == (significance == "seeds")
    run = RunFolder(other / "seed=1")
    write_lines(run.references_file("test"), [f"or {line}" for line in run.read_references("test")])
    assert cli(*command) == 2
    assert f"{run.path} was tested against other references than {one / run.path.name}" in capsys.readouterr().err


@pytest.mark.parametrize("metric", ["bleu", "exact", "loss"])
def test_systems_are_compared_by_any_metric(
    metric: str,
    runs: dict[str, Path],
    cli: Cli,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "600")
    first, second, other = (RunFolder(runs[name]) for name in ("plain-1", "plain-2", "none-1"))
    command = ["compare", str(first.path), str(second.path), str(other.path), "--metric", metric]
    assert cli(*command, "--samples", "200") == 0
    shown = capsys.readouterr().out
    declared = load_metrics(first.read_config()["metrics"], first.path)[metric]
    assert declared.title in shown
    names = {path: name for name, path in name_runs([first.path, second.path, other.path]).items()}
    for run in (second, other):
        values = [one.read_result().metric("test", metric) or 0.0 for one in (run, first)]
        row = next(line for line in shown.splitlines() if names[run.path].splitlines()[0] in line)
        assert f"{values[0]:.{declared.digits}f}" in row
        assert f"{values[0] - values[1]:+.{declared.digits}f}" in row
    assert "it speaks of these trained models, and not of the variants with other seeds (1 seed a variant; " in shown
    assert "p corrected by Holm over 2 comparisons" in shown


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("runs/mine/attention=dot/seed=1", "dot"),
        ("runs/mine/attention=dot,decoder=gnmt/seed=1", "decoder=gnmt, dot"),
        ("exports/my-model", "my-model"),
    ],
)
def test_one_run_is_called_by_its_variant_and_a_folder_by_its_name(place: str, name: str) -> None:
    assert name_runs([Path(place)]) == {name: Path(place)}


def test_the_p_of_several_systems_is_corrected(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "600")
    skills = {"attention=none": 0.6, "attention=dot": 0.62, "attention=additive": 0.64}
    folder = write_study(tmp_path / "three", skills=skills, states={})
    paths = [str(folder / variant) for variant in skills]
    for significance in ("seeds", "models"):
        assert cli("compare", *paths, "--metric", "bleu", "--significance", significance) == 0
        rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
        (smaller, first), (larger, second) = sorted((float(row[5]), float(row[6])) for row in rows)
        assert 0.001 < smaller < larger < 1
        assert first == pytest.approx(min(1, 2 * smaller), abs=2e-4)
        assert second == pytest.approx(max(first, larger), abs=2e-4)


@pytest.mark.exhaustive
def test_only_what_was_tested_alike_is_compared(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = "one", "two"
    for name, run in ((one, runs["plain-1"]), (two, runs["plain-2"])):
        shutil.copytree(run, tmp_path / name)
    assert cli("compare", one, two, "--samples", "100") == 0  # runs alone may differ in their seeds
    (tmp_path / "short.en").write_text("The old man runs .\nThe woman sings .\n")
    for run, text in ((one, "Der alte Mann rennt .\nDie Frau singt .\n"), (two, "Der alte Mann läuft .\nDie Frau singt .\n")):
        assert cli("evaluate", run, "--bootstrap", "1", "--label", "short", "--test", "test", "search=greedy") == 0
        (tmp_path / "short.de").write_text(text)
        files = ["--files", "short.en", "short.de", "--label", "files"]
        assert cli("evaluate", run, "--bootstrap", "1", *files) == 0
    assert cli("compare", one, two, "--samples", "100", "--label", "short") == 0
    capsys.readouterr()

    def refused(message: str, *arguments: str, other: str = "other") -> None:
        assert cli("compare", one, other, *arguments) == 2
        assert message in capsys.readouterr().err

    refused("two was tested against other references than one", "--label", "files", "--test", "short", other=two)
    other = tmp_path / "other"
    shutil.copytree(tmp_path / two, other)
    (other / "digests.json").unlink()  # for what is changed below stands for what another run wrote
    references = other / "texts" / "test.target.txt"
    references.write_text(references.read_text().replace(".", "!"))
    refused("other was tested against other references than")
    shutil.copy(tmp_path / two / "texts" / "test.target.txt", references)
    result = other / "result.json"
    text = result.read_text()
    result.write_text(text.replace("case:mixed", "case:lc"))
    refused("bleu is not the same metric in other: ")
    assert cli("compare", one, "other", "--metric", "aer", "--samples", "100") == 0
    changed = {**json.loads(text), "code": "beef", "data": "f00d"}
    result.write_text(json.dumps(changed))
    capsys.readouterr()
    assert cli("compare", one, "other", "--samples", "100") == 0
    shown = capsys.readouterr().out
    for kind in ("code", "data"):
        assert f"not comparable: these runs differ in {kind} (" in shown
    result.write_text(text)
    (other / "statistics" / "test.npz").unlink()
    capsys.readouterr()
    refused("other holds no statistics/test.npz")


@pytest.mark.exhaustive
def test_evaluations_of_other_settings_are_told_where_they_are_put_together(
    runs: dict[str, Path], cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.runs.loading.CPU_HAS_BFLOAT16", True)  # where it has not, it is only slower
    one, other = (str(runs[name]) for name in ("plain-1", "copying-1"))
    for run, settings in ((one, ["search=greedy"]), (other, ["search=beam", "--precision", "bfloat16"])):
        for label, chosen in (("same", []), ("mixed", settings)):
            assert cli("evaluate", run, *chosen, "--label", label, "--test", "test", "--bootstrap", "1") == 0
    capsys.readouterr()
    told = [
        "not of one kind: these evaluations differ in search (search=beam; search=greedy), by which figures differ too",
        "not of one kind: these evaluations differ in precision (bfloat16; float32), by which figures differ too",
    ]
    for command in (["compare", one, other], ["draw", "lengths", one, other, "--output", "x.svg"]):
        assert cli(*command, "--label", "same") == 0
        assert "not of one kind: these evaluations" not in "".join(capsys.readouterr())
        assert cli(*command, "--label", "mixed") == 0
        shown = "".join(capsys.readouterr())
        assert all(note in shown for note in told)
