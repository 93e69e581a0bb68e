"""``attnlab draw``."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from attnlab.evaluation import plots
from attnlab.runs.folder import RunFolder
from commands import TINY, Cli, cli, runs
from studies.folders import group, write_run

__all__ = ["cli", "runs"]


@pytest.mark.few(1)
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_drawn(ending: str, runs: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    both = [str(runs["plain-1"]), str(runs["copying-1"])]
    pair = ["--source", "The old man runs .", "--target", "Der alte Mann läuft 走る .", "--links", "0-0", "1-1"]
    assert cli("draw", "heatmaps", *both, *pair, "--output", f"h.{ending}") == 0
    assert cli("draw", "curves", *both, "--metric", "val/loss", "--output", f"c.{ending}") == 0
    assert cli("draw", "lengths", *both, "--output", f"l.{ending}") == 0
    assert all((tmp_path / f"{name}.{ending}").stat().st_size > 2000 for name in "hcl")
    if ending == "svg":
        assert "走る" in (tmp_path / "h.svg").read_text(encoding="utf-8")
        assert "copying" in (tmp_path / "c.svg").read_text(encoding="utf-8")
        assert all(word in (tmp_path / "l.svg").read_text(encoding="utf-8") for word in ("BLEU", "source length in words"))


def test_an_option_of_another_picture_is_refused(runs: dict[str, Path], cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("draw", "curves", str(runs["plain-1"]), "--output", "c.png", "--layer", "3") == 2
    assert "--layer is not of curves, but of heatmaps" in capsys.readouterr().err


def test_runs_of_two_folders_are_drawn_together_and_one_twice_is_not(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = runs["plain-1"]
    other = Path("elsewhere", *own.parts[-3:])
    shutil.copytree(own, other)
    assert cli("draw", "curves", str(own), str(other), "--output", "c.png") == 0
    assert cli("draw", "curves", str(own), f"{own.parent}/../{own.parent.name}/{own.name}", "--output", "c.png") == 2
    assert "the same run is named twice" in capsys.readouterr().err


def test_what_is_drawn_is_the_monitored_metric_unless_another_is_named(
    runs: dict[str, Path], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = str(runs["plain-1"])
    drawn = []
    for name in ("plot_curves", "plot_by_length"):
        draw = getattr(plots, name)

        def spy(data: object, metric: str, *unit: str, draw: object = draw, **titles: str) -> object:
            drawn.append((metric, titles.get("title", "")))
            return draw(data, metric, *unit, **titles)  # type: ignore[operator]

        monkeypatch.setattr(plots, name, spy)
    assert cli("draw", "curves", run, "--output", "c.svg") == 0
    assert cli("draw", "lengths", run, "--output", "l.svg") == 0
    assert cli("draw", "lengths", run, "--test", "test_long", "--metric", "accuracy", "--output", "l.svg") == 0
    assert cli("evaluate", run, "--label", "drawn", "--bootstrap", "1", "--test", "val") == 0
    assert cli("draw", "lengths", run, "--label", "drawn", "--test", "val", "--metric", "ter", "--output", "l.svg") == 0
    assert drawn == [("val/bleu", ""), ("BLEU", "test"), ("token accuracy (%)", "test_long"), ("TER (%)", "val")]


def test_a_variant_is_drawn_as_the_mean_of_its_seeds(runs: dict[str, Path], cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, dict[str, list[Any]]] = {}
    for name in ("plot_curves", "plot_by_length"):
        draw = getattr(plots, name)

        def spy(data: Any, metric: str, *unit: str, draw: Any = draw, name: str = name, **titles: str) -> Any:
            drawn[name] = {**drawn.get(name, {}), **data}
            return draw(data, metric, *unit, **titles)

        monkeypatch.setattr(plots, name, spy)
    variant, seeds = runs["plain-1"].parent, [runs["plain-1"], runs["plain-2"]]
    for what in ("curves", "lengths"):
        assert cli("draw", what, str(variant), str(runs["none-1"]), "--metric", "accuracy", "--output", "x.svg") == 0
        assert cli("draw", what, *map(str, seeds), "--metric", "accuracy", "--output", "x.svg") == 0
    for name, read in {"plot_curves": lambda point: point["val/accuracy"], "plot_by_length": lambda point: point.value}.items():
        own = next(iter(drawn[name].values()))
        values = [drawn[name][f"seed={seed}"] for seed in (1, 2)]
        assert [read(point) for point in own] == pytest.approx([(read(a) + read(b)) / 2 for a, b in zip(*values, strict=True)])
    assert cli("draw", "heatmaps", str(variant), "--source", "The old man runs .", "--output", "x.svg") == 0


def test_examples_that_are_drawn_in_blocks_have_each_its_own_length(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the questions of a story, and the windows of a series, are."""
    drawn: list[list[Any]] = []
    draw = plots.plot_by_length

    def spy(data: Any, *more: str, title: str) -> Any:
        drawn.extend(data.values())
        return draw(data, *more, title=title)

    monkeypatch.setattr(plots, "plot_by_length", spy)
    run = tmp_path / "runs" / "lengths" / "attention=dot" / "seed=1"
    write_run(run, ["attention=dot"], 1)
    assert cli("draw", "lengths", str(run), "--output", "x.svg") == 0
    group(RunFolder(run), "test", [number // 5 for number in range(24)])
    assert cli("draw", "lengths", str(run), "--output", "x.svg") == 0
    alone, together = drawn
    assert len(alone) > 1
    assert together == alone


def test_a_damaged_curve_is_told(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "metrics.jsonl").write_text('{"epoch": 0, "val/loss": 1.0}\n{"epoch": 1, "val\n')
    assert cli("draw", "curves", "torn", "--output", "x.png") == 2
    assert "metrics.jsonl, line 2, is damaged" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert cli("draw", "curves", "empty", "--output", "x.png") == 2
    assert "empty holds no metrics.jsonl" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_run_without_attention_or_an_empty_target_draws_nothing(
    runs: dict[str, Path], cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = ["--source", "The man runs.", "--output", "h.svg"]
    assert cli("draw", "heatmaps", str(runs["none-1"]), *drawn, "--head", "0") == 2
    assert "has no attention that could be drawn" in capsys.readouterr().err
    assert cli("draw", "heatmaps", str(runs["plain-1"]), *drawn, "--target", " ") == 2
    assert "--target is empty: leave it out" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_single_heads_are_drawn(cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two layers of four heads, each with its title; the weights of a panel are those of its head."""
    parts = ["encoder=transformer", "decoder=transformer", "attention=multihead"]
    assert cli("train", *TINY, *parts, "logger=none") == 0
    (run,) = (str(path) for path in tmp_path.glob("runs/train/*/seed=1"))
    drawn = [
        "draw",
        "heatmaps",
        run,
        "--source",
        "The old man runs .",
        "--target",
        "Der alte Mann rennt .",
        "--output",
        "h.svg",
    ]
    for more, layers, heads in (
        (["--layer", "1"], "1", "0123"),
        (["--head", "2"], "01", "2"),
        (["--layer", "0", "--head", "3"], "0", "3"),
    ):
        assert cli(*drawn, *more) == 0
        found = re.findall(r"layers\.(\d)\.\S*, head (\d)", (tmp_path / "h.svg").read_text(encoding="utf-8"))
        assert set(found) == {(layer, head) for layer in layers for head in heads}
    capsys.readouterr()
    assert cli(*drawn, "--layer", "2") == 2
    assert "has no such layer or head: there is layers.0" in capsys.readouterr().err
