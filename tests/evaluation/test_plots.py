"""Figures as files: their fonts, and text that is no formula."""

import math
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, findfont
from matplotlib.ft2font import FT2Font

from attnlab.errors import UserError
from attnlab.evaluation import fonts, plots
from attnlab.evaluation.measurement import Bucket


def test_a_font_is_found_for_every_letter_that_any_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter that the first font lacks: of those that have it one called Noto is taken; one that is gone is no mistake."""
    serif, first = findfont("DejaVu Serif"), FT2Font(findfont(fonts.FIRST)).get_charmap()
    lacking = next(chr(code) for code in FT2Font(serif).get_charmap() if code not in first)
    entries = [
        FontEntry(fname=str(tmp_path / "gone.ttf"), name="Noto Gone"),
        FontEntry(fname=serif, name="A Serif"),
        FontEntry(fname=serif, name="Noto Serif"),
        FontEntry(fname=serif, name="STIX Symbols"),
    ]
    monkeypatch.setattr(fonts.fontManager, "ttflist", entries)
    assert fonts.choose_fonts("läuft") == [fonts.FIRST]
    assert fonts.choose_fonts(f"läuft {lacking}") == [fonts.FIRST, "Noto Serif"]
    plots.save(plots.plot_side_by_side({"": (torch.ones(1, 1), [f"走{lacking}"], ["läuft"])}), tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
    (token,) = (line for line in drawn.splitlines() if f"走{lacking}" in line)
    assert "Noto Serif" in token


def test_dollar_signs_are_text(tmp_path: Path) -> None:
    """Between two of them matplotlib reads a formula, and this one is none."""
    weights, source, target = torch.ones(1, 2), ["$^$", "b"], ["$\\x$"]
    plots.save(plots.plot_side_by_side({"$_$": (weights, source, target)}), tmp_path / "one.svg")
    maps = {"$_$": (weights, source, target)}
    plots.save(plots.plot_side_by_side(maps), tmp_path / "both.svg")
    plots.save(plots.plot_by_length({"$_$": [Bucket(1, 5, 2, 0.5)]}, "$x$", "words", title="$^$"), tmp_path / "lengths.svg")
    plots.save(plots.plot_curves({"$_$": [{"epoch": 0, "val/bleu": 1.0}]}, "val/bleu"), tmp_path / "curves.svg")
    for name in ("one", "both", "lengths", "curves"):
        assert "$_$" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("error", [MemoryError("std::bad_alloc"), ValueError("Image size of 99999x9 pixels is too large.")])
def test_a_picture_that_is_too_large_is_told(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(UserError, match=r"x\.png: the picture would be too large: draw less"):
        plots.save(plots.plot_side_by_side({"": (torch.ones(1, 1), ["a"], ["b"])}), tmp_path / "x.png")


def test_an_svg_holds_no_control_characters(tmp_path: Path) -> None:
    """No reader of XML takes them."""
    plots.save(plots.plot_side_by_side({"": (torch.ones(1, 1), ["a\x01b"], ["\x1b[0m"])}), tmp_path / "x.svg")
    drawn = ElementTree.parse(tmp_path / "x.svg")
    assert {"a\\x01b", "\\x1b[0m"} <= {
        "".join(text.itertext()).strip() for text in drawn.iter("{http://www.w3.org/2000/svg}text")
    }


def test_any_metric_is_drawn_by_the_length_of_the_source() -> None:
    short, long = Bucket(1, 5, 3, 0.4), Bucket(6, 9, 2, -0.2)
    axes = plots.plot_by_length({"a": [short, long], "b": [Bucket(6, 10, 2, math.nan)]}, "gain", "words", title="test").axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("source length in words", "gain", "test")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1-5", "6-10"]
    assert [line.get_xydata().tolist() for line in axes.get_lines()[:1]] == [[[0.0, 0.4], [1.0, -0.2]]]
    assert axes.get_ylim()[0] <= -0.2, "no value is cut off"
    assert plots.plot_by_length({"a": [short]}, "gain", "words", "test").axes[0].get_ylim()[0] == 0.0


def test_letters_that_no_font_has_are_told_once_and_other_warnings_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    figure = plots.plot_side_by_side({"": (torch.ones(1, 1), ["\ue000"], ["b"])})
    write = figure.savefig

    def savefig(*arguments: object, **options: object) -> None:
        warnings.warn("of something else", stacklevel=1)
        write(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(figure, "savefig", savefig)
    plots._tell_of_letters.cache_clear()
    with pytest.warns(UserWarning, match="of something else") as told:
        plots.save(figure, tmp_path / "x.png")
    assert len(told) == 1
    assert caplog.text.count("no installed font has all letters") == 1
    other = plots.plot_side_by_side({"": (torch.ones(1, 1), ["\ue000"], ["c"])})
    plots.save(other, tmp_path / "y.png")
    assert caplog.text.count("no installed font has all letters") == 1
    plots._tell_of_letters.cache_clear()
    plots.save(other, tmp_path / "x.svg")
    assert caplog.text.count("no installed font has all letters") == 1, "in SVG text stays text"


def test_a_figure_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        plots.save(plots.plot_side_by_side({"": (torch.ones(1, 1), ["a"], ["b"])}), tmp_path / "no" / "x.png")


def test_no_two_of_42_lines_look_alike() -> None:
    figure = plots.plot_curves({str(number): [{"epoch": 0, "val/loss": number}] for number in range(42)}, "val/loss")
    assert len({(line.get_color(), line.get_marker()) for line in figure.axes[0].get_lines()}) == 42
