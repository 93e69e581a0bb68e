"""Figures as files: their fonts, and text that is no formula."""

from pathlib import Path

import pytest
import torch

from attnlab.errors import UserError
from attnlab.evaluation import plots
from attnlab.evaluation.heatmaps import heatmap


def test_every_installed_font_is_looked_through_for_a_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "FONTS", ["DejaVu Sans", "No Such Font", "DejaVu Serif"])  # matplotlib brings the two
    plots.save(heatmap(torch.ones(1, 1), ["走る"], ["läuft"]), tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
    (token,) = (line for line in drawn.splitlines() if "走る" in line)
    assert "DejaVu Serif" in token
    assert "No Such Font" not in drawn


def test_dollar_signs_are_text(tmp_path: Path) -> None:
    """Between two of them matplotlib reads a formula, and this one is none."""
    weights, source, target = torch.ones(1, 2), ["$^$", "b"], ["$\\x$"]
    plots.save(heatmap(weights, source, target, title="$_$"), tmp_path / "one.svg")
    looks = {"$_$": (weights, source, target)}
    plots.save(plots.side_by_side(looks, title="$^$"), tmp_path / "both.svg")
    plots.save(plots.curves({"$_$": [{"epoch": 0, "val/bleu": 1.0}]}, "val/bleu", title="$^$"), tmp_path / "curves.svg")
    for name in ("one", "both", "curves"):
        assert "$_$" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


def test_a_figure_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        plots.save(heatmap(torch.ones(1, 1), ["a"], ["b"]), tmp_path / "no" / "x.png")
